"""The files of a folder that a port looks at."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opgen.diagnostics import Diagnostic, Diagnostics, Location
from opgen.port.manifest import NAME as RECORD

DEVICE_SUFFIXES = (".cu", ".cuh")
HAND_WRITTEN_SUFFIXES = (".mu", ".muh")
HOST_SUFFIXES = (
    *(".c", ".cc", ".cpp", ".cxx", ".c++"),
    *(".h", ".hh", ".hpp", ".hxx", ".h++", ".inc", ".inl", ".ipp", ".tcc", ".tpp"),
)


def real(path: Path) -> Path:
    """Where a path leads; unlike `Path.resolve` not an exception for a link to itself."""
    return Path(os.path.realpath(path))


@dataclass(frozen=True)
class Found:
    """One file: where it is, and its place below the folder."""

    path: Path
    relative: Path

    @property
    def is_device_source(self) -> bool:
        return self.path.suffix in DEVICE_SUFFIXES

    @property
    def is_source(self) -> bool:
        return self.path.suffix in (*DEVICE_SUFFIXES, *HOST_SUFFIXES)

    @property
    def is_hand_written(self) -> bool:
        return self.path.suffix in HAND_WRITTEN_SUFFIXES


def left_out(source: Path, ignore: Iterable[Path], out: Path, notes: Diagnostics) -> Callable[[Path], bool]:
    """Whether a file or folder is to be left out: what `ignore` names, and the output folder where it lies inside.

    A path of `ignore` is meant from the working folder or, where nothing is there, from `source`; one that is nowhere
    gets a warning.
    """
    places = {real(out)}
    for path in ignore:
        inside = source / path
        if not path.exists() and not inside.exists():
            notes.warning(
                Location(str(path)), "there is no such folder to ignore", "paths are meant from the working folder"
            )
        named = real(path if path.exists() else inside)
        if named == real(source):
            notes.warning(Location(str(path)), "this is all of the source: it is ported", "name a folder below it")
        places.add(named)
    return lambda path: real(path) in places


def walk(
    source: Path, skip: Callable[[Path], bool], notes: Diagnostics, *, base: Path | None = None
) -> Iterator[Found]:
    """Every file below `source` (or that file) in the order of names, without hidden folders; places are meant from
    `base`.

    A link to a folder is followed once, and not where that folder is among the sources anyway; a link in a circle is an
    error.
    """
    if source.is_file():
        yield Found(source, source.relative_to(base or source.parent))
        return
    seen = {real(source)}
    stack = [source]
    while stack:
        folder = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            notes.error(Location(str(folder)), f"cannot be read: {error.strerror}", "permit reading it")
            continue
        deeper = []
        for entry in entries:
            path = folder / entry.name
            if skip(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name != "__pycache__":
                    deeper.append(path)
            elif entry.is_symlink() and path.is_dir():
                problem = _link_problem(path, source, seen)
                if problem is None:
                    seen.add(real(path))
                    deeper.append(path)
                else:
                    notes.add(problem)
            elif entry.name != RECORD:
                found = Found(path, path.relative_to(base or source))
                if not _is_special(path):
                    yield found
                elif found.is_source or found.is_hand_written:
                    hint = "remove it, or name it with --ignore"
                    notes.error(Location(str(path)), "neither a file nor a folder", hint)
        stack += reversed(deeper)


def _is_special(path: Path) -> bool:
    """Whether this is a pipe, a socket or a device: reading one could wait for ever."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False  # whoever reads it says what is wrong


def _link_problem(link: Path, source: Path, seen: set[Path]) -> Diagnostic | None:
    collector = Diagnostics()
    target = real(link)
    here = Location(str(link))
    if real(link.parent).is_relative_to(target):
        collector.error(
            here, "a link in a circle: it leads to a folder above itself", "remove it, or name it with --ignore"
        )
    elif target.is_relative_to(real(source)) or target in seen:
        collector.warning(here, "a link to a folder that is ported in its own place", "name one of them with --ignore")
    return next(iter(collector), None)
