"""A lost device costs the test that lost it, and no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The second test loses the device of its process, as a device-side assertion does.
CONFTEST = """
    import sys, types
    from device_loss import pytest_runtest_makereport

    def synchronize():
        if musa.lost:
            raise RuntimeError("device-side assert triggered")

    musa = types.SimpleNamespace(
        lost=False, target=lambda: "{target}", is_initialized=lambda: True, synchronize=synchronize
    )
    sys.modules["torch"] = types.SimpleNamespace(musa=musa)
"""
TESTS = """
    import sys
    import pytest

    @pytest.mark.parametrize("number", range(6))
    def test_it(number):
        musa = sys.modules["torch"].musa
        assert not musa.lost, "the device is gone"
        musa.lost = number == 1
        assert number != 1, "the kernel stops"
"""


def run(folder: Path, target: str, *options: str) -> str:
    for name, text in (("conftest.py", CONFTEST.replace("{target}", target)), ("test_it.py", TESTS)):
        (folder / name).write_text("\n".join(line[4:] for line in text.splitlines()))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_with_processes_the_one_that_lost_it_is_replaced(tmp_path: Path, processes: str) -> None:
    said = run(tmp_path, "cuda", "-n", processes)
    assert "1 failed, 5 passed" in said, said
    assert "test_it.py::test_it[1] has lost the device: device-side assert triggered" in said, said
    assert "the kernel stops" in said and "AssertionError: the device is gone" not in said


def test_in_one_process_the_session_ends_there(tmp_path: Path) -> None:
    said = run(tmp_path, "cuda")
    assert "test_it[1] has lost the device" in said and "the kernel stops" in said, said
    assert "AssertionError: the device is gone" not in said


def test_the_host_recovers_by_itself(tmp_path: Path) -> None:
    assert "has lost the device" not in run(tmp_path, "host")
