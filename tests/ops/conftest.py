"""Operators against the CPU. `--device` names the device under test: the harness can be tried on the CPU itself."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="musa", help="device under test (default: musa)")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """The device under test."""
    import torch

    name = str(request.config.getoption("--device"))
    # the suite runs in one process per core already
    torch.set_num_threads(1)
    torch.empty(1, device=name)
    return name
