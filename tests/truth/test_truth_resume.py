"""`opgen truth` goes on where it was: after kill -9, and after a change, which touches no more than it must."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opgen.project import find_root

OPS = ("tril", "exp", "neg", "lerp.Scalar", "sin", "cos", "abs", "floor", "ceil", "sqrt", "record_stream")
MARK = "OPGEN_TEST_TRUTH_RESUME"


def truth(checkout: Path, *arguments: str) -> subprocess.Popen[str]:
    """`opgen truth` in another checkout of the project, on this one's build."""
    import torch

    build = find_root() / "build" / f"host-torch{torch.__version__.partition('+')[0]}"
    environment = {
        **os.environ,
        "PYTHONPATH": str(find_root()),
        "TORCH_MUSA_BUILD_DIR": os.environ.get("TORCH_MUSA_BUILD_DIR", str(build)),
        MARK: str(checkout),
    }
    command = [
        sys.executable,
        "-m",
        "opgen.cli",
        "truth",
        *arguments,
        "--cases",
        "20",  # fewer count for no overload as STRICT
        "--jobs",
        "1",
        "--format",
        "json",
    ]
    return subprocess.Popen(
        command, cwd=checkout, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finished(process: subprocess.Popen[str]) -> dict[str, dict[str, object]]:
    """What a run that went to its end says, by overload."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return {record["op"]: record for record in json.loads(out)["records"]}


def kept(checkout: Path) -> dict[str, int]:
    """The records on disk, with the time each was written."""
    return {path.stem: path.stat().st_mtime_ns for path in checkout.glob("build/truth/*/*.json")}


def alive(checkout: Path) -> list[int]:
    """Processes that a run in this checkout has started."""
    wanted = f"{MARK}={checkout}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:  # gone, or somebody else's
            continue
    return found


@pytest.fixture(scope="module")
def interrupted(checkout: Path) -> dict[str, int]:
    """A run that was killed after a few overloads, and what it had kept."""
    process = truth(checkout, *OPS)
    deadline = time.monotonic() + 120
    while len(kept(checkout)) < 4 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return kept(checkout)


@pytest.fixture(scope="module")
def resumed(checkout: Path, interrupted: dict[str, int]) -> tuple[dict[str, dict[str, object]], dict[str, int]]:
    """What the next run says, which goes to its end, and what it has kept.

    A fixture, since the tests of a module may be run by several processes, each with a checkout of its own.
    """
    return finished(truth(checkout, *OPS)), kept(checkout)


def test_a_run_that_is_killed_leaves_its_records_and_no_process(checkout: Path, interrupted: dict[str, int]) -> None:
    assert 4 <= len(interrupted) < len(OPS)
    assert not list(checkout.glob("build/truth/*/.*"))
    deadline = time.monotonic() + 10
    while alive(checkout) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(checkout) == []


def test_the_next_run_goes_on_and_the_one_after_a_change_runs_what_it_touched(
    checkout: Path, interrupted: dict[str, int], resumed: tuple[dict[str, dict[str, object]], dict[str, int]]
) -> None:
    records, after = resumed
    assert set(records) == set(OPS)
    assert {op for op in interrupted if after[op] != interrupted[op]} == set()
    assert records["exp"]["dtypes"]["float32"]["verdict"] == "STRICT"  # type: ignore[index]
    assert str(records["record_stream"]["reason"]).startswith("the CPU has no streams")

    kernel = checkout / "kernels" / "mudnn" / "Tril.cpp"
    kernel.write_text(f"{kernel.read_text(encoding='utf-8')}// changed\n", encoding="utf-8")
    finished(truth(checkout, *OPS))
    renewed = kept(checkout)
    assert {op for op in OPS if renewed[op] != after[op]} == {"tril"}

    other_seed = finished(truth(checkout, "tril", "exp", "--seed", "5"))
    assert {record["seed"] for record in other_seed.values()} == {5}
    fresh = kept(checkout)
    finished(truth(checkout, "exp", "--seed", "5"))
    assert kept(checkout) == fresh
    finished(truth(checkout, "exp", "--seed", "5", "--fresh"))
    assert {op for op in OPS if kept(checkout)[op] != fresh[op]} == {"exp"}


@pytest.mark.usefixtures("resumed")
def test_the_matrix_shows_what_holds(checkout: Path) -> None:
    """Records of other sources are as good as none."""
    command = [sys.executable, "-m", "opgen.cli", "coverage", "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(find_root())}

    def shown() -> dict[str, str]:
        done = subprocess.run(command, cwd=checkout, env=environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return {row["op"]: row["verdict"] for row in json.loads(done.stdout)["overloads"]}

    before = shown()
    assert before["exp"] == before["cos"] == "STRICT" and before["mm"] == "UNTESTED"
    (store,) = checkout.glob("build/truth/*")
    line = {"test": "x", "judge": "op_db", "name": "exp", "kind": "out", "dtype": "float32", "outcome": "failed"}
    journal = store / "judge.jsonl"
    journal.write_text(json.dumps({**line, "reason": "warns", "title": "", "ops": {}, "subjects": ["exp"]}) + "\n")
    assert {op: verdict for op, verdict in shown().items() if verdict != before[op]} == {"exp": "FAILED"}
    journal.unlink()
    kernel = checkout / "kernels" / "ported" / "UnaryTrigonometricKernels.cu"
    text = kernel.read_text(encoding="utf-8")
    kernel.write_text(f"{text}// changed\n", encoding="utf-8")
    changed = {op for op, verdict in shown().items() if verdict != before[op]}
    kernel.write_text(text, encoding="utf-8")
    assert changed and changed <= set(OPS) - {"exp", "tril", "abs", "lerp.Scalar"}
