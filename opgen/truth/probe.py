"""Runs one overload, dtype by dtype, in a process that was forked for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from opgen.backend import MUSA
from opgen.truth.failing import BENCH, Failure, of_load
from opgen.truth.heartbeat import Beat, Heartbeat
from opgen.truth.judging import judge, sentence, with_gradients

if TYPE_CHECKING:
    from opgen.testing.survey import Survey

__all__ = ["Task", "probe"]

# Backward runs forward as well and is compared per argument: a few cases say as much.
_GRADIENT_CASES = 5
# Of each dtype that the operator refuses: whether the device refuses it does not hang on the shape.
_REFUSED_CASES = 4


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

    An argument without a rule is a message with the reason why nothing was tested. What kept the task from being run,
    a file that does not load or a fault of the test bench, is a message with the failure.
    """
    import torch

    from opgen.testing.origins import load
    from opgen.testing.overload import NeedsRule, UnknownOverload
    from opgen.testing.subject import load_subject

    for path in task.load:
        beat.note(Beat(phase="loading", script=path))
        try:
            load(path)
        except BaseException as error:
            send({"failure": asdict(of_load(path, error))})
            send({"end": True})
            return
    beat.note(Beat(phase="starting"))
    try:
        subject = load_subject(task.op, device=task.device)
        beat.note(Beat(phase="trying"))
        wanted = task.dtypes
        accepted = [str(dtype).removeprefix("torch.") for dtype in subject.dtypes()]
        names = [name for name in accepted if wanted is None or name in wanted]
        send({"reference": subject.compared_with, "dtypes": names})
        if not accepted:
            send({"reason": sentence(subject.why_no_dtypes())})
        elif not names:
            send({"reason": f"the reference takes none of the dtypes that were asked for, but {', '.join(accepted)}"})
        for name in names:
            if name not in task.skip:
                _probe_dtype(task, getattr(torch, name), subject.reference, beat, send)
        for dtype in subject.refused([getattr(torch, name) for name in accepted]):
            name = str(dtype).removeprefix("torch.")
            if name not in task.skip and (wanted is None or name in wanted):
                _probe_refused(task, dtype, beat, send)
    except NeedsRule as error:
        send({"reason": f"no arguments can be drawn for it: {sentence(str(error))}"})
    except Exception as error:
        said = sentence(str(error)) if isinstance(error, UnknownOverload) else f"{type(error).__name__}: {error}"
        message = f"the test bench cannot run it: {sentence(said)}"
        send({"failure": asdict(Failure(BENCH, message))})
    send({"end": True})


def _probe_dtype(task: Task, dtype: Any, reference: Callable[..., Any], beat: Heartbeat, send: Send) -> None:
    from opgen.testing.repro import script
    from opgen.testing.survey import survey

    name = str(dtype).removeprefix("torch.")
    calls: Counter[str] = Counter()
    families: Counter[str] = Counter()
    number, watched = 0, 0

    def before(case: Any) -> None:
        nonlocal number
        number += 1
        beat.note(Beat(name, number, "reference", script(case, task.device, reference)))

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


def _probe_refused(task: Task, dtype: Any, beat: Heartbeat, send: Send) -> None:
    """A dtype that the operator refuses has a result only where the device does not refuse it."""
    from opgen.testing.repro import script
    from opgen.testing.survey import survey_refusals

    name = str(dtype).removeprefix("torch.")
    calls: Counter[str] = Counter()
    number = 0

    def before(case: Any) -> None:
        nonlocal number
        number += 1
        beat.note(Beat(name, number, "reference", script(case, task.device)))

    @contextmanager
    def watch() -> Iterator[None]:
        beat.phase("device")
        with _counted(task, calls, Counter()):
            yield

    found = survey_refusals(
        task.op,
        dtype,
        count=min(task.cases, _REFUSED_CASES),
        seed=task.seed,
        device=task.device,
        fallback=task.fallback,
        before=before,
        watch=watch,
    )
    if found.findings:
        send({"dtype": name, "result": asdict(judge(found, {})), "calls": sorted(calls)})


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
