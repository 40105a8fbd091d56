"""torchgen's registration generators, extended by subclassing to guard a PrivateUse1 device.

torchgen prints device-guarding structured classes only for the keys it knows. Its device-generic key has the bodies
that any device needs (c10::OptionalDeviceGuard), so our classes borrow those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchgen.dest import RegisterDispatchKey
from torchgen.dest.register_dispatch_key import (
    StructuredRegisterDispatchKey,
    gen_check_inplace_helper,
    gen_maybe_create_proxy_helper,
    gen_resize_out_helper,
)
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import Target

from opgen.backend import Backend
from opgen.emit.compat import field_values, generic, index_for, plain_signature, structured_signature
from opgen.emit.pieces import WRAPPED, Wrapper

if TYPE_CHECKING:
    from torchgen.model import BackendIndex, NativeFunction, SchemaKind

    from opgen.classify import Registration

_SELECT_ALL = SelectiveBuilder.get_nop_selector()


@dataclass(frozen=True)
class DeviceStructured(StructuredRegisterDispatchKey):  # type: ignore[misc]
    """Structured wrappers whose classes are printed as for the device-generic key."""

    def gen_class(self, f: NativeFunction, k: SchemaKind, **names: Any) -> str:
        values = field_values(self, StructuredRegisterDispatchKey)
        values["backend_index"] = generic(self.backend_index)
        return str(StructuredRegisterDispatchKey(**values).gen_class(f, k, **names))


def backend_index(registrations: Sequence[Registration]) -> BackendIndex:
    """The dispatch table of registrations for one key."""
    kernels: dict[Any, tuple[str, bool, str]] = {}
    for r in registrations:
        if r.group is not None:
            kernels[r.group.out.func.name] = (r.kernel, True, r.cpp_namespace)
        else:
            kernels[r.function.func.name] = (r.kernel, False, r.cpp_namespace)
    return index_for(registrations[0].dispatch_key, kernels)


def wrapper(registration: Registration, index: BackendIndex, backend: Backend) -> Wrapper:
    """Wrapper and registration of one overload; boxed fallbacks need no wrapper."""
    function, group = registration.function, registration.group
    op = function.func.name
    if registration.kernel == backend.fallback_kernel:
        boxed = f"torch::CppFunction::makeFromBoxedFunction<&{backend.fallback_function}>()"
        return Wrapper("", f'm.impl("{op}", {boxed});', None)
    settings: dict[str, Any] = {
        "backend_index": index,
        "target": Target.ANONYMOUS_DEFINITION,
        "selector": _SELECT_ALL,
        "rocm": False,
        "symint": True,
        "class_method_name": None,
        "skip_dispatcher_op_registration": False,
    }
    if group is None:
        plain = RegisterDispatchKey(**settings)
        texts, signature = list(plain(function)), plain_signature(plain, function)
    else:
        texts, signature = (
            [DeviceStructured(**settings, g=group).gen_one(function)],
            structured_signature(index, function),
        )
    definition = _one(texts)
    if f"\n{signature.definition} {{" not in f"\n{definition}":
        raise AssertionError(f"torchgen does not define the wrapper of {op} as `{signature.definition}`")
    return Wrapper(definition, f'm.impl("{op}", {WRAPPED}({signature.name}));', signature.pointer)


def _one(texts: list[str | None]) -> str:
    (text,) = texts
    assert text is not None
    return text.strip("\n")


def _create_out(backend: Backend) -> str:
    """How structured wrappers make outputs: torchgen's own asks at::empty, a second way through the dispatcher."""
    return f"""\
Tensor create_out(IntArrayRef sizes, IntArrayRef strides, const TensorOptions &options) {{
  if (strides.empty()) {{
    return {backend.empty_function}(sizes, options);
  }}
  return {backend.empty_strided_function}(sizes, strides, options);
}}"""


def registration_helpers(backend: Backend) -> list[str]:
    """The functions that the structured classes call, each as an inline function."""
    own = index_for(backend.dispatch_key, {})
    texts = [
        _create_out(backend),
        *gen_maybe_create_proxy_helper(generic(own)),
        *gen_resize_out_helper(own),
        *gen_check_inplace_helper(own),
    ]
    return [f"inline {text.strip()}" for text in texts]
