"""`opgen build`: generate, configure, compile.

The compiler's work is CMake's and Ninja's; this module finds them, keeps two builds of one folder apart, shows
progress, and on failure prints what the compiler said and nothing else.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from opgen.device_options import DeviceOptions, device_options
from opgen.diagnostics import Diagnostics, Location, OpgenError
from opgen.ninja import OnStep, run_ninja
from opgen.project import Project
from opgen.report import diagnostics_option, report, reporter
from opgen.targets import TARGETS, Machine, torch_cuda

_LOCK = ".opgen-build.lock"


class BuildError(OpgenError):
    """The build cannot go on; the text says why and what to do."""


@dataclass(frozen=True)
class Plan:
    """One build: which tree, against which PyTorch, for which target."""

    project: Project
    torch_dir: Path
    torch_version: str
    target: str
    jobs: int
    build_type: str = "Release"
    with_tests: bool = False
    """Whether the C++ tests of the toolkit are made, too: they take a third of the time and are nobody's but ours."""
    toolkit: Path | None = None
    """What the device sources are compiled with: nvcc on cuda, the toolkit's folder on musa."""
    device: DeviceOptions = field(default_factory=DeviceOptions)

    @property
    def folder(self) -> Path:
        return self.project.build(self.target, self.torch_version)

    @property
    def generated(self) -> Path:
        return self.project.generated(self.torch_version)

    def cmake_arguments(self, cmake: str, ninja: str) -> list[str]:
        return [
            cmake,
            "-G",
            "Ninja",
            "-S",
            str(self.project.root),
            "-B",
            str(self.folder),
            f"-DCMAKE_MAKE_PROGRAM={ninja}",
            f"-DPython3_EXECUTABLE={sys.executable}",
            f"-DTORCH_DIR={self.torch_dir}",
            f"-DOPGEN_GENERATED={self.generated}",
            f"-DOPGEN_TARGET={self.target}",
            f"-DCMAKE_BUILD_TYPE={self.build_type}",
            *self.device.cmake_arguments(self.target, self.toolkit),
        ]


def find_program(name: str) -> str:
    """The program of this Python environment, else the one on PATH.

    An environment that is used without being activated has its `bin` not on PATH, so it is looked at first.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise BuildError(f"{name} is not installed. Run `pip install {name}` in the environment of {sys.executable}")
    return found


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that a second `opgen build` waits instead of compiling into the same files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("w")
    except OSError as error:
        raise BuildError(f"cannot write to {folder}: {error.strerror}. Choose a writable project folder") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build of {folder} ...", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def empty(folder: Path) -> None:
    """Remove what an earlier build has left; the lock, which the caller holds, stays."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def configure(plan: Plan) -> None:
    """Run CMake where the folder was not configured with these arguments; Ninja re-runs it when its files change."""
    arguments = plan.cmake_arguments(find_program("cmake"), find_program("ninja"))
    record = plan.folder / ".opgen-configure"
    wanted = "\n".join(arguments)
    if (plan.folder / "build.ninja").exists() and record.exists() and record.read_text() == wanted:
        return
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError("CMake failed", output=f"{done.stdout}{done.stderr}")
    record.write_text(wanted)


def compile_all(plan: Plan, on_step: OnStep) -> None:
    """Run Ninja; `on_step(done, total, what)` is called for each finished step."""
    targets = ("all", "toolkit_tests") if plan.with_tests else ()
    done = run_ninja(find_program("ninja"), plan.folder, plan.jobs, on_step, targets=targets)
    if done.code != 0:
        raise BuildError("the build failed", output=f"{done.text}{done.error}")
    if done.text.strip():  # warnings
        print(done.text, file=sys.stderr, end="")


@contextmanager
def progress_bar() -> Iterator[OnStep]:
    """A bar on a terminal; elsewhere a line every ten seconds, so that a log shows that something moves."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(
            TextColumn("compiling"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
        ) as bar:
            task = bar.add_task("", total=None)

            def show(done: int, total: int, what: str) -> None:
                bar.update(task, completed=done, total=total, description=Path(what.split(" ")[-1]).name[:40])

            yield show
        return

    last = time.monotonic()

    def log(done: int, total: int, what: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 10:
            last = time.monotonic()
            print(f"compiling {done}/{total}", file=sys.stderr, flush=True)

    yield log


def run(plan: Plan, *, clean: bool = False) -> float:
    """Configure and compile what `opgen gen` has written; returns the seconds it took."""
    start = time.monotonic()
    with exclusive(plan.folder):
        if clean:
            empty(plan.folder)
        configure(plan)
        with progress_bar() as on_step:
            compile_all(plan, on_step)
    return time.monotonic() - start


@click.command(epilog='Example: opgen build --jobs 2; for cards: opgen build --target musa --arch "21;22;31" --fp64')
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default="host",
    show_default=True,
    help="Toolkit to build against: the CPU stand-in, the one on an NVIDIA GPU, Moore Threads' own. Where the compiler "
    "of the one asked for is missing, this is said and the target is host.",
)
@click.option(
    "--jobs", "-j", type=click.IntRange(1), default=os.cpu_count(), help="Compilers at once; default: all cores."
)
@click.option("--debug", is_flag=True, help="Without optimisation, with debug information.")
@device_options
@click.option("--clean", is_flag=True, help="Start from an empty build folder.")
@click.option("--with-tests", is_flag=True, help="The C++ tests of the toolkit, too (tests/sdk runs them).")
@diagnostics_option(to_stdout=True)
@click.pass_context
def command(
    ctx: click.Context, target: str, jobs: int, debug: bool, device: DeviceOptions, clean: bool, with_tests: bool
) -> None:
    """Generate, configure and compile into build/<target>-torch<VERSION>/.

    Only what changed is done again: after one edited entry and its source, one registration shard and one kernel file.
    """
    from opgen.gen import Sources, generate
    from opgen.project import find_project

    project = find_project()
    sources = Sources.of(project)
    install = sources.install
    diagnostics = Diagnostics()
    machine = Machine(torch_cuda(install.torch))
    device.check(target)
    if (target := buildable(target, machine, diagnostics)) == "host":
        device = DeviceOptions(asan=device.asan)
    plan = Plan(
        project=project,
        torch_dir=install.torch,
        torch_version=install.release,
        target=target,
        jobs=jobs,
        build_type="Debug" if debug else "Release",
        with_tests=with_tests,
        toolkit={"cuda": machine.nvcc, "musa": machine.musa_home}[target]() if target != "host" else None,
        device=device,
    )
    summary = generate(sources, plan.generated, diagnostics)
    report(diagnostics)
    if summary is None:
        ctx.exit(1)
    click.echo(f"torch {install.version}: {summary}", err=reporter().prose_to_stderr)
    seconds = run(plan, clean=clean)
    click.echo(f"built {plan.folder.relative_to(project.root)} ({seconds:.1f} s)", err=reporter().prose_to_stderr)


def buildable(target: str, machine: Machine, diagnostics: Diagnostics) -> str:
    """The target, or `host` with a warning that says what is missing for it."""
    reason = machine.cannot_build(target)
    if reason is None:
        return target
    diagnostics.warning(Location(""), f"--target {target}: {reason}", hint="building for the host instead")
    return "host"
