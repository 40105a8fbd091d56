"""Writes a plan's files: all of them or none, one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from opgen.diagnostics import Location, OpgenError

__all__ = ["locked", "write_all"]


@contextlib.contextmanager
def locked(operator_list: Path) -> Iterator[None]:
    """Keep other `opgen new` away from the list's folder; the lock goes with the process."""
    folder = operator_list.resolve().parent
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise OpgenError(f"cannot open the folder: {error.strerror}", Location(str(folder))) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another `opgen new` ...", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_all(operator_list: Path, before: bytes, after: bytes, created: Mapping[Path, str]) -> None:
    """Create the files, then replace the operator list; raises OpgenError, with nothing changed, where that fails.

    The list comes last: until it names them, the new sources mean nothing. `before` is what the plan was made from; a
    list that somebody has saved meanwhile is left alone.
    """
    target = operator_list.resolve()  # a link stays a link
    made: list[Path] = []
    folders: list[Path] = []
    staged: list[Path] = []
    try:
        _check_writable(target)
        replacement = _stage(target, after, staged)
        replacement.chmod(stat.S_IMODE(target.stat().st_mode))
        for path, text in created.items():
            _make_folders(path.parent, folders)
            temporary = _stage(path, text.encode(), staged)
            temporary.chmod(0o666 & ~_umask())
            _publish(temporary, path, made)
        if target.read_bytes() != before:
            raise OpgenError("changed while this ran", Location(str(operator_list)), "run the command again")
        replacement.replace(target)
        staged.clear()
    except OSError as error:
        _undo(made, folders, staged)
        raise OpgenError(
            f"cannot write: {error.strerror or error}; nothing was changed", Location(str(error.filename or target))
        ) from None
    except BaseException:
        _undo(made, folders, staged)
        raise


def _check_writable(target: Path) -> None:
    # Renaming over a read-only file would succeed; whoever made it read-only meant it to stay.
    if not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK):
        raise OpgenError("the operator list is read-only; nothing was changed", Location(str(target)))


def _stage(path: Path, data: bytes, staged: list[Path]) -> Path:
    """`data` under another name in the same folder, on the disk."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    staged.append(Path(name))
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return Path(name)


def _publish(temporary: Path, path: Path, made: list[Path]) -> None:
    """Give the file its name, without ever replacing another one."""
    made.append(path)
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # file systems without hard links
            with path.open("xb") as file:
                file.write(temporary.read_bytes())
    except FileExistsError:
        made.remove(path)
        raise
    temporary.unlink()


def _make_folders(folder: Path, made: list[Path]) -> None:
    if not folder.is_dir():
        _make_folders(folder.parent, made)
        folder.mkdir()
        made.append(folder)


def _undo(made: list[Path], folders: list[Path], staged: list[Path]) -> None:
    for path in (*made, *staged):
        with contextlib.suppress(OSError):
            path.unlink()
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
