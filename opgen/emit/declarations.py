"""C++ declarations of our own kernels, one text for each class or function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchgen.gen import compute_meta_function_declaration

from opgen.emit import compat
from opgen.emit.pieces import Declarations

if TYPE_CHECKING:
    from torchgen.model import NativeFunctionsGroup

    from opgen.classify import Registration


def declarations(registrations: Iterable[Registration]) -> Declarations:
    """Declarations of the kernels among `registrations` that are ours, without repetition, in a stable order."""
    classes: dict[str, None] = {}
    functions: dict[str, None] = {}
    upstream_meta = own_bases = False
    for r in sorted(registrations, key=lambda r: (r.op, r.dispatch_key)):
        if not r.declared_by_us:
            continue
        if r.group is None:
            functions[f"TORCH_API {compat.native_declaration(r.function, r.kernel)};"] = None
            continue
        if r.own_meta:
            classes[meta_class(r.group)] = None
            own_bases |= r.group.out.structured_inherits is not None
        else:
            upstream_meta = True
        classes[impl_class(r)] = None
    return Declarations(tuple(classes), tuple(functions), upstream_meta, own_bases)


def meta_class(group: NativeFunctionsGroup) -> str:
    """`struct structured_<op> : public Base { ... meta(...); };`"""
    text = compute_meta_function_declaration(group)
    assert text is not None
    return str(text).strip()


def impl_class(registration: Registration) -> str:
    """`struct structured_<Kernel> : public <meta class> { void impl(...); };`"""
    assert registration.group is not None
    namespace = registration.cpp_namespace if registration.own_meta else "at::meta"
    return (
        f"struct TORCH_API structured_{registration.kernel} "
        f": public {namespace}::structured_{compat.meta_name(registration.group)} {{\n"
        f"  void impl({compat.impl_arguments(registration.group)});\n"
        f"}};"
    )
