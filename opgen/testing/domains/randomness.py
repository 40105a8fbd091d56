"""Random operators: the law each one promises, as PyTorch's reference pages of torch.Tensor.uniform_ etc. state it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Build, Domain, Law
from opgen.testing.overload import Argument
from opgen.testing.references import out_form
from opgen.testing.rules import one_of, real_dtype
from opgen.testing.tensors import FLOATING, Numbers

Arguments = dict[str, Any]


def _long_shape(build: Build) -> tuple[int, ...]:
    """Usually enough values to see the law, never none."""
    options: list[tuple[int, ...]] = [(33, 65), (2048,), (3, 40, 11), tuple(max(size, 1) for size in build.shape)]
    return options[build.size(0, 3)]


def _prepare_filled(build: Build) -> Arguments:
    return {"self": build.tensor(_long_shape(build), expand=False)}


def _filled(law: Law, dtypes: tuple[torch.dtype, ...] | None = None, **rules: Any) -> Domain:
    return Domain(prepare=_prepare_filled, law=law, dtypes=dtypes, arguments=rules)


def _everything(arguments: Arguments, x: Tensor) -> Tensor:
    return torch.ones_like(x, dtype=torch.bool)


def _rounding(x: Tensor) -> float:
    # narrow types round a value next to the open end up to it
    return float(torch.finfo(x.dtype).eps) if x.dtype.is_floating_point else 0.0


def _between(arguments: Arguments, x: Tensor) -> Tensor:
    low, high = arguments["from"], arguments["to"]
    slack = _rounding(x) * max(abs(low), abs(high)) if x.dtype in (torch.float16, torch.bfloat16) else 0.0
    return (x >= low - slack) & ((x <= high + slack) if slack else (x < high))


def _uniform_mean(arguments: Arguments) -> float:
    return float(arguments["from"] + arguments["to"]) / 2


def _uniform_std(arguments: Arguments) -> float:
    return float(arguments["to"] - arguments["from"]) / math.sqrt(12)


def _bounded_whole(low: Callable[[Arguments], int], high: Callable[[Arguments], int]) -> Law:
    """Whole numbers in [low, high), all equally likely."""
    return Law(
        support=lambda a, x: (x >= low(a)) & (x < high(a)) & (x == x.to(torch.int64)),
        mean=lambda a: (low(a) + high(a) - 1) / 2,
        std=lambda a: math.sqrt(((high(a) - low(a)) ** 2 - 1) / 12),
    )


def _probability_of(a: Arguments) -> Any:
    p = a.get("p", a.get("self"))
    return p.double() if isinstance(p, Tensor) else p


def _spread_of(a: Arguments) -> Any:
    p = torch.as_tensor(_probability_of(a), dtype=torch.float64)
    return (p * (1 - p)).sqrt()


def _prepare_bernoulli(build: Build) -> Arguments:
    p = Numbers(0.125, 0.875)
    shape = _long_shape(build)
    if build.op.find("p") is None:
        return {"self": build.tensor(shape, real_dtype(build.dtype), p)}
    tensor = build.op.find("p")
    assert tensor is not None
    probability = build.tensor(shape, torch.float32, p) if tensor.tensor else build.pick(0.5, 0.25)
    return {"self": build.tensor(shape, expand=False), "p": probability}


def _prepare_normal(build: Build) -> Arguments:
    shape = _long_shape(build)
    made: Arguments = {"size": list(shape), "dtype": build.dtype}
    for name, of in (("mean", Numbers(-2, 2)), ("std", Numbers(0.5, 2))):
        argument = build.op.find(name)
        if argument:
            made[name] = build.tensor(shape, of=of) if argument.tensor else build.pick(1.0, 2.0)
    return made


def _tensor_or_number(a: Arguments, name: str, default: float) -> Any:
    value = a.get(name, default)
    return value.double() if isinstance(value, Tensor) else value


def _prepare_dropout(build: Build) -> Arguments:
    shape = _long_shape(build)
    p = build.pick(0.5, 0.25, 0.0)
    return {"input": build.tensor(shape, of=Numbers(1, 1)), "p": p, "train": build.pick(True, True, None, False)}


def _dropped(a: Arguments, x: Tensor) -> Tensor:
    """Each element of a tensor of ones is dropped or scaled by what keeps the mean."""
    if a["train"] is False or not a["p"]:
        return x == 1
    return (x == 0) | ((x - 1 / (1 - a["p"])).abs() <= 0.01)


def _prepare_rrelu(build: Build) -> Arguments:
    """Where every element is -1, the result is the slope drawn for it, negated."""
    shape = _long_shape(build)
    minus_one = torch.full(shape, -1.0, dtype=build.dtype)
    lower, upper = build.pick((0.125, 0.375), (0.0, 1.0), (0.25, 0.25))
    return {
        "self": build.lay_out(minus_one),
        "noise": build.tensor(shape, expand=False),
        "lower": lower,
        "upper": upper,
        "training": True,
    }


def _slope_spread(a: Arguments) -> float:
    return float(a["upper"] - a["lower"])


def _between_slopes(a: Arguments, x: Tensor) -> Tensor:
    slack = _rounding(x)
    return (-x >= a["lower"] - slack) & (-x <= a["upper"] + slack)


def _dropout_std(a: Arguments) -> float:
    return 0.0 if a["train"] is False else math.sqrt(a["p"] / (1 - a["p"]))


def _prepare_multinomial(build: Build) -> Arguments:
    rows, categories = build.size(1, 3), build.size(2, 6)
    replace = build.flag()
    return {
        "self": build.tensor((rows, categories) if build.flag() else (categories,), of=Numbers(0.25, 1)),
        "num_samples": build.size(1, 200 if replace else categories),
        "replacement": replace,
    }


def _is_permutation(a: Arguments, x: Tensor) -> Tensor:
    expected = torch.arange(a["n"], dtype=x.dtype)
    return (x.sort().values == expected).reshape(-1)


def _random_limit(x: Tensor) -> int:
    """torch.Tensor.random_ without bounds: up to the largest value of an integer, the mantissa of a floating type."""
    if x.dtype == torch.bool:
        return 2
    if x.dtype.is_floating_point:
        mantissa = {torch.float32: 24, torch.float64: 53, torch.float16: 11, torch.bfloat16: 8}[x.dtype]
        return int(2**mantissa + 1)
    return int(torch.iinfo(x.dtype).max) + 1


def _bound(low: int, high: int) -> Any:
    return lambda build, argument: build.size(low, high)


def _rate(build: Build, argument: Argument) -> Any:
    return build.pick(1.0, 0.5, 2.0)


_UNIT = Law(lambda a, x: (x >= 0) & (x <= 1), lambda a: 0.5, lambda a: 1 / math.sqrt(12))

_RRELU = Domain(
    prepare=_prepare_rrelu,
    law=Law(_between_slopes, lambda a: -(a["lower"] + a["upper"]) / 2, lambda a: _slope_spread(a) / math.sqrt(12)),
    dtypes=FLOATING,
)

TABLE = {
    "uniform": _filled(
        Law(_between, _uniform_mean, _uniform_std), FLOATING, **{"from": one_of(0.0, -1.0), "to": one_of(1.0, 2.0)}
    ),
    "normal": Domain(
        prepare=lambda b: _prepare_filled(b) if b.op.inplace else _prepare_normal(b),
        law=Law(
            _everything,
            lambda a: _tensor_or_number(a, "mean", 0.0),
            lambda a: _tensor_or_number(a, "std", 1.0),
        ),
        arguments={"mean": one_of(0.0, 1.0), "std": one_of(1.0, 0.5)},
        dtypes=FLOATING,
    ),
    "random.from": _filled(
        _bounded_whole(lambda a: a["from"], lambda a: a["to"]), **{"from": _bound(0, 1), "to": _bound(2, 100)}
    ),
    "random.to": _filled(_bounded_whole(lambda a: 0, lambda a: a["to"]), to=_bound(1, 100)),
    "random": _filled(Law(lambda a, x: (x >= 0) & (x.double() < _random_limit(x)))),
    "bernoulli": Domain(
        prepare=_prepare_bernoulli,
        law=Law(lambda a, x: (x == 0) | (x == 1), _probability_of, _spread_of),
    ),
    "exponential": _filled(Law(lambda a, x: x >= 0, lambda a: 1 / a["lambd"], lambda a: 1 / a["lambd"]), lambd=_rate),
    "geometric": _filled(
        Law(lambda a, x: x >= 1, lambda a: 1 / a["p"], lambda a: math.sqrt(1 - a["p"]) / a["p"]), p=one_of(0.5, 0.25)
    ),
    "cauchy": _filled(Law(_everything), median=one_of(0.0, 1.0), sigma=one_of(1.0, 2.0)),
    "log_normal": _filled(
        Law(
            lambda a, x: x > 0,
            lambda a: math.exp(a["mean"] + a["std"] ** 2 / 2),
            lambda a: math.sqrt(math.expm1(a["std"] ** 2)) * math.exp(a["mean"] + a["std"] ** 2 / 2),
        ),
        mean=one_of(0.0, 0.5),
        std=one_of(0.5, 0.25),
    ),
    "poisson": Domain(
        prepare=lambda b: {"self": b.tensor(_long_shape(b), of=Numbers(0.5, 8))},
        law=Law(
            lambda a, x: (x >= 0) & (x == x.round()), lambda a: a["self"].double(), lambda a: a["self"].double().sqrt()
        ),
    ),
    "multinomial": Domain(
        prepare=_prepare_multinomial,
        law=Law(lambda a, x: (x >= 0) & (x < a["self"].shape[-1])),
        dtypes=FLOATING,
    ),
    "randperm": Domain(
        arguments={"n": one_of(10, 0, 1, 300), "dtype": lambda b, a: b.pick(torch.int64, torch.int32)},
        law=Law(_is_permutation),
    ),
    "rrelu_with_noise": _RRELU,
    # the CPU's out= form crashes where out is not of the result's size, dtype and layout already
    "rrelu_with_noise.out": replace(
        _RRELU, reference=out_form(torch.ops.aten.rrelu_with_noise.default), trusts_out=True
    ),
    "native_dropout": Domain(prepare=_prepare_dropout, law=Law(_dropped, lambda a: 1.0, _dropout_std), dtypes=FLOATING),
    "rand": Domain(law=_UNIT, dtypes=(torch.float32,)),
    "randn": Domain(law=Law(_everything, lambda a: 0.0, lambda a: 1.0), dtypes=(torch.float32,)),
    "randint": Domain(
        arguments={"low": _bound(0, 1), "high": _bound(2, 50), "dtype": one_of(torch.int64, torch.float32)},
        law=Law(lambda a, x: (x >= a.get("low", 0)) & (x < a["high"])),
    ),
    "native_dropout_backward": Domain(
        prepare=lambda b: {"grad_output": b.tensor(b.shape), "mask": b.tensor(b.shape, torch.bool), "scale": 2.0},
        dtypes=FLOATING,
        strides=False,
    ),
}
