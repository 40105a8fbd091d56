"""Measures, in a process of its own: a kernel that breaks the device, or ends the process, costs one case.

Started by benchmarks/gpu.py. Reads one request (a JSON object) from its standard input and writes one JSON object a
line to the file descriptor that the request names; what libraries print goes where it always goes.
"""

from __future__ import annotations

import datetime
import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from side_by_side.cases import FULL, TINY, Case, all_cases
from side_by_side.explain import explain
from side_by_side.measure import Pair, pair_of
from side_by_side.record import Figure, Machine

BROKEN = 3
"""Exit code: a case left a device that answers no call any more."""

# Seconds of measuring, where the time given allows it; shares of it where it does not.
_SECONDS = {"issue": 1.0, "device": 0.5, "steps": 5.0}
_TRIAL = 0.05
"""Of them, at the host's tiny sizes: they show that the script works, not how fast anything is."""
_EXPLAINING = 0.12
"""Of the time given."""


@dataclass(frozen=True)
class Request:
    fd: int
    host: bool
    deadline: float
    """By time.monotonic(), which all processes of a machine share."""
    only: tuple[str, ...]
    """Groups, or parts of cases' keys; none: all."""
    done: tuple[str, ...]
    """Keys of cases that an earlier process has seen to."""
    explain: bool
    """Whether figures that fall short are looked into, too."""
    profile: bool
    """Look into the cases instead of measuring them."""
    list: bool
    """Name the cases and end."""


def chosen(cases: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """Cases of these groups, and those whose key contains one of these texts."""
    return [case for case in cases if not only or any(case.group == word or word in case.key for word in only)]


def machine(pair: Pair) -> Machine:
    device, driver = pair.native.device, ""
    if device == "cuda":
        device = torch.cuda.get_device_name(0)
        version = Path("/proc/driver/nvidia/version")
        # NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build ...
        words = version.read_text(errors="replace").split() if version.is_file() else []
        driver = next((word for word in words if word[0].isdigit() and word.count(".") >= 1), "")
    return Machine(
        musa=torch.musa.target(),
        native=pair.native.device,
        device=device if pair.native.device != "cpu" else _processor(),
        torch=torch.__version__,
        cuda=torch.version.cuda or "",
        driver=driver,
        cpu=_processor(),
        cores=len(os.sched_getaffinity(0)),
        python=platform.python_version(),
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.is_file() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.machine()


def nothing(case: Case) -> Figure:
    """The case's figure before it is measured."""
    return Figure(case.group, case.name, case.unit, case.amount, case.elements)


def figure_of(case: Case, pair: Pair, seconds: float) -> Figure:
    """What measuring the case gave, or why it gave nothing. Never raises for what a case does."""
    found = replace(nothing(case), date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))
    before = torch.musa.fallback_counts()
    try:
        measured = case.measure(pair, seconds)
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        return replace(found, reason=f"failed: {text[:300]}")
    after = torch.musa.fallback_counts()
    through_cpu = sorted(name for name, count in after.items() if count > before.get(name, 0))
    note = f"through the CPU: {', '.join(through_cpu)}" if through_cpu else ""
    return replace(found, musa_s=measured.musa, native_s=measured.native, rounds=measured.rounds, note=note)


def work(request: Request, say: Callable[[dict[str, Any]], None]) -> int:
    """Measures what is asked for and says so as it goes; the exit code."""
    cases = chosen(list(all_cases(TINY if request.host else FULL)), request.only)
    say({"cases": [asdict(nothing(case)) for case in cases]})
    if request.list:
        return 0
    pair = pair_of(("musa", "cpu" if request.host else "cuda"))
    try:
        return measured(cases, pair, request, say)
    finally:
        pair.alone.close()


def measured(cases: Sequence[Case], pair: Pair, request: Request, say: Callable[[dict[str, Any]], None]) -> int:
    say({"machine": asdict(machine(pair))})
    if request.host:
        torch.set_num_threads(1)  # at these sizes threads only wait for each other
    # What is loaded stays: collecting what a case leaves need not look through all of it.
    gc.collect()
    gc.freeze()
    left = [case for case in cases if case.key not in request.done]
    if request.profile:
        for case in left:
            say({"begin": case.key})
            say({"where": case.key, **_explained(case, pair, None)})
        return 0
    reserved = _EXPLAINING * (request.deadline - time.monotonic()) if request.explain else 0.0
    short: list[tuple[float, Case]] = []
    weight = sum(_SECONDS[case.method] for case in left)
    for case in left:
        remaining = request.deadline - reserved - time.monotonic()
        share = remaining * _SECONDS[case.method] / weight
        weight -= _SECONDS[case.method]
        say({"begin": case.key})
        if remaining <= 0:
            say({"figure": asdict(replace(nothing(case), reason="not run: the time given was over"))})
            continue
        # Half of a case's share goes into making its operands and warming up.
        most = _SECONDS[case.method] * (_TRIAL if request.host else 1)
        figure = figure_of(case, pair, max(0.02, min(most, share / 2)))
        say({"figure": asdict(figure)})
        try:
            pair.release()
        except Exception as error:
            print(f"{case.key} broke the device: {error}", file=sys.stderr)
            return BROKEN
        if figure.state == "short" and figure.ratio is not None:
            over = figure.ratio if case.method == "issue" else 1 / figure.ratio
            short.append((over, case))
    if request.explain:
        # After all measuring: a profiler that has been used goes on slowing launches down.
        for _, case in sorted(short, key=lambda item: -item[0]):
            if time.monotonic() > request.deadline:
                break
            say({"begin": f"where the time of {case.key} goes"})
            say({"where": case.key, **_explained(case, pair)})
    return 0


def _explained(case: Case, pair: Pair, *most: int | None) -> dict[str, Any]:
    try:
        return {"launched": {name: asdict(launched) for name, launched in explain(case, pair, *most).items()}}
    except Exception as error:
        return {"failed": " ".join(str(error).split())[:300]}


def main() -> int:
    asked = json.loads(sys.stdin.read())
    request = Request(**{**asked, "only": tuple(asked["only"]), "done": tuple(asked["done"])})
    with os.fdopen(request.fd, "w", encoding="utf-8") as out:

        def say(what: dict[str, Any]) -> None:
            print(json.dumps(what), file=out, flush=True)

        return work(request, say)


if __name__ == "__main__":
    sys.exit(main())
