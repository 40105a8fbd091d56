"""Do the sources really define what the registrations need? Asked before anything is written.

A kernel that is missing or has another signature would otherwise show up minutes later as a link error, and a
DispatchStub without a kernel not before the first call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opgen.backend import Backend
from opgen.classify import Kind, Registration
from opgen.cpp import canonical_signature
from opgen.diagnostics import Diagnostics, Location, did_you_mean, nearest
from opgen.difference import default_argument, marked, signature_difference
from opgen.difference import shown as both
from opgen.emit import compat
from opgen.stubs import legacy_stubs

if TYPE_CHECKING:
    from opgen.kernels import Definition, KernelIndex


def check_sources(
    registrations: Iterable[Registration],
    kernels: KernelIndex,
    backend: Backend,
    diagnostics: Diagnostics,
    bases: Collection[str] | None = None,
) -> None:
    """Report stubs nobody registers, kernels nobody defines, and kernels with another signature.

    `bases` are the classes that meta classes may derive from besides upstream's; None where that is not known.
    """
    groups: dict[str, Registration] = {}
    plain: dict[tuple[str, str], Registration] = {}
    for r in registrations:
        if r.group is not None:
            name = str(r.group.out.func.name)
            # The out entry speaks for its group; its location is where the kernel is named.
            if name not in groups or r.op == name:
                groups[name] = r
        elif r.declared_by_us:
            required = compat.native_declaration(r.function, r.kernel)
            plain.setdefault((r.kernel, required), r)
    _check_stubs_once(kernels, diagnostics)
    for r in groups.values():
        if r.kind is Kind.LEGACY:
            _check_stubs(r, kernels, backend, diagnostics)
        else:
            _check_structured(r, kernels, backend, diagnostics)
            _check_base(r, bases, backend, diagnostics)
    for (kernel, required), r in plain.items():
        where = r.spec.at(f"dispatch.{r.dispatch_key}")
        _check_definition(r.op, kernel, required, "", kernels.functions, where, backend, diagnostics)


def _check_stubs_once(kernels: KernelIndex, diagnostics: Diagnostics) -> None:
    """The compiler and the linker accept two kernels on one stub; which one runs is then the order of loading."""
    for stub, (first, *others) in kernels.stubs.items():
        for again in others:
            diagnostics.error(
                Location(again.path, again.line, again.column),
                f"DispatchStub '{stub}' has two kernels",
                f"the other one is registered at {first.path}:{first.line}",
            )


def _check_stubs(r: Registration, kernels: KernelIndex, backend: Backend, diagnostics: Diagnostics) -> None:
    assert r.group is not None
    known = legacy_stubs().get(str(r.group.out.func.name))
    for stub in known.stubs if known is not None else ():
        if stub in kernels.stubs:
            continue
        assert known is not None
        headers = ", ".join(f"<{header}>" for header in known.header.split(","))
        diagnostics.error(
            r.spec.location,
            f"Legacy entry '{r.spec.func}' needs a kernel on DispatchStub '{stub}' ({headers}), "
            "which no source registers",
            f"register one in namespace at::native: {backend.register_stub_macro}({stub}, &your_kernel)\n"
            f"(REGISTER_DISPATCH in a .cu file), or name an implementation: dispatch: {{{r.dispatch_key}: Kernel}}",
        )


def _check_base(r: Registration, bases: Collection[str] | None, backend: Backend, diagnostics: Diagnostics) -> None:
    base = r.group.out.structured_inherits if r.group is not None and r.own_meta else None
    ours = f"{backend.namespace}::"
    if base is None or bases is None or not base.startswith(ours) or base.removeprefix(ours) in bases:
        return
    name = base.removeprefix(ours)
    near = did_you_mean(name, bases)
    hint = f"define it there in namespace {backend.namespace}"
    diagnostics.error(
        r.spec.at("structured_inherits"),
        f"no class '{name}' in {backend.meta_bases_header}",
        f"{near} Otherwise {hint}" if near is not None else hint,
    )


def _check_structured(r: Registration, kernels: KernelIndex, backend: Backend, diagnostics: Diagnostics) -> None:
    assert r.group is not None
    where = r.spec.at(f"dispatch.{r.dispatch_key}")
    head = f"TORCH_IMPL_FUNC({r.kernel})"
    required = f"void {r.kernel}({compat.impl_arguments(r.group)})"
    _check_definition(r.spec.func, r.kernel, required, head, kernels.impls, where, backend, diagnostics)
    if r.own_meta:
        name = compat.meta_name(r.group)
        definition = compat.meta_definition(r.group)
        head = definition.partition(")(")[0] + ")"
        required = f"void {name}({compat.meta_arguments(r.group)})"
        _check_definition(r.spec.func, name, required, head, kernels.metas, r.spec.location, backend, diagnostics)


def _check_definition(
    op: str,
    name: str,
    required: str,
    macro: str,
    definitions: Mapping[str, Sequence[Definition]],
    where: Location,
    backend: Backend,
    diagnostics: Diagnostics,
) -> None:
    """One kernel: defined in our namespace, once, as `required`; `macro` begins a structured definition."""
    # TORCH_IMPL_FUNC hides the return type and the class, so only parameters are shown and compared there.
    shown = f"{macro}({required.partition('(')[2]}" if macro else required
    what = "meta function" if "META_FUNC" in macro else "kernel"
    found = definitions.get(name, ())
    ours = [d for d in found if d.namespace == backend.namespace]
    if not ours:
        diagnostics.error(
            where,
            f"no source defines {what} '{name}' for '{op}'",
            "\n".join(
                [*_nearby(name, found, definitions, backend), f"define it in namespace {backend.namespace}:", shown]
            ),
        )
        return
    expected = canonical_signature(required)
    matching = [d for d in ours if d.params == expected.params and (macro or d.returns == expected.returns)]
    if not matching:
        # Of several C++ overloads the one that agrees furthest is meant.
        nearest_one = max(ours, key=lambda d: _agreement(d.params, expected.params))
        difference = signature_difference(nearest_one.text, shown, returns=not macro)
        reason = f": {difference.reason}" if difference is not None else ""
        diagnostics.error(
            Location(nearest_one.path, nearest_one.line, nearest_one.column),
            f"{what} '{name}' has not the signature that '{op}' requires{reason}",
            both(nearest_one.text, shown, difference),
        )
    for d in matching:
        default = default_argument(d.text)
        if default is not None:
            diagnostics.error(
                Location(d.path, d.line, d.column),
                f"{what} '{name}' has a default argument",
                "\n".join([*marked("", d.text, default), "leave it out: defaults are in the operator's schema"]),
            )
    for again in matching[1:]:
        diagnostics.error(
            Location(again.path, again.line, again.column),
            f"{what} '{name}' is defined twice",
            f"the other definition is at {matching[0].path}:{matching[0].line}",
        )


def _agreement(written: Sequence[str], required: Sequence[str]) -> int:
    """How many parameters agree before the first that does not."""
    return next((i for i, (w, r) in enumerate(zip(written, required, strict=False)) if w != r), len(written))


def _nearby(
    name: str, found: Sequence[Definition], definitions: Mapping[str, Sequence[Definition]], backend: Backend
) -> list[str]:
    if found:
        other = found[0]
        where = f"{other.path}:{other.line}"
        return [f"{where} defines one in namespace {other.namespace}; move it to {backend.namespace}, or"]
    near = nearest(name, definitions, cutoff=0.75)
    if near is None:
        return []
    other = definitions[near][0]
    return [f"did you mean '{near}' ({other.path}:{other.line})? Otherwise"]
