"""Kernels keep to what a device compiler takes, also where the host's would take more.

nvcc reads a kernel's lambda twice, for the host and for the device. It was found on a GPU machine; these rules make the
same sources fail here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(ROOT / "kernels" / "ported").glob("*.cu"), *(ROOT / "kernels" / "ported").glob("*.cuh")])
LAMBDA = re.compile(r"\[([^\[\]]*)\]\s*(GPU_LAMBDA|__host__ __device__)\s*\(")


def lambdas(text: str) -> list[tuple[str, str]]:
    """Captures and body of each lambda that is the host's and the device's."""
    found = []
    for match in LAMBDA.finditer(text):
        start = text.index("{", match.end())
        depth, end = 0, start
        for end in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
        found.append((match.group(1), text[start : end + 1]))
    return found


def initialized(captures: str) -> bool:
    return bool(re.search(r"\w\s*=[^=]", captures))


def atomic(body: str) -> bool:
    return bool(re.search(r"\b(atomic|gpuAtomic)\w+\(", body))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_a_lambda_of_host_and_device_has_no_initialized_captures(source: Path) -> None:
    assert [captures for captures, _ in lambdas(source.read_text()) if initialized(captures)] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_a_lambda_of_host_and_device_calls_no_atomics_which_are_the_devices_alone(source: Path) -> None:
    assert [body for _, body in lambdas(source.read_text()) if atomic(body)] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_special_functions_come_from_where_a_device_compiler_finds_them(source: Path) -> None:
    named = re.findall(r"#include <(ATen/native/(?:cuda/)?Math\.c?u?h)>", source.read_text())
    assert source.name == "DeviceMath.cuh" or named == []


def test_the_rules_see_what_they_are_for() -> None:
    text = "run([=, n = cell.n] GPU_LAMBDA(int i) { atomicAdd(p + i, n); });"
    ((captures, body),) = lambdas(text)
    assert initialized(captures) and atomic(body)
    ((captures, body),) = lambdas("run([=] GPU_LAMBDA(int i) { if (i == 0) { use(i); } }); atomicAdd(p, 1);")
    assert not initialized(captures) and not atomic(body)


def test_the_build_leaves_packages_on_the_path_where_they_are() -> None:
    """A tool that CMake starts finds what the user's PYTHONPATH brings."""
    for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake"), *(ROOT / "sdk").rglob("*.cmake")]:
        assert not re.search(r"(?<!--modify )\bPYTHONPATH=", path.read_text()), path
