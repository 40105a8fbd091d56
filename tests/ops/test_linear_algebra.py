"""Determinants and solvers factorize A or its transpose, as the layout of A says; gradients rely on which."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "row major": lambda a: a,
    "column major": lambda a: a.mT,
    "every second row": lambda a: torch.cat([a, a], dim=-1).view(*a.shape[:-2], -1, a.shape[-1])[..., ::2, :],
    "one of a batch": lambda a: torch.stack([a, a])[1],
}
OPERATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "det": torch.linalg.det,
    "slogdet": lambda a: torch.linalg.slogdet(a).logabsdet,
    "solve": lambda a: torch.linalg.solve(a, a.sum(-1, keepdim=True).sin()),
    "solve from the right": lambda a: torch.linalg.solve(a, a.sum(-2, keepdim=True).sin(), left=False),
    "inv": torch.linalg.inv,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.filterwarnings("ignore:.*has no kernel for the musa device")
def test_gradient_equals_the_cpu_in_every_layout(operator: str, layout: str, device: str) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.rand(2, 3, 3, generator=generator, dtype=torch.float64) + 2 * torch.eye(3, dtype=torch.float64)

    def gradient(on: str) -> Tensor:
        leaf = LAYOUTS[layout](matrix.to(on)).detach().requires_grad_()
        (result,) = torch.autograd.grad(OPERATORS[operator](leaf).sum(), leaf)
        return result.cpu()

    torch.testing.assert_close(gradient(device), gradient("cpu"))


@pytest.mark.parametrize("name", ["qr", "cholesky", "eigh", "svd"])
def test_factors_multiply_back_and_lie_as_on_the_cpu(name: str, device: str) -> None:
    generator = torch.Generator().manual_seed(1)
    matrix = torch.rand(2, 4, 4, generator=generator)
    matrix = matrix @ matrix.mT + torch.eye(4)
    function = getattr(torch.linalg, name)
    found, expected = function(matrix.to(device)), function(matrix)
    for ours, theirs in zip(*((r,) if isinstance(r, Tensor) else r for r in (found, expected)), strict=True):
        assert ours.device.type == torch.device(device).type
        assert ours.stride() == theirs.stride()
        torch.testing.assert_close(ours.cpu(), theirs)


def test_trips_to_the_cpu_are_counted(device: str) -> None:
    if device == "cpu":
        pytest.skip("the CPU makes no trip to itself")
    before = torch.musa.fallback_counts().get("linalg_inv_ex.inverse", 0)
    torch.linalg.inv(torch.eye(3, device=device))
    assert torch.musa.fallback_counts()["linalg_inv_ex.inverse"] == before + 1


def test_singular_matrix_raises_as_on_the_cpu(device: str) -> None:
    for on in (device, "cpu"):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            torch.linalg.inv(torch.zeros(2, 2, device=on))
