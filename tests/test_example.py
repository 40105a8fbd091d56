"""examples/train_digits.py keeps its promises on the device, and says so when it does not."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "train_digits.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments], capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_digits", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_digits"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("optimizer", "epochs"), [("sgd", 8), ("adam", 8)])
def test_promises_are_kept_on_musa(optimizer: str, epochs: int) -> None:
    done = run("--optimizer", optimizer, "--epochs", str(epochs))
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = re.search(r"test accuracy\s+([\d.]+)%", done.stdout)
    assert accuracy is not None and float(accuracy[1]) >= 97
    difference = re.search(r"largest relative difference (\S+)", done.stdout)
    assert difference is not None and float(difference[1]) <= 1e-3
    assert re.search(r"CPU fallbacks\s+none", done.stdout)
    families = re.search(r"operators by family\s+(.*)", done.stdout)
    assert families is not None
    counted = dict(re.findall(r"(\w+) ([\d,]+)(?=, | \()", families[1]))
    assert {"mudnn", "ported", "upstream"} <= counted.keys() and re.search(r"\(in all [\d,]+ calls\)", families[1])


def test_a_broken_promise_is_exit_status_1() -> None:
    """One epoch does not reach the accuracy; everything else still holds."""
    done = run("--epochs", "1", "--no-compare-cpu")
    assert done.returncode == 1
    assert "a promise is broken" in done.stdout


def test_unknown_device_is_a_message() -> None:
    done = run("--device", "nosuchdevice")
    assert done.returncode == 1
    assert "device 'nosuchdevice' is not usable" in done.stderr
    assert "Traceback" not in done.stderr


def test_same_seed_gives_the_same_curve(example: ModuleType) -> None:
    import torch
    from rich.progress import Progress

    digits = example.load()
    assert (len(digits.train_labels), len(digits.test_labels)) == (1437, 360)
    arguments = example.parse(["--epochs", "1"])
    with Progress(disable=True) as progress:
        first, second = (example.train(digits, torch.device("cpu"), arguments, progress) for _ in range(2))
    assert first.losses == second.losses
    assert example.largest_difference(first.losses, second.losses) == 0
    assert example.largest_difference([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
