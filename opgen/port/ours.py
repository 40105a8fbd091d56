"""Writing into an output folder without touching what is somebody else's, and the record of what is ours."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opgen.diagnostics import Diagnostic, Diagnostics, Location, Severity
from opgen.port.files import State, put
from opgen.port.manifest import NAME, Manifest, digest, read_manifest


def key_of(target: Path, out: Path) -> str:
    """A file's place in the record: the same one whatever the locale makes of the bytes of its name."""
    return os.fsencode(target.relative_to(out).as_posix()).decode("utf-8", "surrogateescape")


def path_of(key: str, out: Path) -> Path:
    """The inverse of `key_of`."""
    return out / os.fsdecode(key.encode("utf-8", "surrogateescape"))


def put_ours(
    target: Path, data: bytes, out: Path, manifest: Manifest, *, write: bool, overwrite: bool
) -> tuple[State, Diagnostic | None]:
    """Writes a port, unless its place is taken by a file of somebody's own and `overwrite` does not allow that."""
    key = key_of(target, out)
    recorded = manifest.digests.get(key)
    new = digest(data)
    try:
        there = digest(target.read_bytes()) if target.is_file() else None
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        return State.FAILED, Diagnostic(Severity.ERROR, Location(str(target)), message, "permit reading it")
    if there is not None and there not in (new, recorded) and not overwrite:
        if recorded == new:
            return State.KEPT, None  # changed by hand since, and the source says nothing new
        how = "was changed by hand since it was ported" if recorded else "was not written by opgen port"
        hint = "it is left as it is: move it away to have the source ported, or say --overwrite"
        return State.KEPT, Diagnostic(Severity.ERROR, Location(str(target)), how, hint)
    state, problem = put(target, data, write=write)
    if problem is None:
        manifest.record(key, new)
    return state, problem


def save(out: Path, manifest: Manifest) -> Diagnostic | None:
    """Adds what this run has written to the record, beside what other runs have put there meanwhile."""
    if not manifest.changes and not (out / NAME).exists():
        return None
    with _locked(out):
        merged = read_manifest(out, Diagnostics())  # a broken one has been told when it was read first
        merged.merge(manifest)
        _, problem = put(out / NAME, merged.text().encode())
    return problem


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time; a lock on the folder itself leaves no file behind."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield  # what is to be written there will say why it cannot
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
