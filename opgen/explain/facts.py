"""What there is to know about one operator, collected from upstream's catalogue, the operator list and the sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from opgen.coverage.matrix import has_cuda_kernel, vendor_only
from opgen.coverage.reasons import unlisted
from opgen.diagnostics import Diagnostic, Location, Severity
from opgen.emit import compat
from opgen.emit.declarations import impl_class, meta_class
from opgen.explain.trust import Entry, problems_of
from opgen.registration import Form, Kind, Registration
from opgen.structured import upstream_impl
from opgen.upstream import COMPOSITE_KEYS, IN_LIBTORCH_CPU
from opgen.ways import Way, group_members, needed_stubs, ways

if TYPE_CHECKING:
    from pathlib import Path

    from torchgen.model import NativeFunction

    from opgen.backend import Backend
    from opgen.kernels import KernelIndex
    from opgen.spec import OpSpec
    from opgen.upstream import Upstream

__all__ = ["Choice", "Explanation", "Inputs", "Member", "StubFact", "UpstreamKernel", "explain", "tests_of"]


@dataclass(frozen=True)
class Member:
    """An overload of the operator's group."""

    op: str
    role: str
    """functional, in-place, out or mutable."""
    listed: str | None
    """`path:line` of its entry."""


@dataclass(frozen=True)
class UpstreamKernel:
    """A kernel of PyTorch's, and the dispatch keys that have it."""

    kernel: str
    keys: tuple[str, ...]
    structured: bool
    in_wheel: bool
    """Whether every wheel contains it; kernels of other devices are only in the wheels built for them."""


@dataclass(frozen=True)
class StubFact:
    """A DispatchStub that upstream's implementation of the operator calls."""

    stub: str
    header: str
    signature: str | None
    registered: tuple[str, ...]
    """`path:line` of each registration for this device."""


@dataclass(frozen=True)
class Choice:
    """What the operator list makes of the operator for one dispatch key."""

    dispatch_key: str
    kind: str
    form: str | None
    kernel: str
    namespace: str
    family: str | None
    source: str | None
    """`path:line` of the definition, or of the stub's registration; None where no source has it."""
    unwritten: bool
    """The source is still the skeleton that `opgen new` wrote."""
    reason: str
    signature: str | None
    """The definition that our sources must contain; None where upstream's code is used."""


@dataclass(frozen=True)
class Explanation:
    """All facts about one operator."""

    op: str
    schema: str
    torch: str
    origin: str
    """upstream, torchgen (made from another overload) or own."""
    structured: bool
    traits: tuple[str, ...]
    group: tuple[Member, ...]
    kernels: tuple[UpstreamKernel, ...]
    entry: str | None
    """`path:line:column` of the entry, None where the operator is not listed."""
    state: str
    choices: tuple[Choice, ...]
    meta_class: str | None
    impl_class: str | None
    header: str | None
    """The generated header that declares our kernel."""
    stubs: tuple[StubFact, ...] | None
    """None where no table says what upstream's code reaches."""
    ways: tuple[Way, ...]
    problems: tuple[str, ...]
    """What `opgen check` has to say about the group's entries."""
    next: tuple[str, ...]
    faults: tuple[Diagnostic, ...] = ()
    """The errors among the problems that make the answer doubtful; a kernel still to be written does not."""

    def as_json(self) -> dict[str, Any]:
        """What `opgen explain --format json` prints."""
        return {key: value for key, value in asdict(self).items() if key != "faults"}


@dataclass(frozen=True)
class Inputs:
    """What an explanation is drawn from."""

    upstream: Upstream
    specs: dict[str, OpSpec]
    registrations: tuple[Registration, ...]
    kernels: KernelIndex
    backend: Backend
    include: Path
    """The wheel's include folder."""
    diagnostics: Sequence[Diagnostic] = ()
    inactive: Mapping[str, OpSpec] = field(default_factory=dict)
    """Entries for other releases of PyTorch."""
    all_specs: tuple[OpSpec, ...] = ()
    """All entries in the order of the list."""
    missing: Sequence[Diagnostic] = ()
    """The diagnostics about the sources, not about the list."""
    entries: tuple[Entry, ...] = ()
    """Where they stand, the unreadable ones included; only where there are diagnostics."""


def explain(op: str, inputs: Inputs) -> Explanation:
    """The facts about `op`, which is an overload of upstream's or of the operator list."""
    upstream, backend = inputs.upstream, inputs.backend
    own = op not in upstream.functions
    chosen = tuple(r for r in inputs.registrations if r.op == op)
    function = chosen[0].function if own and chosen else upstream.functions.get(op)
    members = () if function is None else (function,) if own else _family(op, upstream)
    group = None if own else upstream.structured_group(op)
    spec = inputs.specs.get(op)
    other = inputs.inactive.get(op)
    names = {str(member.func.name) for member in members} | {op}
    listed = spec is not None or other is not None
    faults = problems_of(names, listed, inputs.diagnostics, inputs.entries)
    problems = tuple(map(str, faults))
    dense = next((r for r in chosen if r.dispatch_key == backend.dispatch_key), None)
    stubs = None if own else _stubs(op, inputs)
    return Explanation(
        op=op,
        schema=_schema(op, function, spec),
        torch=upstream.torch_version,
        origin="own" if own else "torchgen" if upstream.is_generated(op) else "upstream",
        structured=group is not None,
        traits=() if own or function is None else tuple(_traits(op, function, upstream)),
        group=tuple(_member(member, inputs.specs, "" if not own else op) for member in members),
        kernels=() if own or function is None else _kernels(op, function, upstream),
        entry=str(spec.location)
        if spec is not None
        else f"{other.location}, for PyTorch {other.torch} only"
        if other
        else None,
        state=_state(op, chosen, own, inputs),
        choices=tuple(_choice(r) for r in chosen),
        meta_class=_meta_class(dense, group),
        impl_class=_impl_class(dense, group, upstream),
        header=f"<{backend.op_header(dense.root)}>" if dense is not None and dense.declared_by_us else None,
        stubs=stubs,
        ways=() if own else ways(op, upstream, backend, inputs.include),
        problems=problems,
        faults=tuple(d for d in faults if d.severity is Severity.ERROR and d not in inputs.missing),
        next=tuple(_next(op, own, chosen, problems, stubs, inputs)),
    )


def _schema(op: str, function: NativeFunction | None, spec: OpSpec | None) -> str:
    """The whole schema; of an operator of our own that cannot be read, what its entry says."""
    namespace = f"{op.partition('::')[0]}::" if "::" in op else ""
    if function is not None:
        return f"{namespace}{function.func}"
    return f"{namespace}{spec.schema}" if spec is not None and spec.schema is not None else op


def _family(op: str, upstream: Upstream) -> tuple[NativeFunction, ...]:
    """The whole group, those included that need no kernel."""
    group = upstream.groups.get(op)
    if group is None:
        return (upstream.functions[op],)
    return tuple(f for f in (group.functional, group.inplace, group.mutable, group.out) if f is not None)


def _member(function: NativeFunction, specs: dict[str, OpSpec], own_name: str) -> Member:
    name = own_name or str(function.func.name)
    spec = specs.get(name)
    role = {"inplace": "in-place"}.get(function.func.kind().name, function.func.kind().name)
    return Member(name, role, _place(spec.location) if spec is not None else None)


def _place(location: Location) -> str:
    return f"{location.path}:{location.line}"


def _kernels(op: str, function: NativeFunction, upstream: Upstream) -> tuple[UpstreamKernel, ...]:
    """Upstream's dispatch table, keys with the same kernel together.

    An overload that delegates has the structured kernels of its out overload, and what it registers besides.
    """
    delegate = function.structured_delegate
    shared = upstream.kernels(str(delegate)) if delegate is not None else {}
    rows = {key: metadata for key, metadata in shared.items() if metadata.structured} | upstream.kernels(op)
    homes: dict[tuple[str, bool], list[str]] = {}
    for key, metadata in rows.items():
        homes.setdefault((str(metadata.kernel), bool(metadata.structured)), []).append(key)
    return tuple(
        UpstreamKernel(kernel, tuple(keys), structured, any(key in IN_LIBTORCH_CPU for key in keys))
        for (kernel, structured), keys in homes.items()
    )


def _traits(op: str, function: NativeFunction, upstream: Upstream) -> Iterable[str]:
    schema = function.func
    tags = {str(tag) for tag in function.tags}
    group = upstream.structured_group(op)
    if "pointwise" in tags:
        yield "pointwise"
    if group is not None:
        if group.out.structured_inherits:
            yield f"meta class on {group.out.structured_inherits}"
        if group.out.precomputed:
            parts = [
                f"{name} -> {', '.join(f'{a.type} {a.name}' for a in made)}"
                for name, made in group.out.precomputed.replace.items()
            ]
            parts += [f"{a.type} {a.name}" for a in group.out.precomputed.add]
            yield f"precomputed upstream: {'; '.join(parts)}"
        if group.out.ufunc_inner_loop:
            yield "upstream's kernels are made from a ufunc"
    if function.is_view_op:
        yield "view: the result shares memory with its input, so it cannot go through the CPU"
    if schema.arguments.has_generator_arg() or "nondeterministic_seeded" in tags:
        yield "random: draws from the device's generator, so it cannot go through the CPU"
    if not any(a.type.is_tensor_like() for a in schema.arguments.flat_all):
        yield "factory: takes no tensor, the device is an argument"
    composite = [key for key in COMPOSITE_KEYS if upstream.kernel(op, key) is not None]
    if upstream.is_generated(op):
        base = upstream.made_from.get(op)
        yield f"made by torchgen from {base}" if base else "made by torchgen"
    elif composite:
        yield f"composite ({composite[0]}): serves every device by calling other operators"
    if function.autogen:
        yield f"torchgen makes {', '.join(map(str, function.autogen))} from it"
    if op in vendor_only():
        excluded = vendor_only()[op]
        yield f"vendor-only ({excluded.library}): {excluded.reason}"
    elif has_cuda_kernel(op, upstream):
        yield "counted in coverage: upstream has it for CUDA"
    if not function.device_guard:
        yield "device_guard: false upstream"


def _state(op: str, chosen: Sequence[Registration], own: bool, inputs: Inputs) -> str:
    """What a call on the device does with dense tensors."""
    upstream = inputs.upstream
    dense = next((r for r in chosen if r.dispatch_key == inputs.backend.dispatch_key), None)
    if dense is not None:
        if dense.form is Form.FALLBACK:
            return "runs on the CPU, on purpose and counted"
        if dense.unwritten:
            return "raises NotImplementedError: its kernel is only a skeleton"
        if dense.source is None and dense.family != "upstream":
            return "cannot be built: no source defines its kernel"
        return "runs on the device"
    if own or (op in inputs.specs and not chosen):
        return "listed, but nothing is registered for dense tensors"
    listed = f"listed for {', '.join(r.dispatch_key for r in chosen)} only" if chosen else "not listed"
    return f"{listed}: {unlisted(op, {r.op for r in inputs.registrations}, upstream)}"


def _choice(r: Registration) -> Choice:
    signature = None
    if r.declared_by_us:
        if r.group is None:
            signature = compat.native_declaration(r.function, r.kernel)
        else:
            signature = f"TORCH_IMPL_FUNC({r.kernel})({compat.impl_arguments(r.group)})"
            if r.own_meta:
                signature = f"{compat.meta_definition(r.group)}\n{signature}"
    return Choice(
        dispatch_key=r.dispatch_key,
        kind=r.kind.value,
        form=r.form.value if r.form is not None else None,
        kernel=r.kernel,
        namespace=r.cpp_namespace,
        family=r.family,
        source=f"{r.source}:{r.source_line}" if r.source is not None else None,
        unwritten=r.unwritten,
        reason=r.reason,
        signature=signature,
    )


def _meta_class(dense: Registration | None, group: Any) -> str | None:
    """As generated, by us or by upstream."""
    if dense is not None and dense.group is not None:
        group = dense.group
    if group is None or (dense is not None and not dense.structured):
        return None
    return _compact(meta_class(group))


def _compact(code: str) -> str:
    """Without the empty lines that torchgen leaves, and indented by two."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    depth, out = 0, []
    for line in lines:
        depth -= line.startswith("}")
        out.append("  " * depth + line)
        depth += line.endswith("{")
    return "\n".join(out)


def _impl_class(dense: Registration | None, group: Any, upstream: Upstream) -> str | None:
    if dense is not None:
        return impl_class(dense) if dense.group is not None else None
    if group is None:
        return None
    impl = upstream_impl(upstream, group)
    arguments = compat.impl_arguments(group)
    base = f"at::meta::structured_{compat.meta_name(group)}"
    return f"struct TORCH_API structured_{impl} : public {base} {{\n  void impl({arguments});\n}};"


def _stubs(op: str, inputs: Inputs) -> tuple[StubFact, ...] | None:
    needed = needed_stubs(op, inputs.upstream, inputs.include)
    if needed is None:
        return None
    return tuple(
        StubFact(
            stub.name,
            stub.header,
            stub.signature.definition(stub.kernel) if stub.signature is not None else None,
            tuple(f"{d.path}:{d.line}" for d in inputs.kernels.stubs.get(stub.name, ())),
        )
        for stub in needed
    )


def _next(
    op: str,
    own: bool,
    chosen: Sequence[Registration],
    problems: Sequence[str],
    stubs: Sequence[StubFact] | None,
    inputs: Inputs,
) -> Iterable[str]:
    upstream = inputs.upstream
    if problems:
        yield "opgen check"
        return
    unwritten = [r for r in chosen if r.unwritten]
    if unwritten:
        for place in dict.fromkeys(f"{r.source}:{r.source_line}" for r in unwritten):
            yield f"write the kernel: {place}"
        yield from _try_out(op, inputs)
    elif chosen:
        if any(r.kind is Kind.LEGACY for r in chosen) and any(not stub.registered for stub in stubs or ()):
            yield "register the missing stub: opgen check"
        yield from _try_out(op, inputs)
    elif own:
        yield "opgen check"
    elif op in vendor_only():
        yield "nothing: no backend but its vendor's can have it"
    elif any(upstream.kernel(op, key) is not None for key in COMPOSITE_KEYS) and not upstream.is_generated(op):
        yield "nothing: it works as soon as the operators that it calls do"
    else:
        members = ", ".join(str(f.func.name) for f in group_members(op, upstream))
        yield f"opgen new {op}    (adds {members})"


def _try_out(op: str, inputs: Inputs) -> Iterable[str]:
    """Build, and the tests of the overloads that are listed together with `op`."""
    members = [op]
    if op in inputs.upstream.functions:
        members = [name for f in _family(op, inputs.upstream) if (name := str(f.func.name)) in inputs.specs]
    yield "opgen build"
    yield f"python -m pytest tests/ops {tests_of(members)}"


def tests_of(ops: Iterable[str]) -> str:
    """Pytest's option that selects the tests of these overloads and no others.

    Tests of operators of our own are called by their name, the others have theirs as a parameter.
    """
    words = [op.rpartition("::")[2] if "::" in op else f"[{op}]" for op in ops]
    return f'-k "{" or ".join(words)}"'
