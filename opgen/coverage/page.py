"""The matrix as one HTML file that needs nothing else: no network, no fonts, no server.

Markup is escaped by Jinja2, data is JSON in which no `<` is left, and the page's script makes text nodes only; a
Content-Security-Policy with the script's hash lets nothing else run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from opgen.coverage.matrix import Matrix, State
from opgen.coverage.rows import DTYPES, MEANING, Row, Standing, by_dtype, by_standing, dtypes_of, family_of
from opgen.truth.record import Verdict

__all__ = ["embedded_json", "render_page"]


@dataclass(frozen=True)
class Part:
    """One colour of a bar."""

    name: str
    count: int
    share: str
    meaning: str


def render_page(matrix: Matrix, rows: Sequence[Row], title: str, commit: str | None = None) -> str:
    """The page for these rows, one for each overload of the matrix. Byte-identical for equal arguments."""
    dtypes = dtypes_of(rows)
    script = _read("page.js")
    totals = matrix.totals()
    shown = [_row_data(row, dtypes) for row in rows] + [
        {
            "op": v.op,
            "family": "vendor-only",
            "kind": v.library,
            "ns": "vendor-only",
            "reason": v.reason,
            "v": "",
            "n": [],
        }
        for v in matrix.vendor_only
    ]
    data = {"dtypes": list(dtypes), "short": [DTYPES.get(d, d) for d in dtypes], "rows": shown}
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            title=title,
            torch=matrix.torch_version,
            denominator=matrix.denominator,
            registered=totals["registered"],
            vendor_only=totals["vendor_only"],
            measured=sum(row.verdict is not Verdict.UNTESTED for row in rows),
            commit=commit,
            standings=_parts(by_standing(rows, lambda _: "").get("", {}), len(rows)),
            panels=[
                [{"title": "Namespace", "field": "ns", "lines": _lines(rows, lambda row: row.namespace)}],
                [
                    {"title": "Kernel family", "field": "family", "lines": _lines(rows, family_of)},
                    {
                        "title": "Kind",
                        "field": "kind",
                        "lines": _lines([r for r in rows if r.kind], lambda row: row.kind),
                    },
                ],
                *(
                    [
                        [
                            {
                                "title": "Dtype",
                                "field": "dtype",
                                "lines": [_line(name, counts) for name, counts in by_dtype(rows, dtypes).items()],
                            }
                        ]
                    ]
                    if dtypes
                    else []
                ),
            ],
            selects=_selects(shown, dtypes),
            dtypes=[(dtype, DTYPES.get(dtype, dtype)) for dtype in dtypes],
            style=_read("page.css"),
            script=script,
            script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
            data=embedded_json(data),
        )
    )


def embedded_json(data: object) -> str:
    """JSON that is safe inside a script element: without `<`, `>` and `&` no text in it can end the element or begin
    a comment, and U+2028 and U+2029 are escaped as all that is not ASCII is."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _row_data(row: Row, dtypes: Sequence[str]) -> dict[str, Any]:
    """What the script needs of a row; a letter of `v` and a number of `n` for each dtype, what is empty left out."""
    tried = {dtype: result for dtype, result in row.results.items() if result.supported or result.cases}
    data: dict[str, Any] = {
        "op": row.op,
        "family": family_of(row),
        "kind": row.kind,
        "ns": row.namespace,
        "source": row.source,
        "verdict": row.verdict.value[0],
        "standing": row.standing.value,
        "reason": row.reason,
        "how": row.how,
        "next": row.next,
        "provenance": row.provenance,
        "v": "".join(tried[d].verdict.value[0] if d in tried else "-" for d in dtypes) if tried else "",
        "n": [tried[d].cases if d in tried else 0 for d in dtypes] if tried else [],
        "reasons": {d: r.reason for d, r in tried.items() if r.reason},
        "scripts": {d: r.script for d, r in tried.items() if r.script},
    }
    return {key: value for key, value in data.items() if value or key in ("v", "n")}


def _parts(counts: Mapping[Standing, int], total: int) -> list[Part]:
    return [Part(s.value, counts.get(s, 0), _share(counts.get(s, 0), total), MEANING[s]) for s in Standing]


def _share(part: int, total: int) -> str:
    """In whole percent; what is there never shows as nothing."""
    if not total:
        return ""
    return "<1%" if 0 < part / total < 0.005 else f"{part / total:.0%}"


def _lines(rows: Sequence[Row], key: Any) -> list[dict[str, Any]]:
    return [_line(name, counts) for name, counts in by_standing(rows, key).items()]


def _line(name: str, counts: Mapping[Standing, int]) -> dict[str, Any]:
    total = sum(counts.values())
    parts = _parts(counts, total)
    says = ", ".join(f"{part.count} {part.name}" for part in parts if part.count)
    return {"name": name, "parts": parts, "total": total, "says": f"{name}: {says}"}


def _selects(rows: Iterable[Mapping[str, Any]], dtypes: Sequence[str]) -> list[dict[str, Any]]:
    rows = list(rows)

    def occurring(name: str) -> list[tuple[str, str]]:
        return [(value, value) for value in sorted({row[name] for row in rows if row.get(name)}, key=str.lower)]

    verdicts = [*(v.value for v in Verdict), State.MISSING.value.upper()]
    return [
        {"name": "verdict", "title": "Verdict", "any": "every verdict", "options": [(v, v.lower()) for v in verdicts]},
        {"name": "dtype", "title": "Dtype", "any": "every dtype", "options": [(d, d) for d in dtypes]},
        {"name": "family", "title": "Family", "any": "every family", "options": occurring("family")},
        {"name": "kind", "title": "Kind", "any": "every kind", "options": occurring("kind")},
        {"name": "ns", "title": "Namespace", "any": "every namespace", "options": occurring("ns")},
        {
            "name": "sort",
            "title": "Order",
            "any": "by name",
            "options": [("worst", "worst first"), ("family", "by family")],
        },
    ]


_TEMPLATES = Path(__file__).parent / "templates"


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment
