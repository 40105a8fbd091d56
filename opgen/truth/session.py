"""What both verbs begin with: the project's sources, what can be run, and what is known of it already."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opgen.diagnostics import Diagnostics, OpgenError
from opgen.report import report

if TYPE_CHECKING:
    from opgen.gen import Analysis, Sources
    from opgen.project import Project
    from opgen.truth.digest import Digests
    from opgen.truth.plan import Planned
    from opgen.truth.store import Store

__all__ = ["Session", "bring_up_to_date", "default_jobs", "open_session", "select"]


@dataclass(frozen=True)
class Session:
    """One project, for the target that the environment names."""

    project: Project
    sources: Sources
    analysis: Analysis
    digests: Digests
    planned: Mapping[str, Planned]
    """What can be run, by overload."""
    store: Store

    @property
    def names(self) -> list[str]:
        """Every overload there is: upstream's, and those that the operator list defines."""
        return [*self.analysis.upstream.names, *(op for op in self.planned if "::" in op)]


def open_session() -> Session:
    """The project around the working folder. Faults of its operator list are reported and end the command."""
    from opgen.gen import Sources, analyse
    from opgen.project import find_project
    from opgen.truth.digest import chosen_target, load_digests
    from opgen.truth.plan import plan
    from opgen.truth.store import Store

    project = find_project()
    sources = Sources.of(project)
    diagnostics = Diagnostics()
    analysis = analyse(sources, diagnostics, draft=True)
    if diagnostics.errors:
        report(diagnostics, "nothing was run")
        raise SystemExit(1)
    target = chosen_target(sources)
    return Session(
        project=project,
        sources=sources,
        analysis=analysis,
        digests=load_digests(sources, analysis, target),
        planned=plan(sources, analysis),
        store=Store.of(project.root, target, sources.install.release),
    )


def select(session: Session, words: Iterable[str], *, group: bool = False, loaded: bool = False) -> list[Planned]:
    """What words name (`lerp.Scalar`, `aten::tril.out`, or `lerp` for all that share the name), each overload once;
    with ``group`` its functional, in-place and out= relatives too. Where operators are ``loaded`` that only the
    process which runs them knows, a word with a namespace is taken for one. Overloads without a kernel are among them.

    Raises OpgenError with the nearest spelling.
    """
    from opgen.find import find_operator

    chosen: dict[str, None] = {}
    for word in words:
        found = find_operator(word, session.names)
        if loaded and found.op is None and not found.overloads and "::" in word:
            chosen[word] = None
            continue
        if found.op is None and not found.overloads:
            near = " or ".join(f"'{name}'" for name in found.nearest)
            hint = f"did you mean {near}?" if near else "`opgen list` shows the operators that have an entry"
            raise OpgenError(f"PyTorch {session.analysis.upstream.torch_version} has no operator '{word}'", hint=hint)
        named = (found.op,) if found.op is not None else found.overloads
        for op in named:
            chosen[op] = None
            if group:
                chosen.update(dict.fromkeys(_relatives(op, session)))
    return [session.planned.get(op) or _unplanned(op, session) for op in chosen]


def _unplanned(op: str, session: Session) -> Planned:
    """An overload that is not counted and has no entry, or one that is loaded later."""
    from opgen.coverage.matrix import State, state_of
    from opgen.truth.plan import Planned, may_have_gradient

    upstream = session.analysis.upstream
    if op not in upstream.functions:
        return Planned(op, fallback=False, gradients=False, loaded=True)
    state = state_of(op, session.analysis.registrations, upstream, session.sources.backend)
    missing = state in (State.MISSING, State.SKELETON)
    return Planned(op, False, may_have_gradient(op), "missing: no kernel for the device" if missing else None)


def _relatives(op: str, session: Session) -> list[str]:
    group = session.analysis.upstream.groups.get(op)
    return [str(function.func.name) for function in group.functions()] if group is not None else []


def bring_up_to_date(session: Session, jobs: int) -> None:
    """Build what has changed, so that verdicts are told of these sources; nothing where the environment names a build.

    Raises OpgenError where it does not compile.
    """
    from opgen.build import Plan, run
    from opgen.gen import generate

    if "TORCH_MUSA_BUILD_DIR" in os.environ:
        return
    install, project = session.sources.install, session.project
    plan = Plan(project, install.torch, install.release, session.digests.target, jobs)
    diagnostics = Diagnostics()
    if generate(session.sources, plan.generated, diagnostics, draft=True) is None:
        report(diagnostics, "nothing was run")
        raise SystemExit(1)
    run(plan)


def default_jobs() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))
