"""What the CPU refuses because of a value: docs/testing.md, "What a card refuses, and when"."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import torch

from opgen.testing.case import Case, TensorSpec
from opgen.testing.chips import lacking
from opgen.testing.overload import load_overload
from opgen.testing.values import compare_value_refusals, is_about_values, survives_faults

VALUES = {
    "index_select": lambda: torch.ones(4).index_select(0, torch.tensor([4])),
    "gather": lambda: torch.ones(4).gather(0, torch.tensor([9])),
    "take": lambda: torch.ones(4).take(torch.tensor([9])),
    "index": lambda: torch.ones(4)[torch.tensor([9])],
    "scatter": lambda: torch.zeros(4).scatter(0, torch.tensor([9]), 1.0),
    "nll_loss": lambda: torch.nn.functional.nll_loss(torch.ones(2, 3), torch.tensor([0, 3])),
    "binary_cross_entropy": lambda: torch.nn.functional.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0])),
    "floor_divide": lambda: torch.tensor([1]) // torch.tensor([0]),
    "multinomial": lambda: torch.multinomial(torch.tensor([-1.0, 1.0]), 1),
    "_assert_async": lambda: torch._assert_async(torch.zeros(1)),
}
ARGUMENTS = {
    "the dimension does not exist": lambda: torch.ones(4).index_select(2, torch.tensor([0])),
    "the index is of no integral dtype": lambda: torch.ones(4).gather(0, torch.tensor([0.5])),
    "the shapes do not fit": lambda: torch.ones(4) + torch.ones(3),
}

# One case of an overload that the CPU refuses for a value, examined; then the device still works.
EXAMINE = """
    import torch
    from opgen.testing.case import Case, TensorSpec
    from opgen.testing.examine import examine
    from opgen.testing.subject import load_subject

    subject = load_subject({op!r}, device="musa")
    arguments = {{
        name: value if isinstance(value, str) else TensorSpec.of(torch.tensor(value))
        for name, value in {given!r}.items()
    }}
    examined = examine(Case(subject.op, arguments), subject)
    assert (torch.ones(2, device="musa") + 1).tolist() == [2.0, 2.0]
    print(examined.ending.name, *examined.problems)
"""
REFUSED = {
    "take": {"self": [1.0, 2.0], "index": [7]},
    "remainder.Tensor": {"self": [1, 2], "other": [0, 1]},
    "_assert_async": {"self": [0.0]},
    "_assert_async.msg": {"self": [0.0], "assert_msg": "no"},
}


@pytest.mark.parametrize("op", VALUES)
def test_a_refusal_of_a_value_is_told_from_others(op: str) -> None:
    with pytest.raises((RuntimeError, IndexError)) as refusal:
        VALUES[op]()
    assert is_about_values(refusal.value)


@pytest.mark.parametrize("what", ARGUMENTS)
def test_a_refusal_of_arguments_is_no_refusal_of_a_value(what: str) -> None:
    with pytest.raises((RuntimeError, IndexError)) as refusal:
        ARGUMENTS[what]()
    assert not is_about_values(refusal.value)


def test_a_device_must_fail_too_with_its_own_type_or_the_cpus() -> None:
    assert compare_value_refusals(IndexError("x"), None)
    assert compare_value_refusals(IndexError("x"), TypeError("y"))
    assert not compare_value_refusals(IndexError("x"), RuntimeError("y"))
    assert not compare_value_refusals(IndexError("x"), IndexError("y"))


def test_a_text_that_the_caller_gave_is_about_a_value() -> None:
    case = Case(load_overload("_assert_async.msg"), {"self": TensorSpec.of(torch.zeros(1)), "assert_msg": "no"})
    with pytest.raises(RuntimeError) as refusal:
        torch.ops.aten._assert_async.msg(torch.zeros(1), "no")
    assert is_about_values(refusal.value, case)
    assert not is_about_values(refusal.value)
    assert not is_about_values(RuntimeError("no more"), case)


@pytest.mark.parametrize("blocking", ["1", "0"])
@pytest.mark.parametrize("op", REFUSED)
def test_a_value_is_tried_only_where_the_device_survives_it(op: str, blocking: str, device: str) -> None:
    if device != "musa":
        pytest.skip("about kernels that stop")
    # with blocking launches, too, a card and a GPU in its place are lost to the process
    ending = "REFUSED" if blocking == "1" and torch.musa.target() == "host" else "UNTRIED"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(EXAMINE).format(op=op, given=REFUSED[op])],
        env={**os.environ, "MUSA_LAUNCH_BLOCKING": blocking},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.strip() == ending, done.stdout + done.stderr


@pytest.mark.parametrize("blocking", ["1", "0"])
def test_the_lowest_integer_divided_by_minus_one_wraps_around(blocking: str, device: str) -> None:
    """As on a card. PyTorch's kernel for the CPU ends the process: x86's instruction traps."""
    if device != "musa":
        pytest.skip("the CPU may not survive it")
    script = """
        import torch

        for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
            lowest = torch.iinfo(dtype).min
            for shape in ((3,), (1000, 300)):  # the larger one on several threads
                x = torch.full(shape, lowest, dtype=dtype, device="musa")
                for by in (-1, torch.full_like(x, -1)):
                    for mode in ("trunc", "floor"):
                        assert (torch.div(x, by, rounding_mode=mode) == lowest).all(), (dtype, mode)
                    assert (x // by == lowest).all() and (x % by == 0).all() and (torch.fmod(x, by) == 0).all(), dtype
        print("wrapped")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "MUSA_LAUNCH_BLOCKING": blocking},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "wrapped\n", done.stdout + done.stderr


def test_a_chip_lacks_no_dtype_on_the_cpu_and_every_process_survives_there() -> None:
    assert not lacking("cpu")
    assert survives_faults("cpu")
