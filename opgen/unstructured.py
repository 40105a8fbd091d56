"""Classification of kernels that stand alone: one function for one overload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opgen.emit import compat
from opgen.registration import Context, Form, Kind, Registration, in_namespace
from opgen.spec import OpSpec
from opgen.upstream import IN_LIBTORCH_CPU

if TYPE_CHECKING:
    from torchgen.model import NativeFunction

    from opgen.kernels import Definition


def unstructured(context: Context, spec: OpSpec, function: NativeFunction, key: str, why: str) -> Registration | None:
    """The registration of `spec`'s kernel for `key`; `why` says what made it unstructured. None after an error."""
    kernel = spec.dispatch[key]
    if kernel == context.backend.fallback_kernel:
        return fallback(context, spec, function, key)
    if "_symint" in kernel and not function.func.has_symint():
        context.diagnostics.error(
            spec.at(f"dispatch.{key}"),
            f"kernel name '{kernel}' promises SymInt arguments, but the schema of '{spec.func}' has none",
            "leave '_symint' out of the name",
        )
        return None
    own = in_namespace(context.kernels.functions.get(kernel, ()), context.backend.namespace)
    homes = {k for k, m in context.upstream.kernels(spec.name).items() if m.kernel == kernel and not m.structured}
    if homes and own is None:
        return _reused(context, spec, function, key, homes, why)
    if context.upstream.is_generated(spec.name):
        reason = f"torchgen made this overload from another one; {kernel} is our own function"
        return own_function(context, spec, function, key, Form.AUTOGEN, reason)
    return own_function(context, spec, function, key, Form.OWN, f"{why}; {kernel} is our own function")


def own_function(
    context: Context, spec: OpSpec, function: NativeFunction, key: str, form: Form, reason: str
) -> Registration | None:
    """A kernel of ours. It does its own checks and guards; the generated wrapper stays out of the way unless asked."""
    namespace = context.backend.namespace
    definition = in_namespace(context.kernels.functions.get(spec.dispatch[key], ()), namespace)
    settings = (spec.device_check or "NoCheck", bool(spec.device_guard))
    return _registration(context, spec, function, key, form, namespace, definition, settings, reason)


def _reused(
    context: Context, spec: OpSpec, function: NativeFunction, key: str, homes: set[str], why: str
) -> Registration | None:
    kernel = spec.dispatch[key]
    rows = context.upstream.kernels(spec.name)
    namespace = str(rows[min(homes)].cpp_namespace)
    definition = in_namespace(context.kernels.functions.get(kernel, ()), namespace)
    if definition is None and not context.provides(kernel, homes):
        only = " only" if homes.isdisjoint(IN_LIBTORCH_CPU) else ""
        context.diagnostics.error(
            spec.at(f"dispatch.{key}"),
            f"kernel '{kernel}' of '{spec.func}' is upstream's for {', '.join(sorted(homes))}{only}: "
            "the installed libtorch does not export it",
            f"name a kernel of your own and define it in namespace {context.backend.namespace}:\n"
            f"{compat.native_declaration(function, 'Kernel')}",
        )
        return None
    settings = (
        spec.device_check or function.device_check.name,
        function.device_guard if spec.device_guard is None else spec.device_guard,
    )
    reason = f"{why}; {kernel} is upstream's kernel for {', '.join(sorted(homes))} and serves this device as it is"
    return _registration(context, spec, function, key, Form.REUSED, namespace, definition, settings, reason)


def fallback(context: Context, spec: OpSpec, function: NativeFunction, key: str) -> Registration | None:
    """The boxed CPU fallback, for operators that survive a round trip through the CPU."""
    cannot = no_fallback(function)
    if cannot is not None:
        context.diagnostics.error(
            spec.at(f"dispatch.{key}"),
            f"'{spec.func}' cannot go through the CPU: it {cannot}",
            f"name a kernel and define it in namespace {context.backend.namespace}:\n"
            f"{compat.native_declaration(function, 'Kernel')}",
        )
        return None
    namespace, _, name = context.backend.fallback_function.rpartition("::")
    return Registration(
        op=spec.func,
        kind=Kind.UNSTRUCTURED,
        form=Form.FALLBACK,
        dispatch_key=key,
        kernel=name,
        cpp_namespace=namespace,
        family="cpu_fallback",
        source=None,
        source_line=None,
        line=spec.location.line,
        reason="the entry sends it through the CPU on purpose",
        spec=spec,
        function=function,
    )


def no_fallback(function: NativeFunction) -> str | None:
    """Why the boxed CPU fallback cannot serve an operator ("is a view: ..."); None where it can."""
    if function.is_view_op:
        return "is a view: a copy on the CPU would not alias its input"
    if not any(a.type.is_tensor_like() for a in function.func.arguments.flat_all):
        return "takes no tensor: nothing tells the device"
    if function.func.arguments.has_generator_arg():
        return "is random: the CPU has no use for the device's generator"
    return None


def needs_kernel(context: Context, spec: OpSpec, function: NativeFunction, why: str) -> None:
    """Report an entry that has to name a kernel and does not."""
    key = context.backend.dispatch_key
    hint = f"add `dispatch: {{{key}: Kernel}}` and define\n{compat.native_declaration(function, 'Kernel')}"
    rows = context.upstream.kernels(spec.name) if spec.namespace == "aten" else {}
    composite = next((k for k in rows if k.startswith("Composite")), None)
    if composite is not None:
        hint = f"upstream's {composite} kernel serves every device: remove the entry, or {hint}"
    context.diagnostics.error(spec.location, f"'{spec.func}' needs a kernel for {key}: {why}", hint)


def _registration(
    context: Context,
    spec: OpSpec,
    function: NativeFunction,
    key: str,
    form: Form,
    namespace: str,
    definition: Definition | None,
    settings: tuple[str, bool],
    reason: str,
) -> Registration | None:
    check, guard = settings
    if check != "NoCheck" and str(function.func.name).startswith("_foreach"):
        context.diagnostics.error(
            spec.at("device_check"),
            "foreach operators may have tensors on several devices: no device check is possible",
            "remove 'device_check'",
        )
        return None
    family = "upstream" if form is Form.REUSED else None
    return Registration(
        op=spec.func,
        kind=Kind.UNSTRUCTURED,
        form=form,
        dispatch_key=key,
        kernel=spec.dispatch[key],
        cpp_namespace=namespace,
        family=definition.family if definition is not None else family,
        source=definition.path if definition is not None else None,
        source_line=definition.line if definition is not None else None,
        line=spec.location.line,
        reason=reason,
        spec=spec,
        function=compat.unstructured(function, device_check=check, device_guard=guard),
        unwritten=definition is not None and definition.unwritten,
    )
