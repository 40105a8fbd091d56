"""Names by the project's convention: `MusaTril` for a structured implementation, `NonzeroOut` for a plain function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchgen.model import NativeFunction, NativeFunctionsGroup

__all__ = ["camel_case", "file_stem", "function_name", "impl_name"]


def camel_case(text: str) -> str:
    """`max_pool2d_with_indices` -> `MaxPool2dWithIndices`; what is capitalised already stays so (`TensorList`)."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", text) if word)


def impl_name(group: NativeFunctionsGroup, prefix: str) -> str:
    """The implementation of a structured group, named after its functional overload: `MusaLerpScalar`."""
    name = group.functional.func.name
    return prefix + camel_case(str(name.name.base)) + camel_case(str(name.overload_name))


def function_name(function: NativeFunction, stem: str | None = None) -> str:
    """A plain kernel: `Nonzero`, `NonzeroOut`, `SubTensor_` for an in-place overload. With a `stem`, the functional
    overload is called so: `Stem`, `StemOut`, `Stem_`."""
    name = function.func.name
    if stem is not None:
        kind = str(function.func.kind().name)
        return stem + {"functional": "", "inplace": "_"}.get(kind, kind.title())
    return camel_case(str(name.name.base)) + camel_case(str(name.overload_name)) + ("_" if name.name.inplace else "")


def file_stem(root: str) -> str:
    """The source file of the operators called `root`: `MaxPool2dWithIndices`."""
    return camel_case(root)
