"""Warnings for what an entry says without effect.

Asked by experiment, so that no rule of classification is written down twice: an entry is classified again without the
key in question, and where nothing that is emitted differs, the key says nothing. Left alone is what the manual tells
developers to write although it follows anyway: `structured: false`, and `none` for what upstream's declaration has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING

from opgen.classify import Form, Registration, classify
from opgen.diagnostics import Diagnostics, Location
from opgen.spec import Inherit, OpSpec, select_specs
from opgen.upstream import SUPPORTED_RELEASES

if TYPE_CHECKING:
    from opgen.backend import Backend
    from opgen.kernels import KernelIndex
    from opgen.libtorch import Exports
    from opgen.upstream import Upstream

__all__ = ["warn_redundant"]

_OPTIONAL = (
    "structured",
    "structured_delegate",
    "structured_inherits",
    "precomputed",
    "device_check",
    "device_guard",
    "autogen",
    "tags",
)
_DEFAULTS = {f.name: f.default for f in fields(OpSpec) if f.default is not MISSING}


def warn_redundant(
    specs: Sequence[OpSpec],
    registrations: Sequence[Registration],
    upstream: Upstream,
    kernels: KernelIndex,
    backend: Backend,
    exports: Exports | None,
    diagnostics: Diagnostics,
) -> None:
    """Warn about keys and entries of `specs` without which `registrations` would be the same."""
    if not diagnostics.errors:  # a misspelt entry would have named it
        _warn_unused(specs, registrations, kernels, backend, diagnostics)
    _warn_releases(specs, diagnostics)
    by_op: dict[str, list[Registration]] = {}
    for r in registrations:
        by_op.setdefault(r.op, []).append(r)
        _warn_composite(r, upstream, backend, diagnostics)
    active = {spec.func: spec for spec in select_specs(specs, upstream.torch_version, Diagnostics())}
    for spec in active.values():
        if spec.func not in by_op or _faulty(spec, diagnostics):
            continue
        members = _with_its_group(spec, active, upstream)
        for key, without in _variants(spec, by_op[spec.func], upstream):
            again = Diagnostics()
            changed = [without if member is spec else member for member in members]
            found = classify(changed, upstream, kernels, backend, again, exports)
            before = [r for member in members for r in by_op.get(member.func, ())]
            if not again and _meaning(found) == _meaning(before):
                diagnostics.warning(spec.at(key), f"'{_shown(spec, key)}' on '{spec.func}' changes nothing", _hint(key))


def _warn_unused(
    specs: Sequence[OpSpec],
    registrations: Sequence[Registration],
    kernels: KernelIndex,
    backend: Backend,
    diagnostics: Diagnostics,
) -> None:
    """Implementations that no entry names: nothing declares their class."""
    named = {kernel for spec in specs for kernel in spec.dispatch.values()} | {r.kernel for r in registrations}
    for name, (first, *_) in kernels.impls.items():
        if name not in named and first.namespace == backend.namespace:
            diagnostics.warning(
                Location(first.path, first.line, first.column),
                f"no entry names kernel '{name}'",
                f"its class structured_{name} is declared nowhere, so it will not compile:\n"
                f"add an entry with `dispatch: {{{backend.dispatch_key}: {name}}}`, or remove it",
            )


def _faulty(spec: OpSpec, diagnostics: Diagnostics) -> bool:
    """Whether an error has been reported at the entry or at one of its keys: then that is what to deal with first."""
    places = {spec.location, *spec.key_locations.values()}
    return not spec.valid or any(item.location in places for item in diagnostics.errors)


def _warn_releases(specs: Iterable[OpSpec], diagnostics: Diagnostics) -> None:
    for spec in specs:
        if spec.torch is None:
            continue
        meant = [release for release in SUPPORTED_RELEASES if spec.torch.contains(release)]
        supported = f"{SUPPORTED_RELEASES[0]} to {SUPPORTED_RELEASES[-1]}"
        if not meant:
            message = f"'{spec.func}' is for PyTorch {spec.torch}, which is none of the supported releases"
            diagnostics.warning(spec.at("torch"), message, f"supported are {supported}: remove the entry")
        elif len(meant) == len(SUPPORTED_RELEASES):
            message = f"'torch: {spec.torch}' on '{spec.func}' excludes no supported release"
            diagnostics.warning(spec.at("torch"), message, f"supported are {supported}: remove the key")


def _warn_composite(r: Registration, upstream: Upstream, backend: Backend, diagnostics: Diagnostics) -> None:
    """A kernel of upstream's that runs on every device without being registered for one."""
    if r.form is not Form.REUSED or r.dispatch_key != backend.dispatch_key:
        return
    rows = upstream.kernels(r.spec.name)
    composite = next((k for k, m in rows.items() if k.startswith("Composite") and m.kernel == r.kernel), None)
    where = r.spec.at(f"dispatch.{r.dispatch_key}")
    if composite == "CompositeImplicitAutograd":
        diagnostics.warning(
            where,
            f"kernel '{r.kernel}' of '{r.op}' serves every device already; registered for one it loses its gradient",
            f"remove the entry: PyTorch differentiates a {composite} kernel through\n"
            "the operators that it calls, but only where the device has no kernel of its own",
        )
    elif composite is not None:
        diagnostics.warning(
            where,
            f"kernel '{r.kernel}' of '{r.op}' serves every device already: the entry changes nothing",
            f"remove the entry; upstream registers {r.kernel} as {composite}",
        )


def _with_its_group(spec: OpSpec, active: Mapping[str, OpSpec], upstream: Upstream) -> list[OpSpec]:
    """The entries that are classified together with `spec`."""
    group = upstream.structured_group(spec.name) if spec.namespace == "aten" else None
    if group is None:
        return [spec]
    names = {str(function.func.name) for function in group.functions()}
    return [other for other in active.values() if other.func in names]


def _variants(spec: OpSpec, registrations: Sequence[Registration], upstream: Upstream) -> Iterator[tuple[str, OpSpec]]:
    """`spec` without one of the keys that it need not have, for each of them."""
    for key in _OPTIONAL:
        if key in spec.key_locations and not _taught(spec, key, upstream):
            yield key, replace(spec, **{key: _DEFAULTS[key]})
    for r in registrations:
        # An overload of a group whose out overload goes through the CPU goes there, too. No other kernel is inherited.
        if r.form is Form.FALLBACK and r.dispatch_key in spec.dispatch:
            rest = {key: kernel for key, kernel in spec.dispatch.items() if key != r.dispatch_key}
            yield f"dispatch.{r.dispatch_key}", replace(spec, dispatch=rest)


def _taught(spec: OpSpec, key: str, upstream: Upstream) -> bool:
    """Whether the manual has this key written out, or allows it, where leaving it out means the same."""
    value = getattr(spec, key)
    function = upstream.functions.get(spec.name)
    if function is None or isinstance(value, Inherit):
        return False
    if key == "structured":
        return value is False and function.structured_delegate is None
    return value is None and bool(getattr(function, key, None))


def _meaning(registrations: Iterable[Registration]) -> list[tuple[object, ...]]:
    """All of a registration that reaches the generated files."""
    return sorted(
        (
            (r.op, r.dispatch_key, r.kind.value, r.kernel, r.cpp_namespace, r.form, r.function, r.group)
            for r in registrations
        ),
        key=lambda meaning: (str(meaning[0]), str(meaning[1])),
    )


def _shown(spec: OpSpec, key: str) -> str:
    name, _, dispatch_key = key.partition(".")
    value: object = spec.dispatch[dispatch_key] if dispatch_key else getattr(spec, name)
    if isinstance(value, tuple):
        return f"{name}: {', '.join(value)}"
    return f"{dispatch_key or name}: {str(value).lower() if isinstance(value, bool | None) else value}"


def _hint(key: str) -> str:
    if key.startswith("dispatch."):
        return "the out overload's fallback holds for its whole group: remove the key"
    return {
        "autogen": "PyTorch makes these overloads anyway: remove the key; to implement one, write an entry for it",
        "tags": "PyTorch's operators have PyTorch's tags: remove the key",
        "device_check": "it is the default here: remove the key",
        "device_guard": "it is the default here: remove the key",
    }.get(key, "upstream's declaration says the same: remove the key")
