"""The ways in which an operator of upstream's can get a kernel: which kinds are possible, why, and what to write.

Pure functions over upstream's catalogue. `opgen explain` shows all of them, `opgen new` takes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.backend import Backend
from opgen.emit import compat
from opgen.naming import function_name, impl_name
from opgen.structured import in_the_wheel, upstream_impl
from opgen.stub_signatures import StubSignature, find_stub_signature
from opgen.stubs import legacy_stubs, reused_stubs
from opgen.unstructured import no_fallback
from opgen.upstream import COMPOSITE_KEYS

if TYPE_CHECKING:
    from torchgen.model import NativeFunction, NativeFunctionsGroup

    from opgen.upstream import Upstream

__all__ = [
    "Stub",
    "Way",
    "WayKind",
    "composite_key",
    "fallback_entries",
    "group_members",
    "needed_stubs",
    "reusable",
    "ways",
]


class WayKind(str, Enum):
    """What an entry can ask for; `opgen new --kind` takes these words."""

    LEGACY = "legacy"
    LEGACY_META = "legacy_meta"
    CUSTOMIZED = "customized"
    UNSTRUCTURED = "unstructured"
    REUSED = "reused"
    FALLBACK = "cpu_fallback"


@dataclass(frozen=True)
class Stub:
    """A DispatchStub that an implementation reaches."""

    name: str
    header: str
    """The header(s) that declare it, comma-separated."""
    signature: StubSignature | None
    """None where the headers of this PyTorch do not say."""

    @property
    def kernel(self) -> str:
        """A name for the function: `hypot_kernel` on `hypot_stub`."""
        stem = self.name.removesuffix("_stub")
        return f"{stem}_impl" if "kernel" in stem else f"{stem}_kernel"


@dataclass(frozen=True)
class Way:
    """One kind, for one operator."""

    kind: WayKind
    possible: bool
    why: str
    """What it takes over from upstream, or why it is not possible."""
    write: tuple[str, ...] = ()
    """The definitions to write, without bodies: complete C++ up to the opening brace."""
    entry: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Overload -> the lines that its entry has below `func`, for those that say more than their name."""


def ways(op: str, upstream: Upstream, backend: Backend, include: Path) -> tuple[Way, ...]:
    """All kinds for `op`, possible or not. `include` is the wheel's include folder, where stubs are declared."""
    function = upstream.functions[op]
    group = upstream.structured_group(op)
    if group is None:
        members = group_members(op, upstream)
        return (
            _own(members, "a function of our own", backend, structured=False),
            _reused(op, members, upstream, backend, include),
            _fallback(members, function, upstream, backend),
        )
    return (
        _legacy(group, upstream, include),
        _legacy_meta(group, upstream, backend),
        _customized(group, backend),
        _own(group_members(op, upstream), "a function of our own for every overload of the group", backend, True),
        _fallback(group_members(op, upstream), function, upstream, backend),
    )


def group_members(op: str, upstream: Upstream) -> tuple[NativeFunction, ...]:
    """The overloads that get a kernel together with `op`, functional first, then in-place, then out.

    A structured group is one whole. Of the others, those belong to it that upstream has written kernels for: what
    works on any device by calling others, and what torchgen made, is left to PyTorch.
    """
    function = upstream.functions[op]
    group = upstream.groups.get(op)
    if group is None:
        return (function,)
    members = [f for f in (group.functional, group.inplace, group.mutable, group.out) if f is not None]
    if group.structured:
        return tuple(members)
    return tuple(f for f in members if f is function or _written_upstream(f, upstream))


def needed_stubs(op: str, upstream: Upstream, include: Path) -> tuple[Stub, ...] | None:
    """Stubs that upstream's code for `op` reaches when it is reused: Legacy for structured operators, `reused` for the
    others. None where no table says."""
    group = upstream.structured_group(op)
    known = legacy_stubs().get(str(group.out.func.name)) if group is not None else reused_stubs().get(op)
    if known is None:
        return None
    return tuple(
        Stub(stub, _declaring(include, known.header, stub), find_stub_signature(include, known.header, stub))
        for stub in known.stubs
    )


def reusable(function: NativeFunction, upstream: Upstream) -> tuple[str, ...]:
    """Kernels of upstream's that the wheel contains, by how likely they serve another device: a function that CPU and
    CUDA share first. A composite kernel is none: it serves the device without an entry."""
    rows = upstream.kernels(str(function.func.name))
    homes: dict[str, set[str]] = {}
    for key, metadata in rows.items():
        if not metadata.structured:
            homes.setdefault(str(metadata.kernel), set()).add(key)
    dense = {name: keys for name, keys in homes.items() if "CPU" in keys and not keys & {*COMPOSITE_KEYS}}
    return tuple(sorted(dense, key=lambda name: ("CUDA" not in dense[name], name)))


def composite_key(op: str, upstream: Upstream) -> str | None:
    """The key under which upstream has a kernel of `op` for every device; None where it has none."""
    return next((key for key in COMPOSITE_KEYS if upstream.kernel(op, key) is not None), None)


def fallback_entries(members: Sequence[NativeFunction], op: str, upstream: Upstream) -> tuple[str, ...]:
    """The overloads whose entries say that they go through the CPU: a structured group follows its out overload."""
    group = upstream.structured_group(op)
    return (str(group.out.func.name),) if group is not None else tuple(str(f.func.name) for f in members)


def _written_upstream(function: NativeFunction, upstream: Upstream) -> bool:
    rows = upstream.kernels(str(function.func.name))
    return "generated" not in function.tags and not any(key in rows for key in COMPOSITE_KEYS) and bool(rows)


def _declaring(include: Path, headers: str, stub: str) -> str:
    for header in headers.split(","):
        if find_stub_signature(include, header, stub) is not None:
            return header
    return headers


def _legacy(group: NativeFunctionsGroup, upstream: Upstream, include: Path) -> Way:
    impl = upstream_impl(upstream, group)
    if not in_the_wheel(upstream, group, impl):
        return Way(WayKind.LEGACY, False, f"upstream's implementation {impl} is CUDA's alone: no CPU wheel contains it")
    stubs = needed_stubs(str(group.out.func.name), upstream, include)
    if stubs is None:
        why = f"meta function and implementation {impl} are upstream's; no table says which DispatchStubs it reaches"
        return Way(WayKind.LEGACY, True, why)
    if not stubs:
        why = f"meta function and implementation {impl} are upstream's; it calls other operators, so nothing is to do"
        return Way(WayKind.LEGACY, True, why)
    names = " and ".join(stub.name for stub in stubs)
    why = f"meta function and implementation {impl} are upstream's; the kernel hangs on {names}"
    return Way(WayKind.LEGACY, True, why, tuple(_stub_kernel(stub) for stub in stubs))


def _stub_kernel(stub: Stub) -> str:
    if stub.signature is None:
        return f"// kernel and REGISTER_DISPATCH({stub.name}, &kernel): see <{stub.header}>"
    return f"{stub.signature.definition(stub.kernel)}\nREGISTER_DISPATCH({stub.name}, &{stub.kernel})"


def _legacy_meta(group: NativeFunctionsGroup, upstream: Upstream, backend: Backend) -> Way:
    kernel = impl_name(group, backend.impl_prefix)
    given = "the meta function is upstream's"
    if group.out.precomputed is not None:
        given += ", which hands over what it has precomputed"
    return Way(
        WayKind.LEGACY_META,
        True,
        f"{given}; the implementation is ours",
        (f"TORCH_IMPL_FUNC({kernel})({compat.impl_arguments(group)})",),
        {str(group.out.func.name): _dispatch(backend, kernel)},
    )


def _customized(group: NativeFunctionsGroup, backend: Backend) -> Way:
    kernel = impl_name(group, backend.impl_prefix)
    plain = compat.with_out(group, compat.with_meta(group.out, group.out.structured_inherits, None))
    # A meta function of upstream's that fills a TensorIterator is best replaced by one that does so, too.
    base = group.out.structured_inherits or backend.meta_base
    settings = [f"structured_inherits: {base}", *(["precomputed: none"] if group.out.precomputed else [])]
    return Way(
        WayKind.CUSTOMIZED,
        True,
        "meta function and implementation are ours: for checks, a base class or precomputed values of our own "
        "(with 'precomputed' the macro is TORCH_PRECOMPUTE_META_FUNC, and the implementation gets the values)",
        (
            compat.meta_definition(plain, precompute=False),
            f"TORCH_IMPL_FUNC({kernel})({compat.impl_arguments(plain)})",
        ),
        {str(group.out.func.name): [*settings, *_dispatch(backend, kernel)]},
    )


def _own(members: Sequence[NativeFunction], why: str, backend: Backend, structured: bool) -> Way:
    entry = {}
    for function in members:
        lines = _dispatch(backend, function_name(function))
        is_out = structured and bool(function.structured)
        entry[str(function.func.name)] = ["structured: false", *lines] if is_out else lines
    write = tuple(compat.native_declaration(function, function_name(function)) for function in members)
    return Way(WayKind.UNSTRUCTURED, True, f"{why}: it checks, guards and allocates by itself", write, entry)


def _reused(op: str, members: Sequence[NativeFunction], upstream: Upstream, backend: Backend, include: Path) -> Way:
    found = {str(function.func.name): reusable(function, upstream) for function in members}
    kernels = found[op]
    composite = composite_key(op, upstream)
    if not kernels and composite is not None:
        row = upstream.kernel(op, composite)
        assert row is not None
        lost = "; registered for one, it would lose its gradient" if composite == "CompositeImplicitAutograd" else ""
        why = f"{row.kernel} is upstream's and serves every device already ({composite}){lost}"
        return Way(WayKind.REUSED, False, why)
    if not kernels:
        return Way(WayKind.REUSED, False, "upstream has no function for it that every wheel contains")
    shared = upstream.kernels(op).get("CUDA")
    why = f"{kernels[0]} is upstream's, for CPU and CUDA alike"
    if upstream.functions[op].is_view_op:
        why = f"{kernels[0]} is upstream's and touches no data"
    elif shared is None or str(shared.kernel) != kernels[0]:
        why = f"{kernels[0]} is upstream's for the CPU: it serves a device only if it never looks at memory"
    stubs = needed_stubs(op, upstream, include)
    write = tuple(_stub_kernel(stub) for stub in stubs or ())
    if stubs:
        why += f"; it calls {' and '.join(stub.name for stub in stubs)}"
    entry = {name: _dispatch(backend, names[0]) for name, names in found.items() if names}
    return Way(WayKind.REUSED, True, why, write, entry)


def _fallback(members: Sequence[NativeFunction], function: NativeFunction, upstream: Upstream, backend: Backend) -> Way:
    cannot = next(filter(None, map(no_fallback, (function, *members))), None)
    if cannot is not None:
        return Way(WayKind.FALLBACK, False, f"it {cannot}")
    named = fallback_entries(members, str(function.func.name), upstream)
    entry = {name: _dispatch(backend, backend.fallback_kernel) for name in named}
    return Way(WayKind.FALLBACK, True, "the CPU computes it, on purpose and counted; no source is needed", (), entry)


def _dispatch(backend: Backend, kernel: str) -> list[str]:
    return ["dispatch:", f"  {backend.dispatch_key}: {kernel}"]
