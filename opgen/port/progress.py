"""A bar on a terminal while many files are ported; silence in a pipe or a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from opgen.port.tree import OnFile
from opgen.progress import on_terminal


@contextmanager
def progress_bar() -> Iterator[OnFile]:
    """Yields what `opgen.port.run` calls for each file."""
    if not on_terminal(sys.stderr):
        yield lambda done, total, name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda done, total, name: None
        return
    columns = (
        TextColumn("porting"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done - 1, total=total, description=name[-50:])

        yield show
