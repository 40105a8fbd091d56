"""The script of a report runs on its own and shows what is wrong."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
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
from opgen.testing.case import Case, TensorSpec, make_live
from opgen.testing.gradients import check_gradients
from opgen.testing.overload import load_overload
from opgen.testing.repro import script
from opgen.testing.source import SeededSource
from opgen.testing.strategies import make_case
from opgen.testing.subject import load_subject

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


def shown(text: str) -> list[str]:
    """The same, run here, which is faster."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(text, {})
    return printed.getvalue().split("--- cpu\n")[1:]


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


@pytest.mark.parametrize(
    "name",
    [
        *("add.out", "cat", "_foreach_addcmul_.Scalar", "scatter.src", "set_.source_Storage_storage_offset"),
        *("where.self", "convolution", "dequantize.self", "sum.dim_IntList", "_nested_view_from_buffer"),
    ],
)
def test_script_makes_the_very_arguments_of_the_case(name: str) -> None:
    """Values with their signs of zero, layouts, what lies between and behind the elements, and who shares with whom."""
    subject = load_subject(name, device="cpu")
    dtypes = (torch.float32, torch.complex64, torch.int8, torch.bfloat16)
    for seed in range(40):
        case = make_case(subject.op, subject.domain, subject.reference, SeededSource(seed), dtypes)
        space: dict[str, Any] = {}
        exec(script(case, "cpu").partition("\n\ndef each(")[0], space)
        ((positional, keywords),) = space["call"]("cpu", lambda *a, **k: ((a, k),))[0].values()
        live = make_live(case, "cpu")
        mine = described([*positional, *(keywords[name] for name in sorted(keywords))])
        assert mine == described([*live.positional, *(live.keywords[name] for name in sorted(keywords))]), repr(case)


def described(arguments: list[Any]) -> list[Any]:
    """Everything that there is to know of arguments, as text."""
    storages: list[int] = []

    def of(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [of(item) for item in value]
        if isinstance(value, torch.UntypedStorage):
            return storage(value)
        if isinstance(value, torch.Generator):
            return value.initial_seed()
        if not isinstance(value, torch.Tensor):
            return repr(value)
        held = value.untyped_storage()
        form = (value.dtype, value.shape, value.stride(), value.storage_offset(), value.is_conj(), value.is_neg())
        return form, repr(value) if value.is_quantized else storage(held)

    def storage(held: torch.UntypedStorage) -> Any:
        if held._cdata not in storages:
            storages.append(held._cdata)
        return storages.index(held._cdata), torch.empty(0, dtype=torch.uint8).set_(held).numpy().tobytes()

    return [of(argument) for argument in arguments]


def test_numbers_of_a_script_are_read_as_they_were_written() -> None:
    zeros = [complex(a, b) for a in (0.0, -0.0, 1.5, -1.5) for b in (0.0, -0.0, 2.5, -2.5)]
    open_ended = [complex(math.inf, -0.0), complex(-math.inf, math.inf), complex(math.nan, 1)]
    space: dict[str, Any] = {}
    case = Case(load_overload("mul.Tensor"), {"self": TensorSpec.of(torch.tensor(zeros + open_ended)), "other": -0j})
    exec(script(case, "cpu").partition("\n\ndef each(")[0], space)
    tensor, number = space["call"]("cpu", lambda *values: values)[0].values()
    assert list(map(repr, tensor.tolist())) == list(map(repr, zeros + open_ended)) and repr(number) == repr(-0j)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("_conj", lambda x: x.conj_physical()),
        ("_neg_view", lambda x: -x),
        ("mul_.Tensor", lambda x, y: (x * y).conj().resolve_conj()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_script_shows_a_bit_where_the_values_are_the_same(name: str, other: Any) -> None:
    values = TensorSpec(torch.tensor([1 + 2j, 3 - 1j]), (2,), (1,), conjugated=True)
    arguments = {"self": values, "other": TensorSpec.of(torch.tensor([2 - 2j, 1j]))}
    op = load_overload(name)
    case = Case(op, {argument.name: arguments[argument.name] for argument in op.arguments})
    reference, device = shown(script(case, "cpu", other))
    assert ("bit" in device or "bit" in reference) and reference != device


def test_script_shows_what_is_not_dense_and_what_comes_in_lists() -> None:
    sparse = Case(load_overload("_to_sparse.sparse_dim"), {"self": TensorSpec.of(torch.eye(2)), "sparse_dim": 2})
    reference, device = shown(script(sparse, "cpu"))
    assert "layout=torch.sparse_coo" in reference and reference == device
    pair = [TensorSpec(torch.ones(4), (2,), (2,)), TensorSpec.of(torch.zeros(1))]
    reference, device = shown(script(Case(load_overload("_foreach_neg_"), {"self": pair}), "cpu"))
    assert "self[0]: torch.float32[2] strides (2,) version 1" in reference and reference == device
    assert "self[0] in its storage: tensor([-1.,  1., -1.,  1.])" in reference


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
