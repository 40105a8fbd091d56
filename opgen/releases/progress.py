"""What is being fetched, unpacked or checked: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opgen.progress import on_terminal
from opgen.releases.wheel import Progress as Report

__all__ = ["progress_shown"]

_SECONDS = 10.0


@contextmanager
def progress_shown() -> Iterator[Report]:
    """A function to report to; nothing is shown before it is called. A total of 0 means that it is not known."""
    if on_terminal(sys.stderr):
        yield from _bar()
        return
    last: list[tuple[str, float]] = []

    def log(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if last and last[-1][0] == what and now - last[-1][1] < _SECONDS:
            return
        last[:] = [(what, now)]
        share = f" {100 * done // total} %" if total and done else ""
        print(f"{what}{share} ...", file=sys.stderr, flush=True)

    yield log


def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for task in tasks.values():
                    bar.remove_task(task)
                tasks.clear()
                tasks[what] = bar.add_task(what, total=None)
            bar.update(tasks[what], completed=done, total=total or None)

        yield show
