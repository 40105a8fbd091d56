"""All calls into torchgen that build or print its objects, so that a PyTorch that moves them is met in one place.

torchgen reports faults by assertion. Here they become `SchemaError`s, which callers turn into diagnostics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from torchgen.api import meta, structured
from torchgen.api.types import NativeSignature
from torchgen.context import native_function_manager
from torchgen.model import (
    BackendIndex,
    BackendMetadata,
    BaseTy,
    DeviceCheckType,
    DispatchKey,
    Location,
    NativeFunction,
    NativeFunctionsGroup,
    Precompute,
)

if TYPE_CHECKING:
    from torchgen.api.types import DispatcherSignature
    from torchgen.dest import RegisterDispatchKey

    from opgen.spec import OpSpec

GENERIC_KEY = DispatchKey.CompositeExplicitAutogradNonFunctional
"""The one key for which torchgen prints structured classes that guard any device and allocate with at::empty."""


_RANDOM = "nondeterministic_seeded"


class SchemaError(ValueError):
    """Text that torchgen does not accept."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def _explain(error: Exception) -> str:
    """torchgen's message in one line; its assertions often have none."""
    return " ".join(str(error).split()) or type(error).__name__


def base_types() -> tuple[str, ...]:
    """The words for types without `?` and `[]` that this torchgen knows."""
    return tuple(t.name for t in BaseTy)


def parse_precomputed(lines: Sequence[str], group: NativeFunctionsGroup) -> Precompute:
    """torchgen's form of `precomputed`. Raises SchemaError for types that it does not know or that cannot be kept."""
    hint = "write `- diagonal -> int var`; elements that replace nothing go on the last line: `- int extra`"
    normalized = []
    for line in lines:
        name, arrow, elements = line.partition("->")
        spaced = ", ".join(" ".join(part.split()) for part in (elements if arrow else name).split(","))
        normalized.append(f"{name.strip()} -> {spaced}" if arrow else spaced)
    try:
        parsed = Precompute.parse(normalized)
    except Exception as error:  # as above
        raise SchemaError(f"cannot read 'precomputed': {_explain(error)}", hint) from None
    for element in (a for added in (*parsed.replace.values(), parsed.add) for a in added):
        # The element becomes a member of a struct that is made before its values are known.
        if structured.argument_type(element, binds=element.name).cpp_type().endswith("&"):
            message = f"'precomputed' cannot keep a {element.type}: implementations take it by reference"
            raise SchemaError(
                message, "take a type that is passed by value: int, float, bool, DimVector, ScalarType ..."
            )
    return parsed


@dataclass(frozen=True)
class GroupMember(NativeFunction):  # type: ignore[misc]
    """A function of a structured group that has a kernel of its own.

    To the dispatcher it stays one of the group: its tensor lists are `at::ITensorListRef`, as upstream's other kernels
    for it have them, and another type would end the process at registration.
    """

    @property
    def part_of_structured_group(self) -> bool:
        return True


def unstructured(function: NativeFunction, *, device_check: str, device_guard: bool) -> NativeFunction:
    """`function` with a kernel of its own, outside any structured group."""
    alone = replace(
        function,
        structured=False,
        structured_delegate=None,
        structured_inherits=None,
        precomputed=None,
        ufunc_inner_loop={},
        manual_kernel_registration=False,
        device_check=DeviceCheckType[device_check],
        device_guard=device_guard,
    )
    return GroupMember(**field_values(alone, NativeFunction)) if function.part_of_structured_group else alone


def with_device_check(function: NativeFunction, device_check: str) -> NativeFunction:
    return replace(function, device_check=DeviceCheckType[device_check])


def with_meta(out: NativeFunction, inherits: str | None, precomputed: object) -> NativeFunction:
    """The out overload of a structured group with another base class and other precomputed elements."""
    return replace(out, structured_inherits=inherits, precomputed=precomputed)


def with_out(group: NativeFunctionsGroup, out: NativeFunction) -> NativeFunctionsGroup:
    """The group with another out overload."""
    return replace(group, out=out)


def new_function(spec: OpSpec, valid_tags: Iterable[str]) -> NativeFunction:
    """The function that a schema of our own defines. Raises SchemaError."""
    known = set(valid_tags)
    tags = [tag for tag in spec.tags if tag in known]
    try:
        return _new_function(spec, tags, known)
    except Exception as error:  # as above
        fault = SchemaError(
            _explain(error), "the format is `namespace::name.overload(Tensor self, int dim=0) -> Tensor`"
        )
    # Whether an operator is random is torchgen's judgement, and not every release says so when the tag is missing.
    try:
        _new_function(spec, [*tags, _RANDOM], known)
    except Exception:
        raise fault from None
    raise SchemaError(f"'{spec.name}' is random and lacks the tag {_RANDOM}", f"add `tags: {_RANDOM}`")


def _new_function(spec: OpSpec, tags: list[str], known: set[str]) -> NativeFunction:
    item: dict[str, object] = {
        "func": f"{spec.namespace}::{spec.schema}",
        # torchgen wants a dispatch table with a key it knows; which one does not reach the function.
        "dispatch": {"CPU": "kernel"},
        "tags": tags,
    }
    function, _ = NativeFunction.from_yaml(item, Location(spec.location.path, spec.location.line), known)
    return function


def index_for(key: str, kernels: dict[Any, tuple[str, bool, str]]) -> BackendIndex:
    """A dispatch table of ours: OperatorName -> (kernel, structured, C++ namespace)."""
    return BackendIndex(
        dispatch_key=DispatchKey.parse(key),
        use_out_as_primary=True,
        external=False,
        device_guard=True,
        index={name: BackendMetadata(*metadata) for name, metadata in kernels.items()},
    )


def generic(index: BackendIndex) -> BackendIndex:
    """`index` as if it belonged to the device-generic key."""
    return replace(index, dispatch_key=GENERIC_KEY)


def field_values(instance: Any, of: type) -> dict[str, Any]:
    """The fields that `instance` shares with dataclass `of`, to build one from the other whatever a release adds."""
    return {f.name: getattr(instance, f.name) for f in fields(of)}


@dataclass(frozen=True)
class WrapperSignature:
    """A wrapper function as torchgen defines it."""

    name: str
    pointer: str
    """The type of a pointer to it, `at::Tensor (*)(const at::Tensor &, int64_t)`."""
    definition: str
    """`at::Tensor wrapper_PrivateUse1_tril(const at::Tensor & self, int64_t diagonal)`."""


def plain_signature(generator: RegisterDispatchKey, function: NativeFunction) -> WrapperSignature:
    """The wrapper that `generator` prints for an unstructured function."""
    with native_function_manager(function):
        return _wrapper_signature(generator.wrapper_kernel_sig(function))


def structured_signature(index: BackendIndex, function: NativeFunction) -> WrapperSignature:
    """The wrapper that torchgen prints for a member of a structured group."""
    with native_function_manager(function):
        kernel = index.get_kernel(function)
        symint = kernel is not None and kernel.supports_symint()
        return _wrapper_signature(NativeSignature(function.func, symint, f"wrapper_{index.dispatch_key}_"))


def _wrapper_signature(signature: DispatcherSignature | NativeSignature) -> WrapperSignature:
    returns = signature.returns_type().cpp_type()
    types = ", ".join(a.type for a in signature.arguments())
    return WrapperSignature(signature.name(), f"{returns} (*)({types})", signature.defn())


def native_declaration(function: NativeFunction, kernel: str) -> str:
    """`at::Tensor & K(const at::Tensor & self, ...)`: what a plain kernel looks like, without default arguments."""
    with native_function_manager(function):
        symint = "_symint" in kernel and function.func.has_symint()
        return str(NativeSignature(function.func, symint=symint).defn(name=kernel))


def impl_arguments(group: NativeFunctionsGroup) -> str:
    """Parameters of a structured implementation."""
    with native_function_manager(group.out):
        return ", ".join(a.defn() for a in structured.impl_arguments(group))


def meta_arguments(group: NativeFunctionsGroup) -> str:
    """Parameters of a meta function."""
    with native_function_manager(group.out):
        return ", ".join(a.defn() for a in structured.meta_arguments(group))


def meta_name(group: NativeFunctionsGroup) -> str:
    """`add_Tensor`: the meta class is `structured_add_Tensor`, defined by TORCH_META_FUNC2(add, Tensor)."""
    return str(meta.name(group))


def meta_definition(group: NativeFunctionsGroup, *, precompute: bool | None = None) -> str:
    """How the definition of a meta function begins, as a kernel author writes it; `precompute` says that it returns
    precomputed elements, by default whether the group has any."""
    name, _, overload = str(group.functional.func.name).partition(".")
    precompute = bool(group.out.precomputed) if precompute is None else precompute
    macro = "TORCH_PRECOMPUTE_META_FUNC" if precompute else "TORCH_META_FUNC"
    head = f"{macro}2({name}, {overload})" if overload else f"{macro}({name})"
    return f"{head}({meta_arguments(group)})"
