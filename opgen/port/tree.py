"""The port of a whole folder."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from opgen.diagnostics import Diagnostic, Diagnostics, Location, OpgenError, Severity
from opgen.port.files import FileReport, State, has_errors, port, ported_path, read_source, write_atomically
from opgen.port.lexing import WORD, as_bytes
from opgen.port.manifest import NAME, Manifest, digest, read_manifest
from opgen.port.mapping import Mapping, load_mapping
from opgen.port.ours import key_of, path_of, put_ours, save
from opgen.port.rewrite import Local, Options, Ported
from opgen.port.structure import Structure
from opgen.port.walk import Found, left_out, real, walk

OnFile = Callable[[int, int, str], None]
"""Called as (done, total, name of the file)."""


@dataclass(frozen=True)
class TreeReport:
    """All files of a folder, in the order of their names, and what concerns none of them alone."""

    files: tuple[FileReport, ...]
    notes: tuple[Diagnostic, ...] = ()
    stale: tuple[Path, ...] = ()
    """Ports of earlier runs whose source is gone; removed where that was asked for."""

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        return (*self.notes, *(problem for file in self.files for problem in file.problems))

    @property
    def written(self) -> tuple[Path, ...]:
        return tuple(file.target for file in self.files if file.written)


@dataclass(frozen=True)
class Tree:
    """What to port and how."""

    source: Path
    out: Path
    ignore: tuple[Path, ...] = ()
    mapping: Mapping | None = None
    options: Options | None = None
    only: tuple[str, ...] = ()
    """Folders and files below `source` to port, with `/`; all where none is named. Includes and places stay those of
    `source`."""
    wanted: Callable[[str], bool] = lambda relative: True
    """Which of the files found are meant, by their places with `/`."""
    prepare: Callable[[str, str], str] = lambda relative, text: text
    """A source's text as it is to be ported, from its place and its text. Lines stay where they are."""
    everything: bool = False
    """Copy files that are no sources, hand-written .mu among them, so that `out` can stand for `source`."""
    partial: bool = False
    """Write a file that has errors, too, with what cannot be ported left as it is."""
    clean: bool = False
    """Remove ports of earlier runs whose source is gone."""
    overwrite: bool = False
    """Write over files that no earlier port wrote, too."""
    write: bool = True
    """False: only say what would happen."""


def port_tree(
    source: Path,
    out: Path,
    *,
    ignore: Iterable[Path] = (),
    mapping: Mapping | None = None,
    options: Options | None = None,
) -> TreeReport:
    """Ports every source below `source` into the same places below `out`.

    Folders in `ignore` are left out whole, and so is `out` where it lies inside `source`. A file with problems does not
    stop the others. `Tree` has the rest of the choices.
    """
    return run(Tree(source, out, tuple(ignore), mapping, options))


def run(tree: Tree, on_file: OnFile = lambda done, total, name: None) -> TreeReport:
    """Raises OpgenError where nothing can be done at all; every other problem is in the report."""
    _refuse_in_place(tree.source, tree.out)
    notes = Diagnostics()
    skip = left_out(tree.source, tree.ignore, tree.out, notes)
    roots = [tree.source / folder for folder in tree.only] or [tree.source]
    everything = (file for root in roots for file in walk(root, skip, notes, base=tree.source))
    found = [file for file in everything if tree.wanted(file.relative.as_posix())]
    manifest = read_manifest(tree.out, notes)
    if tree.write:
        _make(tree.out)
    try:
        reports = _Run(tree, found, manifest, on_file).reports()
        stale = _stale(tree, reports, manifest, notes)
    finally:
        # What an interrupted run has written is recorded, too: it would count as somebody's own else.
        problem = save(tree.out, manifest) if tree.write else None
        if problem is not None:
            notes.add(problem)
    return TreeReport(tuple(reports), tuple(notes), stale)


def run_file(tree: Tree, target: Path) -> TreeReport:
    """The port of one file (`tree.source`) to `target`; the record is that of the target's folder."""
    mapping = tree.mapping if tree.mapping is not None else load_mapping()
    text, problem = read_source(tree.source)
    if problem is not None:
        return TreeReport((FileReport(tree.source, target, State.FAILED, (problem,)),))
    ported = port(tree.source, text, mapping, tree.options)
    report = FileReport(
        tree.source, target, State.FAILED, ported.problems, ported.changes, ported.unknown, text, ported.text
    )
    if has_errors(ported.problems) and not tree.partial:
        return TreeReport((report,))
    notes = Diagnostics()
    manifest = read_manifest(target.parent, notes)
    data = ported.text.encode("utf-8")
    state, problem = put_ours(target, data, target.parent, manifest, write=tree.write, overwrite=tree.overwrite)
    problems = report.problems if problem is None else (*report.problems, problem)
    unsaved = save(target.parent, manifest) if tree.write else None
    if unsaved is not None:
        notes.add(unsaved)
    return TreeReport((replace(report, state=state, problems=problems),), tuple(notes))


class _Run:
    """One port of one tree."""

    def __init__(self, tree: Tree, found: list[Found], manifest: Manifest, on_file: OnFile) -> None:
        self.tree, self.found, self.manifest, self.on_file = tree, found, manifest, on_file
        self.mapping = tree.mapping if tree.mapping is not None else load_mapping()
        self.by_relative = {file.relative.as_posix(): file for file in found}
        self.by_hand = {self._target(file): file for file in found if file.is_hand_written}
        """Hand-written files by where they go: there no port is written."""
        self.ports = {self._target(file) for file in found if file.is_source}
        self.by_name: dict[str, list[str]] = {}
        for relative in self.by_relative:
            self.by_name.setdefault(posixpath.basename(relative), []).append(relative)

    def reports(self) -> list[FileReport]:
        texts: dict[Found, str] = {}
        ported: dict[Found, Ported] = {}
        reports: dict[Found, FileReport] = {}
        sources = [file for file in self.found if file.is_source]
        for done, file in enumerate(sources, start=1):
            self.on_file(done, len(sources), file.relative.as_posix())
            text, problem = read_source(file.path)
            if problem is not None:
                reports[file] = FileReport(file.path, self._target(file), State.FAILED, (problem,))
                continue
            texts[file] = text = self.tree.prepare(file.relative.as_posix(), text)
            ported[file] = port(file.path, text, self.mapping, self.tree.options, local=self._local(file))
        self._know_own_names(texts, ported)
        targets: dict[Path, Found] = {}
        for file in self.found:
            other = targets.setdefault(self._target(file), file)
            if file in ported and other is not file and not other.is_hand_written:
                reports[file] = self._collision(file, other)
            elif file in ported:
                reports[file] = self._finish(file, texts[file], ported[file])
            elif file.is_hand_written or (self.tree.everything and not file.is_source):
                copied = self._copy(file)
                if copied is not None:
                    reports[file] = copied
        return [reports[file] for file in self.found if file in reports]

    def _know_own_names(self, texts: dict[Found, str], ported: dict[Found, Ported]) -> None:
        """A name that another file of the tree defines is no unknown one: ports files with such names again."""
        suspects = {name for result in ported.values() for name in result.unknown}
        if not suspects:
            return
        own: set[str] = set()
        for text in texts.values():
            in_bytes = as_bytes(text)
            own |= Structure(in_bytes).own(suspects.intersection(WORD.findall(in_bytes)))
        for file, result in ported.items():
            if own.intersection(result.unknown):
                names = frozenset(own)
                ported[file] = port(
                    file.path, texts[file], self.mapping, self.tree.options, own=names, local=self._local(file)
                )

    def _target(self, file: Found) -> Path:
        if not file.is_source:
            return self.tree.out / file.relative
        return self.tree.out / ported_path(file.relative, self.mapping)

    def _local(self, file: Found) -> Local:
        """Includes of this file that lead to files of the tree, beside it or below some folder, or to one beside it
        that is left out and so keeps its name."""

        def find(path: str) -> str | None:
            beside = posixpath.normpath(posixpath.join(file.relative.parent.as_posix(), path))
            for relative in (beside, *self.by_name.get(posixpath.basename(path), ())):
                if relative in self.by_relative and (relative == beside or f"/{relative}".endswith(f"/{path}")):
                    return self._renamed(path, relative)
            if not _is_file(file.path.parent / path):
                return None
            back = self._from_outside(file, path) if beside.startswith("../") else None
            return path if back is None else back

        return find

    def _from_outside(self, file: Found, path: str) -> str | None:
        """The include of a file of the tree by a way that leads out of it, `../csrc/x.h`: the port may be elsewhere."""
        place = real(file.path.parent / path)
        if not place.is_relative_to(real(self.tree.source)):
            return None
        there = self.by_relative.get(place.relative_to(real(self.tree.source)).as_posix())
        return None if there is None else os.path.relpath(self._target(there), self._target(file).parent)

    def _renamed(self, path: str, relative: str) -> str:
        """An include path after the file that it leads to (`relative`, below the tree) has got its new name."""
        new = self._target(self.by_relative[relative]).relative_to(self.tree.out).as_posix()
        old, ported, written = relative.split("/"), new.split("/"), path.split("/")
        if len(old) != len(ported):
            return self.mapping.include(path)
        common = 0
        while common < min(len(old), len(written)) and old[-1 - common] == written[-1 - common]:
            common += 1
        return "/".join([*written[: len(written) - common], *ported[len(ported) - common :]])

    def _collision(self, file: Found, other: Found) -> FileReport:
        target = self._target(file)
        message = f"its port would be {target}, which is the port of {other.relative}"
        problem = Diagnostic(Severity.ERROR, Location(str(file.path)), message, "rename one, or name it with --ignore")
        return FileReport(file.path, target, State.FAILED, (problem,))

    def _finish(self, file: Found, text: str, ported: Ported) -> FileReport:
        target = self._target(file)
        report = FileReport(
            file.path, target, State.FAILED, ported.problems, ported.changes, ported.unknown, text, ported.text
        )
        beside = self.by_hand.get(target) or self.by_relative.get(self.mapping.with_suffix(file.relative.as_posix()))
        if file.is_device_source and beside is not None:
            near = beside.path.parent == file.path.parent
            place = f"{beside.path.name} stands beside it" if near else f"{beside.path} stands where its port belongs"
            message = f"not ported: {place}, written by hand"
            note = Diagnostic(Severity.WARNING, Location(str(file.path)), message, "remove one of the two")
            return replace(report, target=self.tree.out / file.relative, state=State.KEPT, problems=(note,))
        if has_errors(ported.problems) and not self.tree.partial:
            return report
        state, problem = self._put(target, ported.text.encode("utf-8"))
        return replace(
            report, state=state, problems=report.problems if problem is None else (*report.problems, problem)
        )

    def _copy(self, file: Found) -> FileReport | None:
        """A file carried over as it is. A hand-written .mu beside a .cu is carried over in any case: it is its port."""
        twin = file.relative.as_posix()
        target = self._target(file)
        replaces = any(self.mapping.with_suffix(other) == twin and other != twin for other in self._twins(twin))
        if not self.tree.everything and not replaces and target not in self.ports:
            return None
        try:
            data = file.path.read_bytes()
        except OSError as error:
            problem = Diagnostic(
                Severity.ERROR, Location(str(file.path)), f"cannot be read: {error.strerror}", "permit it"
            )
            return FileReport(file.path, target, State.FAILED, (problem,))
        state, found = self._put(target, data)
        state = State.COPIED if state is State.WRITTEN else state
        return FileReport(file.path, target, state, () if found is None else (found,))

    def _twins(self, relative: str) -> list[str]:
        stem = relative.rpartition(".")[0]
        return [f"{stem}{suffix}" for suffix in self.mapping.suffixes if f"{stem}{suffix}" in self.by_relative]

    def _put(self, target: Path, data: bytes) -> tuple[State, Diagnostic | None]:
        tree = self.tree
        return put_ours(target, data, tree.out, self.manifest, write=tree.write, overwrite=tree.overwrite)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _refuse_in_place(source: Path, out: Path) -> None:
    inside, target = real(source), real(out)
    if not source.is_dir():
        raise OpgenError("there is no such folder", Location(str(source)))
    if inside == target:
        raise OpgenError("sources are never ported in place", Location(str(out)), "name another folder with --out")
    if inside.is_relative_to(target):
        message = f"the output folder holds the sources ({source}), which could be overwritten"
        raise OpgenError(message, Location(str(out)), "name another folder with --out")


def _make(out: Path) -> None:
    """Makes the output folder, and finds out whether it takes files."""
    probe = out / f"{NAME}.try"
    try:
        write_atomically(probe, b"")
        probe.unlink()
    except OSError as error:
        message = f"cannot be written to: {error.strerror}"
        raise OpgenError(message, Location(str(out)), "name another folder with --out") from error


def _stale(tree: Tree, reports: list[FileReport], manifest: Manifest, notes: Diagnostics) -> tuple[Path, ...]:
    """What earlier runs wrote and this one has no source for. One that was changed by hand is never removed."""
    current = {key_of(report.target, tree.out) for report in reports}
    stale = []
    for key in sorted(manifest.digests.keys() - current):
        path = path_of(key, tree.out)
        try:
            ours = path.is_file() and digest(path.read_bytes()) == manifest.digests[key]
            if tree.clean and tree.write:
                if ours:
                    path.unlink()
                manifest.forget(key)
        except OSError as error:
            notes.error(Location(str(path)), f"cannot be removed: {error.strerror}", "remove it by hand")
            continue
        if not ours:
            continue
        stale.append(path)
        if not tree.clean:
            notes.warning(Location(str(path)), "a port whose source is gone", "--clean removes it")
    return tuple(stale)
