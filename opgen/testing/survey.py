"""What running an overload on many cases shows, without stopping at the first fault: the ground of a verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from opgen.testing.asked import asked_count, asked_dtypes
from opgen.testing.build import Rule
from opgen.testing.case import Case
from opgen.testing.check import for_every
from opgen.testing.examine import Ending, Examined, examine
from opgen.testing.gradients import Compared, differentiable_dtypes, examine_gradients, gradient_subject
from opgen.testing.problem import Category, Problem
from opgen.testing.repro import script
from opgen.testing.strategies import cases, refused_cases
from opgen.testing.subject import Subject, load_subject

# Shrinking stops there with the shortest case so far: slow operators, or a fault that most cases show.
_SHRINK_SECONDS = 10.0


class _Enough(KeyboardInterrupt):
    """Ends hypothesis from within a test; it takes other exceptions for failures to shrink."""


@dataclass(frozen=True)
class Finding:
    """The first case that showed a category of problem; the shortest one where the survey shrank it."""

    problem: Problem
    case: str
    script: str


@dataclass
class Survey:
    """The cases of one overload and main dtype, by how they ended, and one finding for each category of problem."""

    op: str
    dtype: str
    seed: int
    compared_with: str
    endings: Counter[Ending] = field(default_factory=Counter)
    categories: Counter[Category] = field(default_factory=Counter)
    """Failed cases by category; a case may have problems of several."""
    findings: dict[Category, Finding] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of cases."""
        return sum(self.endings.values())


def survey(
    name: str,
    dtype: torch.dtype,
    *,
    count: int = 20,
    seed: int = 0,
    device: str = "musa",
    fallback: bool = False,
    reference: Callable[..., Any] | None = None,
    arguments: Mapping[str, Rule] | None = None,
    before: Callable[[Case], None] | None = None,
    watch: Callable[[], AbstractContextManager[Any]] = nullcontext,
    shrink: bool = False,
) -> Survey:
    """Runs ``count`` cases of main dtype ``dtype`` and counts how they end; never raises over a difference.

    ``before`` is told of each case ahead of its run, so that one that takes the process down is known
    (`opgen.testing.repro.script` makes a program of it). ``watch`` is entered around each call on the device.
    ``shrink`` spends more runs on a short case for each finding. The dtypes that an overload takes are
    ``load_subject(name).dtypes()``. Raises LookupError where PyTorch has no such overload or an argument lacks a rule.
    """
    subject = load_subject(
        name, reference=reference, device=device, arguments=arguments, fallback=fallback, watch=watch
    )

    def look(case: Case) -> Examined:
        if before:
            before(case)
        return examine(case, subject)

    asked_count(count)
    return _survey(subject, dtype, count, seed, shrink, look)


def survey_refusals(
    name: str,
    dtype: torch.dtype,
    *,
    count: int = 4,
    seed: int = 0,
    device: str = "musa",
    fallback: bool = False,
    before: Callable[[Case], None] | None = None,
    watch: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Survey:
    """The same for a main dtype that the reference refuses, where the device has to refuse as well: by the same type of
    exception, or by saying that it lacks the dtype. What is beyond the CPU alone is DISCARDED."""
    subject = load_subject(name, device=device, fallback=fallback, watch=watch)
    asked_count(count)
    found = Survey(subject.op.name, str(dtype).removeprefix("torch."), seed, subject.compared_with)
    first = seed * count
    for case in refused_cases(subject.op, subject.domain, subject.reference, dtype, range(first, first + count)):
        if before:
            before(case)
        _note(found, subject, case, examine(case, subject, refused=True))
    return found


def _note(found: Survey, subject: Subject, case: Case, examined: Examined, backward: bool = False) -> None:
    """Counts how a case ended, and keeps it where it is the first with a kind of problem."""
    found.endings[examined.ending] += 1
    for problem in {problem.category: problem for problem in reversed(examined.problems)}.values():
        found.categories[problem.category] += 1
        if problem.category not in found.findings:
            found.findings[problem.category] = _finding(subject, case, problem, backward)


def _finding(subject: Subject, case: Case, problem: Problem, backward: bool) -> Finding:
    return Finding(problem, repr(case), script(case, subject.device, subject.reference, backward, {problem.category}))


def survey_gradients(
    name: str,
    dtype: torch.dtype,
    *,
    count: int = 5,
    seed: int = 0,
    device: str = "musa",
    fallback: bool = False,
    before: Callable[[Case], None] | None = None,
    shrink: bool = False,
) -> Survey:
    """The same for gradients, by `opgen.testing.gradients`; an empty survey where a dtype has none.

    Cases without a gradient are DISCARDED.
    """
    subject = gradient_subject(name, device, fallback)
    tried = differentiable_dtypes(subject, asked_dtypes((dtype,)) or ())
    asked_count(count)

    def look(case: Case) -> Examined:
        if before:
            before(case)
        compared = Compared()
        problems = examine_gradients(case, subject, compared)
        if problems:
            return Examined(Ending.FAILED, problems)
        return Examined(Ending.AGREED if compared.cases else Ending.DISCARDED)

    return _survey(subject, dtype, count if tried else 0, seed, shrink, look, backward=True)


def _survey(
    subject: Subject,
    dtype: torch.dtype,
    count: int,
    seed: int,
    shrink: bool,
    look: Callable[[Case], Examined],
    backward: bool = False,
) -> Survey:
    (dtype,) = asked_dtypes((dtype,)) or ()
    found = Survey(subject.op.name, str(dtype).removeprefix("torch."), seed, subject.compared_with)
    if not count:
        return found
    strategy = cases(subject.op, subject.domain, subject.reference, (dtype,))

    def record(case: Case) -> None:
        _note(found, subject, case, look(case), backward)

    def shortest(category: Category) -> Finding:
        """Of the cases that fail in this way; the one that was found first where the fault does not come back."""
        smallest = found.findings[category]
        end = time.monotonic() + _SHRINK_SECONDS

        def stop(case: Case) -> None:
            nonlocal smallest
            if time.monotonic() > end:
                raise _Enough
            for problem in look(case).problems:
                if problem.category is category:
                    # the last case that fails is the one that shrinking ends with
                    smallest = _finding(subject, case, problem, backward)
                    raise AssertionError

        with suppress(Exception, _Enough):  # hypothesis wraps what is flaky in errors of its own
            for_every(strategy, stop, count, shrink=True, seed=seed)
        return smallest

    for_every(strategy, record, count, shrink=False, seed=seed)
    if shrink:
        for category in list(found.findings):
            found.findings[category] = shortest(category)
    return found
