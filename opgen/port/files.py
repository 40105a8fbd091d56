"""The port of one file: reads it, writes only what changed, never touches a source."""

from __future__ import annotations

import codecs
import secrets
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from opgen.diagnostics import Diagnostic, Location, Severity
from opgen.port.mapping import Mapping, load_mapping
from opgen.port.rewrite import Local, Options, Ported, port_text
from opgen.port.walk import DEVICE_SUFFIXES

# UTF-32's marks begin like UTF-16's.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class State(str, Enum):
    """What became of a file."""

    WRITTEN = "written"
    """With `write=False`: it would be."""
    UNCHANGED = "unchanged"
    COPIED = "copied"
    KEPT = "kept"
    """The target is somebody's own, so it stays."""
    FAILED = "failed"
    """Not written, for the reasons in `problems`."""


@dataclass(frozen=True)
class FileReport:
    """One source: where its port belongs, what became of it, and what stood in the way."""

    source: Path
    target: Path
    state: State
    problems: tuple[Diagnostic, ...] = ()
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    before: str = field(default="", repr=False)
    after: str = field(default="", repr=False)

    @property
    def written(self) -> bool:
        return self.state in (State.WRITTEN, State.COPIED)

    @property
    def failed(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)


def ported_path(relative: Path, mapping: Mapping) -> Path:
    """The place of a port below the output folder: the source's, with folders and suffix mapped as in includes."""
    return Path(mapping.include(relative.as_posix()))


def port_file(
    source: Path, target: Path, mapping: Mapping | None = None, options: Options | None = None, *, write: bool = True
) -> FileReport:
    """Ports one file. With errors nothing is written, so a build stops here and not at a half-ported file.

    `write=False` only says what would happen.
    """
    rules = mapping if mapping is not None else load_mapping()
    text, problem = read_source(source)
    if problem is not None:
        return FileReport(source, target, State.FAILED, (problem,))
    ported = port(source, text, rules, options)
    if has_errors(ported.problems):
        return _report(source, target, State.FAILED, text, ported)
    state, problem = put(target, ported.text.encode("utf-8"), write=write)
    problems = ported.problems if problem is None else (*ported.problems, problem)
    return _report(source, target, state, text, ported, problems)


def port(
    source: Path,
    text: str,
    mapping: Mapping,
    options: Options | None = None,
    own: frozenset[str] = frozenset(),
    local: Local = lambda path: None,
) -> Ported:
    """`port_text` with what a file's name says."""
    device = source.suffix in DEVICE_SUFFIXES
    return port_text(text, mapping, str(source), options=options, device=device, own=own, local=local)


def read_source(path: Path) -> tuple[str, Diagnostic | None]:
    """A source's text, or what is wrong with it."""
    try:
        # From bytes, not as a text file: line ends stay what they are.
        return path.read_bytes().decode("utf-8"), None
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        here = Location(str(path), before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        kind = next((f": it is {name}" for mark, name in _MARKS.items() if error.object.startswith(mark)), "")
        return "", _error(here, f"not UTF-8 text{kind}", "convert the file, its comments included, to UTF-8")
    except OSError as error:
        hint = "mend the link, or name it with --ignore" if path.is_symlink() else "permit reading it"
        return "", _error(Location(str(path)), f"cannot be read: {error.strerror}", hint)


def put(target: Path, data: bytes, *, write: bool = True) -> tuple[State, Diagnostic | None]:
    """Writes a file unless it is there already; what came of it, and what is wrong."""
    try:
        if target.is_file() and target.read_bytes() == data:
            return State.UNCHANGED, None
        if write:
            write_atomically(target, data)
    except OSError as error:
        hint = "name another folder with --out"
        return State.FAILED, _error(Location(str(target)), f"cannot be written: {error.strerror}", hint)
    return State.WRITTEN, None


def write_if_changed(path: Path, text: str) -> bool:
    """Writes `text` unless the file already holds it; whether it did."""
    data = text.encode("utf-8")
    if path.is_file() and path.read_bytes() == data:
        return False
    write_atomically(path, data)
    return True


def write_atomically(path: Path, data: bytes) -> None:
    """The whole file or none: an interrupted run leaves neither half a file nor a temporary one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Named before it is made, so that it is removed wherever an interrupt comes; a long name has no room for another.
    temporary = path.with_name(f".opgen-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def has_errors(problems: tuple[Diagnostic, ...]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


def _report(
    source: Path,
    target: Path,
    state: State,
    before: str,
    ported: Ported,
    problems: tuple[Diagnostic, ...] | None = None,
) -> FileReport:
    found = ported.problems if problems is None else problems
    return FileReport(source, target, state, found, ported.changes, ported.unknown, before, ported.text)


def _error(here: Location, message: str, hint: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, here, message, hint)
