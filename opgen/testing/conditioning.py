"""How far right results may lie apart where a function magnifies the rounding of its inputs.

A fixed tolerance suits functions that pass relative errors on as they are. A complex power, or the derivative of a
normalization over numbers that hardly differ, multiplies them by hundreds: two right kernels, each exact for inputs an
ulp away, then differ by hundreds of ulps. The CPU itself shows by how much when its inputs move by an ulp (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.6: forward error is at most condition number times
backward error).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from opgen.testing.case import Case, TensorSpec
from opgen.testing.compare import tolerance

_TRIES = 4
_EXACT = (torch.float32, torch.float64)


def excused(
    case: Case,
    compute: Callable[[Case], Sequence[Tensor] | None],
    wanted: Sequence[Tensor],
    got: Sequence[Tensor],
    terms: int = 1,
) -> bool:
    """Whether ``got`` lies no further from ``wanted`` than the CPU's results move when its inputs move.

    ``compute`` gives the CPU's results for a case, in the order of ``wanted``, and None where it refuses. Of each
    element the largest movement of a few counts, as often as the tolerance has ulps. A movement by more than half of
    the digits is a jump (a rounding, a comparison), which excuses nothing; neither does a nan or an infinity.
    """
    if not any(_moves(spec) for _, spec in case.tensors()):
        return False
    spreads = [torch.zeros(value.shape, dtype=torch.float64) for value in wanted]
    for seed in range(_TRIES):
        generator = torch.Generator().manual_seed(seed)
        moved = compute(case.with_tensors(lambda spec: _moved(spec, generator)))  # noqa: B023  # called at once
        if moved is None or [value.shape for value in moved] != [value.shape for value in wanted]:
            return False
        spreads = [
            torch.maximum(spread, (_wide(one) - _wide(value)).abs().nan_to_num(float("inf"), float("inf")))
            for spread, one, value in zip(spreads, moved, wanted, strict=True)
        ]
    return all(_within(value, other, spread, terms) for value, other, spread in zip(wanted, got, spreads, strict=True))


def _moves(spec: TensorSpec) -> bool:
    return spec.dtype.to_real() in _EXACT if spec.dtype.is_complex else spec.dtype in _EXACT


def _moved(spec: TensorSpec, generator: torch.Generator) -> TensorSpec:
    """The tensor with each number of its storage an ulp up, an ulp down, or as it was."""
    if not _moves(spec):
        return spec
    real = torch.view_as_real(spec.base.resolve_conj().resolve_neg()) if spec.dtype.is_complex else spec.base
    steps = torch.randint(-1, 2, real.shape, generator=generator).to(real.dtype)
    moved = real * (1 + steps * torch.finfo(real.dtype).eps)
    moved = torch.where(moved.isfinite(), moved, real)
    return replace(spec, base=torch.view_as_complex(moved) if spec.dtype.is_complex else moved)


def _wide(value: Tensor) -> Tensor:
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def _within(wanted: Tensor, got: Tensor, spread: Tensor, terms: int) -> bool:
    real = wanted.dtype.to_real() if wanted.is_complex() else wanted.dtype
    if real not in _EXACT or got.shape != wanted.shape:
        return bool(wanted.dtype == got.dtype and torch.equal(wanted, got))
    eps = torch.finfo(real).eps
    rtol, atol = tolerance(real, terms)
    size = _wide(wanted).abs()
    spread = torch.where(spread <= eps**0.5 * size.clamp(min=4), spread, torch.zeros_like(spread))
    allowed = atol + rtol * size + rtol / eps * spread
    same = (wanted == got) | (wanted.isnan() & got.isnan())
    return bool((same | ((_wide(got) - _wide(wanted)).abs() <= allowed)).all())
