"""A test after which the device does nothing more ends its process: the tests that follow would all fail for it.

On a card, and on target cuda, a kernel that stops takes the device from its process. `pytest -n` replaces the process
and says which test it was running; without -n the session ends there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

_known: list[str] = []
"""The target, once the device has been used."""


def why_lost(torch: Any, *, inside: bool = False) -> str | None:
    """What the device says instead of working; None while it works, and on the host, whose device recovers.

    ``inside`` a test nothing is called that a test may have replaced, such as what finds the target.
    """
    musa = getattr(torch, "musa", None)
    if musa is None or not musa.is_initialized():
        return None
    if not _known and not inside:
        _known.append(musa.target())
    if _known in ([], ["host"]):
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
    """Looks at the device after each phase of a test."""
    report = yield
    lost = why_lost(sys.modules.get("torch"), inside=call.when == "call")
    if lost is None:
        return report
    text = f"{item.nodeid} has lost the device: {lost}"
    if not hasattr(item.config, "workerinput"):
        pytest.exit(f"{text}\n{report.longreprtext}", returncode=3)
    print(f"\n{text}\n{report.longreprtext}", file=sys.__stderr__, flush=True)
    os._exit(3)
