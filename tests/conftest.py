"""What all tests share."""

from __future__ import annotations

import os
import signal

import pytest

# C++ warnings (an out= tensor that is resized, an operator that falls back) go to stderr from every one of thousands of
# cases; the tests that are about a warning turn it on again. Both have to be set before torch is imported.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
# refusals that a test asks for are not worth a line each
os.environ.setdefault("MUDNN_LOG_LEVEL", "FATAL")

# A shell starts what it puts in the background with SIGINT ignored, and programs inherit that; tests send it to theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="musa", help="device under test (default: musa)")
    parser.addoption(
        "--judge",
        choices=("sample", "all"),
        default="sample",
        help="tests/judge: all of PyTorch's databases, or one test in sixteen (default)",
    )
    parser.addoption(
        "--op",
        action="append",
        metavar="NAME",
        help="tests/judge: only this operator ('lerp', 'lerp.Scalar'); repeatable",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names with an address: each process would have its own, and `pytest -n` cannot share such tests out."""
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:
        raise pytest.UsageError(f"{unstable[0]}: the test's name holds an address; give its parameters ids")
