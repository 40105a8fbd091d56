"""(operator list, kernels, two catalogues) -> what another PyTorch changes, each with the edit to make. Pure functions.

Only what concerns an entry, a stub that our sources register, or the coverage denominator is a finding; the other
thousand overloads of a release may do as they please.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from opgen.backend import Backend
from opgen.diagnostics import Diagnostics
from opgen.kernels import KernelIndex
from opgen.releases.catalogue import Catalogue, Operator
from opgen.releases.changes import Change, Comparison, Finding, Urgency
from opgen.releases.diff_entry import Subject, entry_findings, successor
from opgen.releases.diff_stubs import stub_findings
from opgen.releases.timeline import Timeline
from opgen.spec import OpSpec, select_specs

__all__ = ["compare"]


def compare(
    specs: Iterable[OpSpec],
    kernels: KernelIndex,
    timeline: Timeline,
    backend: Backend,
    vendor_only: Mapping[str, str],
) -> Comparison:
    """Everything that moving from `timeline.before` to `timeline.after` changes, worst first.

    `vendor_only` names the overloads that the denominator leaves out, each with the library it belongs to.
    """
    listed = tuple(spec for spec in specs if spec.namespace == "aten")
    before, after = timeline.before, timeline.after
    # Duplicates are `opgen check`'s to report.
    active = {c.version: {s.func: s for s in select_specs(listed, c.version, Diagnostics())} for c in (before, after)}
    old, new = active[before.version], active[after.version]
    found = [
        *(f for name, spec in new.items() for f in _entry(name, spec, old, new, kernels, timeline, backend)),
        *(f for name, spec in old.items() if name not in new for f in _dropped(name, spec, after)),
        *stub_findings(kernels, new, timeline),
        *_coverage(before, after, new, vendor_only),
    ]
    counted = [sum(o.cuda for name, o in c.operators.items() if name not in vendor_only) for c in (before, after)]
    return Comparison(
        before=before.version,
        after=after.version,
        between=tuple(c.version for c in timeline.releases[1:-1]),
        entries=len(old.keys() | new.keys()),
        denominators=(counted[0], counted[1]),
        findings=tuple(sorted(dict.fromkeys(found), key=lambda f: f.rank)),
    )


def _entry(
    name: str,
    spec: OpSpec,
    old: Mapping[str, OpSpec],
    new: Mapping[str, OpSpec],
    kernels: KernelIndex,
    timeline: Timeline,
    backend: Backend,
) -> Iterator[Finding]:
    """What there is to say about an entry that exists with the later release."""
    a, b = timeline.before.operators.get(name), timeline.after.operators.get(name)
    if b is None:
        yield _gone(name, spec, a, timeline)
        return
    if a is None:
        if name in old:
            _, there = timeline.specifiers(lambda c: name not in c.operators)
            yield Finding(
                Urgency.EDIT,
                Change.OPERATOR_NEW,
                name,
                f"torch {timeline.before.version} has no such operator",
                f'limit the entry: `torch: "{there}"`',
                location=spec.location,
            )
        return
    if name in old and old[name] is not spec:
        return  # the list already has an entry for each side
    subject = Subject(name, spec, a, b, new, kernels, timeline, backend)
    yield from entry_findings(subject)


def _gone(name: str, spec: OpSpec, a: Operator | None, timeline: Timeline) -> Finding:
    after = timeline.after
    if a is None:
        return Finding(
            Urgency.EDIT,
            Change.OPERATOR_GONE,
            name,
            f"neither torch {timeline.before.version} nor {after.version} has such an operator",
            "remove the entry, or correct its name",
            location=spec.location,
        )
    here, there = timeline.specifiers(lambda c: name in c.operators)
    heir = successor(name, a, timeline)
    edit = f'limit the entry: `torch: "{here}"`'
    if heir is not None:
        edit += f', and add one for its successor: `- func: {heir}` with `torch: "{there}"`'
    return Finding(
        Urgency.EDIT,
        Change.OPERATOR_GONE,
        name,
        f"torch {after.version} has no such operator",
        edit,
        before=a.schema,
        after=after.operators[heir].schema if heir is not None else None,
        location=spec.location,
    )


def _dropped(name: str, spec: OpSpec, after: Catalogue) -> Iterator[Finding]:
    """An entry that `torch:` keeps from the later release although the operator is there."""
    if name in after.operators and spec.torch is not None:
        yield Finding(
            Urgency.REVIEW,
            Change.OPERATOR_NEW,
            name,
            f"its entry is limited to `{spec.torch}`, but torch {after.version} has the operator",
            "add an entry for that release, or leave it to upstream's kernel or the CPU",
            location=spec.location,
        )


def _coverage(
    before: Catalogue, after: Catalogue, specs: Mapping[str, OpSpec], vendor_only: Mapping[str, str]
) -> Iterator[Finding]:
    """Overloads that enter or leave the denominator."""
    old = {name for name, operator in before.operators.items() if operator.cuda and name not in vendor_only}
    new = {name for name, operator in after.operators.items() if operator.cuda and name not in vendor_only}
    for name in sorted(new - old):
        operator = after.operators[name]
        is_new = name not in before.operators
        text = "a new operator" if is_new else f"had no CUDA kernel in torch {before.version}"
        library = next((lib for lib in sorted(set(vendor_only.values())) if lib.lower() in name), None)
        if name in specs:
            edit = "listed already"
        elif library is not None:
            edit = f"bound to {library} by its name: leave it out of the denominator (opgen/data/vendor_only.tsv)?"
        else:
            leader = operator.out if operator.out in new - old else name
            edit = f"add an entry: `opgen new {leader}`"
        location = specs[name].location if name in specs else None
        after_text = operator.schema if is_new else None
        yield Finding(Urgency.NEWS, Change.CUDA_NEW, name, text, edit, None, after_text, location)
    for name in sorted(old - new):
        gone = name not in after.operators
        text = "no such operator any more" if gone else f"has no CUDA kernel in torch {after.version}"
        location = specs[name].location if name in specs else None
        yield Finding(Urgency.NEWS, Change.CUDA_GONE, name, text, None, None, None, location)
