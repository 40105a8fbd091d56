"""The matrix as files: coverage.json for programs, README.md for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from opgen.coverage.matrix import Matrix, Overload, State
from opgen.diagnostics import Location, OpgenError

__all__ = ["markdown", "shown_states", "to_json", "write_report"]

_WRITTEN_BY = "Written by `opgen coverage --write coverage_report`"

_MEANING = {
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


def markdown(matrix: Matrix) -> str:
    """The report: totals, families, kinds, then every overload. Byte-identical for equal matrices."""
    totals = matrix.totals()
    with_kernel = matrix.denominator + totals["vendor_only"]
    parts = [
        "# Operator coverage",
        f"{_WRITTEN_BY}; do not edit.",
        f"PyTorch {matrix.torch_version} has a CUDA kernel for {with_kernel:,} overloads. "
        f"{totals['vendor_only']} of them belong to one vendor's library (listed below with the reason), "
        f"which leaves **{matrix.denominator:,}** to cover.",
        _table(
            ("state", "overloads", "share", "meaning"),
            [
                (s.value, f"{matrix.count(s):,}", _share(matrix.count(s), matrix.denominator), _MEANING[s])
                for s in shown_states(matrix)
            ],
        ),
        f"{totals['registered']:,} are registered (native and cpu_fallback). Registered is not yet right: "
        "what running an overload has shown stands in coverage.json under `verdicts`.",
        "## By kernel family",
        _table(("family", "registered overloads"), _counts(matrix.by_family())),
        "## By kind",
        _table(("kind", "registered overloads"), _counts(matrix.by_kind())),
        *_section("Registered", (o for o in matrix.overloads if o.kind is not None)),
        *_names("Composite", State.COMPOSITE, matrix),
        *(_names("Skeleton", State.SKELETON, matrix) if matrix.count(State.SKELETON) else ()),
        *_names("Missing", State.MISSING, matrix),
        "## Vendor-only",
        _table(
            ("operator", "library", "why it is not counted"),
            [(f"`{v.op}`", v.library, v.reason) for v in matrix.vendor_only],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def shown_states(matrix: Matrix) -> list[State]:
    """The states worth a line: skeletons are rare, and their line would only raise a question."""
    return [state for state in State if state is not State.SKELETON or matrix.count(state)]


def write_report(matrix: Matrix, folder: Path) -> None:
    """Write README.md and coverage.json into ``folder``. Raises OpgenError, with nothing written, where that is not
    possible or would replace a README.md that is not a report."""
    readme = folder / "README.md"
    try:
        if readme.exists() and _WRITTEN_BY not in readme.read_text(encoding="utf-8", errors="replace"):
            raise OpgenError(
                "not a coverage report, so it is not replaced",
                Location(str(readme)),
                "name a folder for the report: `opgen coverage --write coverage_report`",
            )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "coverage.json").write_text(to_json(matrix), encoding="utf-8")
        readme.write_text(markdown(matrix), encoding="utf-8")
    except OSError as error:
        raise OpgenError(
            f"cannot write the report: {error.strerror}",
            Location(str(error.filename or folder)),
            "name a folder that can be written with --write FOLDER",
        ) from None


def _section(title: str, overloads: Iterable[Overload]) -> tuple[str, str]:
    rows = [(f"`{o.op}`", o.kind or "", o.family or "", o.source or "") for o in overloads]
    return f"## {title} ({len(rows):,})", _table(("operator", "kind", "family", "source"), rows)


def _names(title: str, state: State, matrix: Matrix) -> tuple[str, str]:
    names = [f"`{o.op}`" for o in matrix.overloads if o.state is state]
    return f"## {title} ({len(names):,})", ", ".join(names) or "none"


def _counts(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in counts.items()]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
