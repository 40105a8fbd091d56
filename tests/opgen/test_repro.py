"""The script of a report runs on its own and shows what is wrong."""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import planted_faults
import pytest
import torch

from opgen.testing import check_overload, origins
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


# ---- what PyTorch alone does not bring

MINE = """import torch

library = torch.library.Library("opgen_repro_mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x + x, "CPU")


@torch.library.custom_op("opgen_repro_mine2::thrice", mutates_args=())
def thrice(x: torch.Tensor) -> torch.Tensor:
    return x * 3


def reference(x):
    return x * 5
"""
ONES = {"x": TensorSpec.of(torch.ones(2))}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A module of somebody's that defines operators, in a folder that is not on anybody's path."""
    folder = tmp_path_factory.mktemp("somewhere")
    (folder / "opgen_repro_mine.py").write_text(MINE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("opgen_repro_mine")
    sys.path.remove(str(folder))


@pytest.mark.parametrize(
    ("name", "result"), [("opgen_repro_mine::twice", "2., 2."), ("opgen_repro_mine2::thrice", "3., 3.")]
)
def test_script_of_an_own_operator_brings_its_definition(mine: ModuleType, name: str, result: str) -> None:
    text = script(Case(load_overload(name), ONES), "cpu")
    reference, device = sections(text)
    assert result in reference and reference == device
    assert text.startswith(f"# {name} is no operator of PyTorch's own; it is defined at {mine.__file__}:")


def test_script_of_a_file_that_was_loaded_loads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "loaded file.py"
    path.write_text(MINE.replace("opgen_repro_mine", "opgen_repro_loaded"))
    monkeypatch.setattr(origins, "_LOADED", {})
    origins.load(str(path))
    reference, _ = sections(script(Case(load_overload("opgen_repro_loaded::twice"), ONES), "cpu"))
    assert "2., 2." in reference


def test_script_of_an_operator_from_nowhere_says_what_to_supply() -> None:
    library = torch.library.Library("opgen_repro_local", "DEF")
    library.define("here(Tensor x) -> Tensor")
    library.impl("here", torch.neg, "CPU")
    text = script(Case(load_overload("opgen_repro_local::here"), ONES), "cpu")
    assert text.startswith("# opgen_repro_local::here is no operator of PyTorch's own; it is defined at ")
    # this module can be imported, and defines nothing until its tests run
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "supply opgen_repro_local::here, which" in done.stderr


THREE = 3


def times_three(x):
    return x * THREE


def local_functions():
    five, infinity = 5, math.inf

    def inner(x):
        return torch.clamp(times_three(x) + five, max=infinity)

    @torch.no_grad()
    def decorated(x):
        return x + 7

    return inner, decorated, lambda x: x + five


INNER, DECORATED, CLOSED = local_functions()


WRITABLE = {
    "a lambda": (lambda x: torch.ops.aten.mul(x, THREE), "3., 3."),
    "a local function": (INNER, "8., 8."),
    "a closure": (CLOSED, "6., 6."),
    "a function of a module": (times_three, "3., 3."),
    "a function of torch": (torch.neg, "-1., -1."),
    "a function of torch.nn": (torch.nn.functional.relu, "1., 1."),
    "a method": (torch.Tensor.exp, "2.7183, 2.7183"),
    "an operator": (torch.ops.aten.neg, "-1., -1."),
}
APART = """
import contextlib, io, json, sys
for text in json.load(sys.stdin):
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(text, "<script>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        print("ended:", end.code, file=said)
    print(json.dumps(said.getvalue()))
"""


def outputs(texts: list[str]) -> list[str]:
    """What each script prints, one process for all: importing PyTorch takes longest."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", APART]
    done = subprocess.run(
        command, input=json.dumps(texts), env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def clone_against(function: Any) -> str:
    return script(Case(load_overload("clone"), {"self": ONES["x"]}), "cpu", function)


def test_script_runs_with_any_reference_that_can_be_written_down() -> None:
    said = outputs([clone_against(function) for function, _ in WRITABLE.values()])
    for (what, (_, result)), text in zip(WRITABLE.items(), said, strict=True):
        reference, device = text.split("--- cpu\n")[1:]
        assert result in reference and "1., 1." in device, what


class Callable_:
    def __call__(self, x):
        return x


SECRET = Callable_()


def test_script_says_at_its_top_what_has_to_be_supplied() -> None:
    functions = (SECRET, DECORATED, lambda x: SECRET(x), functools.partial(torch.mul, other=3))
    texts = [clone_against(function) for function in functions]
    assert all(text.startswith("# Supply `reference`: ") for text in texts)
    assert all(said.startswith("ended: supply `reference`: ") for said in outputs(texts))
    supplied = outputs([text.replace("reference = None", "reference = torch.neg") for text in texts])
    assert all("-1., -1." in said for said in supplied)


def test_a_tensor_of_one_value_is_one_whatever_the_value() -> None:
    for value, dtype in ((math.nan, torch.float32), (-0.0, torch.float64), (7, torch.uint8), (1j, torch.complex64)):
        many = torch.full((100,), value, dtype=dtype)
        assert "torch.full([100]" in script(Case(load_overload("clone"), {"self": TensorSpec.of(many)}), "cpu")
    zeros = torch.zeros(100)
    zeros[3] = -0.0
    assert "torch.full([100]" not in script(Case(load_overload("clone"), {"self": TensorSpec.of(zeros)}), "cpu")
