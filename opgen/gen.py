"""`opgen gen` and `opgen check`: operator list in, registrations and headers out.

The modules that do the work import torchgen and jinja2. They are imported here only once it is clear that something
has changed, which makes the common case a matter of hashing.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opgen import cache
from opgen.backend import MUSA, Backend
from opgen.diagnostics import Diagnostic, Diagnostics, Location, OpgenError, as_record, from_record
from opgen.progress import busy
from opgen.project import Project
from opgen.tables import counted
from opgen.tree import Manifest, is_intact, read_manifest, recover, write_tree
from opgen.upstream import TorchInstall, find_torch

if TYPE_CHECKING:
    from opgen.classify import Registration
    from opgen.emit.pieces import Printed
    from opgen.kernels import KernelIndex
    from opgen.spec import OpSpec
    from opgen.upstream import Upstream

_SHARD_PREFIX = "Register"
_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Sources:
    """What generation reads."""

    yaml: Path
    kernels: Path
    """The folder with one subfolder for each family of kernels."""
    install: TorchInstall
    backend: Backend = MUSA

    @staticmethod
    def of(
        project: Project, yaml: Path | None = None, kernels: Path | None = None, torch: TorchInstall | None = None
    ) -> Sources:
        """What a command reads; everything that is not named is the project's own, or the installed PyTorch."""
        if kernels is not None and not kernels.is_dir():
            raise OpgenError(
                "no such folder with kernel sources",
                Location(str(kernels)),
                "name the folder that holds mudnn/, ported/ and cpu_fallback/ with --kernels FOLDER",
            )
        return Sources(yaml or _from_here(project.yaml), kernels or project.kernels, torch or find_torch())

    @property
    def meta_bases(self) -> Path:
        """The header whose classes `structured_inherits` may name; need not exist."""
        return self.kernels.parent / self.backend.meta_bases_header

    def digest(self) -> str:
        """Hash of everything the output depends on. Raises OpgenError when the operator list cannot be read."""
        digest = hashlib.sha256(f"{self.install.digest()}\0{self.install.library_stamp()}\0".encode())
        digest.update(_opgen_digest().encode())
        for label, root, path in (
            ("yaml", self.yaml.parent, self.yaml),
            *(("kernels", self.kernels, path) for path in _files(self.kernels)),
            *((("bases", self.kernels.parent, self.meta_bases),) if self.meta_bases.is_file() else ()),
        ):
            digest.update(f"{label}\0{path.relative_to(root).as_posix()}\0".encode())
            try:
                # A pipe or a device can be read but once, and that is for whoever parses it.
                content = _read(path) if path.is_file() else os.urandom(16)
            except OSError:
                content = b""  # whoever needs the file reports it better
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()


@dataclass(frozen=True)
class Analysis:
    """What an operator list amounts to."""

    entries: int
    registrations: tuple[Registration, ...]
    upstream: Upstream
    specs: tuple[OpSpec, ...]
    """All entries, those for other PyTorch releases too."""
    kernels: KernelIndex
    missing: tuple[Diagnostic, ...] = ()
    """What the sources lack, which only a draft may."""


@dataclass(frozen=True)
class Summary:
    """One run of `opgen gen`."""

    entries: int
    registrations: int
    shards_written: int
    shards_unchanged: int
    files_written: int
    seconds: float
    up_to_date: bool
    """Whether nothing had to be generated at all."""

    def __str__(self) -> str:
        state = "up to date" if self.up_to_date else f"{counted(self.files_written, 'file')} written"
        return (
            f"{counted(self.entries, 'entry')}, {counted(self.registrations, 'registration')}; "
            f"shards: {self.shards_written} written, {self.shards_unchanged} unchanged; {state} ({self.seconds:.2f} s)"
        )


def analyse(sources: Sources, diagnostics: Diagnostics, *, need_sources: bool = True, draft: bool = False) -> Analysis:
    """Read, classify and check. With `need_sources=False` kernels may be missing (as for `opgen list`), with `draft`
    they are warned about.

    Raises OpgenError when the operator list or PyTorch's catalogue cannot be read at all.
    """
    from opgen.spec import load_specs

    specs = load_specs(sources.yaml, diagnostics, sources.backend)
    from opgen.upstream import import_torchgen, load_upstream

    import_torchgen(sources.install)  # before the modules below import the installed one
    from opgen.checks import check_sources
    from opgen.classify import classify
    from opgen.kernels import scan_classes, scan_kernels
    from opgen.libtorch import load_exports
    from opgen.redundant import warn_redundant

    upstream = load_upstream(sources.install)
    kernels = scan_kernels(sources.kernels.parent, sources.kernels)
    exports = load_exports(sources.install)
    registrations = classify(specs, upstream, kernels, sources.backend, diagnostics, exports)
    missing = Diagnostics()
    if need_sources and specs:
        bases = scan_classes(sources.meta_bases)
        check_sources(registrations, kernels, sources.backend, missing, bases)
        for item in missing:
            (diagnostics.warning if draft else diagnostics.error)(item.location, item.message, item.hint)
        warn_redundant(specs, registrations, upstream, kernels, sources.backend, exports, diagnostics)
    return Analysis(len(specs), registrations, upstream, specs, kernels, tuple(missing))


def generate(
    sources: Sources, out: Path, diagnostics: Diagnostics, *, force: bool = False, draft: bool = False
) -> Summary | None:
    """Bring the generated files in `out` up to date; None, and nothing written, when there are errors.

    With `draft`, missing kernels are only warned about: their headers are what a new kernel's source includes.

    Raises OpgenError when an input cannot be read or `out` cannot be written.
    """
    start = time.perf_counter()
    recover(out)
    inputs = sources.digest()
    manifest = None if force else read_manifest(out)
    known = (inputs, _drafted(inputs)) if draft else (inputs,)
    if (
        manifest is not None
        and manifest.inputs in known
        and is_intact(out, manifest)
        and _repeat(manifest, sources, diagnostics)
    ):
        shards = sum(_is_shard(name) for name in manifest.files)
        return Summary(
            entries=manifest.summary.get("entries", 0),
            registrations=manifest.summary.get("registrations", 0),
            shards_written=0,
            shards_unchanged=shards,
            files_written=0,
            seconds=time.perf_counter() - start,
            up_to_date=True,
        )
    analysis = analyse(sources, diagnostics, draft=draft)
    if diagnostics.errors:
        return None
    from opgen.emit.files import render

    with busy("writing registrations"):
        pieces = printed(analysis, sources)
        files = render(analysis.registrations, analysis.upstream.torch_version, sources.backend, pieces)
    counts = {"entries": analysis.entries, "registrations": len(analysis.registrations)}
    warnings = [_remembered(item, sources) for item in diagnostics.warnings]
    written = write_tree(out, files, _drafted(inputs) if analysis.missing else inputs, counts, warnings)
    return Summary(
        **counts,
        shards_written=sum(map(_is_shard, written.written)),
        shards_unchanged=sum(map(_is_shard, written.unchanged)),
        files_written=len(written.written),
        seconds=time.perf_counter() - start,
        up_to_date=False,
    )


# More pieces than any one list has: going back and forth between lists should not print them again.
_KEPT_PIECES = 4096


def printed(analysis: Analysis, sources: Sources) -> Printed:
    """What torchgen prints, as far as the cache has it from there."""
    from opgen.emit.pieces import Printed, print_all

    name = f"printed-{sources.install.release}"
    key = f"{sys.version_info[0]}.{sys.version_info[1]}-{analysis.upstream.digest}-{_opgen_digest()}-{sources.backend}"
    found = cache.load(name, key)
    known = found if isinstance(found, Printed) else None
    result = print_all(analysis.registrations, sources.backend, known)
    if known is None or result.pieces.keys() - known.pieces.keys():
        kept = known.pieces if known is not None and len(known.pieces) < _KEPT_PIECES else {}
        cache.store(name, key, replace(result, pieces={**kept, **result.pieces}))
    return result


@functools.cache
def _opgen_digest() -> str:
    """Hash of this package."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in _files(package):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _drafted(inputs: str) -> str:
    """What a draft's manifest says, so that only another draft takes it for up to date."""
    return f"{inputs} draft"


# How a manifest names the operator list: the same list may be called by another path the next time.
_LIST = "<operator list>"


def _remembered(item: Diagnostic, sources: Sources) -> dict[str, object]:
    record = as_record(item)
    return {**record, "path": _LIST} if record["path"] == str(sources.yaml) else record


def _repeat(manifest: Manifest, sources: Sources, diagnostics: Diagnostics) -> bool:
    """Say again what was said about these inputs; False where the manifest does not have it."""
    try:
        items = [
            from_record({**record, "path": str(sources.yaml) if record["path"] == _LIST else record["path"]})
            for record in manifest.warnings
        ]
    except (KeyError, TypeError, ValueError):
        return False
    for item in items:
        diagnostics.add(item)
    return True


def _read(path: Path) -> bytes:
    """A file's bytes, up to a size far above that of anything opgen accepts: a huge file must not fill the memory."""
    with path.open("rb") as file:
        return file.read(_MAX_BYTES)


def _from_here(path: Path) -> Path:
    """A path as diagnostics should show it: relative where it lies below the working folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _is_shard(name: str) -> bool:
    return name.startswith(_SHARD_PREFIX)


def _files(root: Path) -> Iterator[Path]:
    """The text files below `root` in a stable order."""
    if not root.is_dir():
        return
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".pyc", ".pyo"):
            yield path


__all__ = ["Analysis", "OpgenError", "Sources", "Summary", "analyse", "generate", "printed"]
