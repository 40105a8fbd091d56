"""Colours and signs of life: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = re.compile(rb"\x1b\[")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "musa_functions.yaml").write_text(
        "- func: nonzero\n  dispatch:\n    PrivateUse1: cpu_fallback\n"
    )
    for number in range(25):
        path = tmp_path / "kernels" / "mudnn" / f"K{number}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"namespace at::musa {{ void K{number}() {{}} }}\n")
    return tmp_path


def on_terminal(project: Path, *arguments: str, **environment: str) -> bytes:
    """What a run writes to a terminal: standard output and standard error together."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "opgen.cli", *arguments],
        cwd=project,
        env=variables(project, **environment),
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    process.wait(60)
    return said


def variables(project: Path, **environment: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", **environment}


def test_what_takes_long_shows_a_sign_of_life_on_a_terminal_once(project: Path) -> None:
    cold = {"OPGEN_CACHE_DIR": str(project / "cache")}
    first, second = (on_terminal(project, "explain", "nonzero", **cold) for _ in range(2))
    for sign in (b"reading the operators of PyTorch", b"reading kernel sources"):
        assert sign in first and sign not in second


@pytest.mark.parametrize("arguments", [["explain", "nonzero"], ["new", "im2col", "--dry-run"], ["explain", "nonsense"]])
def test_colours_on_a_terminal_only(project: Path, arguments: list[str]) -> None:
    coloured = on_terminal(project, *arguments)
    assert ESCAPE.search(coloured), coloured
    piped = subprocess.run(
        [sys.executable, "-m", "opgen.cli", *arguments],
        cwd=project,
        env=variables(project),
        capture_output=True,
        check=False,
    )
    assert not ESCAPE.search(piped.stdout + piped.stderr)


def test_nothing_moves_in_a_pipe(project: Path) -> None:
    piped = subprocess.run(
        [sys.executable, "-m", "opgen.cli", "gen", "--out", "out"],
        cwd=project,
        env=variables(project),
        capture_output=True,
        text=True,
        check=False,
    )
    assert piped.returncode == 0 and piped.stderr == ""
    assert "reading" not in piped.stdout


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(project: Path, environment: dict[str, str]) -> None:
    said = on_terminal(project, "explain", "nonzero", **environment)
    if "NO_COLOR" in environment:
        assert not re.search(rb"\x1b\[\d*;?3\dm", said), said
