"""Compares gradients: what autograd gives on the device with what it gives on the CPU, and with differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from opgen.testing.asked import asked_count, asked_dtypes
from opgen.testing.build import Domain
from opgen.testing.case import Case, make_live
from opgen.testing.check import for_every
from opgen.testing.compare import compare_values, terms_of, tolerance, working_dtype
from opgen.testing.conditioning import excused
from opgen.testing.examine import chip_lacks, lacks_dtype, report
from opgen.testing.problem import Category, Problem
from opgen.testing.run import fallback_counts, flatten, quietly, to_cpu
from opgen.testing.strategies import accepted_dtypes, cases
from opgen.testing.subject import Subject, load_subject

# Forward and backward both round, and backward once more for the second derivative.
_ROUNDING = (4, 16)


@dataclass
class Compared:
    """How many cases had a gradient to compare, had a second one, and were held against differences of each order."""

    cases: int = 0
    second: int = 0
    differences: int = 0
    second_differences: int = 0


@dataclass(frozen=True)
class _Derivatives:
    """Gradients by argument, of first and second order; which results ask for a gradient; the indices among them."""

    first: dict[str, Tensor] = field(default_factory=dict)
    second: dict[str, Tensor] = field(default_factory=dict)
    asking: tuple[bool, ...] = ()
    named: tuple[Tensor, ...] = ()
    error: Exception | None = None


def check_gradients(
    name: str,
    device: str = "musa",
    count: int = 5,
    fallback: bool = False,
    dtypes: Sequence[torch.dtype | str] = (torch.float32, torch.float64),
    reference: Callable[..., Any] | None = None,
) -> Compared:
    """Runs an overload forward and backward on both sides; raises AssertionError where gradients differ.

    Second derivatives are compared where the CPU has them. In float64 the device's gradients are also held against
    differences (`torch.autograd.gradcheck`, and ``gradgradcheck`` where there are second derivatives; fast mode, small
    cases) where the CPU's pass. An in-place form is
    given a clone of the leaf, as autograd demands. ``reference`` is a differentiable function that stands in for the
    operator on the CPU. ``fallback`` allows operators to go through the CPU fallback. The
    result says in how many of ``count`` cases there was a gradient: none for an operator without a derivative, and
    none for random operators, whose gradients depend on the numbers drawn.
    """
    subject = gradient_subject(name, device, fallback, reference)
    compared = Compared()
    tried = differentiable_dtypes(subject, asked_dtypes(dtypes) or ())
    asked_count(count)

    def check(case: Case) -> None:
        problems = examine_gradients(case, subject, compared)
        if problems:
            raise AssertionError(report(case, problems, subject, backward=True))

    if tried:
        for_every(cases(subject.op, subject.domain, subject.reference, tried), check, count)
    return compared


def gradient_subject(
    name: str, device: str = "musa", fallback: bool = False, reference: Callable[..., Any] | None = None
) -> Subject:
    """The overload with a domain in which gradients are worth comparing: nan and infinity have none."""
    subject = load_subject(name, device=device, fallback=fallback, reference=reference)
    domain = subject.domain
    numbers = replace(domain.numbers, special=False)
    return replace(subject, domain=replace(domain, numbers=numbers, accumulates=True))


def differentiable_dtypes(subject: Subject, dtypes: Sequence[torch.dtype]) -> tuple[torch.dtype, ...]:
    """Those of ``dtypes`` that the reference takes; none for operators whose results are drawn or undefined."""
    domain = subject.domain
    if domain.law or domain.undefined:
        return ()
    allowed = tuple(dtype for dtype in dtypes if domain.dtypes is None or dtype in domain.dtypes)
    return accepted_dtypes(subject.op, replace(domain, dtypes=allowed), subject.reference) if allowed else ()


def examine_gradients(case: Case, subject: Subject, compared: Compared) -> tuple[Problem, ...]:
    """What is wrong with the gradients of one case; ``compared`` counts what there was to compare."""
    if not _derivatives(case, subject.domain, "cpu", subject.reference).first:
        return ()
    # several of the CPU's backward kernels take parameters for dense tensors
    expected = _derivatives(case.dense(), subject.domain, "cpu", subject.reference)
    before = fallback_counts(subject.device)
    actual = _derivatives(case, subject.domain, subject.device, case.op.call)
    if actual.error is not None:
        by_name = lacks_dtype(actual.error) and any(spec.dtype != torch.float32 for _, spec in case.tensors())
        if by_name or chip_lacks(case, actual.error, subject.device):
            return ()
        text = f"raises {type(actual.error).__name__} on the way to a gradient: {actual.error}"
        return (Problem(Category.GRADIENT, text),)
    if subject.domain.normalize and not _same(expected.named, actual.named):
        # which of several equal elements it is that has the gradient is open
        return ()
    compared.cases += 1
    compared.second += bool(expected.second)
    problems = _compare(case, subject.domain, expected, actual)
    if problems and expected.asking == actual.asking and _ill_conditioned(case, subject, expected, actual):
        problems = []
    for order in (1, 2) if expected.second else (1,):
        if problems or _checks_out(case, subject, "cpu", subject.reference, order) is not None:
            break
        compared.differences += order == 1
        compared.second_differences += order == 2
        difference = _checks_out(case, subject, subject.device, case.op.call, order)
        problems += [Problem(Category.GRADIENT, difference)] if difference else []
    after = fallback_counts(subject.device)
    taken = {op for op, count in after.items() if count != before.get(op, 0)} - subject.domain.through_cpu
    if taken and not subject.fallback:
        problems.append(Problem(Category.FALLBACK, f"goes through the CPU fallback: {sorted(taken)}"))
    return tuple(problems)


def _compare(case: Case, domain: Domain, expected: _Derivatives, actual: _Derivatives) -> list[Problem]:
    problems: list[Problem] = []
    if actual.asking != expected.asking:
        text = f"gives results that ask for a gradient: {actual.asking}, on the CPU {expected.asking}"
        problems.append(Problem(Category.GRADIENT, text))
    orders = (("gradient", expected.first, actual.first), ("second derivative", expected.second, actual.second))
    for (order, wanted, got), rounding in zip(orders, _ROUNDING, strict=True):
        if got.keys() != wanted.keys():
            text = f"has a {order} for {sorted(got) or 'nothing'}, the CPU for {sorted(wanted) or 'nothing'}"
            problems.append(Problem(Category.GRADIENT, text))
        for path in wanted.keys() & got.keys():
            dtype = _coarsest(case, domain, wanted[path].dtype)
            differences = compare_values(wanted[path], got[path], rounding * terms_of(case, domain), dtype)
            problems += [Problem(Category.GRADIENT, f"{order} of {path!r} {text}") for text in differences]
    return problems


def _coarsest(case: Case, domain: Domain, gradient: torch.dtype) -> torch.dtype:
    """What a gradient of that dtype may have been rounded to: the dtype that the call asks to compute in, say."""
    asked = [value for value in case.arguments.values() if isinstance(value, torch.dtype) and value.is_floating_point]
    table = [domain.gradient_dtype] if domain.gradient_dtype else []
    dtypes = (working_dtype(case, domain, gradient), *asked, *table)
    return max(dtypes, key=lambda dtype: tolerance(dtype)[0])


def _same(wanted: tuple[Tensor, ...], got: tuple[Tensor, ...]) -> bool:
    return len(wanted) == len(got) and all(torch.equal(one, other) for one, other in zip(wanted, got, strict=True))


def _ill_conditioned(case: Case, subject: Subject, expected: _Derivatives, actual: _Derivatives) -> bool:
    """True where derivatives differ no more than the CPU's own do for inputs an ulp away."""
    keys = [(order, path) for order in ("first", "second") for path in getattr(expected, order)]
    if keys != [(order, path) for order in ("first", "second") for path in getattr(actual, order)]:
        return False

    def values(of: _Derivatives) -> list[Tensor] | None:
        return [getattr(of, order)[path] for order, path in keys if path in getattr(of, order)]

    def compute(moved: Case) -> list[Tensor] | None:
        return values(_derivatives(moved.dense(), subject.domain, "cpu", subject.reference))

    terms = max(_ROUNDING) * terms_of(case, subject.domain)
    return excused(case, compute, values(expected) or [], values(actual) or [], terms)


def _derivatives(case: Case, domain: Domain, device: str, call: Callable[..., Any]) -> _Derivatives:
    """Derivatives by every floating argument, for cotangents that differ from element to element.

    On the CPU an error means that there is nothing to compare; of second derivatives on the device as well, when the
    CPU has none.
    """
    try:
        function, leaves = _as_function(case, domain, device, call)
        with quietly():
            results = [result for result in function(*leaves.values()) if isinstance(result, Tensor)]
            asking = tuple(result.requires_grad for result in results)
            named = tuple(to_cpu(result) for result in results if not result.dtype.is_floating_point)
            first = _gradients([result for result in results if result.requires_grad], leaves, keep=True)
    except Exception as error:
        return _Derivatives(error=error)
    again = [gradient for gradient in first.values() if gradient.requires_grad]
    try:
        with quietly():
            second = _gradients(again, leaves, keep=False)
    except Exception:  # PyTorch has derivatives of first order only for many operators, on every device
        second = {}
    on_cpu = [{path: to_cpu(gradient) for path, gradient in order.items()} for order in (first, second)]
    return _Derivatives(on_cpu[0], on_cpu[1], asking, named)


def _as_function(
    case: Case, domain: Domain, device: str, call: Callable[..., Any]
) -> tuple[Callable[..., list[Any]], dict[str, Tensor]]:
    """The case as a function of the tensors that have gradients, and those tensors by path."""
    live = make_live(case, device, leaves=lambda path: path not in domain.mutates)
    leaves = {path: tensor for path, tensor in live.tensors.items() if tensor.requires_grad}
    written = {argument.name for argument in case.op.arguments if argument.written}

    def function(*values: Tensor) -> list[Any]:
        # an operator that writes a leaf is refused, so it gets a copy
        given = {
            id(leaves[path]): value.clone() if path in written else value
            for path, value in zip(leaves, values, strict=True)
        }

        def put(argument: Any) -> Any:
            if isinstance(argument, list):
                return [put(item) for item in argument]
            return given.get(id(argument), argument)

        return flatten(call(*map(put, live.positional), **{name: put(value) for name, value in live.keywords.items()}))

    return function, leaves


def _gradients(results: list[Tensor], leaves: dict[str, Tensor], keep: bool) -> dict[str, Tensor]:
    if not results:
        return {}
    cotangents = [_cotangent(result.shape, result.dtype).to(result.device) for result in results]
    gradients = torch.autograd.grad(results, list(leaves.values()), cotangents, create_graph=keep, allow_unused=True)
    return {path: gradient for path, gradient in zip(leaves, gradients, strict=True) if gradient is not None}


# Where the fast mode of gradcheck finds a contradiction, it goes through the elements one by one to say which.
_MOST_DIFFERENCES = 512
# Of second order each of them is a backward pass.
_MOST_SECOND_DIFFERENCES = 64


def _checks_out(case: Case, subject: Subject, device: str, call: Callable[..., Any], order: int = 1) -> str | None:
    """None when the gradients of that order agree with differences; a sentence when they do not, or cannot be asked."""
    tensors = [spec for _, spec in case.tensors()]
    if any(spec.dtype.is_floating_point and spec.dtype != torch.float64 for spec in tensors):
        return "differences need double precision"
    if sum(spec.value.numel() for spec in tensors) > (_MOST_DIFFERENCES if order == 1 else _MOST_SECOND_DIFFERENCES):
        return "differences of so many elements take minutes"
    # a step along one of several names for a number moves them all
    function, leaves = _as_function(case.dense(), subject.domain, device, call)

    def differentiable(*values: Tensor) -> tuple[Tensor, ...]:
        return tuple(r for r in function(*values) if isinstance(r, Tensor) and r.requires_grad)

    try:
        with quietly():
            inputs = tuple(leaves.values())
            if order == 1:
                torch.autograd.gradcheck(differentiable, inputs, fast_mode=True)
            else:
                # cotangents of its own choice would be other ones in each run
                results = differentiable(*inputs)
                cotangents = tuple(_cotangent(r.shape, r.dtype).to(r.device).requires_grad_() for r in results)
                torch.autograd.gradgradcheck(differentiable, inputs, cotangents, fast_mode=True)
    except Exception as error:
        what = "gradients" if order == 1 else "second derivatives"
        return f"has {what} that differences contradict: {str(error).splitlines()[0] if str(error) else error!r}"
    return None


def _cotangent(shape: torch.Size, dtype: torch.dtype) -> Tensor:
    count = shape.numel()
    return (((torch.arange(count) % 7) - 3) / 2).reshape(shape).to(dtype)
