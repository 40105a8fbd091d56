"""A run over many overloads: what still holds is left alone, the rest is run, each result is kept at once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opgen.diagnostics import Location, OpgenError
from opgen.truth.digest import Digests, beside, holds
from opgen.truth.failing import LOAD, Failure
from opgen.truth.keeping import merged_with
from opgen.truth.plan import Planned
from opgen.truth.pool import answers
from opgen.truth.probe import Task
from opgen.truth.record import DtypeResult, Record, Verdict

if TYPE_CHECKING:
    from opgen.truth.store import Store

__all__ = ["Run", "Settings", "campaign", "commit_of", "record_of"]


@dataclass(frozen=True)
class Settings:
    """How to run."""

    cases: int = 20
    seed: int = 0
    dtypes: tuple[str, ...] | None = None
    """Names without "torch."; None for all."""
    timeout: float = 60
    jobs: int = 1
    shrink: bool = True
    load: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """What a campaign has of one overload."""

    record: Record
    """What is known now; where there is a ``failure``, a record without verdicts that is kept nowhere."""
    failure: Failure | None = None
    """Why it could not be run."""
    unkept: str | None = None
    """Why what has just been run does not take the place of the record that is kept; None where it does."""


@dataclass(frozen=True)
class Provenance:
    """What all records of a run share."""

    digests: Digests
    commit: str
    settings: Settings

    def digest(self, op: str, calls: tuple[str, ...]) -> str:
        """For an overload inside which ``calls`` ran in this campaign."""
        return beside(self.digests.of(op, calls), self.settings.load)


def campaign(
    planned: Iterable[Planned],
    settings: Settings,
    digests: Digests,
    root: Path,
    store: Store | None = None,
    known: Mapping[str, Record] | None = None,
    fresh: bool = False,
    run: Callable[[Iterable[Task], int], Iterator[dict[str, Any]]] = answers,
) -> Iterator[Run]:
    """What is known of each overload: at once where its ``known`` record answers the settings, else when it has been
    run; ``fresh`` runs all.

    Records are kept in ``store`` before they are given, where they say at least as much as the known ones that hold
    (`opgen.truth.keeping`). Closing the iterator ends the run. Raises OpgenError where what is to be loaded does not.
    """
    provenance = Provenance(digests.freeze(), commit_of(root), settings)
    holding = {op: record for op, record in (known or {}).items() if holds(record, digests)}
    left: dict[str, Planned] = {}
    for overload in planned:
        record = holding.get(overload.op)
        if record is not None and not fresh and not record.loaded and answers_settings(record, settings):
            yield Run(record)
        elif overload.skipped is not None:
            yield _kept(_untested(overload, provenance), store)
        else:
            left[overload.op] = overload
    tasks = [_task(overload, settings) for overload in left.values()]
    for answer in run(tasks, settings.jobs):
        record, failure = record_of(answer, provenance), failure_of(answer)
        if failure is not None:
            yield Run(record, failure)
            continue
        if settings.load and not left[record.op].loaded:
            merged: Record = record
            why: str | None = "operators were loaded beside it, which could change what it does"
        else:
            merged, why = merged_with(holding.get(record.op), record, provenance.digest)
        yield _kept(merged, store) if why is None else Run(record, unkept=why)


def failure_of(answer: Mapping[str, Any]) -> Failure | None:
    """Why a task could not be run. Raises OpgenError, with the place, for a file that does not load: no task would fare
    better."""
    if answer["failure"] is None:
        return None
    failure = Failure.from_json(answer["failure"])
    if failure.kind == LOAD:
        raise OpgenError(failure.message, Location(failure.path, failure.line), "--load names what registers operators")
    return failure


def answers_settings(record: Record, settings: Settings) -> bool:
    """Whether the record says what a run with these settings would say."""
    if (record.seed, record.asked) != (settings.seed, settings.cases):
        return False
    return record.complete or (settings.dtypes is not None and set(settings.dtypes) <= record.dtypes.keys())


def record_of(answer: Mapping[str, Any], provenance: Provenance) -> Record:
    """What a server said, with everything that is needed to get it again."""
    digests, settings = provenance.digests, provenance.settings
    calls = tuple(answer["calls"])
    return Record(
        op=answer["op"],
        torch=digests.torch,
        target=digests.target,
        commit=provenance.commit,
        seed=settings.seed,
        reference=answer["reference"] or "cpu",
        digest=provenance.digest(answer["op"], calls),
        seconds=round(answer["seconds"], 2),
        dtypes={
            name: DtypeResult(**{**result, "verdict": Verdict(result["verdict"])})
            for name, result in answer["dtypes"].items()
        },
        reason=answer["failure"]["message"] if answer["failure"] is not None else answer["reason"],
        asked=settings.cases,
        complete=settings.dtypes is None,
        calls=calls,
        loaded=settings.load,
    )


def commit_of(root: Path) -> str:
    """The commit that is checked out at ``root``, with "+" behind where the tree is not clean; "" outside of git."""

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(root), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:  # no git here
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "--short=12", "HEAD")
    return "" if commit is None else f"{commit}+" if git("status", "--porcelain") else commit


def _task(overload: Planned, settings: Settings) -> Task:
    return Task(
        op=overload.op,
        cases=settings.cases,
        seed=settings.seed,
        dtypes=settings.dtypes,
        gradients=overload.gradients,
        fallback=overload.fallback,
        shrink=settings.shrink,
        timeout=settings.timeout,
        load=settings.load,
    )


def _untested(overload: Planned, provenance: Provenance) -> Record:
    nothing: dict[str, Any] = {
        "op": overload.op,
        "reference": "",
        "failure": None,
        "dtypes": {},
        "calls": [],
        "seconds": 0.0,
    }
    return replace(record_of({**nothing, "reason": overload.skipped}, provenance), complete=True)


def _kept(record: Record, store: Store | None) -> Run:
    if store is not None:
        store.save(record)
    return Run(record)
