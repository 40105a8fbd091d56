"""Operators against the CPU. `--device` names the one under test: the harness can be tried on the CPU itself."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """The device under test."""
    import torch

    name = str(request.config.getoption("--device"))
    # the suite runs in one process per core already
    torch.set_num_threads(1)
    torch.empty(1, device=name)
    return name
