"""Looks for one fault at a time, each in a process of its own: runs the harness over the overloads concerned."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import traceback
from typing import Any

import torch

from opgen.testing.case import Case
from opgen.testing.check import for_every
from opgen.testing.examine import examine
from opgen.testing.gradients import Compared, differentiable_dtypes, examine_gradients, gradient_subject
from opgen.testing.problem import Problem
from opgen.testing.repro import script
from opgen.testing.strategies import cases
from opgen.testing.subject import Subject, load_subject


class Found(Exception):
    """The harness reports."""


def look_at(name: str, backward: bool, count: int) -> dict[str, Any]:
    """Which case of ``count`` shows something, and what; ``case`` is 0 where none does."""
    seen = 0
    report: dict[str, Any] = {"overload": name, "case": 0}

    def stop_at(case: Case, subject: Subject, problems: tuple[Problem, ...]) -> None:
        nonlocal seen
        seen += 1
        if problems:
            report.update(
                case=seen,
                category=problems[0].category.value,
                text=problems[0].text,
                arguments=repr(case),
                script=script(case, subject.device, subject.reference, backward, {problems[0].category}),
            )
            raise Found

    if backward:
        subject = gradient_subject(name)
        dtypes = differentiable_dtypes(subject, (torch.float32, torch.float64))
    else:
        subject = load_subject(name)
        dtypes = subject.dtypes()

    def check(case: Case) -> None:
        problems = examine_gradients(case, subject, Compared()) if backward else examine(case, subject).problems
        stop_at(case, subject, problems)

    strategy = cases(subject.op, subject.domain, subject.reference, dtypes)
    with contextlib.suppress(Found):
        for_every(strategy, check, count, shrink=False)
    report["cases"] = seen
    return report


def look(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Looks at each of the overloads in the order given; the first report ends it unless all are wanted."""
    reports = []
    for name, backward in wanted["overloads"]:
        reports.append(look_at(name, backward, wanted["count"]))
        if reports[-1]["case"] and not wanted["all"]:
            break
    return reports


def printed_by(program: str) -> str:
    """What a script prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(program, "script", "exec"), {"__name__": "__main__"})
    return text.getvalue()


def answer(request: dict[str, Any]) -> Any:
    """A request has a ``script`` to run, or ``overloads`` to look at."""
    return printed_by(request["script"]) if "script" in request else look(request)


def ask_child(request: dict[str, Any]) -> dict[str, Any]:
    """Answers in a child of its own, in which the fault is on; it may die or hang."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        os.environ["OPGEN_MUTANT"] = str(request["number"])
        signal.alarm(request["patience"])
        try:
            reply = {"answer": answer(request)}
        except BaseException:
            reply = {"error": traceback.format_exc()}
        with os.fdopen(send, "w") as pipe:
            json.dump(reply, pipe)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return json.loads(text)
    killer = signal.Signals(os.WTERMSIG(status))
    how = f"hangs for more than {request['patience']} s" if killer is signal.SIGALRM else f"dies with {killer.name}"
    return {"ended": how}


def main() -> None:
    """Answers requests, a line of JSON each. Torch is loaded once; nothing touches the device before a fork."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(ask_child(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
