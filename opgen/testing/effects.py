"""Compares what a call does beside its results: warnings, version counters, a second run, writes through views."""

from __future__ import annotations

from torch import Tensor

from opgen.testing.build import Domain
from opgen.testing.case import Case
from opgen.testing.compare import compare_errors, compare_values, same_bits, terms_of, written_paths
from opgen.testing.problem import Category, Problem
from opgen.testing.run import Outcome, to_cpu


def compare_runs(case: Case, first: Outcome, second: Outcome, domain: Domain, ordered: bool = True) -> list[Problem]:
    """Two runs of the device on the same arguments give the same bits.

    Sums of floats by atomic additions do not unless the device adds in one order (``ordered``): they agree as closely
    as each does with the CPU.
    """
    loose = domain.atomic and not ordered
    problems: list[Problem] = []
    on_cpu = [[to_cpu(r) if isinstance(r, Tensor) else r for r in run.results] for run in (first, second)]
    if domain.grows and domain.normalize:
        on_cpu = [domain.normalize(case, results) for results in on_cpu]
    for position, (one, other) in enumerate(zip(*on_cpu, strict=True)):
        if position in domain.private or not isinstance(one, Tensor):
            continue
        if compare_values(one, other, terms_of(case, domain)) if loose else not same_bits(one, other):
            text = f"gives other bits in result {position} when it is called again with the same arguments"
            problems.append(Problem(Category.NONDETERMINISM, text))
    return problems


def compare_refusals(case: Case, expected: Exception, actual: Outcome, domain: Domain) -> list[Problem]:
    """Both sides refuse the call: with the same type of exception, and the inputs keep their values."""
    problems = compare_errors(expected, actual.error)
    written = written_paths(case, domain)
    for path, spec in case.tensors():
        if path.partition("[")[0] not in written and not same_bits(to_cpu(actual.live.bases[path]), spec.base):
            problems.append(Problem(Category.INPUT_CHANGED, f"changes its input {path!r} and then refuses the call"))
    return problems


def compare_side_effects(case: Case, expected: Outcome, actual: Outcome) -> list[Problem]:
    """The same operator gives warnings of the same categories and moves the same version counters on both sides."""
    problems: list[Problem] = []
    wanted, got = (sorted({category for category, _ in warned}) for warned in _binding(case, expected, actual))
    if wanted != got:
        texts = "; ".join(text.splitlines()[0] for _, text in (*expected.warned, *actual.warned))
        text = f"warns with {got or 'nothing'}, the CPU with {wanted or 'nothing'} ({texts})"
        problems.append(Problem(Category.WARNING, text))
    for path in sorted(expected.bumped ^ actual.bumped):
        verb = "does not move" if path in expected.bumped else "moves"
        problems.append(Problem(Category.VERSION, f"{verb} the version counter of {path!r}"))
    return problems


def _binding(case: Case, expected: Outcome, actual: Outcome) -> tuple[list[tuple[str, str]], ...]:
    """The warnings of both sides, less those over a conversion that the CPU makes and a device may make.

    The CPU computes in the dtype of out= where that differs from the operands', and so discards imaginary parts on the
    way to a uint8, say; kernels of a device convert as they store, or convert as the CPU does. It counts a complex
    number that is not zero by way of a real one.
    """
    free = bool(case.op.outs or "norm" in case.op.root) and any(_discards(text) for _, text in expected.warned)
    return tuple(
        [(kind, text) for kind, text in outcome.warned if not (free and _discards(text))]
        for outcome in (expected, actual)
    )


def _discards(text: str) -> bool:
    return text.startswith(_DISCARDS)


_DISCARDS = "Casting complex values to real discards the imaginary part"


def trips_to_cpu(actual: Outcome, domain: Domain) -> list[Problem]:
    """What was computed on the CPU and is not meant to be; within an operator that goes there, everything is."""
    known = domain.through_cpu
    silent = {op: count for op, count in actual.fallbacks.items() if op not in known}
    if silent:
        return [Problem(Category.FALLBACK, f"goes through the CPU fallback: {silent}")]
    silent = {op: count for op, count in actual.on_host.items() if op not in known and not actual.fallbacks}
    return [Problem(Category.FALLBACK, f"computes on the CPU: {silent}")] if silent else []


def compare_views(case: Case, expected: Outcome, actual: Outcome) -> list[Problem]:
    """What is written through a view shows in the tensor that it is a view of. Overwrites the results."""
    if not any(case.op.returns) or any(argument.written for argument in case.op.arguments):
        return []
    for wanted, got in zip(expected.results, actual.results, strict=True):
        if isinstance(wanted, Tensor) and wanted.numel():
            try:
                wanted.fill_(1)
            except RuntimeError:  # several elements in one place
                continue
            got.fill_(1)
    return [
        Problem(Category.ALIASING, f"writing to the result does not show in {path!r} as it does on the CPU")
        for path, base in expected.live.bases.items()
        if not same_bits(to_cpu(actual.live.bases[path]), base)
    ]
