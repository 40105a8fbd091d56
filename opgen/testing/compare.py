"""Compares what the device did with what the reference did on the CPU.

Every check gives a sentence for a person; an empty list means that the two agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Domain
from opgen.testing.case import Case
from opgen.testing.problem import Category, Problem
from opgen.testing.run import Outcome, to_cpu

# Units in the last place that two right kernels may differ by, elementwise.
# float32, float64: a kernel chains a few device functions, each off by up to 4 ulp (CUDA C++ Programming Guide,
#   "Mathematical Functions"; MUSA documents no bounds of its own), and a CPU's vectorised ones are off by up to 4 too.
# float16, bfloat16: both sides compute in float32 and round once, so neighbours at most; 2 leaves room for a kernel
#   that rounds an intermediate.
_ULPS = {torch.float32: 16, torch.float64: 16, torch.float16: 2, torch.bfloat16: 2}
# Operands are drawn from about [-4, 4], so cancellation leaves absolute errors of that many relative ones.
_MAGNITUDE = 4.0


def tolerance(dtype: torch.dtype, terms: int = 1) -> tuple[float, float]:
    """(rtol, atol) for results of that dtype that add up ``terms`` numbers.

    Rounding errors of a sum in a different order grow like the square root of its length (Higham, Accuracy and
    Stability of Numerical Algorithms, 2nd ed., section 4.2). Integer and bool results must be equal.
    """
    real = dtype.to_real() if dtype.is_complex else dtype
    if real not in _ULPS:
        return 0.0, 0.0
    rtol = _ULPS[real] * torch.finfo(real).eps * math.sqrt(max(terms, 1))
    return rtol, _MAGNITUDE * rtol


def compare(case: Case, expected: Outcome, actual: Outcome, domain: Domain, device: str) -> list[Problem]:
    """Everything that is wrong with ``actual``, given that both calls returned."""
    problems = _compare_forms(case, expected, actual, domain, device)
    if not problems and not (domain.undefined or domain.law):
        problems = compare_results(case, expected, actual, domain)
    if not problems:
        problems += _compare_aliasing(case, expected, actual, domain)
        problems += _compare_storages(case, expected, actual, domain)
    return problems


def compare_errors(expected: Exception, actual: Exception | None) -> list[Problem]:
    """The CPU refused the call: the device must refuse it with the same type of exception."""
    if actual is None:
        return [Problem(Category.ACCEPTED, f"accepts what the CPU refuses with {_describe(expected)}")]
    if type(actual) is not type(expected):
        return [Problem(Category.ERROR_TYPE, f"raises {_describe(actual)}, the CPU raises {_describe(expected)}")]
    return []


def working_dtype(case: Case, domain: Domain, result: torch.dtype) -> torch.dtype:
    """The coarsest dtype that a result may have been rounded to.

    An out= tensor may be wider than what the operator computes in: the CPU rounds to the common dtype of the inputs on
    the way, a GPU's kernels need not (their loads and stores cast). The default dtype stands in for integers. The same
    goes for layers whose input is narrower than their parameters.
    """
    mixes = bool(case.op.outs) or domain.accumulates
    if not mixes or not (result.is_floating_point or result.is_complex):
        return result
    outs = {argument.name for argument in case.op.outs}
    inputs = [spec.dtype for path, spec in case.tensors() if path not in outs]
    floating = [dtype for dtype in inputs if dtype.is_floating_point or dtype.is_complex] or [torch.float32]
    return max((result, *floating), key=lambda dtype: tolerance(dtype)[0])


def terms_of(case: Case, domain: Domain) -> int:
    """How many numbers one result element may add up: all that the largest argument has."""
    if not domain.accumulates:
        return 1
    return max((spec.value.numel() for _, spec in case.tensors()), default=1)


def _compare_forms(case: Case, expected: Outcome, actual: Outcome, domain: Domain, device: str) -> list[Problem]:
    if len(expected.results) != len(actual.results):
        text = f"returns {len(actual.results)} results, the CPU returns {len(expected.results)}"
        return [Problem(Category.SHAPE, text)]
    problems: list[Problem] = []
    # a tensor of the CPU that is written stays there
    on_cpu = [actual.live.tensors[path] for path, spec in case.tensors() if spec.on_cpu]
    for position, (wanted, got) in enumerate(zip(expected.results, actual.results, strict=True)):
        name = f"result {position}" if len(expected.results) > 1 else "the result"
        if position in domain.private:
            continue
        if isinstance(wanted, Tensor) and isinstance(got, Tensor):
            home = "cpu" if any(got is tensor for tensor in on_cpu) else device.partition(":")[0]
            problems += [
                replace(problem, text=f"{name} {problem.text}")
                for problem in _compare_form(case, wanted, got, domain, home)
            ]
        elif type(wanted) is not type(got):
            text = f"{name} is a {type(got).__name__}, on the CPU a {type(wanted).__name__}"
            problems.append(Problem(Category.SHAPE, text))
    return problems


def compare_results(case: Case, expected: Outcome, actual: Outcome, domain: Domain) -> list[Problem]:
    """Differences between the values of results of the same form."""
    problems: list[Problem] = []
    wanted_values = [_value(result) for result in expected.results]
    got_values = [_value(result) for result in actual.results]
    if domain.normalize:
        wanted_values = domain.normalize(case, wanted_values)
        got_values = domain.normalize(case, got_values)
    terms = terms_of(case, domain)
    for position, (wanted, got) in enumerate(zip(wanted_values, got_values, strict=True)):
        name = f"result {position}" if len(wanted_values) > 1 else "the result"
        if position in domain.private:
            continue
        dtype = working_dtype(case, domain, wanted.dtype) if isinstance(wanted, Tensor) else None
        problems += [Problem(Category.VALUE, f"{name} {text}") for text in compare_values(wanted, got, terms, dtype)]
    return problems


def _compare_form(case: Case, wanted: Tensor, got: Tensor, domain: Domain, home: str) -> list[Problem]:
    problems: list[Problem] = []
    if got.device.type != home:
        problems.append(Problem(Category.DEVICE, f"is on {got.device}, not on {home}"))
    if got.dtype != wanted.dtype:
        problems.append(Problem(Category.DTYPE, f"has dtype {got.dtype}, on the CPU {wanted.dtype}"))
    if got.shape != wanted.shape:
        problems.append(Problem(Category.SHAPE, f"has shape {list(got.shape)}, on the CPU {list(wanted.shape)}"))
    elif strides_promised(case, domain, wanted) and _meant_strides(got) != _meant_strides(wanted):
        text = f"has strides {got.stride()}, on the CPU {wanted.stride()} (sizes {list(got.shape)})"
        problems.append(Problem(Category.STRIDES, text))
    if (got.is_conj(), got.is_neg()) != (wanted.is_conj(), wanted.is_neg()):
        text = f"has conj, neg bits {got.is_conj()}, {got.is_neg()}, on the CPU {wanted.is_conj()}, {wanted.is_neg()}"
        problems.append(Problem(Category.ALIASING, text))
    return problems


def strides_promised(case: Case, domain: Domain, result: Tensor) -> bool:
    """Upstream promises the strides of what TensorIterator makes, of views, of what is written in place.

    The domain table has the last word. Operands of several dtypes are converted first on the CPU, into new strides, and
    on the fly on a device, so there nothing is promised. An out= tensor of the right shape keeps its strides; one that
    had to be resized is laid out as the kernel likes.
    """
    if domain.strides is not None:
        return domain.strides
    outs = {argument.name for argument in case.op.outs}
    shapes = {spec.shape for path, spec in case.tensors() if path.partition("[")[0] in outs}
    if tuple(result.shape) in shapes or (any(case.op.returns) and not shapes):
        return True
    mixed = len({spec.dtype for _, spec in case.tensors()}) > 1
    return (case.op.pointwise or domain.pointwise) and not mixed


def _meant_strides(tensor: Tensor) -> Sequence[int]:
    # the stride of a dim that is never stepped along means nothing
    if tensor.numel() == 0:
        return ()
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def compare_values(wanted: Any, got: Any, terms: int = 1, dtype: torch.dtype | None = None) -> list[str]:
    """Differences beyond the tolerance of ``dtype``, by default that of the values. nan equals nan."""
    if not isinstance(wanted, Tensor):
        wanted, got = torch.tensor(wanted), torch.tensor(got)
    rtol, atol = tolerance(dtype or wanted.dtype, terms)
    try:
        torch.testing.assert_close(
            _brought_back(got, wanted, rtol), wanted, rtol=rtol, atol=atol, equal_nan=True, check_stride=False
        )
    except AssertionError as difference:
        text = str(difference).strip().replace("\n\n", "\n").replace("\n", "\n    ")
        if wanted.numel() <= 16:
            text += f"\n    got      {got.tolist()}\n    expected {wanted.tolist()}"
        return [f"has wrong values: {text}"]
    return []


def _brought_back(got: Tensor, wanted: Tensor, rtol: float) -> Tensor:
    """``got`` with the expected number for an infinity that the tolerance reaches: the largest one rounds up to it."""
    if not (wanted.dtype.is_floating_point and got.dtype == wanted.dtype and got.shape == wanted.shape):
        return got
    edge = wanted.isfinite() & (wanted.double() * (1 + rtol)).to(wanted.dtype).isinf()
    return torch.where(edge & got.isinf() & (got.sign() == wanted.sign()), wanted, got)


def _compare_aliasing(case: Case, expected: Outcome, actual: Outcome, domain: Domain) -> list[Problem]:
    problems: list[Problem] = []
    for position, (wanted, got) in enumerate(zip(expected.results, actual.results, strict=True)):
        if not (isinstance(wanted, Tensor) and isinstance(got, Tensor)):
            continue
        for path in expected.live.tensors:
            argument, same = actual.live.tensors[path], expected.live.tensors[path]
            if (got is argument) != (wanted is same):
                verb = "is not" if wanted is same else "is"
                problems.append(Problem(Category.ALIASING, f"result {position} {verb} the tensor {path!r} itself"))
            shares, should = _shares(got, argument), _shares(wanted, same)
            if shares != should:
                verb = "does not share" if should else "shares"
                problems.append(Problem(Category.ALIASING, f"result {position} {verb} the storage of {path!r}"))
            elif should and got.numel() and got.storage_offset() != wanted.storage_offset():
                text = f"result {position} starts at {got.storage_offset()} of {path!r}'s storage"
                problems.append(Problem(Category.ALIASING, text))
    return problems


def _shares(a: Tensor, b: Tensor) -> bool:
    # the storage's identity and not its address, which is null for every empty one
    return bool(a.untyped_storage()._cdata == b.untyped_storage()._cdata)


def written_paths(case: Case, domain: Domain) -> set[str]:
    """Names of the arguments that the call may write."""
    return {argument.name for argument in case.op.arguments if argument.written} | domain.mutates


def _compare_storages(case: Case, expected: Outcome, actual: Outcome, domain: Domain) -> list[Problem]:
    """Written storages hold the same as on the CPU, between a view's elements too; the others hold what they held."""
    problems: list[Problem] = []
    written = written_paths(case, domain)
    terms = terms_of(case, domain)
    for path, spec in case.tensors():
        after = to_cpu(actual.live.bases[path])
        if path.partition("[")[0] not in written:
            if not same_bits(after, spec.base):
                problems.append(Problem(Category.INPUT_CHANGED, f"changes its input {path!r}"))
        elif (
            not (domain.undefined or domain.law or _told_by_result(case, domain, path))
            and actual.live.tensors[path].shape == spec.shape
        ):
            problems += [
                Problem(Category.STRAY_WRITE, f"leaves the storage of {path!r} different: {text}")
                for text in compare_values(
                    expected.live.bases[path], after, terms, working_dtype(case, domain, after.dtype)
                )
            ]
    return problems


def _told_by_result(case: Case, domain: Domain, path: str) -> bool:
    """True for out= tensors whose content is compared as a result, in another form, or not at all."""
    return path in {
        argument.name for at, argument in enumerate(case.op.outs) if domain.normalize or at in domain.private
    }


def same_bits(a: Tensor, b: Tensor) -> bool:
    """True when two tensors of one dtype hold the same bits."""
    return bool(torch.equal(_bits(a), _bits(b)))


def _bits(tensor: Tensor) -> Tensor:
    # contiguous() would keep the odd strides of size-1 dims
    dense = tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return dense.reshape(-1).view(torch.uint8)


def _value(result: Any) -> Any:
    return to_cpu(result) if isinstance(result, Tensor) else result


def _describe(error: Exception) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0] if first else ''}"
