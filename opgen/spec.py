"""musa_functions.yaml -> `OpSpec`s, each knowing its file, line and column.

This module and the two below it (`opgen.entry`, `opgen.yaml_nodes`) check what can be checked without PyTorch: YAML
syntax, keys, types of values. Whether an operator exists and what an entry means for it is `opgen.classify`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from opgen.backend import MUSA, Backend
from opgen.diagnostics import Diagnostics, Location, OpgenError
from opgen.entry import EntryReader, Inherit, OpSpec
from opgen.yaml_nodes import MAX_BYTES, compose, kind, location, report_empty

__all__ = ["Inherit", "OpSpec", "load_specs", "parse_specs", "select_specs"]


MAX_ENTRIES = 10_000


def load_specs(path: Path | str, diagnostics: Diagnostics, backend: Backend = MUSA) -> tuple[OpSpec, ...]:
    """All entries of the operator list at `path`; faults go to `diagnostics`.

    Raises OpgenError when the file cannot be read at all.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)  # so that /dev/zero or a core file does not fill the memory
    except FileNotFoundError:
        raise OpgenError("no such operator list", Location(str(path)), "name another one with --yaml FILE") from None
    except OSError as error:
        raise OpgenError(
            f"cannot read the operator list: {error.strerror}",
            Location(str(path)),
            "name a file that can be read with --yaml FILE",
        ) from None
    return parse_specs(raw, str(path), diagnostics, backend)


def parse_specs(raw: bytes, path: str, diagnostics: Diagnostics, backend: Backend = MUSA) -> tuple[OpSpec, ...]:
    """`load_specs` on the bytes of a file; `path` is only what diagnostics call it."""
    composed = compose(raw, path, diagnostics)
    if composed is None:
        return ()
    root, text = composed
    if not isinstance(root, yaml.SequenceNode):
        diagnostics.error(
            location(root, path),
            f"the operator list must be a YAML list, not {kind(root)}",
            "write one entry per operator: `- func: tril.out`",
        )
        return ()
    if not root.value:
        report_empty(location(root, path), diagnostics)
    if len(root.value) > MAX_ENTRIES:
        diagnostics.error(
            location(root.value[MAX_ENTRIES], path),
            f"more than {MAX_ENTRIES} entries",
            "PyTorch has some 3,000 operators, and an operator list one entry for each, at most",
        )
        return ()
    specs = (EntryReader(node, text, path, diagnostics, backend).read() for node in root.value)
    return tuple(spec for spec in specs if spec is not None)


def select_specs(specs: Iterable[OpSpec], torch_version: str, diagnostics: Diagnostics) -> tuple[OpSpec, ...]:
    """The entries that exist in `torch_version`; two of them for one operator are an error."""
    from packaging.version import Version

    # A nightly of 2.14 has 2.14's operators, so its pre-release mark must not exclude it from ">=2.14".
    release = Version(Version(torch_version).base_version)
    first: dict[str, OpSpec] = {}
    for spec in specs:
        if spec.torch is not None and not spec.torch.contains(release, prereleases=True):
            continue
        if spec.func in first:
            other = first[spec.func]
            hint = f"the first one is at {other.location}; merge the two"
            if spec.schema is not None and other.schema is not None and spec.schema != other.schema:
                hint += f", or name an overload: {spec.func.partition('.')[0]}.other(...)"
            diagnostics.error(spec.location, f"duplicate entry for '{spec.func}'", hint)
            continue
        first[spec.func] = spec
    return tuple(first.values())
