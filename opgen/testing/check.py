"""Checks one overload on a device against the CPU, case by case."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import hypothesis
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from opgen.testing import laws
from opgen.testing.build import Domain, Rule
from opgen.testing.case import Case
from opgen.testing.compare import compare, compare_errors, compare_results
from opgen.testing.domains import domain_of
from opgen.testing.overload import load_overload
from opgen.testing.repro import script
from opgen.testing.run import Outcome, run
from opgen.testing.strategies import accepted_dtypes, cases

# A test whose cases are mostly refused proves nothing.
_LEAST_AGREEMENT = 0.3


class Verdict(Enum):
    """How one case ended, when it did not fail."""

    AGREED = "both sides return the same"
    REFUSED = "both sides raise the same type of exception"
    UNSUPPORTED = "the device says that it lacks the dtype"
    DISCARDED = "the CPU lacks the dtype, or a layout"


@dataclass
class Tally:
    """What a check has seen."""

    cases: Counter[Verdict] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """The number of cases."""
        return sum(self.cases.values())

    @property
    def acceptance(self) -> float:
        """The share of cases in which results were compared; 1 when there was no case."""
        return self.cases[Verdict.AGREED] / self.total if self.total else 1.0


def examples() -> int:
    """Cases per overload: TEST_EXAMPLES, or 20."""
    return int(os.environ.get("TEST_EXAMPLES", "20"))


def chosen_seed() -> int | None:
    """TEST_SEED; without it every run sees the same cases, so that a change cannot fail over something else."""
    return int(os.environ["TEST_SEED"]) if "TEST_SEED" in os.environ else None


def for_every(
    strategy: st.SearchStrategy[Case], action: Callable[[Case], None], count: int, shrink: bool = True
) -> None:
    """Runs ``action`` on ``count`` cases and shrinks the first one that fails."""

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=chosen_seed() is None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    @given(strategy)
    def every_case(case: Case) -> None:
        action(case)

    test = every_case if chosen_seed() is None else hypothesis.seed(chosen_seed())(every_case)
    test()


def check_overload(
    name: str,
    *,
    reference: Callable[..., Any] | None = None,
    device: str = "musa",
    arguments: Mapping[str, Rule] | None = None,
    dtypes: Sequence[torch.dtype] | None = None,
    count: int | None = None,
    fallback: bool = False,
    shrink: bool = True,
) -> Tally:
    """Compares an overload on ``device`` with the CPU on random arguments; raises AssertionError where they differ.

    ``name`` is ``"add.Tensor"`` or ``"musa::rope"``. ``reference`` computes the expected results from the same
    arguments on the CPU; by default the operator itself does. ``arguments`` has a rule for each argument that type and
    name say too little about (`opgen.testing.rules` has building blocks). ``dtypes`` are the main dtypes to try, by
    default all that the reference takes. ``count`` is the number of cases, by default TEST_EXAMPLES or 20.
    ``fallback`` allows the operator to go through the CPU fallback. ``shrink`` False reports the first failing case as
    it is, which is faster.
    """
    op = load_overload(name)
    domain = domain_of(op)
    if arguments:
        domain = replace(domain, arguments={**domain.arguments, **arguments})
    call = reference or domain.reference or op.call
    tried = tuple(dtypes) if dtypes else accepted_dtypes(op, domain, call)
    if not tried:
        raise AssertionError(f"{op.name}: the reference refuses every case; the domain table lacks a rule for it")
    tally = Tally()

    def check(case: Case) -> None:
        tally.cases[check_case(case, domain, call, device, fallback)] += 1

    for_every(cases(op, domain, call, tried), check, count or examples(), shrink)
    if tally.acceptance < _LEAST_AGREEMENT:
        counts = ", ".join(f"{verdict.value}: {count}" for verdict, count in tally.cases.items())
        raise AssertionError(f"{op.name}: results were compared in {tally.acceptance:.0%} of the cases only ({counts})")
    return tally


def check_case(case: Case, domain: Domain, reference: Callable[..., Any], device: str, fallback: bool) -> Verdict:
    """Runs one case on both sides; raises AssertionError with a script that reproduces a difference."""
    expected = run(case, "cpu", reference)
    if expected.error is not None and (_lacks_dtype(expected.error) or _limit_of_cpu(expected.error)):
        return Verdict.DISCARDED
    actual = run(case, device, case.op.call)
    if expected.error is not None:
        problems, verdict = compare_errors(expected.error, actual.error), Verdict.REFUSED
    elif actual.error is not None:
        if _may_lack(case) and _lacks_dtype(actual.error):
            return Verdict.UNSUPPORTED
        problems, verdict = [f"raises {type(actual.error).__name__}: {actual.error}"], Verdict.AGREED
    else:
        problems, verdict = compare(case, expected, actual, domain, device), Verdict.AGREED
        if problems and _cpu_contradicts_itself(case, domain, reference, expected, actual):
            problems = []
        if domain.law and not problems:
            problems = laws.check(case, domain.law, device)
    if actual.fallbacks and not fallback:
        problems.append(f"goes through the CPU fallback: {actual.fallbacks}")
    if problems:
        raise AssertionError(_report(case, problems, device))
    return verdict


def _cpu_contradicts_itself(
    case: Case, domain: Domain, reference: Callable[..., Any], expected: Outcome, actual: Outcome
) -> bool:
    """True when the CPU gives other values for contiguous copies of its arguments, and the device gives those.

    The layout of a tensor must not change a value. Several CPU kernels take a bias or an out= for a dense tensor, so
    where the CPU's answer hangs on the layout, the answer for the plain one is right.
    """
    has_values = not (domain.law or domain.undefined)
    writes_or_views = any(case.op.returns) and not case.op.outs
    if not has_values or writes_or_views or len(expected.results) != len(actual.results):
        return False
    plain = run(case.dense(), "cpu", reference)
    if plain.error is not None:
        return False
    return bool(compare_results(case, plain, expected, domain)) and not compare_results(case, plain, actual, domain)


def _may_lack(case: Case) -> bool:
    """False for the dtypes that every device has to have; with nothing to compute the CPU takes any dtype."""
    return any(spec.dtype not in _ESSENTIAL or not spec.value.numel() for _, spec in case.tensors())


_ESSENTIAL = (torch.float32, torch.int64, torch.bool)
_LACKS = ("not implemented for", "not supported for", "does not support", "unsupported dtype", "not support")


def _lacks_dtype(error: Exception) -> bool:
    return isinstance(error, (RuntimeError, NotImplementedError)) and any(text in str(error).lower() for text in _LACKS)


# What the CPU's libraries cannot do, though the call is right: oneDNN with some layouts of bfloat16, the gradient of a
# layer norm that is asked for some of its three results only, group norm of what is not contiguous in any format,
# convolution with some layouts of float64.
_CPU_LIMITS = (
    "could not create a primitive",
    "itensor_view_from_dense expects",
    "tensor does not have a device",
    "Expected X.is_contiguous(memory_format) to be true",
    "grad_weight needs to be contiguous",
)


def _limit_of_cpu(error: Exception) -> bool:
    return any(text in str(error) for text in _CPU_LIMITS)


def _report(case: Case, problems: list[str], device: str) -> str:
    listed = "\n".join(f"  - {problem}" for problem in problems)
    return f"{case.op.name} on {device}\n{listed}\n\nin the case\n  {case!r}\n\nTo reproduce:\n\n{script(case, device)}"
