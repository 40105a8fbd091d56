"""One judged test: how it ends, what it was about, and the line that is written about it."""

from __future__ import annotations

import functools
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from judge import plan, skips
from judge.skips import Subject
from judge.verdict import Answer, Ran, describe


def drop(line: dict[str, Any]) -> None:
    """Where lines go when no test runs."""


# Set by conftest.py for the test that runs: takes what is to be written about it.
publish: Callable[[dict[str, Any]], None] = drop

_MOST_PROBLEMS = 3


@dataclass
class Case:
    """What a test has seen so far."""

    subject: Subject
    device: str
    names: tuple[str, ...] = ()
    """What the entry is known by: the operators of that name are to blame when it fails."""
    ran: Ran = field(default_factory=Ran)
    samples: int = 0
    agreed: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Why samples were not compared in full: random, refused by both, or not to be had from the CPU."""
    lacking: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def add(self, found: list[str], about: str = "") -> None:
        """Closes one sample: it agrees when nothing was found."""
        self.samples += 1
        self.agreed += not found
        self.problems += [f"{text}\n    in {about}" if about else text for text in found]

    def note(self, text: str, *, closes: bool = True) -> None:
        """Says why a sample was not compared, and closes it; or not in full, which does not close it."""
        self.samples += closes
        if text not in self.notes:
            self.notes.append(text)

    def unsupported(self, error: Exception | None) -> None:
        """Closes one sample for which the device lacks the dtype."""
        self.samples += 1
        self.lacking = describe(error)

    def close(self) -> None:
        """Raises what the test has to end with."""
        registered = getattr(getattr(torch, self.device, None), "op_table", dict)()
        self.problems += [
            f"{op} has a kernel by the operator list, and ran on the CPU" for op in self.ran.broken_claims(registered)
        ]
        if self.problems:
            count = len(self.problems)
            listed = "\n".join(f"- {text}" for text in self.problems[:_MOST_PROBLEMS])
            more = f"\n(and {count - _MOST_PROBLEMS} more)" if count > _MOST_PROBLEMS else ""
            raise AssertionError(f"{self.subject.name} on {self.device}, {self.samples} samples:\n{listed}{more}")
        if self.lacking and not self.agreed:
            raise unittest.SkipTest(f"the device says: {self.lacking}")
        if not self.agreed:
            raise unittest.SkipTest("nothing to compare: " + ("; ".join(self.notes) or "no samples"))


@contextmanager
def judging(case: Case) -> Iterator[Case]:
    """Runs a test's body, applies skips.yaml, and publishes the outcome."""
    started = time.monotonic()
    failure: BaseException | None = None
    outcome, reason, title = "passed", "", ""
    try:
        try:
            yield case
            case.close()
        except unittest.SkipTest as skipped:
            outcome = "unsupported" if case.lacking else "inapplicable"
            reason, failure = str(skipped), skipped
        except Exception as raised:
            outcome, reason, failure = "failed", f"{type(raised).__name__}: {raised}", raised
        known = skips.find(case.subject, case.device)
        if known and outcome == "failed" and known.explains(reason):
            outcome, title, failure = "skipped", known.title, unittest.SkipTest(f"{known.title}: {known.reason}")
        elif known and outcome != "failed":
            reason = f"holds now, though skips.yaml says {known.title!r}: take it out there"
            outcome, failure = "failed", AssertionError(f"{case.subject} {reason}")
        if failure is not None:
            raise failure
    finally:
        publish(_line(case, outcome, reason, title, time.monotonic() - started))


def _line(case: Case, outcome: str, reason: str, title: str, seconds: float) -> dict[str, Any]:
    ran = case.ran
    return {
        "judge": case.subject.judge,
        "name": case.subject.name,
        "kind": case.subject.kind,
        "dtype": case.subject.dtype,
        "outcome": outcome,
        "reason": reason[:600],
        "title": title,
        "notes": case.notes,
        "samples": case.samples,
        "agreed": case.agreed,
        "ops": {op: {"family": ran.families.get(op), "calls": calls} for op, calls in sorted(ran.calls.items())},
        "fallback": sorted(ran.on_cpu),
        "subjects": subjects(case),
        "seconds": round(seconds, 4),
        **case.details,
    }


def subjects(case: Case) -> list[str]:
    """The overloads that the entry is about, of those that ran: by its name, or for gradients the backward ones.

    A module or an optimizer is about none: what it is made of has entries of its own in op_db.
    """
    known = {name.rpartition(".")[2].strip("_") for name in case.names}
    named = [op for op in case.ran.calls if op.partition(".")[0].strip("_") in known]
    if case.subject.kind.startswith("grad"):
        backward = [op for op in case.ran.calls if "backward" in op.partition(".")[0]]
        named = backward or named
    return sorted(named)


def about_ops(kind: str, op_db: list[Any]) -> Callable[[Callable[..., None]], Any]:
    """Makes a method one test for each OpInfo and dtype of which ``kind`` is asked; it gets `Case`, op and dtype."""
    from torch.testing._internal.common_device_type import ops

    question = plan.KINDS[kind]
    device = plan.current.device

    def decorate(method: Callable[..., None]) -> Any:
        @functools.wraps(method)
        def test(self: Any, device: str, op: Any, dtype: torch.dtype | None = None) -> None:
            case = Case(Subject("op_db", op.full_name, kind, name_of(dtype)), kind_of(device), tuple(plan.names_of(op)))
            with judging(case):
                method(self, case, op, dtype)

        # by dtype and not one decorator for all, because each OpInfo has its own
        test.__dict__.pop("__wrapped__", None)
        chosen = [(op, question.dtypes(op, device)) for op in plan.ops_for(kind, op_db)]
        chosen = [(op, dtypes) for op, dtypes in chosen if dtypes]
        if not chosen:
            return None
        test.parametrize_fn = _each(ops, chosen)  # type: ignore[attr-defined]
        return test

    return decorate


def _each(ops: Any, chosen: list[tuple[Any, set[torch.dtype | None]]]) -> Callable[..., Iterator[Any]]:
    def parametrize(test: Any, generic_cls: Any, device_cls: Any) -> Iterator[Any]:
        for op, dtypes in chosen:
            one = ops([op], dtypes=sorted(dtypes, key=str))
            yield from one._parametrize_test(test, generic_cls, device_cls)

    return parametrize


def name_of(dtype: torch.dtype | None) -> str | None:
    """ "float32" for torch.float32."""
    return None if dtype is None else str(dtype).removeprefix("torch.")


def kind_of(device: str) -> str:
    """ "musa" for "musa:0"."""
    return device.partition(":")[0]


def told(answer: Answer) -> str:
    """What an answer was, in a few words."""
    return f"raises {describe(answer.error)}" if answer.error else "returns"


def instantiate(test_class: type, scope: dict[str, Any]) -> None:
    """`instantiate_device_type_tests` for the planned device, without the questions that nothing is asked of."""
    from torch.testing._internal.common_device_type import PrivateUse1TestBase, instantiate_device_type_tests

    for name in [name for name, member in vars(test_class).items() if name.startswith("test") and member is None]:
        delattr(test_class, name)
    if plan.current.device == torch._C._get_privateuse1_backend_name():
        # it learns its name when it is set up; the names of test classes are not to depend on when that is
        PrivateUse1TestBase.setUpClass()
    instantiate_device_type_tests(test_class, scope, only_for=(plan.current.device,))
