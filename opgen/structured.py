"""Classification of structured groups: functional, in-place and out overloads with one meta function and one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opgen.emit import compat
from opgen.precomputed import precomputed_faults
from opgen.registration import Context, Kind, Registration, in_namespace
from opgen.spec import Inherit, OpSpec
from opgen.stubs import legacy_stubs
from opgen.unstructured import needs_kernel, unstructured
from opgen.upstream import IN_LIBTORCH_CPU

if TYPE_CHECKING:
    from torchgen.model import NativeFunction, NativeFunctionsGroup

    from opgen.upstream import Upstream


@dataclass(frozen=True)
class GroupPlan:
    """What the entries of one structured group ask for, taken together."""

    kind: Kind | None
    """None when the group is turned unstructured."""
    group: NativeFunctionsGroup | None
    """The group with the entries' settings applied, where it stays structured."""
    kernel: str | None
    """The out overload's kernel."""
    reason: str
    dense: bool = True
    """False when the group's entries only speak of other dispatch keys."""


def plan_group(context: Context, group: NativeFunctionsGroup) -> GroupPlan | None:
    """The plan for a group of which at least one overload is listed; None after an error that leaves none."""
    key = context.backend.dispatch_key
    out_name = str(group.out.func.name)
    listed = [(context.specs[str(f.func.name)], f) for f in group.functions() if str(f.func.name) in context.specs]
    out_spec = context.specs.get(out_name)
    # Entries that only speak of other keys ask for nothing here; but an out overload without a kernel for this key is
    # Legacy, whatever else it names, unless it says otherwise.
    only_others = all(spec.dispatch and key not in spec.dispatch for spec, _ in listed)
    if only_others and (out_spec is None or out_spec.structured is False):
        return GroupPlan(None, None, None, "", dense=False)
    if out_spec is None:
        first = listed[0][0]
        context.diagnostics.error(
            first.location,
            f"'{first.func}' belongs to the structured group of '{out_name}', which is not listed",
            f"add `- func: {out_name}`: the group's other overloads are made from it",
        )
        return None
    for spec, function in listed:
        _check_keys(context, spec, function, group)
    if not out_spec.valid:  # nothing can be said about a kernel that may have been misspelt
        return None
    kernel = out_spec.dispatch.get(key)
    if kernel == context.backend.fallback_kernel:
        return GroupPlan(None, None, kernel, "its out overload goes through the CPU")
    if out_spec.structured is False:
        return GroupPlan(None, None, kernel, "its out overload says 'structured: false'")
    return _structured_plan(context, group, out_spec, kernel)


def structured_member(context: Context, spec: OpSpec, function: NativeFunction, plan: GroupPlan) -> Registration | None:
    """The registration of one listed overload for the backend's dense key."""
    if not plan.dense or not spec.valid:
        return None
    key = context.backend.dispatch_key
    kernel = spec.dispatch.get(key)
    is_out = bool(function.structured)
    if plan.kind is not None and (is_out or kernel is None):
        if not is_out and (spec.structured_delegate is None or spec.structured is False):
            needs_kernel(context, spec, function, "it says that it does not follow its out overload")
            return None
        return _registration(context, spec, plan)
    if kernel is None:
        if plan.kernel != context.backend.fallback_kernel:
            needs_kernel(context, spec, function, plan.reason)
            return None
        spec = replace(spec, dispatch={**spec.dispatch, key: plan.kernel})
    follows_not = "it names a kernel of its own instead of following its out overload"
    return unstructured(context, spec, function, key, plan.reason if plan.kind is None else follows_not)


def _structured_plan(
    context: Context, group: NativeFunctionsGroup, out_spec: OpSpec, kernel: str | None
) -> GroupPlan | None:
    impl = upstream_impl(context.upstream, group)
    inherits, precomputed = group.out.structured_inherits, group.out.precomputed
    changes = []
    if not isinstance(out_spec.structured_inherits, Inherit):
        if out_spec.structured_inherits is not None or inherits is not None:
            changes.append(f"'structured_inherits: {out_spec.structured_inherits or 'none'}'")
        inherits = _base_class(context, out_spec.structured_inherits)
    if not isinstance(out_spec.precomputed, Inherit):
        if out_spec.precomputed is not None or precomputed is not None:
            changes.append("its own 'precomputed'" if out_spec.precomputed else "'precomputed: none'")
        precomputed = None
        if out_spec.precomputed is not None:
            precomputed = _precomputed(context, out_spec, out_spec.precomputed, group)
            if precomputed is None:
                return None
    group = _configured(group, context.specs, inherits, precomputed)
    if changes:
        reason = f"its out overload gives {' and '.join(changes)}: meta class and implementation are ours"
        return GroupPlan(Kind.CUSTOMIZED, group, kernel or impl, reason)
    if kernel is not None:
        reason = f"its out overload names the implementation {kernel}; the meta function is upstream's"
        return GroupPlan(Kind.LEGACY_META, group, kernel, reason)
    if not _exported(context, out_spec, group, impl):
        return None
    reason = f"no kernel is named: upstream's implementation {impl} reaches the kernel through a DispatchStub"
    return GroupPlan(Kind.LEGACY, group, impl, reason)


def _precomputed(context: Context, spec: OpSpec, lines: tuple[str, ...], group: NativeFunctionsGroup) -> object | None:
    """torchgen's form of the entry's `precomputed`; None after an error."""
    arguments = group.out.func.arguments
    faults = precomputed_faults(
        lines, spec.func, [a.name for a in arguments.flat_non_out], [a.name for a in arguments.out]
    )
    for fault in faults:
        context.diagnostics.error(spec.at(f"precomputed.{fault.index}"), fault.message, fault.hint)
    if faults:
        return None
    try:
        parsed: object = compat.parse_precomputed(lines, group)
        return parsed
    except compat.SchemaError as error:
        context.diagnostics.error(spec.at("precomputed"), str(error), error.hint)
        return None


def upstream_impl(upstream: Upstream, group: NativeFunctionsGroup) -> str:
    """CUDA's implementation, as the manual says; a group that CUDA does not have, by whoever has it."""
    rows = upstream.kernels(str(group.out.func.name))
    metadata = rows.get("CUDA") or rows.get("CPU") or next(iter(rows.values()))
    return str(metadata.kernel)


def in_the_wheel(upstream: Upstream, group: NativeFunctionsGroup, impl: str) -> bool:
    """Whether every wheel's libtorch_cpu contains upstream's implementation, by upstream's dispatch table."""
    rows = upstream.kernels(str(group.out.func.name))
    return any(key in IN_LIBTORCH_CPU and m.kernel == impl and m.structured for key, m in rows.items())


def _base_class(context: Context, name: str | None) -> str | None:
    """Bases that upstream's own meta classes use are found in namespace at; all others are ours."""
    if name is None or "::" in name or name in context.upstream.meta_bases:
        return name
    return f"{context.backend.namespace}::{name}"


def _exported(context: Context, out_spec: OpSpec, group: NativeFunctionsGroup, impl: str) -> bool:
    """Whether a Legacy entry can link: the implementation is in libtorch_cpu, or one of our sources defines it."""
    rows = context.upstream.kernels(out_spec.name)
    homes = [key for key, m in rows.items() if m.kernel == impl and m.structured]
    if context.provides(impl, homes, impl=True):
        return True
    if in_namespace(context.kernels.impls.get(impl, ()), "at::native") is not None:
        return True
    context.diagnostics.error(
        out_spec.location,
        f"'{out_spec.func}' names no kernel, but upstream's implementation '{impl}' is for {', '.join(homes)}"
        f"{' only' if IN_LIBTORCH_CPU.isdisjoint(homes) else ''}: the installed libtorch does not export it",
        f"add `dispatch: {{{context.backend.dispatch_key}: Kernel}}` and define in namespace "
        f"{context.backend.namespace}:\nTORCH_IMPL_FUNC(Kernel)({compat.impl_arguments(group)})",
    )
    return False


def _configured(
    group: NativeFunctionsGroup, specs: Mapping[str, OpSpec], inherits: str | None, precomputed: object
) -> NativeFunctionsGroup:
    """`group` with the entries' device checks and the out entry's meta class settings."""

    def checked(function: NativeFunction) -> NativeFunction:
        spec = specs.get(str(function.func.name))
        if spec is None or spec.device_check is None:
            return function
        return compat.with_device_check(function, spec.device_check)

    out = compat.with_meta(checked(group.out), inherits, precomputed)
    inplace = checked(group.inplace) if group.inplace is not None else None
    return replace(group, functional=checked(group.functional), inplace=inplace, out=out)


def _check_keys(context: Context, spec: OpSpec, function: NativeFunction, group: NativeFunctionsGroup) -> None:
    """The keys that say how an overload takes part in its group, each only where upstream's format has it."""
    error = context.diagnostics.error
    out_name = str(group.out.func.name)
    meta_keys = [
        (name, value)
        for name, value in (("structured_inherits", spec.structured_inherits), ("precomputed", spec.precomputed))
        if value is not None and not isinstance(value, Inherit)
    ]
    alone = spec.structured is False or context.backend.dispatch_key in spec.dispatch
    if spec.device_guard is False and (spec.structured is not False if function is group.out else not alone):
        error(
            spec.at("device_guard"),
            f"'{spec.func}' is structured: its generated class always guards the device",
            "remove 'device_guard', or make the overload unstructured",
        )
    if function is group.out:
        if isinstance(spec.structured_delegate, str):
            error(
                spec.at("structured_delegate"), f"'{spec.func}' is an out overload: it delegates to none", "remove it"
            )
        for name, _ in meta_keys if spec.structured is False else ():
            error(
                spec.at(name),
                f"'{name}' needs a structured operator, but '{spec.func}' says 'structured: false'",
                f"remove one of the two, or write '{name}: none'",
            )
        return
    if spec.structured is True:
        error(
            spec.at("structured"),
            f"'structured: true' belongs to the out overload '{out_name}'",
            f"remove it; '{spec.func}' follows '{out_name}'",
        )
    if isinstance(spec.structured_delegate, str) and spec.structured_delegate != out_name:
        error(
            spec.at("structured_delegate"),
            f"'{spec.func}' delegates to '{out_name}', not to '{spec.structured_delegate}'",
            f"write 'structured_delegate: {out_name}', 'none', or leave it out",
        )
    for name, _ in meta_keys:
        error(spec.at(name), f"'{name}' belongs to the out overload '{out_name}'", "move it there")


def _registration(context: Context, spec: OpSpec, plan: GroupPlan) -> Registration:
    assert plan.kind is not None and plan.group is not None and plan.kernel is not None
    function = next(f for f in plan.group.functions() if str(f.func.name) == spec.name)
    namespace = "at::native" if plan.kind is Kind.LEGACY else context.backend.namespace
    family: str | None = None
    unwritten = False
    definition = in_namespace(context.kernels.impls.get(plan.kernel, ()), namespace)
    if plan.kind is Kind.LEGACY and definition is None:
        known = legacy_stubs().get(str(plan.group.out.func.name))
        stubs = known.stubs if known is not None else ()
        definition = next((context.kernels.stubs[s][0] for s in stubs if s in context.kernels.stubs), None)
        unwritten = any(d.unwritten for s in stubs for d in context.kernels.stubs.get(s, ()))
        if not stubs:
            family = "upstream"
    if plan.kind is Kind.CUSTOMIZED:
        meta = in_namespace(context.kernels.metas.get(compat.meta_name(plan.group), ()), namespace)
        unwritten = meta is not None and meta.unwritten
    return Registration(
        op=spec.func,
        kind=plan.kind,
        form=None,
        dispatch_key=context.backend.dispatch_key,
        kernel=plan.kernel,
        cpp_namespace=namespace,
        family=definition.family if definition is not None else family,
        source=definition.path if definition is not None else None,
        source_line=definition.line if definition is not None else None,
        line=spec.location.line,
        reason=plan.reason,
        spec=spec,
        function=function,
        unwritten=unwritten or (definition is not None and definition.unwritten),
        group=plan.group,
    )
