"""`make gpu-bench`: device `musa` on an NVIDIA GPU beside native `cuda`, in one process, each figure beside its target.

    python benchmarks/gpu.py                            # needs a GPU, and a build: opgen build --target cuda
    python benchmarks/gpu.py --only issue --seconds 20  # a group, or cases whose name contains a text
    python benchmarks/gpu.py --profile issue/add        # where the time of a case goes, on both devices
    python benchmarks/gpu.py --host                     # tries the script: target host beside the CPU, at tiny sizes

The figures go to a JSON file as they come, at the end also to a table and a plot beside it (benchmarks/gpu_report.py
makes them from the file, also elsewhere). A case that fails, hangs or ends the process is a line of the table.
Exit code: 1 where a case could not be measured; missing a target is no failure of the script.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from side_by_side.record import GROUPS, Figure, Launched, Machine, Run, figure_from, in_order, save
from side_by_side.report import plot, shown, table

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "gpu-bench" / "run.json"

WORKER = [sys.executable, "-m", "side_by_side.worker"]

PATIENCE = 60.0
"""Seconds for one case, before its process is ended."""
STARTING = 120.0
"""Seconds until a process has said something: it loads PyTorch and two devices."""
STARTS = 6
"""Processes at most: a machine where each case ends its process is no machine to measure on."""


def environment(host: bool) -> dict[str, str]:
    """The worker's: this tree in front, and its target named, since falling back to another would compare others."""
    paths = [str(ROOT / "benchmarks"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TORCH_MUSA_TARGET": "host" if host else "cuda",
        # Warnings of operators that resize or fall back are no figures; what fell back is noted in the table.
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "KINETO_LOG_LEVEL": "99",  # the profiler writes lines of its own
    }


def said(request: dict[str, Any], host: bool, patience: float, starting: float) -> Iterator[dict[str, Any]]:
    """What one worker says, ending with {"exit": code, "why": text}. Ends a worker that says nothing for too long."""
    reading, writing = os.pipe()
    worker = subprocess.Popen(
        WORKER,
        stdin=subprocess.PIPE,
        stdout=2,  # the table alone goes to standard output
        env=environment(host),
        cwd=ROOT,
        pass_fds=(writing,),
        text=True,
    )
    why = ""
    try:
        os.close(writing)
        assert worker.stdin is not None
        worker.stdin.write(json.dumps({**request, "fd": writing}))
        worker.stdin.close()
        pending, limit = b"", starting
        while True:
            if not select.select([reading], [], [], limit)[0]:
                why = f"said nothing for {limit:.0f} s and was ended"
                break
            read = os.read(reading, 1 << 16)
            if not read:
                break
            *lines, pending = (pending + read).split(b"\n")
            for line in lines:
                what = json.loads(line)
                limit = patience if "begin" in what else starting
                yield what
    finally:
        os.close(reading)
        if why or sys.exc_info()[0] is not None:
            worker.kill()
        code = worker.wait()
    if not why and code < 0:
        why = f"ended by {signal.Signals(-code).name}"
    yield {"exit": code, "why": why or f"ended with code {code}"}


class Bench:
    """Starts workers until every case has a figure, and keeps what they say."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.deadline = time.monotonic() + arguments.seconds
        self.machine: Machine | None = None
        self.expected: dict[str, Figure] = {}
        """Every case by its key, not yet measured."""
        self.figures: dict[str, Figure] = {}
        self.where: dict[str, dict[str, Any]] = {}
        self.code = 0

    def run(self) -> None:
        # The groups in their order; a process that ends early leaves the rest to the next.
        for _ in range(STARTS):
            done = tuple(self.figures)
            begun = self._one_process(done)
            remaining = [key for key in self.expected if key not in self.figures]
            if self.machine is None or self.arguments.profile or self.arguments.list or not remaining:
                break
            if begun is None and done == tuple(self.figures):
                break  # it never came to a case

    def _one_process(self, done: tuple[str, ...]) -> str | None:
        """The case that was under way when the process ended, if one was; it has a figure then."""
        arguments = self.arguments
        request = {
            "host": arguments.host,
            "deadline": self.deadline,
            "only": arguments.only + arguments.profile,
            "done": done,
            "explain": arguments.explain,
            "profile": bool(arguments.profile),
            "list": arguments.list,
        }
        begun: str | None = None
        # A process that hangs must not hold up much longer than was asked for.
        patience = min(arguments.patience, max(15.0, self.deadline - time.monotonic()))
        for what in said(request, arguments.host, patience, STARTING):
            if "cases" in what:
                listed = [figure_from(item) for item in what["cases"]]
                self.expected = {figure.key: figure for figure in listed}
            elif "machine" in what:
                self.machine = Machine(**what["machine"])
            elif "begin" in what:
                begun = what["begin"]
            elif "figure" in what:
                self._keep(figure_from(what["figure"]))
                begun = None
            elif "where" in what:
                self._explained(what)
                begun = None
            elif "exit" in what:
                self.code = what["exit"]
                if begun in self.expected and begun not in self.figures and not arguments.profile:
                    self._keep(replace(self.expected[begun], reason=f"failed: its process {what['why']}"))
                elif begun is not None:
                    print(f"{begun}: the process {what['why']}", file=sys.stderr)
        return begun

    def _keep(self, figure: Figure) -> None:
        self.figures[figure.key] = figure
        print(f"[{len(self.figures)}/{len(self.expected)}] {figure.key}: {shown(figure)}", file=sys.stderr, flush=True)
        self.save()

    def _explained(self, what: dict[str, Any]) -> None:
        key = what["where"]
        if "failed" in what:
            print(f"{key}: not profiled: {what['failed']}", file=sys.stderr)
            return
        launched = {name: Launched(**item) for name, item in what["launched"].items()}
        if key in self.figures:
            self.figures[key] = replace(self.figures[key], where=launched)
            self.save()
        else:
            print_launched(key, launched)

    def save(self) -> None:
        if self.machine is not None:
            save(self.result(self.machine), self.arguments.out)

    def result(self, machine: Machine) -> Run:
        return Run(machine, tuple(in_order(self.figures.values())))


def print_launched(key: str, launched: dict[str, Launched]) -> None:
    """Both devices' kernels and operators of one call, longest first."""
    for device, of in launched.items():
        number = sum(count for _, count, _ in of.kernels)
        print(f"\n{key} on {device}: one call, {of.kernels_us:.1f} us in {number:.4g} kernels")
        for title, lines in (("kernel", of.kernels), ("on the CPU", of.host)):
            print(f"  {'us':>10} {'times':>7}  {title}")
            for name, count, us in lines[:20]:
                print(f"  {us:10.2f} {count:7.4g}  {name[:160]}")


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    groups = ", ".join(GROUPS)
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help=f"a group ({groups}), or a part of a case's name"
    )
    parser.add_argument("--seconds", type=float, default=120, help="time for all of it (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="the file (default: build/gpu-bench/run.json)")
    parser.add_argument(
        "--profile", action="append", default=[], metavar="WORD", help="print where the time of these cases goes"
    )
    parser.add_argument(
        "--explain",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="profile what falls short after measuring, and keep it with the figures",
    )
    parser.add_argument("--host", action="store_true", help="target host beside the CPU, at tiny sizes")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--patience", type=float, default=PATIENCE, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words)
    try:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"--out {arguments.out}: {error.strerror}")
    if arguments.out.is_dir() or not os.access(arguments.out.parent, os.W_OK):
        sys.exit(f"--out {arguments.out}: no file can be written there")
    bench = Bench(arguments)
    try:
        bench.run()
    except KeyboardInterrupt:
        print("interrupted: what has been measured is kept", file=sys.stderr)
        bench.code = 130
    if not bench.expected and bench.code == 0 and (arguments.only or arguments.profile):
        print(
            f"no case is named like {' or '.join(arguments.only + arguments.profile)}: --list names them",
            file=sys.stderr,
        )
        return 2
    if arguments.list:
        print("\n".join(bench.expected))
    if arguments.list or arguments.profile or bench.machine is None:
        return bench.code
    run = bench.result(bench.machine)
    text = table(run)
    print(text, end="")
    arguments.out.with_suffix(".md").write_text(text, encoding="utf-8")
    written = [arguments.out, arguments.out.with_suffix(".md")]
    try:
        plot(run, arguments.out.with_suffix(".svg"))
        written.append(arguments.out.with_suffix(".svg"))
    except ImportError as error:
        print(f"no plot: {error}; benchmarks/gpu_report.py makes it elsewhere from {arguments.out}", file=sys.stderr)
    print("written:", ", ".join(map(str, written)), file=sys.stderr)
    complete = len(run.figures) == len(bench.expected) and all(f.state in ("met", "short") for f in run.figures)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
