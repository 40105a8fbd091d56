"""Tables for people: drawn with Rich on a terminal, plain aligned columns in a pipe or a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from opgen.progress import on_terminal

__all__ = ["counted", "plain_table", "print_table"]


def counted(number: int, what: str) -> str:
    """`1 entry`, `1,228 overloads`."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> None:
    """Print ``rows`` under ``columns``; the columns whose index is in ``right`` are set flush right."""
    if on_terminal(sys.stdout):
        _print_rich(columns, rows, right)
        return
    click.echo(plain_table(columns, rows, right=right))


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """The table as lines of text, without the last line's end."""
    lines = [columns, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
