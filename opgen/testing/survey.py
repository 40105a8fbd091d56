"""What running an overload on many cases shows, without stopping at the first fault: the ground of a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from opgen.testing.build import Rule
from opgen.testing.case import Case
from opgen.testing.check import for_every
from opgen.testing.examine import Ending, examine
from opgen.testing.problem import Category, Problem
from opgen.testing.repro import script
from opgen.testing.strategies import cases
from opgen.testing.subject import Subject, load_subject


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
    found = Survey(subject.op.name, str(dtype).removeprefix("torch."), seed, subject.compared_with)

    def look(case: Case) -> None:
        if before:
            before(case)
        examined = examine(case, subject)
        found.endings[examined.ending] += 1
        for problem in {problem.category: problem for problem in reversed(examined.problems)}.values():
            found.categories[problem.category] += 1
            found.findings.setdefault(problem.category, Finding(problem, repr(case), script(case, device)))

    strategy = cases(subject.op, subject.domain, subject.reference, (dtype,))
    for_every(strategy, look, count, shrink=False, seed=seed)
    if shrink:
        for category in found.findings:
            found.findings[category] = _shrunk(subject, dtype, category, count, seed) or found.findings[category]
    return found


def _shrunk(subject: Subject, dtype: torch.dtype, category: Category, count: int, seed: int) -> Finding | None:
    """The shortest case that hypothesis finds for a category; None where the fault does not come back."""
    smallest: list[Finding] = []

    def stop_at(case: Case) -> None:
        for problem in examine(case, subject).problems:
            if problem.category is category:
                # the last case that fails is the one that shrinking ends with
                smallest[:] = [Finding(problem, repr(case), script(case, subject.device))]
                raise AssertionError

    try:
        for_every(
            cases(subject.op, subject.domain, subject.reference, (dtype,)), stop_at, count, shrink=True, seed=seed
        )
    except Exception:  # hypothesis wraps what is flaky in errors of its own
        return smallest[0] if smallest else None
    return None
