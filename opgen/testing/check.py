"""Checks one overload on a device against the CPU, case by case."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from opgen.testing.asked import asked_count, asked_dtypes
from opgen.testing.build import Rule
from opgen.testing.case import Case
from opgen.testing.chips import lacking
from opgen.testing.examine import Ending, examine, report
from opgen.testing.strategies import cases, refused_cases
from opgen.testing.subject import load_subject

# A test whose cases are mostly refused proves nothing.
_LEAST_AGREEMENT = 0.3
# Of each dtype that the operator refuses: whether the device refuses it does not hang on the shape.
_REFUSED_CASES = 2


@dataclass
class Tally:
    """What a check has seen."""

    cases: Counter[Ending] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """The number of cases."""
        return sum(self.cases.values())

    @property
    def acceptance(self) -> float:
        """The share of cases in which results were compared; 1 when there was no case."""
        return self.cases[Ending.AGREED] / self.total if self.total else 1.0


def examples() -> int:
    """Cases per overload: TEST_EXAMPLES, or 20."""
    return asked_count(_number("TEST_EXAMPLES")) or 20


def chosen_seed() -> int | None:
    """TEST_SEED; without it every run sees the same cases, so that a change cannot fail over something else."""
    return _number("TEST_SEED")


def _number(variable: str) -> int | None:
    text = os.environ.get(variable)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{variable} is {text!r} in the environment, and has to be a whole number") from None


def for_every(
    strategy: st.SearchStrategy[Case],
    action: Callable[[Case], None],
    count: int,
    shrink: bool = True,
    seed: int | None = None,
) -> None:
    """Runs ``action`` on ``count`` cases and shrinks the first one that fails. By default the seed is TEST_SEED."""
    chosen = chosen_seed() if seed is None else seed

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=chosen is None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    @given(strategy)
    def every_case(case: Case) -> None:
        action(case)

    test = every_case if chosen is None else hypothesis.seed(chosen)(every_case)
    test()


def check_overload(
    name: str,
    *,
    reference: Callable[..., Any] | None = None,
    device: str = "musa",
    arguments: Mapping[str, Rule] | None = None,
    dtypes: Sequence[torch.dtype | str] | None = None,
    count: int | None = None,
    fallback: bool = False,
    shrink: bool = True,
) -> Tally:
    """Compares an overload on ``device`` with the CPU on random arguments; raises AssertionError where they differ.

    Raises LookupError, TypeError or ValueError, naming what there is, for what cannot be asked: an overload or an
    argument that does not exist, a rule that is none, no cases, no dtypes.

    ``name`` is ``"add.Tensor"`` or ``"musa::rope"``. ``reference`` computes the expected results from the same
    arguments on the CPU; by default the operator itself does. ``arguments`` has a rule for each argument that type and
    name say too little about (`opgen.testing.rules` has building blocks). ``dtypes`` are the main dtypes to try, by
    default all that the reference takes and the chip has; a few cases of those that the operator refuses come on top,
    to see that the device refuses them, too. ``count`` is the number of cases, by default TEST_EXAMPLES or
    20. ``fallback`` allows the operator to go through the CPU fallback. ``shrink`` False reports the first failing case
    as it is, which is faster.
    """
    subject = load_subject(name, reference=reference, device=device, arguments=arguments, fallback=fallback)
    cases_each = asked_count(count) or examples()
    accepted = asked_dtypes(dtypes) or subject.dtypes()
    if not accepted:
        raise AssertionError(f"{subject.op.name}: {subject.why_no_dtypes()}")
    tried = accepted if dtypes else tuple(dtype for dtype in accepted if dtype not in lacking(device))
    if not tried:
        raise AssertionError(f"{subject.op.name}: the chip computes in none of the dtypes that the reference takes")
    tally = Tally()

    def check(case: Case) -> None:
        examined = examine(case, subject)
        if examined.ending is Ending.FAILED:
            raise AssertionError(report(case, examined.problems, subject))
        tally.cases[examined.ending] += 1

    for_every(cases(subject.op, subject.domain, subject.reference, tried), check, cases_each, shrink)
    for dtype in subject.refused(accepted) if dtypes is None else ():
        for case in refused_cases(subject.op, subject.domain, subject.reference, dtype, range(_REFUSED_CASES)):
            examined = examine(case, subject, refused=True)
            if examined.ending is Ending.FAILED:
                raise AssertionError(report(case, examined.problems, subject))
    if tally.acceptance < _LEAST_AGREEMENT:
        counts = ", ".join(f"{ending.value}: {count}" for ending, count in tally.cases.items())
        raise AssertionError(
            f"{subject.op.name}: results were compared in {tally.acceptance:.0%} of the cases only ({counts})"
        )
    return tally
