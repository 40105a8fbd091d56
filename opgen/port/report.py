"""What a port tells: JSON for programs, a diff, and the rules that a user might write."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from opgen.diagnostics import Severity, as_record
from opgen.port.files import FileReport, State
from opgen.port.findings import propose
from opgen.port.mapping import Mapping
from opgen.port.tree import TreeReport

_VERSION = 1


def as_json(
    done: TreeReport, source: Path, out: Path, mapping: Mapping, left_out: Sequence[tuple[str, str]] = ()
) -> str:
    """One document: every file with its state and what was exchanged in it, all problems, rules to write, and the files
    left out on purpose with the reason."""
    record = {
        "version": _VERSION,
        "source": str(source),
        "out": str(out),
        "counts": {state.value: sum(file.state is state for file in done.files) for state in State},
        **{f"{s.value}s": sum(problem.severity is s for problem in done.problems) for s in Severity},
        "files": [_file(file) for file in done.files],
        "problems": [as_record(problem) for problem in done.problems],
        "unknown": [
            {"name": name, "count": count, "rule": propose(mapping, name)}
            for name, count in unknown(done).most_common()
        ],
        "stale": [str(path) for path in done.stale],
        "left_out": [{"file": file, "why": why} for file, why in left_out],
    }
    return json.dumps(record, indent=1)


def _file(file: FileReport) -> dict[str, Any]:
    return {
        "source": str(file.source),
        "target": str(file.target),
        "state": file.state.value,
        "changes": [{"from": old, "to": new, "count": n} for (old, new), n in sorted(file.changes.items())],
        "problems": len(file.problems),
    }


def unknown(done: TreeReport) -> Counter[str]:
    """CUDA's names that no rule knows, over all files."""
    total: Counter[str] = Counter()
    for file in done.files:
        total.update(file.unknown)
    return total


def rules_to_write(done: TreeReport, mapping: Mapping) -> list[str]:
    """Lines for a file for --map, most needed first. What they propose is a guess."""
    names = [(name, count, propose(mapping, name)) for name, count in unknown(done).most_common()]
    return [f"{name}\t{rule}" for name, _, rule in names if rule is not None]


def diff(file: FileReport) -> Iterator[str]:
    """What a port changes in its source, as a patch; nothing where it changes nothing."""
    before, after = file.before.splitlines(keepends=True), file.after.splitlines(keepends=True)
    old, new = (str(path).lstrip("/") for path in (file.source, file.target))
    for line in difflib.unified_diff(before, after, f"a/{old}", f"b/{new}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def summary(done: TreeReport, *, dry: bool) -> str:
    """One line about all files."""
    counts = Counter(file.state for file in done.files)
    written = "to write" if dry else "written"
    words = {State.WRITTEN: written, State.COPIED: "copied", State.UNCHANGED: "unchanged"}
    words |= {State.KEPT: "left as they are", State.FAILED: "not ported"}
    told = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]
    number = len(done.files)
    return f"{number} file{'s' * (number != 1)}: {', '.join(told)}" if told else "no sources found"
