"""Shared by the tests of the device: one file here for each thing the device can do."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest
import torch

import torch_musa  # noqa: F401  (says what to do when nothing is built, instead of failing every test)

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_python(tmp_path) -> Run:
    """Runs code in a fresh interpreter: `run_python(code, NAME="value", check=True)`; None unsets a variable."""

    def run(code: str, *, check: bool = True, **environment: str | None) -> subprocess.CompletedProcess[str]:
        stand_in = [name for name in environment if name.startswith("TORCH_MUSA_HOST_")]
        if stand_in and torch.musa.target() != "host":
            pytest.skip(f"{stand_in[0]} is a switch of the stand-in on the host")
        env = {**os.environ, **{name: value for name, value in environment.items() if value is not None}}
        # tests/conftest.py quietens this process; a fresh one shows what a user would see
        for name in ("TORCH_CPP_LOG_LEVEL", "MUDNN_LOG_LEVEL", *(k for k, v in environment.items() if v is None)):
            env.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(autouse=True)
def device_zero():
    """Every test starts and ends on device 0 and its default stream."""
    torch.musa.set_device(0)
    torch.musa.set_stream(torch.musa.default_stream(0))
    yield
    torch.musa.set_device(0)
    torch.musa.set_stream(torch.musa.default_stream(0))
