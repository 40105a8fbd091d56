"""Lays the emitted text out over files: one header for each operator name, a fixed number of registration sources and
of sources for the wrappers' types, the op table.

Nothing that changes with an unrelated entry (line numbers, counts, versions of this tool) may reach a header or a
source: a changed file is a recompiled file.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from opgen.backend import Backend
from opgen.emit.pieces import WRAPPED, Declarations, Printed, Statement, by_root, print_all
from opgen.tree import MARK

if TYPE_CHECKING:
    from opgen.classify import Registration

TABLE = "op_table.json"

_HELPER_INCLUDES = (
    "ATen/DeviceGuard.h",
    "ATen/TensorIterator.h",
    "ATen/core/Tensor.h",
    "ATen/core/op_registration/adaption.h",
    "ATen/native/Resize.h",
    "ATen/ops/empty.h",
    "ATen/ops/empty_strided.h",
    "c10/core/DeviceGuard.h",
    "c10/core/TensorImpl.h",
    "torch/library.h",
)

# What the types in a native signature need; the same set upstream's own per-operator headers include.
_SIGNATURE_INCLUDES = (
    "ATen/core/Reduction.h",
    "ATen/core/Tensor.h",
    "c10/core/QScheme.h",
    "c10/core/Scalar.h",
    "c10/core/Storage.h",
    "c10/core/TensorOptions.h",
    "optional",
    "tuple",
    "vector",
)


@dataclass(frozen=True)
class Block:
    """The registrations of one shard for one operator namespace."""

    op_namespace: str
    inner: str
    """C++ namespace that keeps wrappers of equally named operators apart; empty for aten."""
    definitions: tuple[str, ...]
    schemas: tuple[str, ...]
    registrations: tuple[tuple[str, tuple[str, ...]], ...]


def shard_of(root: str, backend: Backend) -> int:
    """The shard of all operators called `root`: a hash that is the same on every machine and in every run."""
    return _hash(root) % backend.shard_count


def shard_name(number: int, backend: Backend) -> str:
    return f"Register{backend.dispatch_key}_{number:02d}.cpp"


def signature_shard_of(pointer: str, backend: Backend) -> int:
    """The source that instantiates what wrappers of this type need; stable like `shard_of`."""
    return _hash(pointer) % backend.signature_shard_count


def signature_shard_name(number: int) -> str:
    return f"Signatures_{number:02d}.cpp"


def source_names(backend: Backend) -> tuple[str, ...]:
    """Every source file that is generated, whatever the operator list says."""
    return (
        *(shard_name(number, backend) for number in range(backend.shard_count)),
        *(signature_shard_name(number) for number in range(backend.signature_shard_count)),
    )


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


def render(
    registrations: Sequence[Registration], torch_version: str, backend: Backend, printed: Printed | None = None
) -> dict[str, str]:
    """Every generated file, path relative to the output folder -> text; `printed` is what `print_all` gives."""
    roots = by_root(registrations)
    pieces = printed if printed is not None else print_all(registrations, backend)
    declared = [root for root in roots if pieces.of(root).declared]
    files = {
        f"include/{backend.op_header(root)}": _native_header(root, pieces.of(root).declared, backend)
        for root in declared
    }
    files[f"include/{backend.umbrella_header}"] = _template("umbrella.h").render(
        banner=_banner(backend), includes=[backend.op_header(root) for root in declared]
    )
    files[f"include/{backend.helpers_header}"] = _helpers(pieces.helpers, backend)
    files[f"include/{backend.signatures_header}"] = _template("signatures.h").render(
        banner=_banner(backend),
        helpers_header=backend.helpers_header,
        namespace=backend.registration_namespace,
        wrapped=WRAPPED,
    )
    shards: dict[int, list[str]] = {number: [] for number in range(backend.shard_count)}
    for root in roots:
        shards[shard_of(root, backend)].append(root)
    pointers: dict[int, set[str]] = {number: set() for number in range(backend.signature_shard_count)}
    for number, members in shards.items():
        statements = [statement for root in members for statement in pieces.of(root).statements]
        files[shard_name(number, backend)] = _shard([r for root in members for r in roots[root]], statements, backend)
        for pointer in {s.wrapper.pointer for s in statements if s.wrapper.pointer is not None}:
            pointers[signature_shard_of(pointer, backend)].add(pointer)
    for number, found in pointers.items():
        files[signature_shard_name(number)] = _signatures(found, backend)
    files = {name: _tidy(text) for name, text in files.items()}
    files[TABLE] = op_table(registrations, torch_version)
    return files


def op_table(registrations: Iterable[Registration], torch_version: str) -> str:
    """What is registered, for the runtime and for coverage: overload -> one record for each dispatch key."""
    ops: dict[str, list[dict[str, object]]] = {}
    for r in sorted(registrations, key=lambda r: (r.op, r.dispatch_key)):
        ops.setdefault(r.op, []).append(record(r))
    return json.dumps({"torch": torch_version, "ops": ops}, indent=1) + "\n"


def record(registration: Registration) -> dict[str, object]:
    """One registration as reports show it."""
    return {
        "op": registration.op,
        "kind": registration.kind.value,
        "form": registration.form.value if registration.form is not None else None,
        "dispatch_key": registration.dispatch_key,
        "kernel": registration.kernel,
        "family": registration.family,
        "source": registration.source,
        "line": registration.line,
    }


def _native_header(root: str, found: Declarations, backend: Backend) -> str:
    includes = list(_SIGNATURE_INCLUDES)
    if found.classes:
        includes += ["ATen/TensorIterator.h", "ATen/TensorMeta.h"]
    if found.upstream_meta:
        includes.append(f"ATen/ops/{root}_meta.h")
    if found.own_bases:
        includes.append(backend.meta_bases_header)
    return _template("native_header.h").render(
        banner=_banner(backend),
        includes=sorted(includes),
        namespace=backend.namespace,
        classes=found.classes,
        functions=found.functions,
    )


def _helpers(functions: Iterable[str], backend: Backend) -> str:
    return _template("helpers.h").render(
        banner=_banner(backend),
        includes=(*_HELPER_INCLUDES, backend.empty_header),
        namespace=backend.registration_namespace,
        functions=functions,
        wrapped=WRAPPED,
        signature_sources="Signatures_*.cpp",
    )


def _signatures(pointers: Iterable[str], backend: Backend) -> str:
    return _template("signatures.cpp").render(
        banner=_banner(backend),
        signatures_header=backend.signatures_header,
        namespace=backend.registration_namespace,
        wrapped=WRAPPED,
        pointers=sorted(pointers),
    )


def _shard(members: Iterable[Registration], statements: Sequence[Statement], backend: Backend) -> str:
    includes = {backend.helpers_header}
    for r in members:
        if r.kernel == backend.fallback_kernel:
            includes.add(backend.fallback_header)
        elif r.declared_by_us:
            includes.add(backend.op_header(r.root))
        else:
            includes.add(f"ATen/ops/{r.root}_native.h")
    namespaces = sorted({s.op_namespace for s in statements}, key=lambda name: (name != "aten", name))
    return _template("shard.cpp").render(
        banner=_banner(backend),
        namespace=backend.registration_namespace,
        includes=sorted(includes) if statements else [],
        blocks=[_block(name, [s for s in statements if s.op_namespace == name], backend) for name in namespaces],
    )


def _block(op_namespace: str, statements: Sequence[Statement], backend: Backend) -> Block:
    keys = sorted({s.dispatch_key for s in statements}, key=lambda key: (key != backend.dispatch_key, key))
    by_key = {key: [s.wrapper for s in statements if s.dispatch_key == key] for key in keys}
    return Block(
        op_namespace=op_namespace,
        inner="" if op_namespace == "aten" else f"ops_{op_namespace}",
        definitions=tuple(w.definition for wrappers in by_key.values() for w in wrappers if w.definition),
        schemas=tuple(dict.fromkeys(s.schema for s in statements if s.schema is not None)),
        registrations=tuple((key, tuple(w.registration for w in wrappers)) for key, wrappers in by_key.items()),
    )


def _tidy(text: str) -> str:
    """Without trailing blanks and runs of empty lines, which torchgen's templates leave where they print nothing."""
    lines = (line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def _banner(backend: Backend) -> str:
    return f"{MARK} from {backend.yaml_name}. Edit that file, not this one."


@cache
def _template(name: str) -> jinja2.Template:
    return _environment().get_template(f"{name}.jinja")


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,  # the output is C++
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=False,
        lstrip_blocks=False,
    )
