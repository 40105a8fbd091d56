"""The result of classification: one `Registration` for each overload and dispatch key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from opgen.backend import Backend
from opgen.diagnostics import Diagnostics
from opgen.spec import OpSpec
from opgen.upstream import IN_LIBTORCH_CPU

if TYPE_CHECKING:
    from torchgen.model import NativeFunction, NativeFunctionsGroup

    from opgen.kernels import Definition, KernelIndex
    from opgen.libtorch import Exports
    from opgen.upstream import Upstream


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
    """Folder under kernels/ (`mudnn`, `ported`, `cpu_fallback`), `upstream`, or None: no source defines the kernel."""
    source: str | None
    """The file that defines the kernel or registers its stub, relative to the project root."""
    source_line: int | None
    line: int
    """The entry's line in the operator list."""
    reason: str
    """Why it is of this kind, in words."""
    spec: OpSpec = field(repr=False)
    function: NativeFunction = field(repr=False)
    """Upstream's function with the entry's settings applied, ready for torchgen."""
    unwritten: bool = False
    """Whether the source is still the skeleton that `opgen new` wrote: it raises NotImplementedError."""
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


@dataclass(frozen=True)
class Context:
    """What classification looks at, and where it reports."""

    upstream: Upstream
    kernels: KernelIndex
    backend: Backend
    diagnostics: Diagnostics
    specs: Mapping[str, OpSpec]
    """The entries by operator."""
    exports: Exports | None = None
    """What libtorch exports; None where that cannot be seen."""

    def provides(self, kernel: str, keys: Iterable[str], *, impl: bool = False) -> bool:
        """Whether libtorch has upstream's kernel, which its dispatch tables list for `keys`.

        Where the library cannot be asked it is taken to have what every wheel is built with.
        """
        if self.exports is None:
            return not IN_LIBTORCH_CPU.isdisjoint(keys)
        if impl:
            return f"structured_{kernel}" in self.exports.impls
        return kernel in self.exports.functions


def in_namespace(definitions: Iterable[Definition], namespace: str) -> Definition | None:
    """The first definition in a C++ namespace."""
    return next((d for d in definitions if d.namespace == namespace), None)
