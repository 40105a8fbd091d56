"""Writes a folder of generated files so that nobody ever finds half of it.

New contents are first written to a staging folder inside the target (so on the same file system), where a full disk
or a missing permission shows before anything is touched. Then each changed file is renamed into place; the file it
replaces is kept until the manifest, written last, says that the new state is complete. A run that is interrupted in
between is undone: at once if it can, else by the next run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opgen.diagnostics import Location, OpgenError

_STATE = ".opgen"
_MANIFEST = "manifest.json"
_JOURNAL = "journal.json"


@dataclass(frozen=True)
class Written:
    """What a write changed; paths are relative to the folder, sorted."""

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """The last complete state of a folder."""

    inputs: str
    """Hash of everything the files were made from."""
    files: Mapping[str, str]
    """Relative path -> SHA-256 of the content."""
    summary: Mapping[str, int]
    """Counts to report again when nothing has changed."""
    warnings: Sequence[Mapping[str, Any]] = ()
    """What was said about the inputs, to be said again."""


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of `folder`, None where there is none that can be used."""
    try:
        data = json.loads((folder / _STATE / _MANIFEST).read_text(encoding="utf-8"))
        return Manifest(str(data["inputs"]), dict(data["files"]), dict(data["summary"]), list(data["warnings"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_intact(folder: Path, manifest: Manifest) -> bool:
    """Whether every file is still as it was written, and no interrupted run waits to be undone."""
    if (folder / _STATE / _JOURNAL).exists():
        return False
    try:
        return all(_sha(folder.joinpath(name).read_bytes()) == digest for name, digest in manifest.files.items())
    except OSError:
        return False


def recover(folder: Path) -> None:
    """Undo what a killed run has left behind; waits for a run that is still writing."""
    state = folder / _STATE
    if not (state / _JOURNAL).exists():
        return
    try:
        with _locked(state):
            _undo(folder)
    except OSError as error:
        raise OpgenError(
            f"cannot undo an interrupted run: {error.strerror or error}",
            Location(str(error.filename or folder)),
            "delete the folder and generate again",
        ) from None


def write_tree(
    folder: Path,
    files: Mapping[str, str],
    inputs: str,
    summary: Mapping[str, int],
    warnings: Sequence[Mapping[str, Any]] = (),
) -> Written:
    """Make the generated files of `folder` exactly `files`. Files that opgen did not write stay.

    Raises OpgenError, with the old state kept, when the folder cannot be written.
    """
    state = folder / _STATE
    try:
        state.mkdir(parents=True, exist_ok=True)
        with _locked(state):
            _undo(folder)
            return _replace(folder, files, Manifest(inputs, {}, summary, warnings))
    except OSError as error:
        raise OpgenError(
            f"cannot write the generated files: {error.strerror or error}",
            Location(str(error.filename or folder)),
            "make room or permit writing there, or name another folder with --out; the old files are untouched",
        ) from None


def _replace(folder: Path, files: Mapping[str, str], about: Manifest) -> Written:
    state = folder / _STATE
    old = read_manifest(folder)
    contents = {name: text.encode() for name, text in files.items()}
    changed = sorted(name for name, data in contents.items() if not _same(folder / name, data))
    stale = sorted(name for name in (old.files if old else ()) if name not in contents and (folder / name).is_file())
    manifest = replace(about, files={name: _sha(data) for name, data in sorted(contents.items())})
    stage = state / "stage"
    try:
        for name in changed:
            _write(stage / name, contents[name])
        _write(stage / _MANIFEST, json.dumps(manifest.__dict__, indent=1).encode())
        existing = [name for name in (*changed, *stale) if (folder / name).exists()]
        for name in existing:
            _keep(folder / name, state / "undo" / name)
        _keep_manifest(state)
        _write(stage / _JOURNAL, json.dumps({"replaced": changed, "kept": existing}).encode())
        # From here on there is something to undo; nothing below needs space on the disk.
        for name in changed:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / _JOURNAL).replace(state / _JOURNAL)
        for name in changed:
            (stage / name).replace(folder / name)
        for name in stale:
            (folder / name).unlink()
        (stage / _MANIFEST).replace(state / _MANIFEST)
        # Without its journal the new state counts as complete.
        (state / _JOURNAL).unlink()
    except BaseException:
        _undo(folder)
        raise
    _discard(state)
    for name in stale:
        _remove_empty_parents(folder / name, folder)
    unchanged = tuple(name for name in sorted(contents) if name not in set(changed))
    return Written(tuple(changed), unchanged, tuple(stale))


def _undo(folder: Path) -> None:
    """Take back what an interrupted run has done; without a journal it has done nothing yet."""
    state = folder / _STATE
    try:
        journal = json.loads((state / _JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        _discard(state)
        return
    kept = set(journal["kept"])
    for name in journal["replaced"]:
        if name not in kept:
            (folder / name).unlink(missing_ok=True)
            _remove_empty_parents(folder / name, folder)
    for name in kept:
        _restore(state, state / "undo" / name, folder / name)
    if (state / "undo" / _MANIFEST).exists():
        _restore(state, state / "undo" / _MANIFEST, state / _MANIFEST)
    else:
        (state / _MANIFEST).unlink(missing_ok=True)
    (state / _JOURNAL).unlink()
    _discard(state)


def _restore(state: Path, backup: Path, target: Path) -> None:
    """Put a file back under its own name. The backup stays, so that being interrupted here can be undone again."""
    if not backup.exists() or _same(target, backup.read_bytes()):
        return
    again = state / "stage" / "again"
    again.unlink(missing_ok=True)
    _keep(backup, again)
    target.parent.mkdir(parents=True, exist_ok=True)
    again.replace(target)


def _keep_manifest(state: Path) -> None:
    if (state / _MANIFEST).exists():
        _keep(state / _MANIFEST, state / "undo" / _MANIFEST)


def _keep(path: Path, backup: Path) -> None:
    """Another name for the same file: renaming over `path` leaves it alone, and it takes no space."""
    backup.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, backup)
    except OSError:
        shutil.copy2(path, backup)  # file systems without hard links


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data)


def _same(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _discard(state: Path) -> None:
    for name in ("stage", "undo"):
        shutil.rmtree(state / name, ignore_errors=True)


def _remove_empty_parents(path: Path, root: Path) -> None:
    for parent in path.parents:
        if parent == root:
            return
        try:
            parent.rmdir()
        except OSError:
            return


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def _locked(state: Path) -> Iterator[None]:
    """One writer at a time; the lock goes with the process, so a killed run leaves none behind."""
    with (state / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
