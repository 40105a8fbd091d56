"""A small cache on disk: a pure function of file contents need not be computed twice.

Everything here is best effort. A cache that is missing, damaged, of another layout or not writable only costs time.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from pathlib import Path

__all__ = ["cache_dir", "load", "store"]


def cache_dir() -> Path:
    """``$OPGEN_CACHE_DIR``, else ``opgen`` under ``$XDG_CACHE_HOME`` or ``~/.cache``. It need not exist."""
    explicit = os.environ.get("OPGEN_CACHE_DIR")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "opgen"


def load(name: str, key: str) -> object | None:
    """What :func:`store` kept under ``name`` for exactly this ``key``, or None."""
    try:
        with (cache_dir() / f"{name}.pickle").open("rb") as file:
            stored_key, value = pickle.load(file)
        return value if stored_key == key else None
    except Exception:  # a damaged pickle may raise anything; then there simply is no cache
        return None


def store(name: str, key: str, value: object) -> None:
    """Keep ``value`` for ``key``, replacing what ``name`` held; atomic, and silent where the folder is not writable."""
    folder = cache_dir()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                pickle.dump((key, value), file, protocol=pickle.HIGHEST_PROTOCOL)
            Path(temporary).replace(folder / f"{name}.pickle")
        except BaseException:
            Path(temporary).unlink()
            raise
