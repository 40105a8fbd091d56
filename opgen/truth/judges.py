"""What PyTorch's own databases have shown: the lines that tests/judge writes, read by overload and dtype.

A line is one judged test: which entry of which database, what was asked of it and in which dtype, how it ended and why,
and the overloads that the device was seen to run, each with the kernel family that served it. Plain data: neither torch
nor pytest is imported here.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ANY_DTYPE", "FILE", "Journal", "JudgeCounts", "lines", "read"]

FILE = "judge.jsonl"
ANY_DTYPE = ""
"""Stands for the dtype of tests that are not about one, such as those of errors."""

_COUNTED = {"passed": "passed", "failed": "failed", "skipped": "skipped"}


@dataclass(frozen=True)
class JudgeCounts:
    """Judged tests in which an overload ran, for one dtype of the inputs."""

    passed: int = 0
    failed: int = 0
    """Tests that are about the overload itself: one that merely ran in a failing test is not to blame."""
    skipped: int = 0
    """Tests about the overload that fail for a reason in skips.yaml."""
    first_reason: str | None = None
    """Of the first failed test, else of the first skipped one: database, entry, question, and what was wrong."""


def read(folder: Path) -> Mapping[tuple[str, str], JudgeCounts]:
    """Counts by (overload, dtype), "add.Tensor" and "float32"; empty when nothing in ``folder`` has been judged.

    Raises ValueError, naming file and line, for what is no line of a judge.
    """
    counts: dict[tuple[str, str], JudgeCounts] = {}
    for line in lines(folder / FILE):
        kept = _COUNTED.get(line["outcome"])
        if kept is None:  # the device lacks the dtype, or the question does not apply: no evidence either way
            continue
        dtype = line["dtype"] or ANY_DTYPE
        for op in line["ops"] if kept == "passed" else line["subjects"]:
            key = (op, dtype)
            counts[key] = _with(counts.get(key, JudgeCounts()), kept, line)
    return counts


def lines(file: Path) -> Iterator[Mapping[str, Any]]:
    """The latest line of every judged test, in the order in which the tests were first seen."""
    if not file.is_file():
        return
    latest: dict[str, Mapping[str, Any]] = {}
    for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            latest[line["test"]] = line
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{file}:{number}: not a line that tests/judge writes; remove the file and judge again"
            ) from None
    yield from latest.values()


def _with(counts: JudgeCounts, kept: str, line: Mapping[str, Any]) -> JudgeCounts:
    passed = counts.passed + (kept == "passed")
    failed = counts.failed + (kept == "failed")
    skipped = counts.skipped + (kept == "skipped")
    reason = counts.first_reason
    if (kept == "failed" and counts.failed == 0) or (kept == "skipped" and reason is None):
        what = line["title"] or line["reason"]
        reason = f"{line['judge']} {line['name']}, {line['kind']}: {what}"
    return JudgeCounts(passed, failed, skipped, reason)


class Journal:
    """Writes the lines, each as soon as it is there: a run that ends early leaves what it has found."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._seen: set[str] = set()

    def add(self, line: Mapping[str, Any]) -> None:
        """Appends one judged test."""
        self._seen.add(line["test"])
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(), self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def close(self, *, complete: bool = False) -> None:
        """Leaves one line for each test; after a complete run only for those that ran."""
        if not self._seen:
            return
        with self._locked():
            kept = [line for line in lines(self.file) if not complete or line["test"] in self._seen]
            fresh = self.file.with_suffix(".new")
            fresh.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
            fresh.replace(self.file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # one operator may be tested while the whole is being judged
        with self.file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
