"""Target cuda on a machine with an NVIDIA GPU: build, then the tests of operators and device, then an example.

    python tests/gpu/run.py --fetch wheels     where there is a network: what the other machine will need
    python tests/gpu/run.py --wheels wheels    where there is a GPU: everything, a log a step, a table at the end

The machine needs Python, a PyTorch with CUDA, nvcc, g++, CMake and Ninja; the rest comes from the folder of wheels and
is installed beside the build, not into the machine's Python. Exit code: 0 where every step passed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NEEDS = (
    "PyYAML",
    "Jinja2",
    "click",
    "rich",
    "packaging",
    "tree-sitter",
    "tree-sitter-cuda",
    "setuptools",
    "numpy",
    "pytest",
    "pytest-xdist",
    "pytest-timeout",
    "hypothesis",
    "expecttest",
    "scikit-learn",
)
"""What the build, the tests and the example import (pyproject.toml says what each is for). PyTorch and the compilers
are the machine's."""


@dataclass(frozen=True)
class Step:
    """One command; its output goes to `<name>.log`."""

    name: str
    command: tuple[str, ...]
    seconds: float
    """After which it is ended and counts as failed."""


def steps(arguments: argparse.Namespace) -> list[Step]:
    """What is run, in order. A build that fails ends the run."""
    python = sys.executable
    opgen = (python, "-m", "opgen.cli")
    # Every process holds a context on the GPU, some 500 MB of its memory: more of them than this gain nothing.
    workers = str(min(arguments.jobs, 12))
    # A line a test: the log of a run that was ended names what had failed by then.
    pytest = (python, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:benchmark", "-n", workers)
    pytest = (*pytest, "--timeout", "300", "--tb", "short", "--max-worker-restart", "50")
    found = [
        Step("build", (*opgen, "build", "--target", "cuda", "--jobs", str(arguments.jobs), *_arch(arguments)), 1500),
        Step("target", (python, "-c", SAY), 120),
        Step("digits", (python, str(ROOT / "examples/train_digits.py")), 300),
        Step("ops", (*pytest, "tests/ops"), 1500),
        Step("runtime", (*pytest, "tests/runtime"), 900),
    ]
    if shutil.which("compute-sanitizer"):
        check = ("compute-sanitizer", "--error-exitcode", "9", "--tool")
        small = (python, str(ROOT / "tests/gpu/sanitize.py"), "--seconds", str(arguments.sanitize_seconds))
        found += [
            Step(tool, (*check, tool, *small), arguments.sanitize_seconds + 300) for tool in ("memcheck", "racecheck")
        ]
    wanted = arguments.only or [step.name for step in found]
    return [step for step in found if step.name in wanted]


SAY = """
import torch
target = torch.musa.target()
print(target, torch.musa.get_device_name(0), torch.musa.device_count())
x = torch.arange(6.0, device="musa").reshape(2, 3)
print((x @ x.T).cpu(), torch.rand(3, device="musa").cpu())
assert target == "cuda", target
"""


def _arch(arguments: argparse.Namespace) -> tuple[str, ...]:
    return ("--arch", arguments.arch) if arguments.arch else ()


def fetch(folder: Path) -> int:
    """Downloads the wheels, and those that they need, for the Python of the other machine."""
    where = ("--only-binary=:all:", "--python-version", "3.12", "--platform", "manylinux2014_x86_64")
    newer = ("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64")
    return subprocess.call([sys.executable, "-m", "pip", "download", "-d", str(folder), *where, *newer, *NEEDS])


def environment(wheels: Path | None) -> dict[str, str]:
    """With the wheels unpacked in front, and the target named: falling back to the host would test nothing."""
    paths = [str(ROOT)]
    if wheels is not None:
        site = ROOT / "build" / "gpu-python"
        if not site.is_dir():
            # Without what the machine has: its PyTorch goes with its own numpy.
            command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(site)]
            subprocess.run([*command, *map(str, sorted(wheels.glob("*.whl")))], check=True)
        paths.append(str(site))
    paths += [path for path in [os.environ.get("PYTHONPATH")] if path]
    # The entry point that makes `import torch` load the backend comes with an installation; PYTHONPATH has none.
    metadata = ROOT / "build" / "gpu-metadata"
    entry = metadata / "opgen_musa-0.1.0.dist-info"
    entry.mkdir(parents=True, exist_ok=True)
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: opgen-musa\nVersion: 0.1.0\n")
    (entry / "entry_points.txt").write_text("[torch.backends]\ntorch_musa = torch_musa:_autoload\n")
    paths.append(str(metadata))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TORCH_MUSA_TARGET": "cuda"}


def run(step: Step, env: dict[str, str], logs: Path) -> tuple[bool, float, str]:
    """Whether it passed, its seconds, and the last line that it printed."""
    start = time.monotonic()
    log = logs / f"{step.name}.log"
    with log.open("w") as output:
        try:
            command = list(step.command)
            code = subprocess.run(
                command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, timeout=step.seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            print(f"ended after {step.seconds:.0f} s", file=output)
            code = 124
    lines = log.read_text(errors="replace").strip().splitlines()
    return code == 0, time.monotonic() - start, lines[-1] if lines else ""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", type=Path, metavar="DIR", help="download the wheels into DIR and end")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="wheels that --fetch has made")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "gpu-logs", help="where the logs go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sanitize-seconds", type=int, default=1200, help="for each tool of compute-sanitizer")
    parser.add_argument("--arch", help="architecture of the card where it is not in this machine: 90")
    parser.add_argument(
        "--only", action="append", metavar="STEP", help="build, target, digits, ops, runtime, memcheck ..."
    )
    arguments = parser.parse_args(words)
    if arguments.fetch:
        return fetch(arguments.fetch)
    arguments.logs.mkdir(parents=True, exist_ok=True)
    env = environment(arguments.wheels)
    passed = True
    for step in steps(arguments):
        good, seconds, last = run(step, env, arguments.logs)
        print(f"{step.name:10} {'passed' if good else 'FAILED'} {seconds:7.1f} s   {last[:90]}", flush=True)
        passed = passed and good
        if step.name == "build" and not good:
            print((arguments.logs / "build.log").read_text(errors="replace")[-6000:])
            break
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
