"""A sign of life on a terminal while something takes over a second; silence in a pipe or a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["busy", "on_terminal"]


def on_terminal(stream: TextIO | None) -> bool:
    """Whether people look at the stream; Python has none at all for a descriptor that was closed (`>&-`)."""
    return stream is not None and stream.isatty()


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show `what` beside a spinner on standard error until the block ends; nothing where that is no terminal.

    Rich is imported only then: it takes longer than most commands do.
    """
    if not on_terminal(sys.stderr):
        yield
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    with console.status(what):
        yield
