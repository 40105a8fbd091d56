"""A run over many overloads: what still holds is left alone, the rest is run, each result is kept at once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opgen.truth.digest import Digests, holds
from opgen.truth.plan import Planned
from opgen.truth.pool import answers
from opgen.truth.probe import Task
from opgen.truth.record import DtypeResult, Record, Verdict

if TYPE_CHECKING:
    from opgen.truth.store import Store

__all__ = ["Settings", "campaign", "commit_of", "record_of"]


@dataclass(frozen=True)
class Settings:
    """How to run."""

    cases: int = 20
    seed: int = 0
    dtypes: tuple[str, ...] | None = None
    """Names without "torch."; None for all."""
    timeout: float = 60
    jobs: int = 1
    shrink: bool = False
    load: tuple[str, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """What all records of a run share."""

    digests: Digests
    commit: str
    settings: Settings


def campaign(
    planned: Iterable[Planned],
    settings: Settings,
    digests: Digests,
    root: Path,
    store: Store | None = None,
    known: Mapping[str, Record] | None = None,
    run: Callable[[Iterable[Task], int], Iterator[dict[str, Any]]] = answers,
) -> Iterator[Record]:
    """The record of each overload: at once where it is ``known`` and answers the settings, else when it has been run.

    Records are kept in ``store`` before they are given. Closing the iterator ends the run.
    """
    provenance = Provenance(digests.freeze(), commit_of(root), settings)
    left: dict[str, Planned] = {}
    for overload in planned:
        record = (known or {}).get(overload.op)
        if record is not None and answers_settings(record, settings) and holds(record, digests):
            yield record
        elif overload.skipped is not None:
            yield _kept(_untested(overload, provenance), store)
        else:
            left[overload.op] = overload
    tasks = [_task(overload, settings) for overload in left.values()]
    for answer in run(tasks, settings.jobs):
        record = record_of(answer, provenance)
        before = (known or {}).get(record.op)
        if before is not None and not record.complete and _same_run(before, record) and holds(before, digests):
            # the dtypes that were asked for come to those that are known
            record = replace(record, dtypes={**before.dtypes, **record.dtypes}, complete=before.complete)
        yield _kept(record, store)


def answers_settings(record: Record, settings: Settings) -> bool:
    """Whether the record says what a run with these settings would say."""
    if (record.seed, record.asked) != (settings.seed, settings.cases):
        return False
    return record.complete or (settings.dtypes is not None and set(settings.dtypes) <= record.dtypes.keys())


def record_of(answer: Mapping[str, Any], provenance: Provenance) -> Record:
    """What a server said, with everything that is needed to get it again."""
    digests, settings = provenance.digests, provenance.settings
    calls = tuple(answer["calls"])
    digest = digests.of(answer["op"], calls)
    return Record(
        op=answer["op"],
        torch=digests.torch,
        target=digests.target,
        commit=provenance.commit,
        seed=settings.seed,
        reference=answer["reference"] or "cpu",
        # what was loaded is no source of the project: nobody could tell whether it has changed
        digest=digest if not settings.load else f"{digest} and {len(settings.load)} loaded",
        seconds=round(answer["seconds"], 2),
        dtypes={
            name: DtypeResult(**{**result, "verdict": Verdict(result["verdict"])})
            for name, result in answer["dtypes"].items()
        },
        reason=answer["reason"],
        asked=settings.cases,
        complete=settings.dtypes is None,
        calls=calls,
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
    nothing = {"op": overload.op, "reference": "", "dtypes": {}, "calls": [], "seconds": 0.0}
    return replace(record_of({**nothing, "reason": overload.skipped}, provenance), complete=True)


def _same_run(one: Record, other: Record) -> bool:
    return (one.seed, one.asked) == (other.seed, other.asked)


def _kept(record: Record, store: Store | None) -> Record:
    if store is not None:
        store.save(record)
    return record
