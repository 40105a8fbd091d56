"""Reductions, scans, sorting, softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import OMIT, Build, Domain
from opgen.testing.case import Case
from opgen.testing.overload import Argument
from opgen.testing.rules import one_of, real_dtype
from opgen.testing.tensors import FLOATING, INTEGRAL, Numbers

_SMALL = Numbers(-2, 2)
_TIES = Numbers(-3, 3, special=True)


def by_value(values_at: int, indices_at: int) -> Callable[[Case, list[Any]], list[Any]]:
    """Which of several equal elements an index names is open: compares the elements that the indices name."""

    def normalize(case: Case, results: list[Any]) -> list[Any]:
        source, indices = case.arguments["self"].value, results[indices_at]
        if not isinstance(indices, Tensor):
            return results
        dim = case.arguments.get("dim")
        if dim is None:
            dim = next((a.default for a in case.op.arguments if a.name == "dim" and a.has_default), None)
        results = list(results)
        results[indices_at] = _named_by(source, indices, dim, results[values_at].shape == indices.shape)
        return results

    return normalize


def _named_by(source: Tensor, indices: Tensor, dim: int | None, aligned: bool) -> Tensor:
    if not source.dim() or not indices.numel() or not aligned:
        return indices
    if dim is None:
        return source.reshape(-1)[indices]
    kept = indices.dim() == source.dim()
    return source.gather(dim, indices if kept else indices.unsqueeze(dim))


def in_any_order(case: Case, results: list[Any]) -> list[Any]:
    """topk: `by_value`, and without ``sorted`` in the order of the values, since the operator's own is free."""
    results = by_value(0, 1)(case, results)
    if case.arguments.get("sorted", True) or not results[0].dim():
        return results
    values, order = results[0].sort(case.arguments.get("dim", -1))
    return [values, results[1].gather(case.arguments.get("dim", -1), order)]


def _k(build: Build, argument: Argument) -> Any:
    shape = build.made["self"].shape
    dim = build.made.get("dim")
    size = shape[dim] if shape and isinstance(dim, int) and -len(shape) <= dim < len(shape) else 1
    return build.size(min(1, size), max(size, 1))


def _prepare_ranked(build: Build) -> dict[str, Any]:
    """self, dim and a k that the dim has."""
    spec = build.tensor(build.shape, of=_TIES)
    dim = build.dim(len(build.shape))
    size = build.shape[dim] if build.shape else 1
    return {"self": spec, "dim": dim, "k": build.size(min(size, 1), size)}


def _norm_order(build: Build, argument: Argument) -> Any:
    order = build.pick(2, 1, 0, float("inf"), float("-inf"), 3, 0.5)
    if argument.kind.optional and build.maybe(4):
        return None
    return OMIT if argument.has_default and build.maybe(4) else order


def _correction(build: Build, argument: Argument) -> Any:
    return build.pick(1, 0, None, 2) if argument.kind.optional else build.pick(1, 0)


def _sum_dtype(build: Build, argument: Argument) -> Any:
    if build.op.inplace and not build.maybe(6):
        return None if build.dtype.is_floating_point or build.dtype.is_complex else build.dtype
    # integers are not for the out= and in-place forms, which would have to hold them
    options = [
        None,
        None,
        None,
        torch.float64,
        torch.float32,
        *([] if build.op.outs or build.op.inplace else [torch.int64]),
    ]
    if build.dtype.is_complex:
        options = [None, build.dtype]
    elif not build.dtype.is_floating_point:
        options += [torch.int64, torch.int32]
    return build.pick(*options)


def _mean_dtype(build: Build, argument: Argument) -> Any:
    if build.dtype.is_complex:
        return build.pick(None, build.dtype)
    if build.dtype.is_floating_point:
        return build.pick(None, torch.float64, torch.float32)
    return build.pick(torch.float32, torch.float64)


def _prepare_softmax_backward(build: Build) -> dict[str, Any]:
    dtype = real_dtype(build.dtype)
    dim = build.dim(len(build.shape))
    x = build.tensor(build.shape, dtype).value
    log = build.op.base.startswith("_log")
    output = x.log_softmax(dim) if log else x.softmax(dim)
    return {
        "grad_output": build.tensor(build.shape, dtype),
        "output": build.lay_out(output),
        "dim": dim,
        "input_dtype": dtype,
    }


def _edges(build: Build, argument: Argument) -> Any:
    return build.size(-4, 0) if argument.name == "min" else build.size(1, 4)


def _prepare_search(build: Build) -> dict[str, Any]:
    boundaries = build.tensor((build.size(1, 6),), of=Numbers(-4, 4)).value.sort().values
    needles = build.tensor(build.shape)
    return {
        "boundaries": build.lay_out(boundaries),
        "sorted_sequence": build.lay_out(boundaries),
        "self": needles,
        "sorter": None,
        "side": None,
    }


def _prepare_counts(build: Build) -> dict[str, Any]:
    length = build.size(0, 20)
    dtype = build.dtype if build.dtype not in FLOATING and not build.dtype.is_complex else torch.int64
    return {
        "self": build.tensor((length,), dtype, Numbers(0, 6, whole=True)),
        "weights": build.pick(None, build.tensor((length,), torch.float32)),
        "minlength": build.size(0, 8),
    }


_SUM = Domain(numbers=_SMALL, accumulates=True, arguments={"dtype": _sum_dtype})
_EXTREME = Domain(numbers=_TIES)
_EXTREME_AT = Domain(numbers=_TIES, normalize=by_value(0, 1))

TABLE = {
    "sum cumsum prod cumprod": _SUM,
    "nansum": replace(_SUM, numbers=replace(_SMALL, special=True)),
    # bools only where there is nothing to add up
    "cumsum_ cumprod_": replace(_SUM, dtypes=(*FLOATING, *INTEGRAL, torch.complex64, torch.complex128)),
    "mean nanmean": Domain(numbers=_SMALL, accumulates=True, arguments={"dtype": _mean_dtype}),
    "norm linalg_vector_norm linalg__powsum": Domain(
        numbers=_SMALL,
        accumulates=True,
        arguments={
            "p": _norm_order,
            "ord": _norm_order,
            "dtype": lambda b, a: b.dtype if not a.kind.optional else b.pick(None, b.dtype),
        },
    ),
    "var std var_mean std_mean": Domain(numbers=_SMALL, accumulates=True, arguments={"correction": _correction}),
    "logsumexp logcumsumexp": Domain(numbers=_SMALL, accumulates=True, ranks=(1, 4)),
    "_logcumsumexp": Domain(numbers=_SMALL, accumulates=True, ranks=(1, 4), trusts_out=True),
    "amax amin aminmax any all max min": _EXTREME,
    # of no elements the CPU's out= forms give whatever the memory held
    "max.unary_out min.unary_out": Domain(numbers=_TIES, least_size=1),
    # with a uint8 out the CPU converts the input first, and 0.5 becomes false, and 1j
    "any.out any.all_out any.dims_out all.out all.all_out all.dims_out": Domain(
        numbers=Numbers(0, 1, whole=True), dtypes=(*FLOATING, *INTEGRAL, torch.bool)
    ),
    "argmax argmin": Domain(numbers=_TIES),
    # along a stride-0 dim the CPU's selection reads past the tensor's end
    "median.dim median.dim_values nanmedian.dim nanmedian.dim_values": Domain(
        numbers=_TIES, normalize=by_value(0, 1), arguments={"self": lambda b, a: b.tensor(b.shape, expand=False)}
    ),
    "max.dim max.dim_max min.dim min.dim_min mode sort sort.stable sort.values sort.values_stable": _EXTREME_AT,
    "kthvalue": Domain(numbers=_TIES, normalize=by_value(0, 1), prepare=_prepare_ranked, arguments={"k": _k}),
    "topk": Domain(numbers=_TIES, normalize=in_any_order, prepare=_prepare_ranked, arguments={"k": _k}),
    "argsort argsort.stable": Domain(numbers=_TIES, arguments={"stable": one_of(True)}),
    "cummax cummin _cummax_helper _cummin_helper": Domain(numbers=_TIES, ranks=(1, 4)),
    "trace": Domain(ranks=(2, 2), accumulates=True),
    "_softmax _log_softmax": Domain(arguments={"half_to_float": one_of(False)}, accumulates=True, dense_out=True),
    "softmax log_softmax": Domain(arguments={"dtype": _mean_dtype}, accumulates=True),
    "_softmax_backward_data _log_softmax_backward_data": Domain(
        prepare=_prepare_softmax_backward, dtypes=FLOATING, accumulates=True, dense_out=True
    ),
    "histc": Domain(arguments={"bins": one_of(4, 1, 9), "min": _edges, "max": _edges}),
    "bucketize searchsorted": Domain(prepare=_prepare_search),
    "bincount": Domain(prepare=_prepare_counts),
    "_unique2 unique_dim unique_consecutive unique_dim_consecutive": Domain(numbers=Numbers(-2, 2, whole=True)),
    "count_nonzero": Domain(numbers=Numbers(-1, 1, whole=True)),
    # sparse tensors are made from its columns
    "nonzero argwhere": Domain(numbers=Numbers(-1, 1, whole=True), strides=True),
    "nonzero_static": Domain(
        numbers=Numbers(-1, 1, whole=True), arguments={"size": lambda b, a: b.size(0, 6), "fill_value": one_of(-1, 0)}
    ),
    "renorm": Domain(ranks=(2, 4), arguments={"p": one_of(2, 1), "maxnorm": one_of(1, 0.5)}, accumulates=True),
    "_assert_async": Domain(
        prepare=lambda b: {"self": b.tensor(b.pick((), (1,), (1, 1)), of=Numbers(0, 3))},
        arguments={"assert_msg": one_of("no", "what must be, is not")},
    ),
    "equal": Domain(numbers=Numbers(0, 1, whole=True)),
    "_cdist_forward": Domain(dtypes=(torch.float32, torch.float64)),
}
