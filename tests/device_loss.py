"""A test after which the device does nothing more ends its process: the tests that follow would all fail for it.

On a card, and on target cuda, a kernel that stops takes the device from its process. `pytest -n` replaces the process
and says which test it was running; without -n the session ends there.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Generator
from typing import Any

import pytest


@functools.cache
def _target(musa: Any) -> str:
    return str(musa.target())


def why_lost(torch: Any) -> str | None:
    """What the device says instead of working; None while it works, and on the host, whose device recovers."""
    musa = getattr(torch, "musa", None)
    if musa is None or not musa.is_initialized() or _target(musa) == "host":
        return None
    try:
        musa.synchronize()
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Looks at the device before and after a test: in between, the test may have replaced what this would call."""
    report = yield
    lost = None if call.when == "call" else why_lost(sys.modules.get("torch"))
    if lost is None:
        return report
    text = f"{item.nodeid} has lost the device: {lost}"
    if not hasattr(item.config, "workerinput"):
        pytest.exit(f"{text}\n{report.longreprtext}", returncode=3)
    print(f"\n{text}\n{report.longreprtext}", file=sys.__stderr__, flush=True)
    os._exit(3)
