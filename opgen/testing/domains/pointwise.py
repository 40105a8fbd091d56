"""Elementwise operators: where their functions are defined, and where upstream leaves a value open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from opgen.testing.build import Build, Domain
from opgen.testing.case import TensorSpec
from opgen.testing.overload import Argument
from opgen.testing.references import out_form
from opgen.testing.rules import boolean_tensor, like_self, make_argument, one_of, values
from opgen.testing.tensors import FLOATING, Numbers

_PLAIN = Numbers()
_SPECIAL = Numbers(special=True)


def _divisor(build: Build, argument: Argument) -> Any:
    """Dividing integers by zero raises on the CPU and is undefined on a GPU."""
    return values(-4, 4, nonzero=True)(build, argument)


def _shift(build: Build, argument: Argument) -> Any:
    """Shifting by a negative count or by the type's width is undefined in C++."""
    return values(0, 6, whole=True)(build, argument)


def _weight(build: Build, argument: Argument) -> Any:
    if argument.kind.base == "Tensor":
        return make_argument(build, argument)
    return build.pick(0.25, 0.5, 0.75, 0, 1, -1.5)


def _exponent(build: Build, argument: Argument) -> Any:
    return (
        make_argument(build, argument) if argument.kind.base == "Tensor" else build.pick(2, 3, 0.5, -1, 1, 0, -0.5, 2.5)
    )


def _bound(build: Build, argument: Argument) -> Any:
    """A bound of clamp: a number that is nan makes everything nan."""
    if argument.kind.base != "Tensor" and build.dtype.is_floating_point and build.maybe(12):
        return float("nan")
    return make_argument(build, argument)


def _condition(build: Build, argument: Argument) -> Any:
    """A bool tensor; bytes, of which upstream warns, in a few cases."""
    return make_argument(replace(build, dtype=torch.uint8 if build.maybe(12) else torch.bool), argument)


def _dense(build: Build, argument: Argument) -> Any:
    return TensorSpec.of(build.tensor(build.shape).value)


def _upper(build: Build, argument: Argument) -> Any:
    """clamp wants one bound at least; both absent is an error to try now and then."""
    if build.made.get("min") is None and not build.maybe(6):
        argument = replace(argument, kind=replace(argument.kind, optional=False))
    return _bound(build, argument)


def _unary_backward(output: Numbers) -> Domain:
    """Backward operators that take what the forward returned: values in the function's range."""
    return Domain(pointwise=True, arguments={"output": lambda b, a: _shaped(b, a, output)})


def _shaped(build: Build, argument: Argument, of: Numbers) -> Any:
    return make_argument(replace(build, domain=replace(build.domain, numbers=of)), argument)


def _pair_of_bounds(low: float, high: float) -> dict[str, Any]:
    return {"min_val": one_of(-1.0, low), "max_val": one_of(1.0, high)}


def _prepare_loss(build: Build) -> dict[str, Any]:
    """Losses take operands of one shape and dtype; the gradient is a scalar unless nothing is reduced."""
    reduction = build.size(0, 2)
    made: dict[str, Any] = {"reduction": reduction}
    made["self"] = build.tensor(build.shape)
    made["target"] = build.tensor(build.shape)
    made["grad_output"] = build.tensor(build.shape if reduction == 0 else ())
    return made


def _prepare_cross_entropy(build: Build) -> dict[str, Any]:
    made = _prepare_loss(build)
    probability = Numbers(0.0625, 0.9375)
    made["self"] = build.tensor(build.shape, of=probability)
    made["target"] = build.tensor(build.shape, of=Numbers(0, 1))
    made["weight"] = build.pick(None, build.tensor(build.shape, of=Numbers(0, 2)))
    return made


_MASK = {"mask": boolean_tensor}
_DIVISION = Domain(numbers=_PLAIN, arguments={"other": _divisor})

TABLE = {
    # the functions' poles and branch cuts lie among the specials, where libraries disagree about the sign of zero
    "digamma lgamma polygamma mvlgamma igamma igammac special_zeta": Domain(
        numbers=Numbers(0.5, 8), accumulates=True, promotes=False
    ),
    "erfinv special_erfinv": Domain(numbers=Numbers(-0.9375, 0.9375)),
    # 0.125 is the same number in every dtype: at another bound it would matter whether a kernel compares in float16
    "logit special_logit": Domain(numbers=Numbers(0.0625, 0.9375), arguments={"eps": one_of(None, 0.125)}),
    # recurrences of n steps
    "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
    "special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he "
    "special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t "
    "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
    "special_shifted_chebyshev_polynomial_w": Domain(
        numbers=Numbers(-2, 2), arguments={"n": values(0, 8, whole=True)}, accumulates=True
    ),
    "special_ndtri": Domain(numbers=Numbers(0.0625, 0.9375)),
    "sinc": Domain(numbers=Numbers()),
    # trigonometric functions of huge numbers depend on the library's argument reduction
    "sin cos tan tanh sinh cosh asin acos atan asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt "
    "erf erfc sigmoid special_i0 special_i0e special_i1 special_i1e i0 special_entr special_log_ndtr "
    "special_xlog1py xlogy frac trunc fix frexp logaddexp logaddexp2": Domain(numbers=Numbers(cuts=False)),
    # a float that an integer type cannot hold converts to anything
    "floor_divide remainder fmod": _DIVISION,
    "div divide true_divide": Domain(numbers=_PLAIN, arguments={"other": _divisor}),
    "reciprocal": Domain(numbers=_PLAIN),
    "addcdiv": Domain(numbers=_PLAIN, arguments={"tensor2": values(-4, 4, nonzero=True)}),
    # a multiple that the type cannot hold depends on the order of the operations
    "gcd lcm": Domain(numbers=Numbers(-9, 9), promotes=False),
    "__lshift__ __rshift__ __ilshift__ __irshift__ bitwise_left_shift bitwise_right_shift": Domain(
        numbers=Numbers(0, 9), arguments={"other": _shift}
    ),
    "pow float_power": Domain(numbers=_PLAIN, arguments={"exponent": _exponent, "self": _exponent}),
    "lerp": Domain(numbers=_PLAIN, arguments={"weight": _weight}, promotes=False),
    "clamp clip": Domain(numbers=_SPECIAL, arguments={"min": _bound, "max": _upper}),
    "where": Domain(numbers=_SPECIAL, arguments={"condition": _condition}, pointwise=True),
    "hardtanh": Domain(numbers=_SPECIAL, arguments=_pair_of_bounds(-2.0, 2.0)),
    "hardtanh_backward": Domain(pointwise=True, arguments=_pair_of_bounds(-2.0, 2.0)),
    "masked_fill": Domain(
        numbers=_SPECIAL,
        arguments={**_MASK, "value": lambda b, a: b.tensor(()) if a.kind.base == "Tensor" else make_argument(b, a)},
        pointwise=True,
    ),
    "sigmoid_backward": _unary_backward(Numbers(0, 1)),
    "tanh_backward": _unary_backward(Numbers(-1, 1)),
    "elu_backward": Domain(
        pointwise=True,
        arguments={
            "alpha": one_of(1.0, 0.5),
            "scale": one_of(1.0, 2.0),
            "input_scale": one_of(1.0, 1.5),
            "self_or_result": values(-0.4375, 4),
        },
    ),
    "elu": Domain(arguments={"alpha": one_of(1.0, 0.5), "scale": one_of(1.0, 2.0), "input_scale": one_of(1.0, 1.5)}),
    "celu": Domain(arguments={"alpha": one_of(1.0, 0.5)}),
    # the CPU's constant 1/6 is a float32
    "hardsigmoid_backward": Domain(promotes=False, dtypes=(torch.float32, torch.float16, torch.bfloat16)),
    "gelu_backward silu_backward mish_backward hardswish_backward logit_backward "
    "softplus_backward threshold_backward leaky_relu_backward softshrink_backward hardshrink_backward": Domain(
        pointwise=True,
        promotes=False,
        arguments={
            "beta": one_of(1.0, 2.0),
            "threshold": one_of(20.0, 1.0),
            "negative_slope": one_of(0.125, 0.5),
            "lambd": one_of(0.5, 1.0),
            # the same number in every dtype: at another bound it matters whether a kernel compares in float16
            "eps": one_of(None, 0.125),
            "self_is_result": one_of(False),
        },
    ),
    "softplus": Domain(arguments={"beta": one_of(1.0, 2.0), "threshold": one_of(20.0, 1.0)}),
    "leaky_relu": Domain(arguments={"negative_slope": one_of(0.125, 0.5)}),
    "softshrink hardshrink": Domain(arguments={"lambd": one_of(0.5, 1.0)}),
    "gelu silu mish hardswish log_sigmoid selu relu6": Domain(),
    "hardsigmoid": Domain(gradient_dtype=torch.float32),
    "log_sigmoid_forward": Domain(private=frozenset({1})),
    "log_sigmoid_backward": Domain(
        prepare=lambda b: {
            "grad_output": b.tensor(b.shape),
            "self": (x := b.tensor(b.shape)),
            # the CPU keeps exp(-|x|) for the backward pass; a GPU recomputes it and passes an empty buffer
            "buffer": b.lay_out((-x.value.abs()).exp()) if x.dtype in FLOATING else b.tensor(b.shape),
        }
    ),
    "_prelu_kernel": Domain(pointwise=True),
    "_prelu_kernel_backward": Domain(pointwise=True, promotes=False),
    # on integers the CPU's smooth_l1_loss divides by beta rounded to zero
    "mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward": Domain(
        prepare=_prepare_loss,
        arguments={"beta": one_of(1.0, 0.5), "delta": one_of(1.0, 0.5)},
        dtypes=FLOATING,
        accumulates=True,
    ),
    "binary_cross_entropy binary_cross_entropy_backward": Domain(
        prepare=_prepare_cross_entropy, dtypes=FLOATING, accumulates=True
    ),
    "binary_cross_entropy.out": Domain(
        prepare=_prepare_cross_entropy,
        dtypes=FLOATING,
        accumulates=True,
        reference=out_form(torch.ops.aten.binary_cross_entropy.default),
    ),
    "binary_cross_entropy_backward.grad_input": Domain(
        prepare=_prepare_cross_entropy,
        dtypes=FLOATING,
        accumulates=True,
        reference=out_form(torch.ops.aten.binary_cross_entropy_backward.default),
    ),
    "binary_cross_entropy_with_logits": Domain(
        prepare=_prepare_loss,
        arguments={"weight": like_self, "pos_weight": like_self},
        dtypes=FLOATING,
        accumulates=True,
    ),
    "polar complex": Domain(dtypes=(torch.float32, torch.float64)),
    "copysign heaviside": Domain(numbers=_PLAIN, pointwise=True),
    "nextafter": Domain(numbers=_PLAIN, promotes=False),
    # the CPU reads both operands in the dtype of the first, and the second one as a contiguous one
    "isin": Domain(
        numbers=Numbers(-2, 2, whole=True), pointwise=True, promotes=False, arguments={"test_elements": _dense}
    ),
    "ldexp": Domain(numbers=Numbers()),
    "round": Domain(numbers=Numbers(special=True), arguments={"decimals": one_of(0, 1, 2, -1)}),
}
