"""Runs one overload, dtype by dtype, in a process that was forked for it."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opgen.backend import MUSA
from opgen.truth.heartbeat import Beat, Heartbeat
from opgen.truth.judging import judge, sentence, with_gradients

if TYPE_CHECKING:
    from opgen.testing.survey import Survey

__all__ = ["Task", "probe"]

# Backward runs forward as well and is compared per argument: a few cases say as much.
_GRADIENT_CASES = 5


@dataclass(frozen=True)
class Task:
    """What to run. Plain data, which goes through JSON."""

    op: str
    cases: int = 20
    """For each main dtype."""
    seed: int = 0
    dtypes: tuple[str, ...] | None = None
    """Names without "torch."; None for all that the reference takes."""
    gradients: bool = False
    fallback: bool = False
    """Whether the overload goes through the CPU on purpose."""
    shrink: bool = False
    timeout: float = 60
    """Seconds that a call may take."""
    device: str = MUSA.name
    load: tuple[str, ...] = ()
    """Shared libraries and Python files with operators, loaded before."""
    skip: tuple[str, ...] = ()
    """Dtypes that have been tried already."""

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> Task:
        """From what `dataclasses.asdict` gives, through JSON."""
        lists = {name: tuple(plain[name]) for name in ("load", "skip")}
        dtypes = plain["dtypes"]
        return Task(**{**plain, **lists, "dtypes": None if dtypes is None else tuple(dtypes)})


Send = Callable[[Mapping[str, Any]], None]


def probe(task: Task, beat: Heartbeat, send: Send) -> None:
    """Runs the task and sends a message for the dtypes there are, for each of them, and at the end.

    A fault of the test bench (an argument without a rule, say) is a message with the reason why nothing was tested.
    """
    import torch

    from opgen.testing.subject import load_subject

    try:
        for path in task.load:
            _load(path)
        subject = load_subject(task.op, device=task.device)
        beat.note(Beat(phase="trying"))
        wanted = task.dtypes
        accepted = [str(dtype).removeprefix("torch.") for dtype in subject.dtypes()]
        names = [name for name in accepted if wanted is None or name in wanted]
        send({"reference": subject.compared_with, "dtypes": names})
        if not accepted:
            send({"reason": "the reference refuses every case: the table of domains lacks a rule for it"})
        for name in names:
            if name not in task.skip:
                _probe_dtype(task, getattr(torch, name), beat, send)
    except Exception as error:
        send({"reason": f"the test bench cannot run it: {type(error).__name__}: {sentence(str(error))}"})
    send({"end": True})


def _probe_dtype(task: Task, dtype: Any, beat: Heartbeat, send: Send) -> None:
    from opgen.testing.repro import script
    from opgen.testing.survey import survey

    name = str(dtype).removeprefix("torch.")
    calls: Counter[str] = Counter()
    families: Counter[str] = Counter()
    number, watched = 0, 0

    def before(case: Any) -> None:
        nonlocal number
        number += 1
        beat.note(Beat(name, number, "reference", script(case, task.device)))

    @contextmanager
    def watch() -> Iterator[None]:
        nonlocal watched
        beat.phase("device")
        # what shrinking runs is no case more
        with _counted(task, calls, families if watched < number <= task.cases else Counter()):
            watched = number
            yield

    found = survey(
        task.op,
        dtype,
        count=task.cases,
        seed=task.seed,
        device=task.device,
        fallback=task.fallback,
        before=before,
        watch=watch,
        shrink=task.shrink,
    )
    result = judge(found, families)
    if task.gradients and result.agreed and (dtype.is_floating_point or dtype.is_complex):
        result = with_gradients(result, _gradients(task, dtype, beat))
    send({"dtype": name, "result": asdict(result), "calls": sorted(calls)})


@contextmanager
def _counted(task: Task, calls: Counter[str], families: Counter[str]) -> Iterator[None]:
    """Counts the operators of one call on the device, as the dispatcher sees them."""
    import torch

    module = getattr(torch, task.device.partition(":")[0])
    if not hasattr(module, "count_ops"):
        yield
        return
    counts = None
    try:
        with module.count_ops() as counts:
            yield
    finally:
        if counts is not None:
            calls.update(counts)
            families.update(_families(task.op, counts))


def _families(op: str, counts: Any) -> Counter[str]:
    """Which kernels served the call: the overload's own, else those of the operators that it is made of. What went
    through the CPU below either shows, too."""
    own = counts.family(op)
    found: Counter[str] = Counter()
    for name, number in counts.items():
        family = counts.family(name)
        if name == op or family == "cpu_fallback" or (own == "composite" and family != "composite"):
            found[family] += number
    if len(found) > 1:
        del found["composite"]
    return found


def _gradients(task: Task, dtype: Any, beat: Heartbeat) -> Survey:
    from opgen.testing.repro import script
    from opgen.testing.survey import survey_gradients

    number = 0

    def before(case: Any) -> None:
        nonlocal number
        number += 1
        beat.note(Beat(str(dtype).removeprefix("torch."), number, "gradients", script(case, task.device, None, True)))

    return survey_gradients(
        task.op,
        dtype,
        count=min(task.cases, _GRADIENT_CASES),
        seed=task.seed,
        device=task.device,
        fallback=task.fallback,
        before=before,
        shrink=task.shrink,
    )


def _load(path: str) -> None:
    import torch

    if Path(path).suffix == ".py":
        # what registers an operator has to live as long as the operator
        _KEPT.append(runpy.run_path(path))
    else:
        torch.ops.load_library(path)


_KEPT: list[dict[str, Any]] = []
