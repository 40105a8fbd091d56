"""Which DispatchStubs a wheel's headers declare: name, header, and the function type a kernel must have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opgen.cpp import canonical_parameter, canonical_type
from opgen.stub_signatures import StubSignature, parse_stub_signatures

__all__ = ["Stub", "declared_stubs", "stub_headers"]


@dataclass(frozen=True)
class Stub:
    """One `DECLARE_DISPATCH`."""

    header: str
    """Include path: `ATen/native/UnaryOps.h`."""
    type: str
    """Function type in canonical spelling, without parameter names: `void (TensorIteratorBase&, const Scalar&)`."""


def stub_headers(include: Path) -> dict[str, str]:
    """The headers below `include` that declare stubs, by include path."""
    found = {}
    for path in sorted([*(include / "ATen").glob("*.h"), *(include / "ATen" / "native").rglob("*.h")]):
        data = path.read_bytes()
        if b"DECLARE_DISPATCH" in data:
            found[path.relative_to(include).as_posix()] = data.decode("utf-8", "replace")
    return found


def declared_stubs(headers: Mapping[str, str]) -> dict[str, Stub]:
    """The stubs that these headers (include path -> text) declare."""
    return {
        name: Stub(header, _function_type(signature))
        for header, text in headers.items()
        for name, signature in parse_stub_signatures(text).items()
    }


def _function_type(signature: StubSignature) -> str:
    parameters = ", ".join(map(canonical_parameter, signature.parameters))
    return f"{canonical_type(signature.returns)} ({parameters})"
