"""Runs one case on both sides and says how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from opgen.testing import laws
from opgen.testing.case import Case
from opgen.testing.chips import computes_on_host, lacking, refuses_for_lack
from opgen.testing.compare import compare, compare_results, terms_of
from opgen.testing.conditioning import excused
from opgen.testing.effects import compare_refusals, compare_runs, compare_side_effects, compare_views, trips_to_cpu
from opgen.testing.problem import Category, Problem
from opgen.testing.repro import script
from opgen.testing.run import Outcome, run, to_cpu
from opgen.testing.subject import Subject
from opgen.testing.values import compare_value_refusals, is_about_values, survives_faults


class Ending(Enum):
    """How one case ended."""

    AGREED = "both sides return the same"
    REFUSED = "both sides raise the same type of exception"
    UNSUPPORTED = "the device says that it lacks the dtype"
    DISCARDED = "the CPU lacks the dtype, or a layout"
    UNTRIED = "the CPU refuses a value, which the device does not survive"
    FAILED = "the two sides differ"


@dataclass(frozen=True)
class Examined:
    """How a case ended; the differences where it failed."""

    ending: Ending
    problems: tuple[Problem, ...] = ()


def examine(case: Case, subject: Subject, refused: bool = False) -> Examined:
    """Runs the case on the CPU and on the device and compares everything that can be observed.

    ``refused`` asks about refusals alone, of a main dtype that the operator does not take: the device may refuse it by
    name then, whatever exception the CPU has for it.
    """
    expected = run(case, "cpu", subject.reference)
    if expected.error is not None and _beyond_cpu(case, expected.error):
        return Examined(Ending.DISCARDED)
    if refused and expected.error is None:
        return Examined(Ending.DISCARDED)
    about_values = expected.error is not None and is_about_values(expected.error, case)
    if about_values and not survives_faults(subject.device):
        return Examined(Ending.UNTRIED)
    actual = run(case, subject.device, case.op.call, subject.watch)
    ending = Ending.AGREED
    if expected.error is not None:
        if about_values:
            problems = compare_value_refusals(expected.error, actual.error)
        else:
            problems = compare_refusals(case, expected.error, actual, subject.domain)
            if refused and actual.error is not None and lacks_dtype(actual.error):
                problems = [problem for problem in problems if problem.category is not Category.ERROR_TYPE]
        ending = Ending.REFUSED
    elif actual.error is not None:
        if (_may_lack(case) and lacks_dtype(actual.error)) or chip_lacks(case, actual.error, subject.device):
            return Examined(Ending.UNSUPPORTED)
        problems = [Problem(Category.REFUSED, f"raises {type(actual.error).__name__}: {actual.error}")]
    else:
        problems = compare(case, expected, actual, subject.domain, subject.device)
        if problems and (
            _cpu_contradicts_itself(case, subject, expected, actual)
            or _is_ill_conditioned(case, subject, problems, expected, actual)
        ):
            problems = []
        if subject.same_operator:
            problems += compare_side_effects(case, expected, actual)
        if subject.domain.law and not problems:
            problems = laws.check(case, subject.domain.law, subject.device)
        elif not problems and not subject.domain.undefined:
            again = run(case, subject.device, case.op.call)
            problems = compare_runs(case, actual, again, subject.domain, computes_on_host(subject.device))
            problems = problems or compare_views(case, expected, actual)
    if _is_internal(actual.error) and not _is_internal(expected.error):
        problems.append(Problem(Category.INTERNAL, f"fails an internal check: {actual.error}"))
    if not subject.fallback:
        problems += trips_to_cpu(actual, subject.domain)
    return Examined(Ending.FAILED, tuple(problems)) if problems else Examined(ending)


def report(case: Case, problems: tuple[Problem, ...], subject: Subject, backward: bool = False) -> str:
    """The differences, the case, and a script that reproduces them; of a ``backward`` pass too."""
    about = {problem.category for problem in problems}
    text = script(case, subject.device, subject.reference, backward, about)
    listed = "\n".join(f"  - {problem}" for problem in problems)
    title = f"{case.op.name} on {subject.device}" + (", backward" if backward else "")
    return f"{title}\n{listed}\n\nin the case\n  {case!r}\n\nTo reproduce:\n\n{text}"


def _cpu_contradicts_itself(case: Case, subject: Subject, expected: Outcome, actual: Outcome) -> bool:
    """True when the CPU gives other values for contiguous copies of its arguments, and the device gives those.

    The layout of a tensor must not change a value. Several CPU kernels take a bias or an out= for a dense tensor, so
    where the CPU's answer hangs on the layout, the answer for the plain one is right.
    """
    domain = subject.domain
    has_values = not (domain.law or domain.undefined)
    views = any(case.op.returns) and not case.op.outs and not case.op.inplace
    if not has_values or views or len(expected.results) != len(actual.results):
        return False
    plain = run(case.dense(), "cpu", subject.reference)
    if plain.error is not None:
        return False
    return bool(compare_results(case, plain, expected, domain)) and not compare_results(case, plain, actual, domain)


def _is_ill_conditioned(
    case: Case, subject: Subject, problems: list[Problem], expected: Outcome, actual: Outcome
) -> bool:
    """True where values differ no more than the CPU's own do for inputs an ulp away."""
    domain = subject.domain
    if domain.law or domain.undefined or any(problem.category is not Category.VALUE for problem in problems):
        return False

    def values(outcome: Outcome) -> list[Tensor] | None:
        if outcome.error is not None:
            return None
        results = [to_cpu(result) if isinstance(result, Tensor) else result for result in outcome.results]
        results = domain.normalize(case, results) if domain.normalize else results
        seen = [result for at, result in enumerate(results) if at not in domain.private]
        return [result if isinstance(result, Tensor) else torch.tensor(result) for result in seen]

    wanted, got = values(expected), values(actual)
    if wanted is None or got is None:
        return False
    return excused(
        case, lambda moved: values(run(moved, "cpu", subject.reference)), wanted, got, terms_of(case, domain)
    )


def _may_lack(case: Case) -> bool:
    """False for the dtypes that every device has to have; with nothing to compute the CPU takes any dtype."""
    return any(spec.dtype not in _ESSENTIAL or not spec.value.numel() for _, spec in case.tensors())


def chip_lacks(case: Case, error: Exception, device: str) -> bool:
    """True for the refusal of a case in which there is a dtype that the chip does not have."""
    asked = {value for value in case.arguments.values() if isinstance(value, torch.dtype)}
    used = asked | {spec.dtype for _, spec in case.tensors()}
    return refuses_for_lack(error) and bool(used & lacking(device))


_ESSENTIAL = (torch.float32, torch.int64, torch.bool)
_LACKS = ("not implemented for", "not supported for", "does not support", "unsupported dtype", "not support")


def lacks_dtype(error: Exception) -> bool:
    """True for the refusal of a dtype by name."""
    return isinstance(error, (RuntimeError, NotImplementedError)) and any(text in str(error).lower() for text in _LACKS)


def _beyond_cpu(case: Case, error: Exception) -> bool:
    """True where the CPU refuses for what it cannot do, which binds no other device: a dtype that its kernel is not
    compiled for, or a limit of its libraries. A dtype that the operator itself refuses, before any kernel, is refused
    on the meta device in the same words."""
    if not lacks_dtype(error):
        return _limit_of_cpu(error)
    try:
        everywhere = run(case, "meta", case.op.call).error
    except Exception:  # arguments that cannot be made there, a generator say
        return True
    return type(everywhere) is not type(error) or _first_line(everywhere) != _first_line(error)


def _first_line(error: Exception | None) -> str:
    return str(error).strip().partition("\n")[0]


# What the CPU's libraries cannot do, though the call is right: oneDNN with some layouts of bfloat16, the gradient of a
# layer norm that is asked for some of its three results only, group norm of what is not contiguous in any format,
# convolution with some layouts of float64, products of whole slices of float16 and bfloat16 in index_reduce.
_CPU_LIMITS = (
    "could not create a primitive",
    "itensor_view_from_dense expects",
    "tensor does not have a device",
    "Expected X.is_contiguous(memory_format) to be true",
    "grad_weight needs to be contiguous",
    "iter.ninputs() == traits::arity",
)


def _limit_of_cpu(error: Exception) -> bool:
    return any(text in str(error) for text in _CPU_LIMITS)


def _is_internal(error: Exception | None) -> bool:
    return isinstance(error, SystemError) or "INTERNAL ASSERT FAILED" in str(error)
