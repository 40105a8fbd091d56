"""(entries, upstream, kernels) -> registrations: what each entry means, and why.

Pure functions: faults go to the `Diagnostics` that is passed in, and whatever cannot be classified is left out of the
result. Whether the kernels named really exist is asked by `opgen.checks`, so that `opgen list` works without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opgen.backend import Backend
from opgen.diagnostics import Diagnostics, did_you_mean
from opgen.difference import marked, shown, text_difference
from opgen.emit import compat
from opgen.find import find_operator
from opgen.registration import Context, Form, Kind, Registration
from opgen.schema import SchemaFault, is_reserved, schema_faults
from opgen.spec import Inherit, OpSpec, select_specs
from opgen.structured import GroupPlan, plan_group, structured_member
from opgen.unstructured import fallback, needs_kernel, own_function, unstructured

if TYPE_CHECKING:
    from torchgen.model import NativeFunction

    from opgen.kernels import KernelIndex
    from opgen.libtorch import Exports
    from opgen.upstream import Upstream

__all__ = ["Form", "Kind", "Registration", "classify"]


def classify(
    specs: Iterable[OpSpec],
    upstream: Upstream,
    kernels: KernelIndex,
    backend: Backend,
    diagnostics: Diagnostics,
    exports: Exports | None = None,
) -> tuple[Registration, ...]:
    """Registrations for all entries that exist in this PyTorch, in the order of the operator list.

    Without `exports`, upstream's dispatch tables say which of its kernels a wheel contains.
    """
    active = select_specs(specs, upstream.torch_version, diagnostics)
    context = Context(upstream, kernels, backend, diagnostics, {spec.func: spec for spec in active}, exports)
    plans: dict[str, GroupPlan | None] = {}
    return tuple(r for spec in active for r in _entry(context, spec, plans) if r is not None)


def _entry(context: Context, spec: OpSpec, plans: dict[str, GroupPlan | None]) -> list[Registration | None]:
    if spec.namespace != "aten":
        return _new_op(context, spec)
    function = _known(context, spec)
    if function is None:
        return []
    group = context.upstream.structured_group(spec.name)
    dense = None
    if group is None:
        dense = _plain(context, spec, function)
    else:
        out_name = str(group.out.func.name)
        if out_name not in plans:
            plans[out_name] = plan_group(context, group)
        plan = plans[out_name]
        if plan is not None:
            dense = structured_member(context, spec, function, plan)
    if not spec.valid:
        return []
    why = f"keys other than {context.backend.dispatch_key} are always unstructured"
    others = [key for key in context.backend.other_dispatch_keys if key in spec.dispatch]
    return [dense, *(unstructured(context, spec, function, key, why) for key in others)]


def _known(context: Context, spec: OpSpec) -> NativeFunction | None:
    """Upstream's function for an entry, what the entry says about it checked; None when there is no such operator."""
    function = context.upstream.functions.get(spec.name)
    if function is None:
        # A list of which hundreds are unknown is for something else; looking for spellings takes its time.
        patient = len(context.diagnostics.items) < _MANY
        hint = _meant(spec.name, context) if patient else None
        if spec.schema is not None and hint is None:
            hint = f"a new operator needs a namespace of its own: {context.backend.op_namespace}::{spec.name}(...)"
        context.diagnostics.error(
            spec.location, f"PyTorch {context.upstream.torch_version} has no operator '{spec.name}'", hint
        )
        return None
    _check_schema(context, spec, function)
    made = tuple(str(name) for name in function.autogen)
    for name in spec.autogen:
        if name not in made:
            hint = did_you_mean(name, made) or f"upstream has: autogen: {', '.join(made) or 'nothing'}"
            context.diagnostics.error(spec.at(f"autogen.{name}"), f"'{name}' is not generated from '{spec.func}'", hint)
    _check_tags(context, spec)
    for key in spec.dispatch:
        if key not in context.backend.dispatch_keys:
            context.diagnostics.error(
                spec.at(f"dispatch.{key}"),
                f"'{spec.func}' is PyTorch's operator: its kernel for {key} is PyTorch's, too",
                f"an entry may register for {', '.join(context.backend.dispatch_keys)}",
            )
    return function


def _meant(name: str, context: Context) -> str | None:
    """What was meant by a name that upstream has not: an overload of it, or a name that is spelt alike."""
    found = find_operator(name, context.upstream.names)
    if found.overloads:
        return f"it has overloads; name each one: {', '.join(found.overloads)}"
    # The operator itself where the name is one as others write it: `tril.default`.
    meant = (found.op,) if found.op is not None else found.nearest
    return f"did you mean '{meant[0]}'?" if meant else None


def _check_schema(context: Context, spec: OpSpec, function: NativeFunction) -> None:
    if spec.schema is None:
        return
    expected = str(function.func)
    difference = text_difference(spec.schema, expected)
    if difference is not None:
        start, end = difference.written
        context.diagnostics.error(
            spec.schema_at(start, end),
            f"the schema of '{spec.func}' is not the one of PyTorch {context.upstream.torch_version}: "
            f"{difference.reason}",
            shown(spec.schema, expected, difference, "expected"),
        )


def _check_tags(context: Context, spec: OpSpec) -> None:
    for tag in spec.tags:
        if tag not in context.upstream.tags:
            hint = did_you_mean(tag, context.upstream.tags) or f"known tags: {', '.join(sorted(context.upstream.tags))}"
            context.diagnostics.error(spec.at(f"tags.{tag}"), f"unknown tag '{tag}'", hint)


def _no_structured_keys(context: Context, spec: OpSpec, what: str) -> None:
    """Overloads outside structured groups may only say that they are just that."""
    for key, value in (
        ("structured", spec.structured),
        ("structured_delegate", spec.structured_delegate),
        ("structured_inherits", spec.structured_inherits),
        ("precomputed", spec.precomputed),
    ):
        if value is not None and value is not False and not isinstance(value, Inherit):
            context.diagnostics.error(spec.at(key), f"'{key}' on '{spec.func}', which is {what}", f"remove '{key}'")


def _plain(context: Context, spec: OpSpec, function: NativeFunction) -> Registration | None:
    _no_structured_keys(context, spec, "not structured in PyTorch")
    if not spec.valid:
        return None
    key = context.backend.dispatch_key
    if key in spec.dispatch:
        return unstructured(context, spec, function, key, "upstream's operator is unstructured")
    if not spec.dispatch:
        needs_kernel(context, spec, function, "it is not structured")
    return None


_MANY = 300

# Namespaces in which PyTorch defines operators, and what people write for its main one.
_TAKEN = frozenset({"at", "aten", "prim", "prims", "quantized", "torch"})


def _own_namespace(context: Context, spec: OpSpec) -> bool:
    if spec.namespace.lower() in _TAKEN:
        known = spec.name in context.upstream.functions
        context.diagnostics.error(
            spec.location,
            f"namespace '{spec.namespace}' is PyTorch's",
            f"write `- func: {spec.name}`: operators of PyTorch have no namespace here"
            if known
            else f"define new operators in one of your own: {context.backend.op_namespace}::{spec.name}(...)",
        )
        return False
    if is_reserved(spec.namespace):
        message = f"PyTorch reserves the word '{spec.namespace}'"
        context.diagnostics.error(spec.location, message, "choose another namespace")
        return False
    return True


def _new_op(context: Context, spec: OpSpec) -> list[Registration | None]:
    if not _own_namespace(context, spec):
        return []
    if spec.schema is None:
        context.diagnostics.error(
            spec.location,
            f"'{spec.func}' defines a new operator and needs its whole schema",
            f"write `- func: {spec.func}(Tensor self, ...) -> Tensor`; operators of PyTorch have no namespace here",
        )
        return []
    _check_tags(context, spec)
    _no_structured_keys(context, spec, "a new, unstructured operator")
    faults = schema_faults(spec.schema, compat.base_types())
    for fault in faults:
        mark = marked("", f"{spec.namespace}::{spec.schema}", _shifted(fault, len(spec.namespace) + 2))
        where = spec.schema_at(fault.start, fault.end)
        context.diagnostics.error(where, fault.message, "\n".join([*mark, fault.hint]))
    if faults:
        return []
    try:
        function = compat.new_function(spec, context.upstream.tags)
    except compat.SchemaError as error:
        context.diagnostics.error(spec.location, f"not a schema: {error}", error.hint)
        return []
    if not spec.valid:
        return []
    if not spec.dispatch:
        needs_kernel(context, spec, function, "it is a new operator")
    return [_new_kernel(context, spec, function, key) for key in spec.dispatch]


def _shifted(fault: SchemaFault, by: int) -> tuple[int, int]:
    return fault.start + by, fault.end + by


def _new_kernel(context: Context, spec: OpSpec, function: NativeFunction, key: str) -> Registration | None:
    if spec.dispatch[key] != context.backend.fallback_kernel:
        return own_function(context, spec, function, key, Form.NEW, "the entry defines a new operator")
    if "CPU" not in spec.dispatch:
        context.diagnostics.error(
            spec.at(f"dispatch.{key}"),
            f"'{spec.func}' is new: the CPU has no kernel to fall back to",
            "name a kernel for CPU, too",
        )
        return None
    return fallback(context, spec, function, key)
