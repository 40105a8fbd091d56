"""The toolkit's C++ test binaries, case by case. They are built with the rest of the project."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Kernels are tested by sources in MUSA's own dialect.
SOURCES = {
    path.stem: path
    for pattern in ("*_test.cpp", "lending/*_test.cpp", "*_test.mu")
    for path in Path(__file__).parent.glob(pattern)
}
TIMEOUT_S = 300


def _binary(name: str) -> Path:
    torch_version = metadata.version("torch").split("+")[0]
    default = ROOT / "build" / f"host-torch{torch_version}"
    return Path(os.environ.get("TORCH_MUSA_BUILD_DIR", default)) / "bin" / name


def _run(name: str, *arguments: str, log_level: str = "FATAL", mode: str = "") -> subprocess.CompletedProcess[str]:
    # By default without the reasons of refusals: many cases provoke some, they would drown a real failure.
    environment = {**os.environ, "MUDNN_LOG_LEVEL": log_level}
    if mode == "asynchronous":
        environment["MUSA_LAUNCH_BLOCKING"] = "0"
    return subprocess.run(
        [_binary(name), *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False
    )


def _cases(name: str) -> list[str]:
    """The cases as the source spells them, so that collecting does not need the binary."""
    text = SOURCES[name].read_text()
    prefixes = {"UNARY_TEST": "unary_", "BINARY_TEST": "binary_"}
    suffixes = {"PROFILE_TEST": ("_mp_22", "_mp_31")}
    macros = r"^((?:[A-Z]+_)?TEST(?:_WITH_ENV|_DIES|_MODES)?)\((\w+)"
    found = re.findall(macros, text, re.MULTILINE)
    return [prefixes.get(macro, "") + case + suffix for macro, case in found for suffix in suffixes.get(macro, ("",))]


@functools.cache
def _verdicts(name: str, mode: str) -> dict[str, tuple[str, str]]:
    """Case -> PASS, FAIL or SKIP and the reason, from one run of the whole binary."""
    verdicts = {}
    for line in _run(name, mode=mode).stdout.splitlines():
        verdict, case, *reason = line.split(" ", 2)
        if verdict in ("PASS", "FAIL", "SKIP"):
            verdicts[case] = (verdict, reason[0] if reason else "")
    return verdicts


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_binary_is_built_and_lists_its_cases(name: str) -> None:
    assert _binary(name).is_file(), f"{_binary(name)} is missing: run `opgen build --with-tests`"
    listed = _run(name, "--list").stdout.split()
    assert listed == _cases(name)


ALL_CASES = [(name, case) for name in sorted(SOURCES) for case in _cases(name)]


# The runtime's cases must also hold when every stream has a thread of its own (MUSA_LAUNCH_BLOCKING=0).
MODES = [(name, case, "") for name, case in ALL_CASES] + [
    (name, case, "asynchronous") for name, case in ALL_CASES if name.startswith("runtime_")
]


@pytest.mark.parametrize(("name", "case", "mode"), MODES, ids=lambda value: value)
def test_case(name: str, case: str, mode: str) -> None:
    verdict, reason = _verdicts(name, mode).get(case, ("MISSING", ""))
    if verdict == "MISSING":  # the binary ended before it came to this case: what does it do alone?
        alone = _run(name, case, mode=mode)
        assert alone.returncode == 0, f"exit status {alone.returncode}\n{alone.stdout}{alone.stderr}"
    elif verdict == "SKIP":
        pytest.skip(reason)
    else:
        assert (verdict, reason) == ("PASS", "")


@pytest.mark.parametrize(
    ("level", "calls", "refusals"), [("INFO", True, True), ("ERROR", False, True), ("FATAL", False, False)]
)
def test_log_level(level: str, calls: bool, refusals: bool) -> None:
    log = _run("mudnn_binary_test", "binary_refuses", log_level=level).stderr
    assert ("muDNN(3300) INFO# Binary::Run TRUEDIV out=FLOAT[2,3] lhs=FLOAT[2,3] rhs=FLOAT[3] device=0" in log) == calls
    assert ("muDNN(3300) ERROR# INVALID_PARAMETER in Binary::Run, Reason: no mode set" in log) == refusals


# Calls that have no wrong arguments.
CANNOT_FAIL = {
    "musaGetErrorName",
    "musaGetErrorString",
    "musaGetLastError",
    "musaPeekAtLastError",
    "musaDeviceSynchronize",
    "musaDeviceGetStreamPriorityRange",  # null pointers are allowed
}


def test_every_call_of_the_runtime_is_given_bad_input() -> None:
    headers = "".join(
        (ROOT / "sdk" / "include" / name).read_text() for name in ("musa_runtime_api.h", "musa_runtime.h")
    )
    declared = set(re.findall(r"MUSART_API [\w ]+\*? ?(musa\w+)\(", headers))
    assert len(declared) > 80
    called = set(re.findall(r"musa[A-Z]\w+", (Path(__file__).parent / "runtime_bad_input_test.cpp").read_text()))
    assert sorted(declared - called - CANNOT_FAIL) == []
