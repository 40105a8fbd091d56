"""What has changed between a committed coverage.json and now. `changes` is pure, `committed` asks git."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opgen.diagnostics import OpgenError
from opgen.truth.record import Verdict

__all__ = ["REPORT", "Change", "Changes", "changes", "committed"]

REPORT = "coverage_report/coverage.json"

_ORDER = ("gained", "better", "lost", "worse", "measured", "unmeasured", "counted", "dropped")


@dataclass(frozen=True)
class Change:
    """One overload of which something else is known now."""

    op: str
    what: str
    """gained or lost (a kernel), better or worse (a verdict), measured or unmeasured (a verdict where there was none,
    or none any more: neither says that the kernel has changed), counted or dropped (by PyTorch)."""
    before: str
    after: str


@dataclass(frozen=True)
class Changes:
    """Two states of the matrix compared."""

    commit: str
    torch: tuple[str, str]
    totals: Mapping[str, tuple[int, int]]
    """The totals that differ."""
    changes: tuple[Change, ...]

    def of(self, what: str) -> list[Change]:
        return [change for change in self.changes if change.what == what]

    def as_json(self) -> dict[str, Any]:
        return {
            "since": self.commit,
            "torch": list(self.torch),
            "totals": {name: list(pair) for name, pair in self.totals.items()},
            **{what: [{"op": c.op, "before": c.before, "after": c.after} for c in self.of(what)] for what in _ORDER},
        }


def committed(root: Path, commit: str) -> tuple[str, dict[str, Any]]:
    """The short hash of a commit and the coverage.json in it. Raises OpgenError."""
    found = _git(root, "rev-parse", "--verify", "--quiet", "--short", "--end-of-options", f"{commit}^{{commit}}")
    if found.returncode:
        inside = _git(root, "rev-parse", "--git-dir").returncode == 0
        raise OpgenError(
            f"there is no commit '{commit}'" if inside else f"{root} is in no git repository",
            hint="name a commit, a tag or a branch: `git log --oneline -- coverage_report`" if inside else None,
        )
    short = found.stdout.strip()
    shown = _git(root, "show", f"{short}:./{REPORT}")
    if shown.returncode:
        raise OpgenError(
            f"commit {short} has no {REPORT}",
            hint="name a later one: `git log --oneline -- coverage_report` lists those that changed it",
        )
    try:
        document = json.loads(shown.stdout)
        if not all(isinstance(row["op"], str) for row in document["overloads"]):
            raise TypeError
        _ = document["torch"], dict(document["totals"])
    except (ValueError, KeyError, TypeError):
        raise OpgenError(f"{REPORT} of commit {short} is no coverage report") from None
    return short, document


def changes(commit: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """What differs between two documents of `opgen coverage --format json`.

    Verdicts are compared by dtype; an overload of which one dtype got better and another worse is in both lists.
    """
    old = {row["op"]: row for row in before["overloads"]}
    new = {row["op"]: row for row in after["overloads"]}
    found = [Change(op, "dropped", _state(row), "-") for op, row in old.items() if op not in new]
    for op, row in new.items():
        if op not in old:
            found.append(Change(op, "counted", "-", _state(row)))
            continue
        had, has = _state(old[op]) != _MISSING, _state(row) != _MISSING
        if had != has:
            found.append(Change(op, "gained" if has else "lost", _state(old[op]), _state(row)))
        elif (old[op]["family"] == "cpu_fallback") != (row["family"] == "cpu_fallback"):
            on_device = row["family"] != "cpu_fallback"
            found.append(Change(op, "gained" if on_device else "lost", _state(old[op]), _state(row)))
        found += _verdicts(op, old[op].get("verdicts") or {}, row.get("verdicts") or {})
    totals = {
        name: (int(before["totals"][name]), int(count))
        for name, count in after["totals"].items()
        if name in before["totals"] and int(before["totals"][name]) != int(count)  # old reports know fewer
    }
    order = sorted(found, key=lambda change: (_ORDER.index(change.what), change.op))
    return Changes(commit, (before["torch"], after["torch"]), totals, tuple(order))


_MISSING = "missing"


def _state(row: Mapping[str, Any]) -> str:
    """The family; an entry whose kernel no source defines has a kind alone."""
    return row["family"] or row.get("kind") or _MISSING


_RANK = {verdict.value: rank for rank, verdict in enumerate((Verdict.FAILED, Verdict.PARTIAL, Verdict.STRICT))}


def _verdicts(op: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[Change]:
    """A change for each pair of verdicts, with the dtypes that share it."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for dtype in dict.fromkeys((*after, *before)):
        old, new = _word(before.get(dtype)), _word(after.get(dtype))
        if old == new:
            continue
        if old not in _RANK or new not in _RANK:
            what = "measured" if new in _RANK else "unmeasured"
        else:
            what = "better" if _RANK[new] > _RANK[old] else "worse"
        groups.setdefault((what, old, new), []).append(dtype)
    for (what, old, new), dtypes in groups.items():
        yield Change(op, what, old, f"{new} ({', '.join(dtypes)})")


def _word(verdict: Any) -> str:
    """The verdict of a dtype: a word, or the first of the facts about it; where there is none it was not tested."""
    word = verdict.get("verdict") if isinstance(verdict, Mapping) else verdict
    return word if isinstance(word, str) else Verdict.UNTESTED.value


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False, encoding="utf-8"
        )
    except FileNotFoundError:
        raise OpgenError("git is not installed, and it has the earlier report", hint="install git") from None
