"""A sign of life on a terminal while something takes over a second; silence in a pipe or a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["busy"]


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show `what` beside a spinner on standard error until the block ends; nothing where that is no terminal.

    Rich is imported only then: it takes longer than most commands do.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    with console.status(what):
        yield
