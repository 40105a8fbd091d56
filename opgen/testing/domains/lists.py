"""The _foreach family: lists of tensors that go pairwise, with a number, a list of numbers or a tensor of numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from opgen.testing.build import OMIT, Build, Domain
from opgen.testing.case import TensorSpec
from opgen.testing.overload import Argument
from opgen.testing.tensors import Numbers

_PLAIN = Numbers()
_POSITIVE = Numbers(0.5, 4)


def _prepare_lists(build: Build) -> dict[str, Any]:
    """Every list has as many tensors as ``self``, of the same shapes; one case in twelve has one too few."""
    shapes = [build.shape, *((build.size(1, 4),) * build.size(0, 2) for _ in range(build.size(0, 2)))]
    made: dict[str, Any] = {}
    for argument in build.op.inputs:
        kind = argument.kind
        if kind.base == "Tensor" and kind.many:
            of = replace(build.domain.numbers, nonzero=build.domain.numbers.nonzero or argument.name in _DIVISORS)
            tensors = [build.tensor(shape, of=of, expand=not argument.written) for shape in shapes]
            made[argument.name] = tensors[:-1] if made and len(tensors) > 1 and build.maybe(12) else tensors
        elif kind.base == "number" and kind.many:
            made[argument.name] = [_number(build, argument) for _ in shapes]
        elif kind.base == "number":
            made[argument.name] = OMIT if argument.has_default and build.maybe(3) else _number(build, argument)
        elif kind.base == "Tensor":
            made[argument.name] = _tensor_of_numbers(build, argument, len(shapes))
    return made


_DIVISORS = frozenset({"tensor2", "other"})


def _number(build: Build, argument: Argument) -> Any:
    if argument.name in {"exponent", "ord"}:
        return build.pick(2, 1, 3)
    if build.dtype.is_floating_point or build.dtype.is_complex:
        return build.pick(2.0, 0.5, 1.0, -1.5)
    return True if build.dtype == torch.bool else build.pick(2, 1, 3)


def _tensor_of_numbers(build: Build, argument: Argument, count: int) -> TensorSpec:
    """``scalars`` holds a number for each tensor and lies on the CPU; any other stands for one number."""
    if argument.name == "scalars":
        spec = TensorSpec.of(build.tensor((count,)).value, on_cpu=True)
        return replace(spec, base=spec.base.to(torch.float32 if build.dtype == torch.bool else build.dtype))
    return build.tensor(())


def _prepare_unscale(build: Build) -> dict[str, Any]:
    """Scaled gradients, of which one is not finite in some cases; a flag that may be set already."""
    gradients = [build.tensor(shape, expand=False) for shape in (build.shape, (build.size(0, 4),))]
    return {
        "self": gradients,
        "found_inf": _float(build.pick(0, 0, 1)),
        "inv_scale": _float(build.pick(0.5, 1, 2**-16)),
    }


def _prepare_scale(build: Build) -> dict[str, Any]:
    """A scale before its growth, in between, or after gradients that were not finite."""
    return {
        "self": _float(build.pick(1024, 2**-20, 3e38)),
        "growth_tracker": TensorSpec.of(torch.tensor([build.size(0, 3)], dtype=torch.int32)),
        "found_inf": _float(build.pick(0, 0, 1)),
        "scale_growth_factor": build.pick(2.0, 1.5),
        "scale_backoff_factor": build.pick(0.5, 0.75),
        "growth_interval": build.size(1, 4),
    }


def _float(value: float) -> TensorSpec:
    return TensorSpec.of(torch.tensor([value], dtype=torch.float32))


def _dtype(build: Build, argument: Argument) -> Any:
    return build.pick(None, build.dtype) if build.dtype.is_floating_point else None


def _lists(numbers: Numbers = _PLAIN, **rest: Any) -> Domain:
    return Domain(prepare=_prepare_lists, numbers=numbers, arguments={"dtype": _dtype}, **rest)


TABLE = {
    "_amp_foreach_non_finite_check_and_unscale": Domain(prepare=_prepare_unscale, numbers=Numbers(special=True)),
    "_amp_update_scale": Domain(prepare=_prepare_scale, dtypes=(torch.float32,)),
    "_foreach_abs _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_ceil _foreach_clamp_max _foreach_clamp_min "
    "_foreach_clone _foreach_copy _foreach_div _foreach_floor _foreach_frac _foreach_lerp _foreach_maximum "
    "_foreach_minimum _foreach_mul _foreach_neg _foreach_reciprocal _foreach_round _foreach_sign _foreach_sub "
    "_foreach_trunc _foreach_zero": _lists(),
    "_foreach_acos _foreach_asin _foreach_atan _foreach_cos _foreach_cosh _foreach_erf _foreach_erfc _foreach_exp "
    "_foreach_expm1 _foreach_sigmoid _foreach_sin _foreach_sinh _foreach_tan _foreach_tanh": _lists(
        Numbers(-1, 1, cuts=False)
    ),
    "_foreach_log _foreach_log10 _foreach_log1p _foreach_log2 _foreach_rsqrt _foreach_sqrt _foreach_lgamma "
    "_foreach_pow": _lists(replace(_POSITIVE, cuts=False), accumulates=True),
    "_foreach_max": _lists(least_size=1),
    "_foreach_norm _foreach_powsum": _lists(accumulates=True),
}
