"""The questions of `opgen coverage`, answered on a terminal: overloads, gaps, changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from opgen.coverage.rows import DTYPES, Row, dtypes_of
from opgen.diagnostics import shown
from opgen.tables import counted, print_table
from opgen.truth.record import Verdict

if TYPE_CHECKING:
    from opgen.coverage.against import Gap
    from opgen.coverage.since import Changes

__all__ = ["print_changes", "print_gap", "print_operator", "print_rows"]

_COLOURS = {Verdict.STRICT: "green", Verdict.PARTIAL: "yellow", Verdict.FAILED: "red", Verdict.UNTESTED: None}


def print_rows(rows: Sequence[Row], what: str) -> None:
    """A line for each overload: state, family, verdict, a letter for each dtype, and why."""
    if not rows:
        click.echo(f"no {what} overloads")
        return
    dtypes = dtypes_of(rows)
    lines = [
        (
            row.op,
            row.family or row.state.value,
            row.verdict.value,
            *([_letters(row, dtypes)] if dtypes else []),
            shown(row.reason or row.source or ""),
        )
        for row in rows
    ]
    columns = ("overload", "family", "verdict", *(["dtypes"] if dtypes else []), "why")
    print_table(columns, lines)
    click.echo(f"\n{counted(len(rows), f'{what} overload')}")
    if dtypes:
        click.echo(f"dtypes: {' '.join(DTYPES.get(d, d) for d in dtypes)}; S strict, P partial, F failed, U untested")


def print_operator(rows: Iterable[tuple[Row, str | None]]) -> None:
    """Everything that is known of each overload; beside it what has to be said about its place in the coverage."""
    for i, (row, note) in enumerate(rows):
        if i:
            click.echo()
        verdict = click.style(row.verdict.value, fg=_COLOURS[row.verdict], bold=True)
        click.echo(f"{click.style(row.op, bold=True)}  {verdict}")
        facts = (
            ("state", _state(row)),
            ("how", row.how),
            ("source", row.source),
            ("reason", row.reason if row.reason != row.how else None),
            ("note", note),
            ("measured", row.provenance),
            ("next", row.next),
        )
        for name, value in facts:
            if value:
                click.echo(f"  {name:<9} {shown(value)}")
        for dtype, result in row.results.items():
            word = click.style(f"{result.verdict.value:<8}", fg=_COLOURS[result.verdict])
            families = ", ".join(f"{family} {calls:,}" for family, calls in result.families.items())
            ran = f"ran on {families}" if families else ""
            line = f"    {dtype:<11} {word}  {counted(result.cases, 'case'):<10}  {ran}".rstrip()
            click.echo(line)
            if result.reason:
                click.echo(f"                {shown(result.reason)}")


def print_gap(found: Gap, name: str) -> None:
    """How many overloads another backend has, what this one does with them, and those it lacks."""
    from opgen.coverage.matrix import State

    click.echo(
        f"{found.key} has a kernel for {counted(found.has, 'overload')} in PyTorch's own tree; {name} runs of them"
    )
    click.echo()
    on_device = {
        "native": found.states[State.NATIVE],
        "composite": found.states[State.COMPOSITE],
        "cpu_fallback": found.states[State.CPU_FALLBACK],
        "missing": len(found.lacking),
    }
    rows = [(state, f"{count:,}", f"{count / max(found.has, 1):.1%}") for state, count in on_device.items()]
    print_table(("state", "overloads", "share"), rows, right=frozenset({1, 2}))
    for title, overloads in (("missing", found.lacking), ("cpu_fallback", found.on_cpu)):
        if overloads:
            click.echo(f"\n{click.style(title, bold=True)}")
            click.echo(_columns([o.op for o in overloads]))
    if found.own:
        click.echo(f"\nnot counted, as they are {found.key}'s own: {', '.join(found.own)}")
    if found.note:
        click.echo(f"\nnote: {found.note}")


def print_changes(found: Changes) -> None:
    """What was gained, lost, got better and worse since a commit."""
    before, after = found.torch
    release = f", PyTorch {before} -> {after}" if before != after else ""
    click.echo(f"since {found.commit}{release}")
    if not found.changes and not found.totals:
        click.echo("nothing has changed")
        return
    if found.totals:
        click.echo()
        rows = [(name, f"{old:,}", f"{new:,}", f"{new - old:+,}") for name, (old, new) in found.totals.items()]
        print_table(("total", "then", "now", "change"), rows, right=frozenset({1, 2, 3}))
    colours = {"gained": "green", "better": "green", "lost": "red", "worse": "red"}
    for what in dict.fromkeys(change.what for change in found.changes):
        changes = found.of(what)
        click.echo(f"\n{click.style(f'{what} ({len(changes):,})', fg=colours.get(what), bold=True)}")
        if what in ("measured", "unmeasured"):  # hundreds after a first run, and no news about a kernel
            words = Counter((c.after if what == "measured" else c.before).partition(" ")[0] for c in changes)
            click.echo(", ".join(f"{count:,} {word}" for word, count in words.most_common()))
            continue
        print_table(("overload", "then", "now"), [(c.op, c.before, c.after) for c in changes])


def _state(row: Row) -> str:
    parts = [row.state.value, *([row.family] if row.family not in (None, row.state.value) else []), row.kind or ""]
    return ", ".join(part for part in parts if part)


def _letters(row: Row, dtypes: Sequence[str]) -> str:
    return "".join(row.results[d].verdict.value[0] if d in row.results else "." for d in dtypes)


def _columns(names: Sequence[str], width: int = 100) -> str:
    """Names in lines of at most `width` characters."""
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) + 4 > width:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else '  '}{name}"
    return ",\n".join(lines)
