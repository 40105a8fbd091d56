"""(entries, upstream, kernels) -> registrations: what each entry means, and why.

Pure functions: faults go to the `Diagnostics` that is passed in, and whatever cannot be classified is left out of the
result. Whether the kernels named really exist is asked by `opgen.checks`, so that `opgen list` works without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from opgen.backend import Backend
from opgen.diagnostics import Diagnostics, did_you_mean
from opgen.emit import compat
from opgen.spec import Inherit, OpSpec, select_specs
from opgen.stubs import legacy_stubs
from opgen.upstream import IN_LIBTORCH_CPU, Upstream

if TYPE_CHECKING:
    from torchgen.model import NativeFunction, NativeFunctionsGroup

    from opgen.kernels import Definition, KernelIndex


class Kind(str, Enum):
    """How much of upstream's code a registration reuses; the words of the manual."""

    LEGACY = "legacy"
    """Structured: upstream's meta function and implementation; the kernel hangs on a DispatchStub."""
    LEGACY_META = "legacy_meta"
    """Structured: upstream's meta function, an implementation of our own."""
    CUSTOMIZED = "customized"
    """Structured: meta class and implementation of our own."""
    UNSTRUCTURED = "unstructured"
    """One function per overload."""


class Form(str, Enum):
    """Where the function of an unstructured registration comes from."""

    OWN = "own"
    REUSED = "reused"
    """A function of upstream's that does not care about the device."""
    AUTOGEN = "autogen"
    """Our function for an overload that torchgen made from another one."""
    NEW = "new"
    """Our function for a schema of our own."""
    FALLBACK = "fallback"
    """The boxed CPU fallback, on purpose."""


@dataclass(frozen=True)
class Registration:
    """One kernel for one overload and one dispatch key."""

    op: str
    kind: Kind
    form: Form | None
    """None for structured kinds."""
    dispatch_key: str
    kernel: str
    """Implementation name for structured kinds (`MusaTril`), function name otherwise."""
    cpp_namespace: str
    """Where the kernel lives: the backend's namespace, or `at::native`."""
    family: str | None
    """Folder under kernels/ (`mudnn`, `ported`, `cpu_fallback`), `upstream`, or None while no source defines the kernel."""
    source: str | None
    """The file that defines the kernel or registers its stub, relative to the project root."""
    source_line: int | None
    line: int
    """The entry's line in the operator list."""
    reason: str
    """Why it is of this kind, as a sentence for `opgen explain`."""
    spec: OpSpec = field(repr=False)
    function: NativeFunction = field(repr=False)
    """Upstream's function with the entry's settings applied, ready for torchgen."""
    group: NativeFunctionsGroup | None = field(default=None, repr=False)
    """For structured kinds the group with the entry's settings applied, the same object for all its members."""

    @property
    def structured(self) -> bool:
        return self.kind is not Kind.UNSTRUCTURED

    @property
    def own_meta(self) -> bool:
        return self.kind is Kind.CUSTOMIZED

    @property
    def declared_by_us(self) -> bool:
        """Whether our generated headers declare the kernel (and our sources must define it)."""
        if self.structured:
            return self.kind is not Kind.LEGACY
        return self.form in (Form.OWN, Form.AUTOGEN, Form.NEW)

    @property
    def root(self) -> str:
        """The name that shards and headers go by: overload, in-place and functional variants of an op share it."""
        return str(self.function.root_name)


def classify(
    specs: Iterable[OpSpec],
    upstream: Upstream,
    kernels: KernelIndex,
    backend: Backend,
    diagnostics: Diagnostics,
) -> tuple[Registration, ...]:
    """Registrations for all entries that exist in this PyTorch, in the order of the operator list."""
    active = select_specs(specs, upstream.torch_version, diagnostics)
    return _Classifier(active, upstream, kernels, backend, diagnostics).run()


class _Classifier:
    def __init__(
        self,
        specs: Sequence[OpSpec],
        upstream: Upstream,
        kernels: KernelIndex,
        backend: Backend,
        diagnostics: Diagnostics,
    ) -> None:
        self._specs = specs
        self._by_op = {spec.func: spec for spec in specs}
        self._upstream = upstream
        self._kernels = kernels
        self._backend = backend
        self._diagnostics = diagnostics
        self._groups: dict[str, _GroupPlan | None] = {}

    def run(self) -> tuple[Registration, ...]:
        return tuple(registration for spec in self._specs for registration in self._entry(spec))

    # ---- entries -----------------------------------------------------------------------------------------------

    def _entry(self, spec: OpSpec) -> list[Registration]:
        if spec.namespace != "aten":
            return self._new_op(spec)
        if not self._known(spec):
            return []
        group = self._upstream.structured_group(spec.name)
        if group is not None:
            plan = self._plan(group)
            dense = self._structured_member(spec, plan) if plan is not None else []
        else:
            dense = self._plain(spec)
        if not spec.valid:
            return []
        others = [
            self._unstructured(spec, self._upstream.functions[spec.name], key, "keys other than "
                               f"{self._backend.dispatch_key} are always unstructured")
            for key in self._backend.other_dispatch_keys
            if key in spec.dispatch
        ]
        return [r for r in (*dense, *others) if r is not None]

    def _known(self, spec: OpSpec) -> bool:
        function = self._upstream.functions.get(spec.name)
        if function is None:
            hint = did_you_mean(spec.name, self._upstream.names)
            if spec.schema is not None:
                hint = f"a new operator needs a namespace of its own: {self._backend.op_namespace}::{spec.name}(...)"
            self._diagnostics.error(
                spec.location, f"PyTorch {self._upstream.torch_version} has no operator '{spec.name}'", hint
            )
            return False
        self._check_schema(spec, function)
        self._check_names(spec, function)
        for key in spec.dispatch:
            if key not in self._backend.dispatch_keys:
                self._diagnostics.error(
                    spec.at(f"dispatch.{key}"),
                    f"'{spec.func}' is PyTorch's operator: its kernel for {key} is PyTorch's, too",
                    f"an entry may register for {', '.join(self._backend.dispatch_keys)}",
                )
        return True

    def _check_schema(self, spec: OpSpec, function: NativeFunction) -> None:
        if spec.schema is None:
            return
        expected = str(function.func)
        try:
            written = str(compat.parse_schema(spec.schema))
        except compat.SchemaError as error:
            self._diagnostics.error(spec.location, f"not a schema: {error}", f"upstream's is: {expected}")
            return
        if written != expected:
            self._diagnostics.error(
                spec.location,
                f"the schema of '{spec.func}' is not PyTorch {self._upstream.torch_version}'s",
                f"written:  {written}\nexpected: {expected}",
            )

    def _check_names(self, spec: OpSpec, function: NativeFunction) -> None:
        made = tuple(str(name) for name in function.autogen)
        for name in spec.autogen:
            if name not in made:
                hint = did_you_mean(name, made) or f"upstream has: autogen: {', '.join(made) or 'nothing'}"
                self._diagnostics.error(spec.at("autogen"), f"'{name}' is not generated from '{spec.func}'", hint)
        self._check_tags(spec)

    def _check_tags(self, spec: OpSpec) -> None:
        for tag in spec.tags:
            if tag not in self._upstream.tags:
                self._diagnostics.error(spec.at("tags"), f"unknown tag '{tag}'", did_you_mean(tag, self._upstream.tags))

    # ---- structured groups -------------------------------------------------------------------------------------

    def _plan(self, group: NativeFunctionsGroup) -> _GroupPlan | None:
        out = str(group.out.func.name)
        if out not in self._groups:
            self._groups[out] = self._make_plan(group)
        return self._groups[out]

    def _make_plan(self, group: NativeFunctionsGroup) -> _GroupPlan | None:
        key = self._backend.dispatch_key
        out_name = str(group.out.func.name)
        listed = {str(f.func.name): f for f in group.functions() if str(f.func.name) in self._by_op}
        members = [self._by_op[name] for name in listed]
        # An entry that only speaks of other keys asks for nothing here, unless its group's other entries do.
        if all(spec.dispatch and key not in spec.dispatch for spec in members):
            return _GroupPlan(None, None, None, "", dense=False)
        out_spec = self._by_op.get(out_name)
        if out_spec is None:
            first = members[0]
            self._diagnostics.error(
                first.location,
                f"'{first.func}' belongs to the structured group of '{out_name}', which is not listed",
                f"add `- func: {out_name}`: the group's other overloads are made from it",
            )
            return None
        for name, function in listed.items():
            self._check_structured_keys(self._by_op[name], function, group)
        for spec in members:
            if spec.device_guard is False and not (spec.structured is False or key in spec.dispatch):
                self._diagnostics.error(
                    spec.at("device_guard"),
                    f"'{spec.func}' is structured: its generated class always guards the device",
                    "remove 'device_guard', or make the overload unstructured",
                )
        kernel = out_spec.dispatch.get(key)
        if out_spec.structured is False or kernel == self._backend.fallback_kernel:
            why = "its out overload says 'structured: false'"
            if kernel == self._backend.fallback_kernel:
                why = "its out overload goes through the CPU"
            return _GroupPlan(None, None, kernel, why, dense=True)
        return self._structured_plan(group, out_spec, kernel)

    def _structured_plan(
        self, group: NativeFunctionsGroup, out_spec: OpSpec, kernel: str | None
    ) -> _GroupPlan | None:
        upstream_impl = self._upstream_impl(group)
        inherits, precomputed = group.out.structured_inherits, group.out.precomputed
        changes = []
        if not isinstance(out_spec.structured_inherits, Inherit):
            if out_spec.structured_inherits is not None or inherits is not None:
                changes.append(f"'structured_inherits: {out_spec.structured_inherits or 'none'}'")
            inherits = self._base_class(out_spec.structured_inherits)
        if not isinstance(out_spec.precomputed, Inherit):
            if out_spec.precomputed is not None or precomputed is not None:
                changes.append("its own 'precomputed'" if out_spec.precomputed else "'precomputed: none'")
            precomputed = None
            if out_spec.precomputed is not None:
                try:
                    precomputed = compat.parse_precomputed(out_spec.precomputed, group)
                except compat.SchemaError as error:
                    self._diagnostics.error(out_spec.at("precomputed"), str(error), error.hint)
                    return None
        group = _configured(group, self._by_op, inherits, precomputed)
        if changes:
            reason = f"its out overload gives {' and '.join(changes)}: meta class and implementation are ours"
            return _GroupPlan(Kind.CUSTOMIZED, group, kernel or upstream_impl, reason)
        if kernel is not None:
            reason = f"its out overload names the implementation {kernel}; the meta function is upstream's"
            return _GroupPlan(Kind.LEGACY_META, group, kernel, reason)
        if not self._exported(out_spec, group, upstream_impl):
            return None
        reason = f"no kernel is named: upstream's implementation {upstream_impl} calls the kernel through a DispatchStub"
        return _GroupPlan(Kind.LEGACY, group, upstream_impl, reason)

    def _upstream_impl(self, group: NativeFunctionsGroup) -> str:
        """CUDA's implementation, as the manual says; a group that CUDA does not have, by whoever has it."""
        rows = self._upstream.kernels(str(group.out.func.name))
        metadata = rows.get("CUDA") or rows.get("CPU") or next(iter(rows.values()))
        return str(metadata.kernel)

    def _base_class(self, name: str | None) -> str | None:
        """Bases that upstream's own meta classes use are found in namespace at; all others are ours."""
        if name is None or "::" in name or name in self._upstream.meta_bases:
            return name
        return f"{self._backend.namespace}::{name}"

    def _exported(self, out_spec: OpSpec, group: NativeFunctionsGroup, impl: str) -> bool:
        """Whether a Legacy entry can link: the implementation is in libtorch_cpu, or one of our sources defines it."""
        rows = self._upstream.kernels(out_spec.name)
        if any(key in IN_LIBTORCH_CPU and m.kernel == impl and m.structured for key, m in rows.items()):
            return True
        if _in_namespace(self._kernels.impls.get(impl, ()), "at::native") is not None:
            return True
        key = self._backend.dispatch_key
        self._diagnostics.error(
            out_spec.location,
            f"'{out_spec.func}' names no kernel, but upstream's implementation '{impl}' is CUDA's alone: "
            "the installed libtorch does not contain it",
            f"add `dispatch: {{{key}: Kernel}}` and define in namespace {self._backend.namespace}:\n"
            f"TORCH_IMPL_FUNC(Kernel)({compat.impl_arguments(group)})",
        )
        return False

    def _check_structured_keys(self, spec: OpSpec, function: NativeFunction, group: NativeFunctionsGroup) -> None:
        """The keys that say how an overload takes part in its group, each only where upstream's format has it."""
        out_name = str(group.out.func.name)
        is_out = function is group.out
        if is_out:
            if not isinstance(spec.structured_delegate, Inherit) and spec.structured_delegate is not None:
                self._diagnostics.error(
                    spec.at("structured_delegate"),
                    f"'{spec.func}' is an out overload: it delegates to none",
                    "remove 'structured_delegate'",
                )
            if spec.structured is False:
                self._check_none_when_unstructured(spec)
            return
        if spec.structured is True:
            self._diagnostics.error(
                spec.at("structured"),
                f"'structured: true' belongs to the out overload '{out_name}'",
                f"remove it; '{spec.func}' follows '{out_name}'",
            )
        delegate = spec.structured_delegate
        if isinstance(delegate, str) and delegate != out_name:
            self._diagnostics.error(
                spec.at("structured_delegate"),
                f"'{spec.func}' delegates to '{out_name}', not to '{delegate}'",
                f"write 'structured_delegate: {out_name}', 'none', or leave it out",
            )
        for key, value in (("structured_inherits", spec.structured_inherits), ("precomputed", spec.precomputed)):
            if not isinstance(value, Inherit) and value is not None:
                self._diagnostics.error(spec.at(key), f"'{key}' belongs to the out overload '{out_name}'", "move it there")

    def _check_none_when_unstructured(self, spec: OpSpec) -> None:
        for key, value in (("structured_inherits", spec.structured_inherits), ("precomputed", spec.precomputed)):
            if not isinstance(value, Inherit) and value is not None:
                self._diagnostics.error(
                    spec.at(key),
                    f"'{key}' needs a structured operator, but '{spec.func}' says 'structured: false'",
                    f"remove one of the two, or write '{key}: none'",
                )

    def _structured_member(self, spec: OpSpec, plan: _GroupPlan) -> list[Registration | None]:
        key = self._backend.dispatch_key
        function = self._upstream.functions[spec.name]
        kernel = spec.dispatch.get(key)
        if not plan.dense or not spec.valid:
            return []
        is_out = function is self._upstream.structured_group(spec.name).out  # type: ignore[union-attr]
        if plan.kind is not None and (is_out or kernel is None):
            if not is_out and (spec.structured_delegate is None or spec.structured is False):
                self._needs_kernel(spec, function, "it says that it does not delegate")
                return []
            return [self._structured_registration(spec, plan)]
        if kernel is None and plan.kernel == self._backend.fallback_kernel:
            spec = replace(spec, dispatch={**spec.dispatch, key: plan.kernel})
        elif kernel is None:
            self._needs_kernel(spec, function, plan.reason)
            return []
        reason = plan.reason if plan.kind is None else "it names a kernel of its own instead of following its out overload"
        return [self._unstructured(spec, function, key, reason)]

    def _structured_registration(self, spec: OpSpec, plan: _GroupPlan) -> Registration:
        assert plan.kind is not None and plan.group is not None and plan.kernel is not None
        function = next(f for f in plan.group.functions() if str(f.func.name) == spec.name)
        out_name = str(plan.group.out.func.name)
        namespace = "at::native" if plan.kind is Kind.LEGACY else self._backend.namespace
        definition: Definition | None
        family: str | None = None
        if plan.kind is Kind.LEGACY:
            known = legacy_stubs().get(out_name)
            stubs = known.stubs if known is not None else ()
            definition = next((self._kernels.stubs[s][0] for s in stubs if s in self._kernels.stubs), None)
            if definition is None and not stubs:
                family = "upstream"
                definition = _in_namespace(self._kernels.impls.get(plan.kernel, ()), namespace)
        else:
            definition = _in_namespace(self._kernels.impls.get(plan.kernel, ()), namespace)
        return Registration(
            op=spec.func,
            kind=plan.kind,
            form=None,
            dispatch_key=self._backend.dispatch_key,
            kernel=plan.kernel,
            cpp_namespace=namespace,
            family=definition.family if definition is not None else family,
            source=definition.path if definition is not None else None,
            source_line=definition.line if definition is not None else None,
            line=spec.location.line,
            reason=plan.reason,
            spec=spec,
            function=function,
            group=plan.group,
        )

    # ---- unstructured ------------------------------------------------------------------------------------------

    def _plain(self, spec: OpSpec) -> list[Registration | None]:
        function = self._upstream.functions[spec.name]
        if spec.structured is True:
            self._diagnostics.error(
                spec.at("structured"), f"'{spec.func}' is not structured in PyTorch", "remove 'structured: true'"
            )
        for key, value in (
            ("structured_delegate", spec.structured_delegate),
            ("structured_inherits", spec.structured_inherits),
            ("precomputed", spec.precomputed),
        ):
            if not isinstance(value, Inherit) and value is not None:
                self._diagnostics.error(
                    spec.at(key), f"'{key}' on '{spec.func}', which is not structured in PyTorch", f"remove '{key}'"
                )
        if not spec.valid:
            return []
        if self._backend.dispatch_key in spec.dispatch:
            return [self._unstructured(spec, function, self._backend.dispatch_key, "upstream's operator is unstructured")]
        if not spec.dispatch:
            self._needs_kernel(spec, function, "it is not structured")
        return []

    def _needs_kernel(self, spec: OpSpec, function: NativeFunction, why: str) -> None:
        key = self._backend.dispatch_key
        hint = f"add `dispatch: {{{key}: Kernel}}` and define\n{compat.native_declaration(function, 'Kernel')};"
        composite = next((k for k in self._upstream.kernels(spec.name) if k.startswith("Composite")), None)
        if composite is not None:
            hint = f"upstream's {composite} kernel serves every device: remove the entry, or {hint}"
        self._diagnostics.error(spec.location, f"'{spec.func}' needs a kernel for {key}: {why}", hint)

    def _unstructured(self, spec: OpSpec, function: NativeFunction, key: str, why: str) -> Registration | None:
        kernel = spec.dispatch[key]
        if kernel == self._backend.fallback_kernel:
            return self._fallback(spec, function, key)
        if "_symint" in kernel and not function.func.has_symint():
            self._diagnostics.error(
                spec.at(f"dispatch.{key}"),
                f"kernel name '{kernel}' promises SymInt arguments, but the schema of '{spec.func}' has none",
                "leave '_symint' out of the name",
            )
            return None
        own = _in_namespace(self._kernels.functions.get(kernel, ()), self._backend.namespace)
        homes = {k for k, m in self._upstream.kernels(spec.name).items() if m.kernel == kernel and not m.structured}
        if homes and own is None:
            return self._reused(spec, function, key, homes, why)
        form = Form.AUTOGEN if self._upstream.is_generated(spec.name) else Form.OWN
        reason = f"{why}; {kernel} is our own function"
        if form is Form.AUTOGEN:
            reason = f"torchgen made this overload from another one; {kernel} is our own function"
        return self._own(spec, function, key, form, own, reason)

    def _own(
        self,
        spec: OpSpec,
        function: NativeFunction,
        key: str,
        form: Form,
        definition: Definition | None,
        reason: str,
    ) -> Registration | None:
        # An own kernel does its own checks and guards; the generated wrapper stays out of the way unless asked.
        settings = (spec.device_check or "NoCheck", bool(spec.device_guard))
        return self._function_registration(
            spec, function, key, form, self._backend.namespace, definition, None, settings, reason
        )

    def _reused(
        self, spec: OpSpec, function: NativeFunction, key: str, homes: set[str], why: str
    ) -> Registration | None:
        kernel = spec.dispatch[key]
        metadata = next(m for m in self._upstream.kernels(spec.name).values() if m.kernel == kernel)
        definition = _in_namespace(self._kernels.functions.get(kernel, ()), metadata.cpp_namespace)
        if definition is None and not homes & IN_LIBTORCH_CPU:
            self._diagnostics.error(
                spec.at(f"dispatch.{key}"),
                f"kernel '{kernel}' of '{spec.func}' is upstream's for {', '.join(sorted(homes))} only: "
                "the installed libtorch does not contain it",
                f"name a kernel of your own and define it in {self._backend.namespace}:\n"
                f"{compat.native_declaration(function, 'Kernel')};",
            )
            return None
        settings = (
            spec.device_check or function.device_check.name,
            function.device_guard if spec.device_guard is None else spec.device_guard,
        )
        reason = f"{why}; {kernel} is upstream's kernel for {', '.join(sorted(homes))} and does not care about the device"
        return self._function_registration(
            spec, function, key, Form.REUSED, str(metadata.cpp_namespace), definition, "upstream", settings, reason
        )

    def _fallback(self, spec: OpSpec, function: NativeFunction, key: str) -> Registration | None:
        cannot = None
        if function.is_view_op:
            cannot = "is a view: a copy on the CPU would not alias its input"
        elif not any(a.type.is_tensor_like() for a in function.func.arguments.flat_all):
            cannot = "takes no tensor: nothing tells the device"
        elif function.func.arguments.has_generator_arg():
            cannot = "is random: the CPU has no use for the device's generator"
        if cannot is not None:
            self._diagnostics.error(
                spec.at(f"dispatch.{key}"),
                f"'{spec.func}' cannot go through the CPU: it {cannot}",
                f"name a kernel and define it in {self._backend.namespace}:\n"
                f"{compat.native_declaration(function, 'Kernel')};",
            )
            return None
        namespace, _, name = self._backend.fallback_function.rpartition("::")
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

    def _function_registration(
        self,
        spec: OpSpec,
        function: NativeFunction,
        key: str,
        form: Form,
        namespace: str,
        definition: Definition | None,
        family: str | None,
        settings: tuple[str, bool],
        reason: str,
    ) -> Registration | None:
        check, guard = settings
        if check != "NoCheck" and str(function.func.name).startswith("_foreach"):
            self._diagnostics.error(
                spec.at("device_check"),
                "foreach operators may have tensors on several devices: no device check is possible",
                "remove 'device_check'",
            )
            return None
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
        )

    # ---- schemas of our own ------------------------------------------------------------------------------------

    def _new_op(self, spec: OpSpec) -> list[Registration]:
        if spec.schema is None:
            self._diagnostics.error(
                spec.location,
                f"'{spec.func}' defines a new operator and needs its whole schema",
                f"write `- func: {spec.func}(Tensor self, ...) -> Tensor`; operators of PyTorch have no namespace here",
            )
            return []
        self._check_tags(spec)
        try:
            function = compat.new_function(spec, self._upstream.tags)
        except compat.SchemaError as error:
            self._diagnostics.error(spec.location, f"not a schema: {error}", error.hint)
            return []
        for key, value in (
            ("structured", spec.structured),
            ("structured_delegate", spec.structured_delegate),
            ("structured_inherits", spec.structured_inherits),
            ("precomputed", spec.precomputed),
        ):
            if not isinstance(value, Inherit) and value not in (None, False):
                self._diagnostics.error(spec.at(key), f"'{key}' on a new operator, which is unstructured", "remove it")
        if not spec.dispatch:
            self._needs_kernel_for_new(spec, function)
        found = []
        for key in spec.dispatch if spec.valid else ():
            if spec.dispatch[key] == self._backend.fallback_kernel:
                if "CPU" not in spec.dispatch:
                    self._diagnostics.error(
                        spec.at(f"dispatch.{key}"),
                        f"'{spec.func}' is new: the CPU has no kernel to fall back to",
                        "name a kernel for CPU, too",
                    )
                    continue
                found.append(self._fallback(spec, function, key))
                continue
            own = _in_namespace(self._kernels.functions.get(spec.dispatch[key], ()), self._backend.namespace)
            found.append(self._own(spec, function, key, Form.NEW, own, "the entry defines a new operator"))
        return [r for r in found if r is not None]

    def _needs_kernel_for_new(self, spec: OpSpec, function: NativeFunction) -> None:
        self._diagnostics.error(
            spec.location,
            f"'{spec.func}' needs a kernel",
            f"add `dispatch: {{{self._backend.dispatch_key}: Kernel}}` and define\n"
            f"{compat.native_declaration(function, 'Kernel')};",
        )


@dataclass(frozen=True)
class _GroupPlan:
    """What the entries of one structured group ask for, taken together."""

    kind: Kind | None
    """None when the group is turned unstructured."""
    group: NativeFunctionsGroup | None
    kernel: str | None
    reason: str
    dense: bool = True
    """False when the group's entries only speak of other dispatch keys."""


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


def _in_namespace(definitions: Iterable[Definition], namespace: str) -> Definition | None:
    return next((d for d in definitions if d.namespace == namespace), None)
