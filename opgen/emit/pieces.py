"""What is printed for the operators of one root, kept between runs.

Printing is the larger part of a run, and after an edit nearly everything is printed as before. A piece depends on the
installed PyTorch, on opgen itself and on what its key says, on nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opgen.backend import Backend

if TYPE_CHECKING:
    from opgen.registration import Registration

WRAPPED = "wrapped"
"""The function template that makes a torch::CppFunction of a wrapper. The registration sources only declare it: it is
instantiated once for each function type, in sources of its own."""


@dataclass(frozen=True)
class Wrapper:
    """The C++ of one registration."""

    definition: str
    """Wrapper function, for structured kinds preceded by its class."""
    registration: str
    """The statement inside TORCH_LIBRARY_IMPL."""
    pointer: str | None
    """The type of a pointer to the wrapper, `at::Tensor (*)(const at::Tensor &)`; None where there is no wrapper."""


@dataclass(frozen=True)
class Declarations:
    """What a per-operator header declares in the backend's namespace."""

    classes: tuple[str, ...]
    """Meta and implementation classes of structured groups."""
    functions: tuple[str, ...]
    upstream_meta: bool
    """Whether a class derives from upstream's meta class."""
    own_bases: bool
    """Whether a meta class names a base of its own."""

    def __bool__(self) -> bool:
        return bool(self.classes or self.functions)


@dataclass(frozen=True)
class Statement:
    """One registration, with what decides where it stands."""

    op_namespace: str
    dispatch_key: str
    wrapper: Wrapper
    schema: str | None
    """The statement that defines a schema of our own."""


@dataclass(frozen=True)
class Piece:
    """Everything that is printed for the operators of one root."""

    declared: Declarations
    statements: tuple[Statement, ...]
    """In the order of overloads, then of dispatch keys."""


@dataclass(frozen=True)
class Printed:
    """All that torchgen has printed in a run."""

    helpers: tuple[str, ...]
    """The functions that the structured classes call."""
    pieces: Mapping[str, Piece]
    """By `piece_key`."""
    keys: Mapping[str, str]
    """Root -> key of its piece."""

    def of(self, root: str) -> Piece:
        return self.pieces[self.keys[root]]


def by_root(registrations: Iterable[Registration]) -> dict[str, tuple[Registration, ...]]:
    """Registrations by root, both in a stable order."""
    roots: dict[str, list[Registration]] = {}
    for r in sorted(registrations, key=lambda r: (r.root, r.op, r.dispatch_key)):
        roots.setdefault(r.root, []).append(r)
    return {root: tuple(members) for root, members in roots.items()}


def piece_key(members: Sequence[Registration]) -> str:
    """A hash of all that printing these registrations looks at, beside the installed PyTorch and opgen."""
    facts: list[object] = []
    for r in members:
        f = r.function
        facts += [r.op, r.kind.value, r.form and r.form.value, r.dispatch_key, r.kernel, r.cpp_namespace]
        facts += [str(f.func), f.device_check.name, f.device_guard, f.structured, sorted(f.tags)]
        if r.group is not None:
            out = r.group.out
            facts += [out.structured_inherits, repr(out.precomputed)]
            facts += [(str(f.func.name), f.device_check.name, f.device_guard) for f in r.group.functions()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def print_all(registrations: Iterable[Registration], backend: Backend, known: Printed | None = None) -> Printed:
    """What is printed for all registrations; what is `known` from an earlier run is taken from there."""
    roots = by_root(registrations)
    keys = {root: piece_key(members) for root, members in roots.items()}
    old = known.pieces if known is not None else {}
    pieces = {key: old[key] if key in old else _print(roots[root], backend) for root, key in keys.items()}
    if known is not None:
        return Printed(known.helpers, pieces, keys)
    from opgen.emit.dest import registration_helpers

    return Printed(tuple(registration_helpers(backend)), pieces, keys)


def _print(members: Sequence[Registration], backend: Backend) -> Piece:
    # Imported only here: what they need of torchgen takes a good part of the time that the known pieces save.
    from opgen.emit.declarations import declarations
    from opgen.emit.dest import backend_index, wrapper

    indices = {
        key: backend_index([r for r in members if r.dispatch_key == key]) for key in {r.dispatch_key for r in members}
    }
    return Piece(
        declarations(members),
        tuple(
            Statement(
                r.function.namespace,
                r.dispatch_key,
                wrapper(r, indices[r.dispatch_key], backend),
                _schema_definition(r) if r.function.namespace != "aten" else None,
            )
            for r in members
        ),
    )


def _schema_definition(registration: Registration) -> str:
    schema = json.dumps(str(registration.function.func))
    tags = sorted(tag for tag in registration.function.tags if tag != "generated")
    if not tags:
        return f"m.def({schema});"
    return f"m.def({schema}, {{{', '.join(f'at::Tag::{tag}' for tag in tags)}}});"
