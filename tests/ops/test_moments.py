"""var_mean and std_mean beyond the sizes that the property tests draw."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch

BOTH = pytest.mark.parametrize("function", [torch.var_mean, torch.std_mean], ids=["var_mean", "std_mean"])


@BOTH
@pytest.mark.parametrize(("shape", "dim"), [((50_000, 40), 0), ((40, 50_000), 1), ((300_000,), 0)], ids=str)
def test_long_reductions_are_as_precise_as_the_dtype(function: Callable[..., tuple[torch.Tensor, ...]], shape, dim):
    torch.manual_seed(0)
    x = torch.randn(shape) + 100
    for got, wanted in zip(function(x.to("musa"), dim), function(x.double(), dim), strict=True):
        torch.testing.assert_close(got.cpu(), wanted.float(), rtol=3e-6, atol=0)


@BOTH
@pytest.mark.parametrize(
    "x", [torch.ones(3, 0), torch.ones(0, 3), torch.ones(1, 3), torch.ones(2, 3)], ids=["3x0", "0x3", "1x3", "2x3"]
)
def test_warnings_about_degrees_of_freedom_are_the_cpus(function: Callable[..., object], x: torch.Tensor) -> None:
    def said(operand: torch.Tensor) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(operand, 0)
        return [str(warning.message).partition(" (Triggered")[0] for warning in caught]

    assert said(x.to("musa")) == said(x)
