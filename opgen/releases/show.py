"""A comparison as text for a terminal, as JSON, and as Markdown for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import click

from opgen.releases.changes import Comparison, Finding, Urgency, differing

__all__ = ["as_json", "as_markdown", "as_text", "summary"]

_TITLES = {
    Urgency.EDIT: "to edit",
    Urgency.REVIEW: "to look at",
    Urgency.NEWS: "coverage denominator",
}
_COLOURS = {Urgency.EDIT: "red", Urgency.REVIEW: "yellow", Urgency.NEWS: "cyan"}


def summary(comparison: Comparison) -> str:
    """One line: how many findings of each kind, and the denominators."""
    counts = ", ".join(f"{number} {_TITLES[urgency]}" for urgency, number in _asked(comparison))
    old, new = comparison.denominators
    moved = f"overloads with a CUDA kernel: {old}" + (f" -> {new}" if new != old else "")
    entries = f"{comparison.entries} {'entry' if comparison.entries == 1 else 'entries'}"
    return f"{entries}: {counts}; {moved}"


def _asked(comparison: Comparison) -> Iterator[tuple[Urgency, int]]:
    counts = comparison.counts()
    yield from ((urgency, counts[urgency]) for urgency in (Urgency.EDIT, Urgency.REVIEW))


def _heading(comparison: Comparison) -> str:
    seen = f" (looked at {', '.join(comparison.between)} between them)" if comparison.between else ""
    return f"torch {comparison.before} -> {comparison.after}{seen}"


def as_text(comparison: Comparison) -> str:
    """Sections, worst first; click drops the colours where the output is no terminal."""
    lines = [click.style(_heading(comparison), bold=True), ""]
    for urgency, group in groupby(comparison.findings, key=lambda f: f.urgency):
        found = list(group)
        lines.append(click.style(f"{_TITLES[urgency]} ({len(found)})", fg=_COLOURS[urgency], bold=True))
        for finding in found:
            lines.extend(f"  {line}" for line in _text(finding))
        lines.append("")
    return "\n".join([*lines, summary(comparison)])


def _text(finding: Finding) -> Iterator[str]:
    place = f"{finding.location}: " if finding.location is not None else ""
    head = click.style(finding.subject, bold=True)
    yield f"{place}{head}: {finding.change.value}: {finding.message}"
    if finding.before is not None and finding.after is not None:
        old, new = differing(finding.before, finding.after)
        yield from _marked("from: ", finding.before, old, "red")
        yield from _marked("to:   ", finding.after, new, "green")
    elif finding.before is not None or finding.after is not None:
        yield f"    {'was' if finding.after is None else 'is'}:  {finding.before or finding.after}"
    if finding.edit is not None:
        yield f"    {click.style('edit', bold=True)}: {finding.edit}"


def _marked(label: str, text: str, ranges: Sequence[tuple[int, int]], colour: str) -> Iterator[str]:
    """The text, and below it what differs, underlined: that reads without colours, too."""
    yield f"    {label}{text}"
    if ranges:
        marks = "".join("^" if any(a <= i < b for a, b in ranges) else " " for i in range(ranges[-1][1]))
        yield f"    {' ' * len(label)}{click.style(marks, fg=colour)}"


def as_json(comparison: Comparison) -> str:
    """One document. Lines and columns count from 1; what does not apply is null."""
    counts = {urgency.value: number for urgency, number in comparison.counts().items()}
    document = {
        "version": 1,
        "from": comparison.before,
        "to": comparison.after,
        "between": list(comparison.between),
        "entries": comparison.entries,
        "denominator": {"from": comparison.denominators[0], "to": comparison.denominators[1]},
        "counts": counts,
        "findings": [_record(finding) for finding in comparison.findings],
    }
    return json.dumps(document, indent=1)


def _record(finding: Finding) -> dict[str, object]:
    where = finding.location
    return {
        "urgency": finding.urgency.value,
        "change": finding.change.value,
        "subject": finding.subject,
        "path": where.path if where is not None else None,
        "line": where.line or None if where is not None else None,
        "column": where.column or None if where is not None else None,
        "message": finding.message,
        "edit": finding.edit,
        "from": finding.before,
        "to": finding.after,
    }


def as_markdown(comparison: Comparison) -> str:
    """A table for each section; in the texts, what is gone is struck out and what is new is bold."""
    lines = [f"## {_heading(comparison)}", "", summary(comparison), ""]
    for urgency, group in groupby(comparison.findings, key=lambda f: f.urgency):
        found = list(group)
        lines += [f"### {_TITLES[urgency].capitalize()} ({len(found)})", ""]
        lines += ["| operator | change | what | edit | where |", "|---|---|---|---|---|"]
        lines += [_row(finding) for finding in found]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(finding: Finding) -> str:
    what = _escaped(finding.message)
    if finding.before is not None and finding.after is not None:
        old, new = differing(finding.before, finding.after)
        what += f"<br>{_emphasized(finding.before, old, 'del')}<br>{_emphasized(finding.after, new, 'ins')}"
    elif finding.before is not None or finding.after is not None:
        what += f"<br><code>{_escaped(finding.before or finding.after or '')}</code>"
    where = f"{finding.location.path}:{finding.location.line}" if finding.location is not None else ""
    edit = _escaped(finding.edit or "")
    return f"| <code>{_escaped(finding.subject)}</code> | {finding.change.value} | {what} | {edit} | {where} |"


def _emphasized(text: str, ranges: Iterable[tuple[int, int]], tag: str) -> str:
    pieces, position = [], 0
    for start, end in ranges:
        pieces += [_escaped(text[position:start]), f"<{tag}>{_escaped(text[start:end])}</{tag}>"]
        position = end
    return f"<code>{''.join(pieces)}{_escaped(text[position:])}</code>"


def _escaped(text: str) -> str:
    """For a cell of a Markdown table: no HTML, no column separator, no emphasis but ours."""
    replaced = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return replaced.replace("*", "&#42;").replace("_", "&#95;").replace("\n", " ")
