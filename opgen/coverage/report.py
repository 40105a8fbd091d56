"""The matrix as files: coverage.json for programs, README.md and a chart for people."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from opgen.coverage.chart import chart
from opgen.coverage.files import write_file
from opgen.coverage.matrix import Matrix, State
from opgen.coverage.rows import MEANING, Row, Standing, by_dtype, by_standing, dtypes_of, family_of, worst_first
from opgen.diagnostics import Location, OpgenError, shown
from opgen.truth.record import Verdict

__all__ = ["FILES", "markdown", "shown_states", "to_json", "write_report"]

_WRITTEN_BY = "Written by `opgen coverage --write coverage_report`"

CHART = "coverage.svg"
_ELSEWHERE = "name a folder that can be written with --write FOLDER"
_SHOWN = 40
_LONGEST = 160

_STATES = {
    State.NATIVE: "a kernel of this backend, or a function of PyTorch's that works on any device, is registered",
    State.CPU_FALLBACK: "registered, and goes through the CPU on purpose",
    State.COMPOSITE: "not registered: PyTorch's own kernel for any device calls other operators",
    State.SKELETON: "listed, but the kernel is still to be written: a call raises NotImplementedError",
    State.MISSING: "not registered: runs on the CPU with a warning, or raises (views, factories, random operators)",
}


def to_json(matrix: Matrix) -> str:
    """A line for each overload, so that a change of one is a change of one line."""
    document = matrix.as_json()
    rows = ",\n    ".join(json.dumps(overload.as_json()) for overload in matrix.overloads)
    head = json.dumps({**document, "overloads": []}, indent=2)
    return head.removesuffix("[]\n}") + (f"[\n    {rows}\n  ]" if rows else "[]") + "\n}\n"


def markdown(matrix: Matrix, rows: Sequence[Row]) -> str:
    """The report for people: what there is, how much of it is right, and what to look at first. The overloads one by
    one are in coverage.json and on the page. Byte-identical for equal arguments."""
    totals = matrix.totals()
    with_kernel = matrix.denominator + totals["vendor_only"]
    whole = by_standing(rows, lambda _: "").get("", Counter())
    dtypes = dtypes_of(rows)
    parts = [
        "# Operator coverage",
        f"{_WRITTEN_BY}; do not edit.",
        f"PyTorch {matrix.torch_version} has a CUDA kernel for {with_kernel:,} overloads. "
        f"{totals['vendor_only']} of them belong to one vendor's library (listed below with the reason), "
        f"which leaves **{matrix.denominator:,}** to cover. {totals['registered']:,} are registered, "
        f"{totals['registered'] - totals['cpu_fallback']:,} of them run on the device, and "
        f"**{whole[Standing.STRICT]:,}** overloads are STRICT: three numbers, never one.",
        f"![Overloads by namespace and kernel family]({CHART})",
        "The overloads one by one: `opgen coverage OP`, `opgen coverage --html coverage.html` (search and filters), "
        "[coverage.json](coverage.json).",
        "## What runs",
        _table(
            ("state", "overloads", "share", "meaning"),
            [
                (s.value, f"{matrix.count(s):,}", _share(matrix.count(s), matrix.denominator), _STATES[s])
                for s in shown_states(matrix)
            ],
        ),
        "## What is right",
        _table(
            ("verdict", "overloads", "share", "meaning"),
            [(s.value, f"{whole[s]:,}", _share(whole[s], len(rows)), MEANING[s]) for s in Standing],
        ),
        *(() if dtypes else ("Nothing has been run yet: `opgen truth` does.",)),
        *_groups("By namespace", "namespace", by_standing(rows, lambda row: row.namespace)),
        *_groups("By kernel family", "family", by_standing(rows, family_of)),
        *_groups("By kind", "kind", by_standing([r for r in rows if r.kind is not None], lambda row: row.kind)),
        *(_groups("By dtype", "dtype", by_dtype(rows, dtypes)) if dtypes else ()),
        *_worst(rows),
        *_names("Missing", (State.MISSING, State.SKELETON), rows),
        *_names("Through the CPU on purpose", (State.CPU_FALLBACK,), rows),
        f"## Vendor-only ({len(matrix.vendor_only):,})",
        _table(
            ("operator", "library", "why it is not counted"),
            [(f"`{v.op}`", v.library, v.reason) for v in matrix.vendor_only],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def shown_states(matrix: Matrix) -> list[State]:
    """The states worth a line: skeletons are rare, and their line would only raise a question."""
    return [state for state in State if state not in (State.SKELETON, State.LOADED) or matrix.count(state)]


FILES = ("coverage.json", CHART, "README.md")


def write_report(matrix: Matrix, rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write README.md, coverage.json and the chart into ``folder``, and name them. Raises OpgenError where that is not
    possible or, with nothing written, where it would replace a README.md that is not a report."""
    readme = folder / "README.md"
    try:
        if readme.exists() and _WRITTEN_BY not in readme.read_text(encoding="utf-8", errors="replace"):
            raise OpgenError(
                "not a coverage report, so it is not replaced",
                Location(str(readme)),
                "name a folder for the report: `opgen coverage --write coverage_report`",
            )
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OpgenError(
            f"cannot write the report: {error.strerror}", Location(str(error.filename or folder)), _ELSEWHERE
        ) from None
    texts = (to_json(matrix), chart(rows), markdown(matrix, rows))
    for name, text in zip(FILES, texts, strict=True):
        write_file(folder / name, text, _ELSEWHERE)
    return [folder / name for name in FILES]


def _groups(title: str, column: str, groups: Mapping[str, Mapping[Standing, int]]) -> tuple[str, str]:
    rows = []
    for name, counts in groups.items():
        total = sum(counts.values())
        numbers = [f"{counts.get(s, 0):,}" if counts.get(s) else "" for s in Standing]
        rows.append((name, f"{total:,}", *numbers, _share(counts.get(Standing.STRICT, 0), total)))
    return f"## {title}", _table((column, "overloads", *(s.value for s in Standing), "share strict"), rows)


def _worst(rows: Sequence[Row]) -> tuple[str, ...]:
    """The failed ones, then the partial ones, as many as one reads."""
    bad = [row for row in worst_first(rows) if row.verdict in (Verdict.FAILED, Verdict.PARTIAL)]
    if not bad:
        return ()
    lines = [
        (
            f"`{r.op}`",
            r.verdict.value,
            r.family or "",
            _cell(r.reason or ""),
            f"`{r.source.partition(':')[0]}`" if r.source else "",
        )
        for r in bad[:_SHOWN]
    ]
    table = _table(("operator", "verdict", "family", "why", "source"), lines)
    rest = len(bad) - len(lines)
    more = f"{rest:,} more: `opgen coverage --verdict failed`, `opgen coverage --verdict partial`."
    return (f"## Worst first ({len(bad):,})", table, *((more,) if rest else ()))


def _names(title: str, states: Sequence[State], rows: Sequence[Row]) -> tuple[str, str]:
    """Names by namespace, overloads of an operator together: a list to look something up in, so it is folded."""
    chosen = [row for row in rows if row.state in states]
    groups: dict[str, dict[str, list[str]]] = {}
    for row in chosen:
        base, _, overload = row.op.partition(".")
        groups.setdefault(row.namespace, {}).setdefault(base, []).append(overload)
    lines = []
    for name, operators in sorted(groups.items()):
        listed = ", ".join(
            f"`{base}`" + (f" ({', '.join(o or 'default' for o in overloads)})" if overloads != [""] else "")
            for base, overloads in operators.items()
        )
        lines.append(f"- **{name}**: {listed}")
    body = "\n".join(lines) or "none"
    return f"## {title} ({len(chosen):,})", f"<details><summary>the names</summary>\n\n{body}\n\n</details>"


def _cell(text: str) -> str:
    """Text in a table of Markdown: it must neither end the cell nor become markup."""
    short = shown(text.splitlines()[0] if text else "")
    short = short if len(short) <= _LONGEST else f"{short[: _LONGEST - 3]}..."
    return re.sub(r"([\\`*_\[\]<>|&#~$])", r"\\\1", short)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
