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
from typing import TYPE_CHECKING

import jinja2

from opgen.backend import Backend
from opgen.emit import dest
from opgen.emit.declarations import Declarations, declarations

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
    pointers: frozenset[str]
    """The types of the wrappers."""


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


def render(registrations: Sequence[Registration], torch_version: str, backend: Backend) -> dict[str, str]:
    """Every generated file, path relative to the output folder -> text."""
    by_root: dict[str, list[Registration]] = {}
    for r in registrations:
        by_root.setdefault(r.root, []).append(r)
    declared = {root: declarations(members) for root, members in sorted(by_root.items())}
    files = {
        f"include/{backend.op_header(root)}": _native_header(root, found, backend)
        for root, found in declared.items()
        if found
    }
    files[f"include/{backend.umbrella_header}"] = _template("umbrella.h").render(
        banner=_banner(backend), includes=[backend.op_header(root) for root, found in declared.items() if found]
    )
    files[f"include/{backend.helpers_header}"] = _helpers(backend)
    files[f"include/{backend.signatures_header}"] = _template("signatures.h").render(
        banner=_banner(backend),
        helpers_header=backend.helpers_header,
        namespace=backend.registration_namespace,
        wrapped=dest.WRAPPED,
    )
    shards: dict[int, list[str]] = {number: [] for number in range(backend.shard_count)}
    for root in declared:
        shards[shard_of(root, backend)].append(root)
    pointers: dict[int, set[str]] = {number: set() for number in range(backend.signature_shard_count)}
    for number, roots in shards.items():
        members = [r for root in roots for r in by_root[root]]
        blocks = _blocks(members, backend)
        files[shard_name(number, backend)] = _shard(members, blocks, backend)
        for pointer in frozenset().union(*(block.pointers for block in blocks)):
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


def _helpers(backend: Backend) -> str:
    return _template("helpers.h").render(
        banner=_banner(backend),
        includes=_HELPER_INCLUDES,
        namespace=backend.registration_namespace,
        functions=dest.registration_helpers(backend),
        wrapped=dest.WRAPPED,
        signature_sources="Signatures_*.cpp",
    )


def _signatures(pointers: Iterable[str], backend: Backend) -> str:
    return _template("signatures.cpp").render(
        banner=_banner(backend),
        signatures_header=backend.signatures_header,
        namespace=backend.registration_namespace,
        wrapped=dest.WRAPPED,
        pointers=sorted(pointers),
    )


def _shard(members: Iterable[Registration], blocks: Sequence[Block], backend: Backend) -> str:
    includes = {backend.helpers_header}
    for r in members:
        if r.kernel == backend.fallback_kernel:
            includes.add(backend.fallback_header)
        elif r.declared_by_us:
            includes.add(backend.op_header(r.root))
        else:
            includes.add(f"ATen/ops/{r.root}_native.h")
    return _template("shard.cpp").render(
        banner=_banner(backend),
        namespace=backend.registration_namespace,
        includes=sorted(includes) if blocks else [],
        blocks=blocks,
    )


def _blocks(members: Iterable[Registration], backend: Backend) -> tuple[Block, ...]:
    """One block for each operator namespace, aten first."""
    by_namespace: dict[str, list[Registration]] = {}
    for r in sorted(members, key=lambda r: (r.root, r.op, r.dispatch_key)):
        by_namespace.setdefault(r.function.namespace, []).append(r)
    names = sorted(by_namespace, key=lambda name: (name != "aten", name))
    return tuple(_block(by_namespace[name], backend) for name in names)


def _block(members: Sequence[Registration], backend: Backend) -> Block:
    namespace = members[0].function.namespace
    definitions: list[str] = []
    pointers: set[str] = set()
    by_key: dict[str, list[str]] = {}
    for key in sorted({r.dispatch_key for r in members}, key=lambda key: (key != backend.dispatch_key, key)):
        of_key = [r for r in members if r.dispatch_key == key]
        index = dest.backend_index(of_key)
        for r in of_key:
            wrapper = dest.wrapper(r, index, backend)
            if wrapper.definition:
                definitions.append(wrapper.definition)
            if wrapper.pointer is not None:
                pointers.add(wrapper.pointer)
            by_key.setdefault(key, []).append(wrapper.registration)
    schemas = dict.fromkeys(_schema_definition(r) for r in members if namespace != "aten")
    return Block(
        op_namespace=namespace,
        inner="" if namespace == "aten" else f"ops_{namespace}",
        definitions=tuple(definitions),
        schemas=tuple(schemas),
        registrations=tuple((key, tuple(texts)) for key, texts in by_key.items()),
        pointers=frozenset(pointers),
    )


def _schema_definition(registration: Registration) -> str:
    schema = json.dumps(str(registration.function.func))
    tags = sorted(tag for tag in registration.function.tags if tag != "generated")
    if not tags:
        return f"m.def({schema});"
    return f"m.def({schema}, {{{', '.join(f'at::Tag::{tag}' for tag in tags)}}});"


def _tidy(text: str) -> str:
    """Without trailing blanks and runs of empty lines, which torchgen's templates leave where they print nothing."""
    lines = (line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def _banner(backend: Backend) -> str:
    return f"Generated by opgen from {backend.yaml_name}. Edit that file, not this one."


@cache
def _template(name: str) -> jinja2.Template:
    return _environment().get_template(f"{name}.jinja")


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("opgen.emit"),
        autoescape=False,  # the output is C++
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=False,
        lstrip_blocks=False,
    )
