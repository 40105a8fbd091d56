"""How an operator is to get its kernel: kind, family and names, each with its reason, or why it cannot get one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opgen.coverage.matrix import vendor_only
from opgen.cpp import KEYWORDS
from opgen.diagnostics import Location, OpgenError
from opgen.explain.command import unknown_operator
from opgen.find import find_operator
from opgen.naming import file_stem, function_name, impl_name
from opgen.structured import upstream_impl
from opgen.stubs import reused_stubs
from opgen.upstream import COMPOSITE_KEYS
from opgen.ways import (
    Stub,
    Way,
    WayKind,
    composite_key,
    fallback_entries,
    group_members,
    needed_stubs,
    reusable,
    ways,
)

if TYPE_CHECKING:
    from torchgen.model import NativeFunction, NativeFunctionsGroup

    from opgen.explain.facts import Inputs
    from opgen.kernels import Family

__all__ = ["Choice", "Request", "check_name", "check_unused", "choose"]


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    op: str
    kind: WayKind | None = None
    family: Family | None = None
    name: str | None = None
    """Name of the kernel; for several functions the name of the functional overload's."""


@dataclass(frozen=True)
class Choice:
    """One operator of upstream's, and everything decided about it."""

    op: str
    kind: WayKind
    reason: str
    family: Family
    members: tuple[NativeFunction, ...]
    """The overloads that get an entry."""
    kernels: dict[str, str]
    """Overload -> kernel name, for entries that name one."""
    group: NativeFunctionsGroup | None
    """The structured group, for kinds that stay structured."""
    stubs: tuple[Stub, ...] = ()
    """DispatchStubs that no source registers yet."""
    stem: str = ""
    """Name of the new source, without folder and suffix."""
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The name that headers go by."""
        return str(self.members[0].root_name)

    @property
    def needs_source(self) -> bool:
        """Whether there is a kernel to write."""
        if self.kind in (WayKind.LEGACY, WayKind.REUSED):
            return bool(self.stubs)
        return self.kind is not WayKind.FALLBACK and bool(self.kernels)


def choose(request: Request, inputs: Inputs) -> Choice:
    """Decide. Raises OpgenError where the operator has, or can have, no kernel of the kind asked for."""
    op = _operator(request.op, inputs)
    _refuse_listed(op, request, inputs)
    if op in vendor_only():
        entry = vendor_only()[op]
        raise OpgenError(f"'{op}' belongs to one vendor's library, {entry.library}: {entry.reason}")
    composite = composite_key(op, inputs.upstream)
    if composite is not None and request.kind is None and not inputs.upstream.is_generated(op):
        raise _served(op, composite, "for a kernel of your own all the same, say `--kind unstructured`")
    _refuse_other_layouts(op, inputs)
    possible = {way.kind: way for way in ways(op, inputs.upstream, inputs.backend, inputs.include)}
    follower = _follows(op, possible, request, inputs)
    if follower is not None:
        return follower
    kind, reason = _kind(op, possible, request, inputs)
    family = _family(kind, request)
    choice = Choice(
        op=op,
        kind=kind,
        reason=reason,
        family=family,
        members=tuple(f for f in group_members(op, inputs.upstream) if str(f.func.name) not in inputs.specs),
        kernels={},
        group=inputs.upstream.structured_group(op) if kind in _STRUCTURED else None,
        notes=tuple(_notes(op, kind, composite, request, inputs)),
    )
    choice = replace(choice, stubs=_stubs(choice, inputs), kernels=_kernels(choice, request, inputs))
    stem = request.name.removeprefix(inputs.backend.impl_prefix) if request.name is not None else file_stem(choice.root)
    return replace(choice, stem=stem or file_stem(choice.root))


_STRUCTURED = (WayKind.LEGACY, WayKind.LEGACY_META, WayKind.CUSTOMIZED)


def _operator(word: str, inputs: Inputs) -> str:
    upstream = inputs.upstream
    found = find_operator(word, [*upstream.names, *inputs.specs])
    if found.op is not None:
        return found.op
    if not found.overloads:
        raise unknown_operator(word, found.nearest, inputs)
    # `hash_tensor` would be found; of `lerp` there are two groups, each with a kernel of its own.
    open_ones = [op for op in found.overloads if op not in inputs.specs and op not in vendor_only()]
    open_ones = [op for op in open_ones if not any(upstream.kernel(op, key) for key in COMPOSITE_KEYS)]
    groups = {tuple(str(f.func.name) for f in group_members(op, upstream)) for op in open_ones}
    if len(groups) == 1:
        return open_ones[0]
    raise OpgenError(
        f"'{word}' is the name of several overloads",
        hint=f"name one of {', '.join(open_ones or found.overloads)}; its group comes along",
    )


def _refuse_listed(op: str, request: Request, inputs: Inputs) -> None:
    spec = inputs.specs.get(op) or inputs.inactive.get(op)
    if spec is None:
        return
    if op in inputs.inactive:
        raise OpgenError(
            f"'{op}' is listed for other releases of PyTorch only (torch: \"{spec.torch}\")",
            spec.location,
            "widen that entry's `torch:`",
        )
    key = inputs.backend.dispatch_key
    # A structured overload may be listed for another key and get this one from its out overload.
    registered = any(r.op == op and r.dispatch_key == key for r in inputs.registrations)
    if spec.dispatch and key not in spec.dispatch and not registered:
        composite = composite_key(op, inputs.upstream) if op in inputs.upstream.functions else None
        if composite is not None and request.kind is None and not inputs.upstream.is_generated(op):
            raise _served(op, composite, f"its entry for {', '.join(spec.dispatch)} stays as it is", spec.location)
        raise OpgenError(
            f"'{op}' is listed for {', '.join(spec.dispatch)}", spec.location, f"add {key} to that entry's `dispatch:`"
        )
    raise OpgenError(
        f"'{op}' is listed already",
        spec.location,
        f"edit that entry to change its kind; `opgen explain {op}` shows which are possible",
    )


def _served(op: str, composite: str, otherwise: str, location: Location | None = None) -> OpgenError:
    """The refusal of what needs no kernel."""
    return OpgenError(
        f"'{op}' is composite ({composite}): PyTorch's kernel serves every device by calling other operators",
        location,
        f"nothing is to be added; {otherwise}",
    )


def _refuse_other_layouts(op: str, inputs: Inputs) -> None:
    """Refuse operators whose every kernel is for tensors that are not dense: the device's key would never be asked."""
    if inputs.upstream.structured_group(op) is not None:
        return
    keys = list(inputs.upstream.kernels(op))
    layouts = dict.fromkeys(next((word for start, word in _LAYOUTS if key.startswith(start)), "") for key in keys)
    if keys and "" not in layouts:
        raise OpgenError(
            f"'{op}' has no dense kernel: its kernels are for {' and '.join(layouts)} tensors only ({', '.join(keys)})",
            hint=f"nothing is to be added for {inputs.backend.dispatch_key}",
        )


_LAYOUTS = (("Sparse", "sparse"), ("Mkldnn", "MKL-DNN"), ("NestedTensor", "nested"), ("Quantized", "quantized"))
"""How the dispatch keys of tensors that are not dense begin, and the word for them."""


def _follows(op: str, possible: dict[WayKind, Way], request: Request, inputs: Inputs) -> Choice | None:
    """The rest of a structured group whose out overload is listed: entries without a kernel of their own."""
    group = inputs.upstream.structured_group(op)
    if group is None or str(group.out.func.name) not in inputs.specs:
        return None
    out = inputs.specs[str(group.out.func.name)]
    if inputs.backend.dispatch_key not in out.dispatch and out.dispatch:
        return None
    if out.structured is False:
        return None
    if request.kind is not None or request.name is not None:
        raise OpgenError(
            f"the group of '{op}' is listed: its kernel is decided by '{out.func}'",
            out.location,
            "leave --kind and --name out, or edit that entry",
        )
    missing = [f for f in group.functions() if str(f.func.name) not in inputs.specs]
    return Choice(
        op=op,
        kind=WayKind.LEGACY,
        reason=f"'{out.func}' is listed ({out.location.path}:{out.location.line}), and the rest of its group follows",
        family="mudnn",
        members=tuple(missing),
        kernels={},
        group=group,
    )


def _kind(op: str, possible: dict[WayKind, Way], request: Request, inputs: Inputs) -> tuple[WayKind, str]:
    if request.kind is not None:
        way = possible.get(request.kind)
        if way is None:
            what = "structured" if WayKind.LEGACY in possible else "not structured"
            kinds = ", ".join(kind.value for kind, way in possible.items() if way.possible)
            raise OpgenError(
                f"'{op}' is {what} in PyTorch: it cannot be {request.kind.value}", hint=f"kinds possible: {kinds}"
            )
        if not way.possible:
            raise OpgenError(f"'{op}' cannot be {request.kind.value}: {way.why}", hint=_possible(possible))
        return request.kind, f"asked for; {way.why}"
    if request.family == "cpu_fallback":
        way = possible[WayKind.FALLBACK]
        if not way.possible:
            raise OpgenError(f"'{op}' cannot go through the CPU: {way.why}", hint=_possible(possible))
        return WayKind.FALLBACK, way.why
    return _best(op, possible, request, inputs)


def _best(op: str, possible: dict[WayKind, Way], request: Request, inputs: Inputs) -> tuple[WayKind, str]:
    """Least effort first, where it is known to work."""
    legacy = possible.get(WayKind.LEGACY)
    if legacy is not None:
        known = legacy.possible and needed_stubs(op, inputs.upstream, inputs.include) is not None
        if known and request.family != "mudnn":
            return WayKind.LEGACY, legacy.why
        instead = "muDNN computes it" if known else f"Legacy is not at hand ({legacy.why})"
        return WayKind.LEGACY_META, f"{instead}; {possible[WayKind.LEGACY_META].why}"
    reused = possible[WayKind.REUSED]
    view = inputs.upstream.functions[op].is_view_op
    if reused.possible and request.family is None and (view or op in reused_stubs()):
        return WayKind.REUSED, reused.why
    generated = inputs.upstream.is_generated(op)
    return WayKind.UNSTRUCTURED, (
        f"torchgen made it from {inputs.upstream.made_from.get(op, 'another overload')}; a function of our own"
        if generated
        else possible[WayKind.UNSTRUCTURED].why
    )


def _possible(possible: dict[WayKind, Way]) -> str:
    return f"kinds possible: {', '.join(kind.value for kind, way in possible.items() if way.possible)}"


def _family(kind: WayKind, request: Request) -> Family:
    if kind is WayKind.FALLBACK:
        if request.family not in (None, "cpu_fallback"):
            raise OpgenError(f"an operator that goes through the CPU has no kernel in kernels/{request.family}")
        return "cpu_fallback"
    if kind in (WayKind.LEGACY, WayKind.REUSED):
        if request.family == "cpu_fallback":
            raise OpgenError(
                f"a {kind.value} operator runs PyTorch's code on the device, not on the CPU",
                hint="say `--kind cpu_fallback`, or `--kind legacy_meta`/`unstructured` for a round trip of your own",
            )
        return request.family or "ported"
    return request.family or "mudnn"


def _stubs(choice: Choice, inputs: Inputs) -> tuple[Stub, ...]:
    """What has to be registered before upstream's code can run."""
    if choice.kind not in (WayKind.LEGACY, WayKind.REUSED):
        return ()
    names = [str(f.func.name) for f in choice.members]
    if choice.group is not None:
        names = [str(choice.group.out.func.name)]
    needed = (stub for name in names for stub in needed_stubs(name, inputs.upstream, inputs.include) or ())
    return tuple(dict.fromkeys(stub for stub in needed if stub.name not in inputs.kernels.stubs))


def _kernels(choice: Choice, request: Request, inputs: Inputs) -> dict[str, str]:
    backend = inputs.backend
    key_less = choice.kind is WayKind.LEGACY
    if request.name is not None and (key_less or choice.kind in (WayKind.REUSED, WayKind.FALLBACK)):
        raise OpgenError(f"a {choice.kind.value} operator names no kernel of ours", hint="leave --name out")
    if key_less:
        return {}
    names = {str(f.func.name): f for f in choice.members}
    if choice.kind is WayKind.FALLBACK:
        return dict.fromkeys(fallback_entries(choice.members, choice.op, inputs.upstream), backend.fallback_kernel)
    if choice.kind is WayKind.REUSED:
        return _reused_kernels(choice, names, inputs)
    if choice.group is not None:
        prefix = "Host" if choice.family == "cpu_fallback" else backend.impl_prefix
        made = {str(choice.group.out.func.name): request.name or impl_name(choice.group, prefix)}
    else:
        stem = request.name if request.name is not None else None
        made = {name: function_name(f, stem) for name, f in names.items()}
    for op, kernel in made.items():
        check_name(op, kernel, inputs)
    return made


def _reused_kernels(choice: Choice, names: dict[str, NativeFunction], inputs: Inputs) -> dict[str, str]:
    kernels = {}
    for name, function in names.items():
        found = reusable(function, inputs.upstream)
        if not found:
            raise OpgenError(
                f"'{name}', of the same group, has no function of upstream's that every wheel contains",
                hint="say `--kind unstructured`",
            )
        kernels[name] = found[0]
    return kernels


def check_name(op: str, kernel: str, inputs: Inputs) -> None:
    """Raises OpgenError where no function of ours can be called so."""
    if not kernel.isidentifier() or not kernel.isascii() or kernel in KEYWORDS:
        raise OpgenError(f"'{kernel}' is not a name for a C++ function", hint="choose one with --name")
    if "__" in kernel or re.match("_[A-Z]", kernel):
        raise OpgenError(
            f"'{kernel}' is reserved: C++ keeps names that contain `__` or begin with `_` and a capital for itself",
            hint="choose another with --name",
        )
    if kernel in _NAMESPACES:
        raise OpgenError(
            f"'{kernel}' is the name of a namespace, which a function of that name would hide",
            hint="choose another with --name",
        )
    if kernel == inputs.backend.fallback_kernel:
        raise OpgenError(f"'{kernel}' is reserved", hint="say `--kind cpu_fallback`, or choose another --name")
    taken = [
        d
        for d in (*inputs.kernels.functions.get(kernel, ()), *inputs.kernels.impls.get(kernel, ()))
        if d.namespace == inputs.backend.namespace
        # The skeleton of an interrupted run, which no entry names, is no obstacle.
        and not (d.unwritten and all(r.kernel != kernel for r in inputs.registrations))
    ]
    if taken:
        raise OpgenError(
            f"the kernel name '{kernel}' is taken: {taken[0].path}:{taken[0].line} defines it",
            hint="choose another with --name",
        )
    upstream = {str(m.kernel) for m in inputs.upstream.kernels(op).values()} if "::" not in op else set()
    if kernel in upstream:
        raise OpgenError(
            f"'{kernel}' is upstream's own kernel of '{op}': naming it means reusing it",
            hint="say `--kind reused`, or choose another --name",
        )


def check_unused(kernels: Iterable[str], skeleton: str) -> None:
    """Raises OpgenError where a kernel is called like something that its own source means otherwise: an argument, a
    type, a local variable. `skeleton` is the source with other names for the kernels."""
    code = re.sub(r'//[^\n]*|^\s*#[^\n]*|"[^"\n]*"', "", skeleton, flags=re.MULTILINE)
    used = set(re.findall(r"(?<![\w.:>])[A-Za-z_]\w*", code))
    for kernel in kernels:
        if kernel in used:
            raise OpgenError(
                f"'{kernel}' means something else in the kernel's source: an argument, a type or a variable",
                hint="choose another with --name",
            )


_NAMESPACES = frozenset({"at", "c10", "cuda", "musa", "native", "std", "torch"})


def _notes(op: str, kind: WayKind, composite: str | None, request: Request, inputs: Inputs) -> Sequence[str]:
    notes = []
    upstream = inputs.upstream
    if composite == "CompositeImplicitAutograd" and kind is not WayKind.FALLBACK:
        notes.append("its gradient no longer follows from the operators it calls: it needs AutogradPrivateUse1, too")
    if kind is WayKind.REUSED and not upstream.functions[op].is_view_op and op not in reused_stubs():
        notes.append("no table says whether it reaches a DispatchStub or looks at memory: read it, and test")
    if kind is WayKind.LEGACY and needed_stubs(op, upstream, inputs.include) is None:
        group = upstream.structured_group(op)
        assert group is not None
        notes.append(f"no table says which DispatchStubs {upstream_impl(upstream, group)} reaches: read it, and test")
    return notes
