"""The script of a report runs on its own and shows what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import planted_faults
import pytest
import torch

from opgen.testing import check_overload
from opgen.testing.case import Case, TensorSpec
from opgen.testing.gradients import check_gradients
from opgen.testing.overload import load_overload
from opgen.testing.repro import script

HERE = Path(__file__).resolve().parent


def sections(text: str) -> list[str]:
    """What the script prints for the CPU and for the device, which is the CPU here as well."""
    # the CPU is the device here
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment["PYTHONPATH"] = f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("--- cpu\n")[1:]


# The planted function is the reference here, so it is what the script runs for the CPU.
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("sub.Tensor", planted_faults.swapped_sub),
        ("exp.out", planted_faults.doubled_exp_out),
        ("cat", planted_faults.cat_the_other_way),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_printed_script_shows_the_difference(name: str, fault) -> None:
    with pytest.raises(AssertionError) as failure:
        check_overload(name, reference=fault, device="cpu", count=60)
    reference, device = sections(str(failure.value).split("To reproduce:\n\n")[1])
    assert reference != device


def test_printed_script_shows_gradients() -> None:
    with pytest.raises(AssertionError, match="wrong gradient") as failure:
        check_gradients("square", device="cpu", reference=planted_faults.cube_for_square)
    reference, device = sections(str(failure.value).split("To reproduce:\n\n")[1])
    assert "gradient 0" in reference and reference != device


def test_script_seeds_random_operators() -> None:
    op = load_overload("uniform_")
    case = Case(op, {"self": TensorSpec.of(torch.zeros(4))})
    reference, device = sections(script(case, "cpu"))
    assert reference == device


def test_script_keeps_conjugate_and_negative_bits() -> None:
    base = torch.tensor([1 + 2j, 3j])
    spec = TensorSpec(base, (2,), (1,), conjugated=True)
    assert ".conj()" in script(Case(load_overload("_conj_physical"), {"self": spec}), "cpu")
    both = TensorSpec(base, (2,), (1,), conjugated=True, negated=True)
    printed, _ = sections(script(Case(load_overload("_conj_physical"), {"self": both}), "cpu"))
    assert "result 0: tensor([-1.-2.j, -0.-3.j])" in printed
