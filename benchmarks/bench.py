"""`make bench`: the project's speed figures, each beside its target or beside what it is compared with.

Measured are the commands and calls a developer waits for. Nothing here passes or fails: a loaded machine is no defect.

    python benchmarks/bench.py                 # needs a build
    python benchmarks/bench.py --cold          # adds a cold generate + build in a copy of the tree (minutes)
    python benchmarks/bench.py --only gen      # one part alone: gen, compile, build, sdk, ops, indexing, kernels
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from opgen.project import Project, find_project
from opgen.tables import print_table
from opgen.upstream import find_torch

OPGEN = [sys.executable, "-m", "opgen.cli"]
# The entry that the incremental build edits: the manual's own example.
ENTRY = "tril.out"
# The length of list that the targets are about.
ENTRIES = 1200


@dataclass(frozen=True)
class Figure:
    """One line of the table. `reference` is a target in the same unit, or what the same work costs elsewhere."""

    what: str
    measured: float
    reference: float
    unit: str
    against: str
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        return (
            self.what,
            f"{self.measured:.3g} {self.unit}",
            f"{self.against} {self.reference:.3g} {self.unit}",
            f"{self.measured / self.reference:.2f}",
            self.note,
        )


# ---- opgen


def run_opgen(*arguments: str, cwd: Path, **environment: str) -> tuple[float, str]:
    """Seconds and output of one opgen command. Raises SystemExit with its messages when it fails."""
    started = time.perf_counter()
    done = subprocess.run(
        [*OPGEN, *arguments], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(f"opgen {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return seconds, done.stdout + done.stderr


def files_written(output: str) -> str:
    """The part of opgen's summary that says what was written."""
    if "up to date" in output:
        return "0 files written"
    match = re.search(r"\d+ files written", output)
    return match[0] if match else ""


def bench_gen(project: Project) -> Iterator[Figure]:
    """Generation for a list of 1,200 entries: the project's own, and further ones from PyTorch's catalogue."""
    from large_list import write_large_list

    from opgen.upstream import load_upstream

    with tempfile.TemporaryDirectory(prefix="opgen-bench-") as folder:
        listed = frozenset(row["op"] for row in rows(project))
        path = write_large_list(project, load_upstream(), listed, ENTRIES, Path(folder) / "list")
        text = path.read_text(encoding="utf-8")

        def generate(name: str) -> tuple[float, str]:
            """Into a folder and with a cache of that name; a new name is a cold run."""
            out, cache = Path(folder) / name / "generated", Path(folder) / name / "cache"
            options = ("--yaml", str(path), "--kernels", str(path.parent / "kernels"), "--out", str(out))
            return run_opgen("gen", *options, cwd=project.root, OPGEN_CACHE_DIR=str(cache))

        def edit_and_generate(number: int) -> tuple[float, str]:
            """Once there and once back, so that each run has something to write."""
            changed = text.replace(f"- func: {ENTRY}\n", f"- func: {ENTRY}\n  device_check: NoCheck\n")
            path.write_text(text if number % 2 else changed, encoding="utf-8")
            return generate("cold0")

        if f"- func: {ENTRY}\n" not in text:
            sys.exit(f"the operator list has no entry for {ENTRY} any more: bench.py has to learn what to edit")
        seconds, output = min(generate(f"cold{i}") for i in range(3))
        note = f"{ENTRIES} entries; {files_written(output)}, no cache, best of 3"
        yield Figure("opgen gen, cold", seconds, 3, "s", "target", note)
        seconds, output = min(generate("cold0") for _ in range(5))
        yield Figure("opgen gen, nothing changed", seconds, 0.5, "s", "target", f"{files_written(output)}, best of 5")
        seconds, output = min(edit_and_generate(i) for i in range(6))
        yield Figure("opgen gen, one entry changed", seconds, 1, "s", "target", f"{files_written(output)}, best of 6")


def bench_compile(project: Project) -> Iterator[Figure]:
    """CPU time of compiling what is generated, and of one of its sources with its wrappers registered the plain way."""
    from compile_time import commands, cpu_seconds, plain, registrations

    run_opgen("build", cwd=project.root)
    compiled = commands(project.build("host", find_torch().release))
    sources = [command for command in compiled if command.source.name.startswith("Register")]
    if not sources:
        sys.exit("the build knows no generated sources")
    count = registrations([command.source for command in sources])
    seconds = sum(cpu_seconds(command, command.source) for command in compiled) / count
    note = f"CPU time, {count} registrations in {len(sources)} sources, their types in {len(compiled) - len(sources)}"
    yield Figure("compile, per registration", seconds, 0.1, "s", "target", note)
    largest = max(sources, key=lambda command: registrations([command.source]))
    with tempfile.TemporaryDirectory(prefix="opgen-bench-") as folder:
        path = Path(folder) / largest.source.name
        path.write_text(plain(largest.source.read_text(encoding="utf-8")), encoding="utf-8")
        plainly = cpu_seconds(largest, path) / registrations([path])
    note = f"{largest.source.name} with TORCH_FN for every wrapper"
    yield Figure("compile, per registration", seconds, plainly, "s", "plain TORCH_LIBRARY_IMPL", note)


@contextlib.contextmanager
def edited(replacements: dict[Path, tuple[str, str]]) -> Iterator[None]:
    """The files with (old, new) replaced; put back as they were, also when the block is interrupted or terminated."""
    originals = {path: path.read_text(encoding="utf-8") for path in replacements}
    for path, (old, _) in replacements.items():
        if old not in originals[path]:
            sys.exit(f"{path} does not contain '{old}' any more: bench.py has to learn what to edit")

    def stop(signum: int, _frame: object) -> None:
        raise SystemExit(128 + signum)

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        for path, (old, new) in replacements.items():
            path.write_text(originals[path].replace(old, new), encoding="utf-8")
        yield
    finally:
        for path, text in originals.items():
            path.write_text(text, encoding="utf-8")
        signal.signal(signal.SIGTERM, previous)


def bench_build(project: Project) -> Iterator[Figure]:
    """Renames one kernel in its entry and in its source, builds, and puts both back."""
    kernel, source = locate(project, ENTRY)
    run_opgen("build", cwd=project.root)  # so that only the edit is measured
    with edited(dict.fromkeys((project.yaml, project.root / source), (kernel, f"{kernel}Renamed"))):
        seconds, output = run_opgen("build", cwd=project.root)
    run_opgen("build", cwd=project.root)
    note = f"{ENTRY} and {source}; {files_written(output)}"
    yield Figure("opgen build, one entry and its source edited", seconds, 20, "s", "target", note)


def locate(project: Project, op: str) -> tuple[str, str]:
    """The kernel of an entry and the source that defines it."""
    row = next((row for row in rows(project) if row["op"] == op), None)
    if row is None or row["source"] is None:
        sys.exit(f"the operator list has no entry for {op} with a source")
    return row["kernel"], row["source"]


def rows(project: Project) -> list[dict[str, str]]:
    """What `opgen list` tells."""
    _, output = run_opgen("list", "--format", "json", cwd=project.root)
    return list(json.loads(output))


def bench_cold(project: Project) -> Iterator[Figure]:
    """Generate and build a copy of the tree, without any cache of ours (the compiler's own is left alone)."""
    with tempfile.TemporaryDirectory(prefix="opgen-bench-") as folder:
        copy = Path(folder) / "tree"
        ignore = shutil.ignore_patterns(".git", ".venv*", "build", "torch[0-9]*", "__pycache__", ".hypothesis")
        shutil.copytree(project.root, copy, ignore=ignore, symlinks=True)
        seconds, _ = run_opgen("build", cwd=copy, OPGEN_CACHE_DIR=str(Path(folder) / "cache"))
    yield Figure("opgen build, cold", seconds, 360, "s", "target", f"{os.cpu_count()} cores")


# ---- toolkit


def bench_sdk(project: Project) -> Iterator[Figure]:
    """What the host stand-in's runtime adds to a piece of device work."""
    folder = os.environ.get("TORCH_MUSA_BUILD_DIR")
    found = [Path(folder)] if folder else sorted((project.root / "build").glob("host-torch*"))
    binary = next((path for path in (build / "bin" / "runtime_switch" for build in found) if path.is_file()), None)
    if binary is None:
        sys.exit("no runtime_switch in build/: build with `opgen build` first")
    done = subprocess.run([binary], capture_output=True, text=True, check=True)
    mode, switch, enqueue = done.stdout.split()
    note = f"TORCH_MUSA_HOST_PROTECT: {mode}"
    yield Figure("protection switch, on and off again", float(switch), 100, "ns", "target", note)
    yield Figure("enqueue of nothing", float(enqueue), 100, "ns", "target", "the switch included")


# ---- operators


def best_times(calls: Sequence[Callable[[], object]], repeat: int, rounds: int = 9) -> list[float]:
    """Seconds per call of each, best of some rounds. In turns: what slows the machine down slows all of them."""
    import torch

    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for index, call in enumerate(calls):
            call()
            torch.musa.synchronize()
            started = time.perf_counter()
            for _ in range(repeat):
                call()
            torch.musa.synchronize()
            best[index] = min(best[index], (time.perf_counter() - started) / repeat)
    return best


def bench_ops(_project: Project) -> Iterator[Figure]:
    import torch

    if not (hasattr(torch, "musa") and torch.musa.is_available()):
        sys.exit("no musa device: build with `opgen build` first")

    def compare(
        op: Callable[..., object], shape: tuple[int, ...], operands: int, repeat: int, rounds: int, into: bool = False
    ) -> list[float]:
        """Seconds per call on musa and on the CPU."""
        tensors = [torch.rand(shape) for _ in range(operands)]
        moved = [tensor.to("musa") for tensor in tensors]
        calls: list[Callable[[], object]] = [partial(op, *moved), partial(op, *tensors)]
        if into:
            calls = [
                partial(call, out=torch.empty_like(of[0])) for call, of in zip(calls, (moved, tensors), strict=True)
            ]
        return best_times(calls, repeat, rounds)

    def softmax(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._softmax.out(x, -1, False, out=out)

    pairs, singles = (("add", torch.add), ("mul", torch.mul)), (("relu", torch.relu), ("sum", torch.sum))
    for operands, ops in ((2, pairs), (1, singles)):
        for name, op in ops:
            # Many short rounds: between two interruptions of a busy machine, some round runs undisturbed.
            musa, cpu = compare(op, (8,), operands, 1000, 60)
            note = "target ratio 1.3, with allocation"
            yield Figure(f"{name}, 8 floats, musa", musa * 1e6, cpu * 1e6, "us", "CPU", note)
    threads = f"target ratio 1.5, {torch.get_num_threads()} threads"
    # Into memory that is there: the CPU's allocator takes fresh pages from the system for every large result, ours
    # keeps them, and the ratio would be about that.
    for name, op, operands in (("add", torch.add, 2), ("mul", torch.mul, 2), ("exp", torch.exp, 1)):
        musa, cpu = compare(op, (1 << 24,), operands, 2, 9, into=True)
        yield Figure(f"{name}(out=), 16 Mi floats, musa", musa * 1e3, cpu * 1e3, "ms", "CPU", threads)
    for name, op in (("relu_", torch.relu_), ("sum", torch.sum), ("mean", torch.mean)):
        musa, cpu = compare(op, (1 << 24,), 1, 2, 9)
        yield Figure(f"{name}, 16 Mi floats, musa", musa * 1e3, cpu * 1e3, "ms", "CPU", threads)
    for name, op, side, operands in (
        ("sum of rows", lambda x: x.sum(1), 4096, 1),
        ("softmax", softmax, 4096, 1),
        ("mm", torch.mm, 1024, 2),
    ):
        musa, cpu = compare(op, (side, side), operands, 2, 9, into=op is softmax)
        yield Figure(f"{name}, {side} x {side} floats, musa", musa * 1e3, cpu * 1e3, "ms", "CPU", threads)


def bench_indexing(_project: Project) -> Iterator[Figure]:
    """Operators that our own kernels compute as a card's threads would, element by element. No target."""
    import torch

    rows, columns = 100_000, 16
    on_cpu = torch.rand(rows, columns)
    index = torch.randint(rows, (rows,))
    for name, op in (
        ("x[index]", lambda x, i: x[i]),
        ("index_add", lambda x, i: x.index_add(0, i, x)),
        ("flip", lambda x, _: x.flip(1)),
    ):
        cpu_operands, musa_operands = (on_cpu, index), (on_cpu.to("musa"), index.to("musa"))
        musa, cpu = best_times([partial(op, *musa_operands), partial(op, *cpu_operands)], 3)
        note = f"{torch.get_num_threads()} threads"
        yield Figure(f"{name}, {rows} x {columns} floats, musa", musa * 1e3, cpu * 1e3, "ms", "CPU", note)


# ---- kernels


def bench_kernels(project: Project) -> Iterator[Figure]:
    """`.mu` kernels on one thread of the pool, compiled as an op library's are."""
    import torch

    library = project.root / "build" / f"host-torch{torch.__version__.split('+')[0]}" / "lib"
    if not (library / "libmusart.so").is_file():
        sys.exit(f"no libmusart in {library}: build with `opgen build` first")
    with tempfile.TemporaryDirectory(prefix="opgen-bench-") as folder:
        program = Path(folder) / "kernels"
        command = [
            sys.executable,
            str(project.root / "sdk" / "host" / "mcc"),
            str(Path(__file__).parent / "kernels.mu"),
        ]
        command += ["-O3", "-o", str(program), f"-L{library}", "-lmusart", f"-Wl,-rpath,{library}"]
        subprocess.run(command, check=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        output = subprocess.run([program], check=True, capture_output=True, text=True, env=environment).stdout
    values = {name: (float(value), float(reference)) for name, value, reference in map(str.split, output.splitlines())}
    kernel, loop = values["barrier_free_ms"]
    yield Figure("barrier-free kernel, 10 M floats", kernel, loop, "ms", "plain C++ loop", "one thread; target 2 times")
    note = "of 256 that wait for each other: one switch of fibres"
    yield Figure("__syncthreads(), a thread", values["barrier_ns"][0], 100, "ns", "target", note)
    yield Figure("__shfl_xor_sync(), a thread", values["shuffle_ns"][0], 200, "ns", "target", "")


BENCHES: dict[str, Callable[[Project], Iterator[Figure]]] = {
    "gen": bench_gen,
    "compile": bench_compile,
    "build": bench_build,
    "sdk": bench_sdk,
    "ops": bench_ops,
    "indexing": bench_indexing,
    "kernels": bench_kernels,
}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print the project's speed figures.")
    parser.add_argument("--only", choices=sorted(BENCHES), action="append", help="measure this alone; may be repeated")
    parser.add_argument("--cold", action="store_true", help="add a cold generate + build in a copy of the tree")
    arguments = parser.parse_args(argv)
    project = find_project()
    chosen = [bench for name, bench in BENCHES.items() if not arguments.only or name in arguments.only]
    if arguments.cold:
        chosen.append(bench_cold)
    figures: list[Figure] = []
    for bench in chosen:
        for figure in bench(project):
            print(f"measured {figure.what}", file=sys.stderr)
            figures.append(figure)
    columns = ("figure", "measured", "compared with", "ratio", "note")
    print_table(columns, [figure.cells() for figure in figures], right=frozenset({1, 2, 3}))


if __name__ == "__main__":
    main()
