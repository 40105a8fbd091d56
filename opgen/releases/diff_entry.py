"""What another release changes for one entry whose operator both releases have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from opgen.backend import Backend
from opgen.kernels import KernelIndex
from opgen.registration import in_namespace
from opgen.releases.catalogue import Catalogue, Operator
from opgen.releases.changes import Change, Finding, Urgency
from opgen.releases.timeline import Timeline
from opgen.spec import Inherit, OpSpec
from opgen.upstream import IN_LIBTORCH_CPU

__all__ = ["Subject", "entry_findings", "successor"]

_COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
# Keys for which an entry could register a kernel, too. (Dense CUDA kernels are the coverage denominator's.)
_TELLING = ("Sparse", "Quantized", "Nested")


@dataclass(frozen=True)
class Subject:
    """An entry, its operator before and after, and what surrounds it."""

    name: str
    spec: OpSpec
    a: Operator
    b: Operator
    specs: Mapping[str, OpSpec]
    """All entries that exist with the later release."""
    kernels: KernelIndex
    timeline: Timeline
    backend: Backend

    @property
    def kernel(self) -> str | None:
        """The kernel that the entry names for the dense key; the CPU fallback is none."""
        name = self.spec.dispatch.get(self.backend.dispatch_key)
        return name if name != self.backend.fallback_kernel else None

    @property
    def fallback(self) -> bool:
        return self.spec.dispatch.get(self.backend.dispatch_key) == self.backend.fallback_kernel

    def is_own(self, kernel: str) -> bool:
        """Whether one of our sources defines a function of that name; then upstream's does not matter."""
        definitions = self.kernels.functions.get(kernel, ())
        return in_namespace(definitions, self.backend.namespace) is not None

    @property
    def own_kernel(self) -> str | None:
        """The kernel of ours that the entry names: an implementation class, or a function that one of our sources
        defines; what is upstream's or nobody's is none."""
        kernel = self.kernel
        if kernel is None or self.implements or self.is_own(kernel):
            return kernel
        return kernel if kernel not in self.a.kernels.values() else None

    @property
    def implements(self) -> bool:
        """Whether the entry's kernel is a structured implementation, before and after."""
        plain = self.spec.structured is False or self.name != self.a.out or self.name != self.b.out
        return not plain and self.kernel is not None

    def signature_moved(self, kernel: str) -> bool:
        """Whether the C++ parameters of the entry's own kernel differ."""
        if self.implements:
            return self.a.impl != self.b.impl
        # Only kernels called so take SymInt; for all others int and SymInt are the same.
        symint = "_symint" in kernel and self.a.schema.replace("SymInt", "int") == self.b.schema.replace(
            "SymInt", "int"
        )
        return symint or self.a.signature != self.b.signature

    def split(self, holds: Callable[[Operator], bool]) -> tuple[str, str]:
        """`torch:` specifiers for the releases where the operator is as before, and for the others."""

        def same(catalogue: Catalogue) -> bool:
            operator = catalogue.operators.get(self.name)
            return operator is not None and holds(operator)

        return self.timeline.specifiers(same)

    def finding(
        self,
        urgency: Urgency,
        change: Change,
        message: str,
        edit: str | None = None,
        *,
        before: str | None = None,
        after: str | None = None,
        key: str | None = None,
    ) -> Finding:
        location = self.spec.at(key) if key is not None else self.spec.location
        return Finding(urgency, change, self.name, message, edit, before, after, location)


def entry_findings(s: Subject) -> Iterator[Finding]:
    """All differences that concern the entry."""
    yield from _schema(s)
    yield from _reused_kernels(s)
    if s.a.structured != s.b.structured:
        yield from (_now_structured(s) if s.b.structured else _now_plain(s))
    elif s.b.structured:
        yield from _group(s)
        yield from _meta(s)
    yield from _autogen(s)
    yield from _composite(s)
    yield from _rows(s)


def successor(name: str, old: Operator, timeline: Timeline) -> str | None:
    """An operator that is new in the later release and takes the same arguments: most likely `name` renamed."""
    added = timeline.after.operators.keys() - timeline.before.operators.keys()
    arguments = old.schema.partition("(")[2]
    same = sorted(n for n in added if timeline.after.operators[n].schema.partition("(")[2] == arguments)
    root = name.partition(".")[0].strip("_")
    alike = [n for n in same if root in n or n.partition(".")[0].strip("_") in root]
    return alike[0] if alike else (same[0] if len(same) == 1 else None)


def _schema(s: Subject) -> Iterator[Finding]:
    if s.a.schema == s.b.schema:
        return
    here, there = s.split(lambda o: o.schema == s.a.schema)
    if s.spec.schema is not None:
        edit = f'write only the name, or the new schema in an entry of its own with `torch: "{there}"`'
        text = "the entry quotes the schema of the older release"
        yield s.finding(Urgency.EDIT, Change.SCHEMA, text, edit, before=s.a.schema, after=s.b.schema)
        return
    kernel = s.own_kernel
    if kernel is not None and s.signature_moved(kernel):
        edit = (
            f'an entry and a kernel for each of `torch: "{here}"` and `torch: "{there}"`, or one kernel whose '
            "difference has a name in the compat header"
        )
        text = f"{kernel} needs another signature"
        yield s.finding(Urgency.EDIT, Change.SCHEMA, text, edit, before=s.a.schema, after=s.b.schema)
        return
    text = "no kernel of ours takes its arguments" if kernel is None else f"the C++ signature of {kernel} stays"
    yield s.finding(Urgency.REVIEW, Change.SCHEMA, text, None, before=s.a.schema, after=s.b.schema)


def _reused_kernels(s: Subject) -> Iterator[Finding]:
    """Functions of upstream's that the entry names, by key."""
    for key, kernel in s.spec.dispatch.items():
        if not _provides(s.a, kernel) or _provides(s.b, kernel) or s.a.structured or s.is_own(kernel):
            continue
        here, there = s.split(lambda o, k=kernel: _provides(o, k))  # type: ignore[misc]
        homes = [row for row, name in s.a.kernels.items() if name == kernel]
        others = [row for row in s.b.kernels if row in IN_LIBTORCH_CPU and not row.endswith("Meta")]
        now = next((s.b.kernels[row] for row in (*homes, *others) if row in others), None)
        where = f"dispatch.{key}"
        if now is None:
            rest = "in no wheel without CUDA any more" if kernel in s.b.kernels.values() else "gone"
            edit = f'write a kernel for `torch: "{there}"`, and limit this entry: `torch: "{here}"`'
            text = f"upstream's {kernel} is {rest}"
            yield s.finding(Urgency.EDIT, Change.KERNEL_GONE, text, edit, before=kernel, key=where)
        else:
            edit = f'two entries: `{key}: {kernel}` with `torch: "{here}"`, `{key}: {now}` with `torch: "{there}"`'
            text = "the entry reuses a kernel of upstream's that has another name now"
            yield s.finding(Urgency.EDIT, Change.KERNEL_RENAMED, text, edit, before=kernel, after=now, key=where)


def _provides(operator: Operator, kernel: str) -> bool:
    """Whether libtorch of every wheel has the function, under any of the operator's keys."""
    return any(name == kernel and row in IN_LIBTORCH_CPU for row, name in operator.kernels.items())


def _now_structured(s: Subject) -> Iterator[Finding]:
    out = s.b.out
    assert out is not None
    _, there = s.split(lambda o: not o.structured)
    message = f"belongs to the structured group of {out} now"
    if out != s.name and out not in s.specs:
        edit = f'list `- func: {out}`, with a kernel or `structured: false`, for `torch: "{there}"`'
        yield s.finding(Urgency.EDIT, Change.STRUCTURED, f"{message}, which is not listed", edit)
    elif out == s.name and s.kernel is not None and s.own_kernel is None:
        edit = f'for `torch: "{there}"` an entry without `dispatch` (upstream\'s implementation), or with your kernel'
        text = f"{message}: upstream's {s.kernel} is no plain function any more"
        yield s.finding(Urgency.EDIT, Change.STRUCTURED, text, edit, key=f"dispatch.{s.backend.dispatch_key}")
    elif out == s.name and s.spec.structured is not False and s.kernel is not None:
        edit = (
            f"keep the plain function: `structured: false` (means nothing where it was plain); or turn {s.kernel} into "
            f'TORCH_IMPL_FUNC({s.kernel}) for `torch: "{there}"`'
        )
        text = f"{message}: {s.kernel} would have to be an implementation class"
        yield s.finding(Urgency.EDIT, Change.STRUCTURED, text, edit, before=s.a.signature, after=f"void K({s.b.impl})")
    else:
        edit = f"its kernel stays a plain function; upstream's meta function could be reused where torch is {there}"
        yield s.finding(Urgency.REVIEW, Change.STRUCTURED, message, edit)


def _now_plain(s: Subject) -> Iterator[Finding]:
    here, there = s.split(lambda o: o.structured)
    if s.fallback or (s.kernel is not None and s.is_own(s.kernel)):
        return
    what = "its implementation class" if s.kernel is not None else "upstream's implementation"
    edit = f'limit this entry: `torch: "{here}"`; for `torch: "{there}"` name a plain function'
    text = f"its group is not structured any more: nothing takes {what}"
    yield s.finding(Urgency.EDIT, Change.UNSTRUCTURED, text, edit, after=s.b.signature)


def _group(s: Subject) -> Iterator[Finding]:
    if s.a.group == s.b.group:
        return
    before, after = ", ".join(s.a.group), ", ".join(s.b.group)
    out = s.b.out
    if out != s.a.out and out is not None and out not in s.specs:
        _, there = s.split(lambda o: o.out == s.a.out)
        edit = f'list `- func: {out}` for `torch: "{there}"`: the group\'s other overloads are made from it'
        yield s.finding(Urgency.EDIT, Change.GROUP, "another out overload leads it", edit, before=before, after=after)
        return
    if s.name != out:
        return  # the out overload's entry speaks for the group
    added = [name for name in s.b.group if name not in s.a.group and name not in s.specs]
    if added:
        edit = f"add {', '.join(f'`- func: {name}`' for name in added)}: they follow {out} without a kernel"
        text = "its group has more members, which are not listed"
        yield s.finding(Urgency.REVIEW, Change.GROUP, text, edit, before=before, after=after)


def _meta(s: Subject) -> Iterator[Finding]:
    """The upstream meta class that a structured kernel of ours stands on."""
    if s.name != s.b.out or s.fallback or s.spec.structured is False:
        return
    own_meta = not isinstance(s.spec.precomputed, Inherit) or not isinstance(s.spec.structured_inherits, Inherit)
    if s.kernel is not None and not own_meta and s.a.impl != s.b.impl and s.a.schema == s.b.schema:
        _, there = s.split(lambda o: o.impl == s.a.impl)
        edit = f"give TORCH_IMPL_FUNC({s.kernel}) the new parameters where torch is {there}"
        text = "upstream's `precomputed` changed what the implementation is given"
        yield s.finding(
            Urgency.EDIT,
            Change.META,
            text,
            edit,
            before=f"void {s.kernel}({s.a.impl})",
            after=f"void {s.kernel}({s.b.impl})",
        )
    if s.a.inherits != s.b.inherits and isinstance(s.spec.structured_inherits, Inherit):
        text = "upstream's meta class has another base"
        hint = "look whether the kernel uses members of the old one" if s.kernel is not None else None
        yield s.finding(
            Urgency.REVIEW, Change.META, text, hint, before=s.a.inherits or "none", after=s.b.inherits or "none"
        )
    if s.kernel is None:
        implementations = _impl_name(s.a), _impl_name(s.b)
        if implementations[0] != implementations[1]:
            text = "a Legacy entry runs another implementation of upstream's"
            edit = "look which DispatchStubs that one reaches; `opgen check` knows those of the old one"
            yield s.finding(
                Urgency.REVIEW, Change.META, text, edit, before=implementations[0], after=implementations[1]
            )


def _impl_name(operator: Operator) -> str | None:
    """CUDA's implementation, by the rule that classification follows."""
    rows = operator.kernels
    return rows.get("CUDA") or rows.get("CPU") or next(iter(rows.values()), None)


def _autogen(s: Subject) -> Iterator[Finding]:
    lost = [name for name in s.spec.autogen if name in s.a.autogen and name not in s.b.autogen]
    if lost:
        here, _ = s.split(lambda o: all(name in o.autogen for name in lost))
        text = f"{', '.join(lost)} is not generated from it any more"
        edit = f"remove it from `autogen` where torch is not {here}"
        yield s.finding(Urgency.EDIT, Change.AUTOGEN, text, edit, key="autogen")
    if (s.a.made_from is None) == (s.b.made_from is None):
        return
    if s.b.made_from is None:
        text = "upstream has a definition of its own where torchgen made one"
        yield s.finding(Urgency.REVIEW, Change.AUTOGEN, text, "look whether its kernel still does what that one does")
    else:
        text = f"torchgen makes it from {s.b.made_from or 'another overload'} now"
        yield s.finding(Urgency.REVIEW, Change.AUTOGEN, text, "the entry could go: its base overload serves it")


def _composite(s: Subject) -> Iterator[Finding]:
    before, after = ([key for key in _COMPOSITE if key in operator.kernels] for operator in (s.a, s.b))
    if before == after or (s.a.made_from is None) != (s.b.made_from is None):
        return
    implicit = _COMPOSITE[0]
    if implicit in after and implicit not in before:
        edit = f"remove the entry for these releases, or check its gradient: only upstream's {implicit} kernel has one"
        text = "made of other operators now, its gradient included"
    elif implicit in before and implicit not in after:
        edit = "look whether a kernel of ours for Autograd is still needed"
        text = "made of other operators no longer: PyTorch has a derivative for it"
    elif after:
        edit = "an entry is needed only where its kernel is faster than upstream's"
        text = "upstream's kernel serves every device now"
    else:
        edit = None
        text = "upstream has no kernel for every device any more"
    yield s.finding(
        Urgency.REVIEW,
        Change.COMPOSITE,
        text,
        edit,
        before=", ".join(before) or "none",
        after=", ".join(after) or "none",
    )


def _rows(s: Subject) -> Iterator[Finding]:
    """Keys for which upstream has a kernel on one side only, as far as that tells us anything."""
    before, after = ({key for key in o.kernels if _tells(key)} for o in (s.a, s.b))
    gained, lost = sorted(after - before), sorted(before - after)
    if not gained and not lost:
        return
    parts = [
        f"has kernels for {', '.join(gained)}" if gained else "",
        f"has none for {', '.join(lost)}" if lost else "",
    ]
    text = "upstream " + " and ".join(filter(None, parts)) + " now"
    keys = [
        k
        for k in s.backend.other_dispatch_keys
        if k not in s.spec.dispatch and k.replace("PrivateUse1", "CUDA") in gained
    ]
    edit = f"could be registered for {', '.join(keys)}, too" if keys else None
    yield s.finding(Urgency.REVIEW, Change.DISPATCH, text, edit)


def _tells(key: str) -> bool:
    return key.startswith(_TELLING) and not key.endswith(("HPU", "MPS", "XPU", "MTIA", "Meta"))
