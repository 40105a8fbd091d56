"""What another release changes for the DispatchStubs that our sources register."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opgen.diagnostics import Location
from opgen.kernels import Definition, KernelIndex
from opgen.releases.changes import Change, Finding, Urgency
from opgen.releases.stub_headers import Stub
from opgen.releases.timeline import Timeline
from opgen.spec import OpSpec
from opgen.stubs import legacy_stubs

__all__ = ["stub_findings"]


def stub_findings(kernels: KernelIndex, specs: Mapping[str, OpSpec], timeline: Timeline) -> Iterator[Finding]:
    """Stubs that are gone, declared elsewhere, or of another type; `specs` are the later release's entries."""
    for name, definitions in sorted(kernels.stubs.items()):
        old, new = timeline.before.stubs.get(name), timeline.after.stubs.get(name)
        if old is None or old == new:
            continue
        if new is None:
            yield _gone(name, old, definitions[0], specs, timeline)
        else:
            yield from _changed(name, old, new, definitions[0], timeline)


def _gone(name: str, old: Stub, used: Definition, specs: Mapping[str, OpSpec], timeline: Timeline) -> Finding:
    here, _ = timeline.specifiers(lambda c: name in c.stubs)
    users = [op for op, known in legacy_stubs().items() if name in known.stubs and _is_legacy(op, specs)]
    edit = f"register it only where torch is {here}"
    if users:
        edit += f", and name kernels for the Legacy entries that relied on it: {', '.join(users)}"
    text = f"no header of torch {timeline.after.version} declares it"
    declared = f"{name}: {old.type} in <{old.header}>"
    return Finding(Urgency.EDIT, Change.STUB_GONE, name, text, edit, declared, None, _location(used))


def _changed(name: str, old: Stub, new: Stub, used: Definition, timeline: Timeline) -> Iterator[Finding]:
    where = _location(used)
    if old.header != new.header:
        edit = f"include <{new.header}> where __has_include finds it, else <{old.header}>"
        text = "another header declares it"
        yield Finding(Urgency.EDIT, Change.STUB_MOVED, name, text, edit, old.header, new.header, where)
    if old.type != new.type:
        _, there = timeline.specifiers(lambda c: name in c.stubs and c.stubs[name].type == old.type)
        edit = f"give the kernel the new type where torch is {there}: name the difference in the compat header"
        text = "its kernels must have another type"
        yield Finding(Urgency.EDIT, Change.STUB_TYPE, name, text, edit, old.type, new.type, where)


def _is_legacy(op: str, specs: Mapping[str, OpSpec]) -> bool:
    return op in specs and not specs[op].dispatch


def _location(definition: Definition) -> Location:
    return Location(definition.path, definition.line, definition.column)
