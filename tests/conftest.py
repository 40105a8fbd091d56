"""What all tests share."""

from __future__ import annotations

import os
import signal

import pytest
from device_loss import pytest_runtest_makereport  # noqa: F401  (a hook)

# C++ warnings (an out= tensor that is resized, an operator that falls back) go to stderr from every one of thousands of
# cases; the tests that are about a warning turn it on again. Both have to be set before torch is imported.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
# refusals that a test asks for are not worth a line each
os.environ.setdefault("MUDNN_LOG_LEVEL", "FATAL")

# A shell starts what it puts in the background with SIGINT ignored, and programs inherit that; tests send it to theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _on_host() -> bool:
    import torch  # only now: the variables above are set

    return str(torch.musa.target()) == "host"


def _on_cuda() -> bool:
    import torch

    return str(torch.musa.target()) == "cuda"


def _two_devices() -> bool:
    import torch

    return int(torch.musa.device_count()) > 1


def _warps_of_32() -> bool:
    import torch

    return int(torch.musa.get_device_properties(0).warp_size) == 32


# What a test may ask of the modes that the environment puts the device in (`make profiles`), and why it has to:
# `@pytest.mark.needs("cache")`. The only place where a mode lets a test out.
NEEDS = {
    "cache": (
        lambda: "PYTORCH_NO_MUSA_MEMORY_CACHING" not in os.environ,
        "about the cache: without it a segment holds one tensor (test_memory_checking.py has what holds then)",
    ),
    "blocking launches": (
        lambda: _on_host() and os.environ.get("MUSA_LAUNCH_BLOCKING") != "0",
        "about what the call itself raises: later it comes from another call and sticks, as on a card "
        "(test_asynchronous.py)",
    ),
    "warps of 32 lanes": (
        _warps_of_32,
        "about kernels of PyTorch that take a warp for 32 lanes: on warps of 128 they are refused "
        "(test_ported_headers.py; a_ballot_of_128_lanes_in_an_integer_is_reported in tests/sdk)",
    ),
    "two devices": (_two_devices, "about two devices: here is one"),
    "cuda": (_on_cuda, "about what ATen's own CUDA operators do beside ours (tests/gpu/run.py)"),
    "host": (_on_host, "about the stand-in on the host: every other target is so by itself, or says it its own way"),
}


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
    for item in items:
        for need in [name for mark in item.iter_markers("needs") for name in mark.args]:
            if need not in NEEDS:
                raise pytest.UsageError(f"{item.nodeid}: no need is called {need!r}; there are {', '.join(NEEDS)}")
            holds, reason = NEEDS[need]
            if not holds():
                item.add_marker(pytest.mark.skip(reason=reason))
