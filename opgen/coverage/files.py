"""Writing the reports' files: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from opgen.diagnostics import Location, OpgenError

__all__ = ["same_file", "write_file"]


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths name one regular file, there or yet to be written, by whatever links."""
    if (one.exists() and not one.is_file()) or (other.exists() and not other.is_file()):
        return False
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def write_file(path: Path, text: str, hint: str | None = None) -> None:
    """Replace `path` by `text` in one step; a device or a pipe is written to. Raises OpgenError, with the old content
    in place, where that is not possible."""
    staged: str | None = None
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a folder says so itself
            return
        target = path.resolve()  # a link stays a link
        handle, staged = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(staged).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        Path(staged).replace(target)
    except OSError as error:
        if staged is not None:
            with contextlib.suppress(OSError):
                Path(staged).unlink()
        raise OpgenError(f"cannot write: {error.strerror}", Location(str(path)), hint) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
