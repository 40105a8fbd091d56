"""Ports of files and folders: reads, writes only what changed, never touches a source."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opgen.diagnostics import Diagnostic, Location, Severity
from opgen.port.mapping import Mapping, load_mapping
from opgen.port.rewrite import port_text


@dataclass(frozen=True)
class FileReport:
    """One source: where its port belongs, whether that file had to be written, and what stood in the way."""

    source: Path
    target: Path
    written: bool
    problems: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class TreeReport:
    """All files of a folder, in the order of their names."""

    files: tuple[FileReport, ...]

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        return tuple(problem for file in self.files for problem in file.problems)

    @property
    def written(self) -> tuple[Path, ...]:
        return tuple(file.target for file in self.files if file.written)


def ported_path(relative: Path, mapping: Mapping) -> Path:
    """The place of a port below the output folder: the source's, with folders and suffix mapped as in includes."""
    return Path(mapping.include(relative.as_posix()))


def port_file(source: Path, target: Path, mapping: Mapping | None = None) -> FileReport:
    """Ports one file. With problems nothing is written, so a build stops here and not at a half-ported file."""
    rules = mapping if mapping is not None else load_mapping()
    try:
        text = source.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        here = Location(str(source), before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        return _failed(source, target, here, "not UTF-8 text", "convert the file, its comments included, to UTF-8")
    except OSError as error:
        return _failed(source, target, Location(str(source)), f"cannot be read: {error.strerror}", "permit reading it")
    ported = port_text(text, rules, str(source))
    if ported.problems:
        return FileReport(source, target, False, ported.problems)
    try:
        written = write_if_changed(target, ported.text)
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        return _failed(source, target, Location(str(target)), message, "name another folder with --out")
    return FileReport(source, target, written)


def port_tree(source: Path, out: Path, *, ignore: Iterable[Path] = (), mapping: Mapping | None = None) -> TreeReport:
    """Ports every CUDA source below `source` into the same places below `out`.

    Folders in `ignore` (given as paths) are left out whole, and so is `out` where it lies inside `source`. A file with
    problems does not stop the others.
    """
    rules = mapping if mapping is not None else load_mapping()
    left_out = {path.resolve() for path in (*ignore, out)}
    reports = []
    # os.walk does not follow links to folders, so a loop of links ends here.
    for folder, subfolders, names in os.walk(source):
        here = Path(folder)
        subfolders[:] = sorted(name for name in subfolders if (here / name).resolve() not in left_out)
        for name in sorted(names):
            if name.endswith(tuple(rules.suffixes)):
                relative = (here / name).relative_to(source)
                reports.append(port_file(here / name, out / ported_path(relative, rules), rules))
    return TreeReport(tuple(reports))


def write_if_changed(path: Path, text: str) -> bool:
    """Writes `text` unless the file already holds it; atomic, so an interrupted build never leaves half a file."""
    data = text.encode("utf-8")
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def _failed(source: Path, target: Path, here: Location, message: str, hint: str | None) -> FileReport:
    return FileReport(source, target, False, (Diagnostic(Severity.ERROR, here, message, hint),))
