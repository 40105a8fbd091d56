"""The project as a newcomer meets it: what is declared, and what the two set-up commands do."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import entry_points, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = {r.name.lower(): r for r in map(Requirement, requires("opgen-musa") or [])}


def planned(*arguments: str) -> str:
    """What make would run, in a tree where nothing is set up yet."""
    # These tests may themselves run under `make test TORCH=...`, which hands its variables down.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k not in ("TORCH", "VENV")}
    command = ["make", "--always-make", "--dry-run", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("version", "taken"), [("2.8.0", False), ("2.9.0", True), ("2.13.0", True), ("2.15.0", True), ("2.16.0", False)]
)
def test_supported_torch_versions(version: str, taken: bool) -> None:
    assert REQUIREMENTS["torch"].specifier.contains(version) is taken


def test_torchgen_comes_from_the_torch_wheel() -> None:
    import torch
    import torchgen

    assert "torchgen" not in REQUIREMENTS
    assert Path(torchgen.__file__).parent.parent == Path(torch.__file__).parent.parent


def test_pytorch_finds_the_backend_by_entry_point() -> None:
    (entry,) = [e for e in entry_points(group="torch.backends") if e.name == "torch_musa"]
    assert entry.value == "torch_musa:_autoload"
    assert callable(entry.load())


def test_demo_sets_up_builds_covers_and_trains() -> None:
    steps = planned("demo")
    order = ["-m venv .venv", "torch==2.13.0", "opgen build", "opgen coverage", "examples/train_digits.py"]
    places = [steps.index(step) for step in order]
    assert places == sorted(places)


def test_test_sets_up_and_builds_too() -> None:
    steps = planned("test")
    order = ["-m venv .venv", "torch==2.13.0", "[test]", "opgen build", "-m pytest"]
    places = [steps.index(step) for step in order]
    assert places == sorted(places)


def test_versions_checks_every_release_and_keeps_the_table() -> None:
    step = next(line for line in planned("versions", "JOBS=1").splitlines() if "opgen versions" in line)
    assert step.split("opgen versions ")[1].split() == [
        *("2.9.1", "2.11.0", "2.13.0", "2.14.1", "2.15.0"),
        *("--jobs", "1", "--write", "docs/versions.md"),
    ]


def test_another_torch_has_an_environment_of_its_own() -> None:
    steps = planned("test", "TORCH=2.14.1")
    assert "torch==2.14.1" in steps
    assert ".venv-torch2.14.1/bin/opgen build" in steps
    assert "torch==2.13.0" not in steps


def test_ci_runs_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("make test")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_sanitize_runs_every_kind_where_possible_at_fixed_addresses() -> None:
    steps = planned("sanitize")
    assert "for kind in address undefined thread" in steps
    machine = os.uname().machine
    fixed = subprocess.run(["setarch", machine, "-R", "true"], capture_output=True, check=False).returncode == 0
    assert (f"setarch {machine} -R .venv/bin/ctest" in steps) is fixed
