"""Operators without a kernel: they run on the CPU, and say so."""

from __future__ import annotations

import warnings

import pytest
import torch

# Operators that can never get a kernel, since they exist only here.
LIBRARY = """
import torch
library = torch.library.Library("fallback_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")
library.define("twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
library.impl("twice.out", lambda x, *, out: out.resize_(x.shape).copy_(x * 2), "CPU")
library.define("twice_(Tensor(a!) x) -> Tensor(a!)")
library.impl("twice_", lambda x: x.mul_(2), "CPU")
library.define("total(Tensor[] parts, Tensor? extra=None) -> Tensor")
library.impl("total", lambda parts, extra=None: sum(parts) + (0 if extra is None else extra), "CPU")
library.define("head(Tensor(a) x) -> Tensor(a)")
library.impl("head", lambda x: x[:1], "CPU")
library.define("draw(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
library.impl("draw", lambda x: torch.rand_like(x), "CPU")
library.define("nowhere(Tensor x) -> Tensor")
library.impl("nowhere", lambda x: torch.empty_like(x), "Meta")
"""
_scope: dict = {}
exec(LIBRARY, _scope)
ops = torch.ops.fallback_test


@pytest.fixture(autouse=True)
def fresh_counts():
    torch.musa.reset_fallback_counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.needs("two devices")
def test_result_is_on_the_device_and_calls_are_counted():
    x = torch.arange(4.0, device="musa:1")
    for _ in range(3):
        y = ops.twice(x)
    assert y.device == x.device and y.tolist() == [0, 2, 4, 6]
    assert torch.musa.fallback_counts() == {"fallback_test::twice": 3}
    torch.musa.reset_fallback_counts()
    assert torch.musa.fallback_counts() == {}


def test_in_place_and_out_forms_write_to_their_operands():
    x = torch.arange(3.0, device="musa")
    view = x[1:]
    assert ops.twice_(view) is not None
    assert x.tolist() == [0, 2, 4]
    out = torch.empty(0, device="musa")
    ops.twice.out(x, out=out)
    assert out.tolist() == [0, 4, 8]


def test_lists_and_optional_operands():
    parts = [torch.ones(2, device="musa"), torch.ones(2, device="musa")]
    assert ops.total(parts).tolist() == [2, 2]
    assert ops.total(parts, torch.ones(2, device="musa")).tolist() == [3, 3]


def test_views_do_not_fall_back():
    with pytest.raises(RuntimeError, match="view"):
        ops.head(torch.ones(2, device="musa"))


def test_random_operators_do_not_fall_back():
    with pytest.raises(NotImplementedError, match=r"'fallback_test::draw' draws random numbers"):
        ops.draw(torch.ones(2, device="musa"))


def test_one_warning_for_each_operator(run_python):
    done = run_python(
        LIBRARY
        + """
x = torch.ones(3, device="musa")
for _ in range(3):
    torch.ops.fallback_test.twice(x)
    torch.ops.fallback_test.total([x])
torch.musa.reset_fallback_counts()
torch.ops.fallback_test.twice(x)
"""
    )
    assert done.stderr.count("'fallback_test::twice'") == 1
    assert done.stderr.count("'fallback_test::total'") == 1
    assert "runs on the CPU" in done.stderr and "fallback_counts" in done.stderr


def test_forbidden(run_python):
    done = run_python(
        LIBRARY
        + """
x = torch.ones(3, device="musa")
try:
    torch.ops.fallback_test.twice(x)
except NotImplementedError as error:
    print(error)
assert (x + 1).sum().item() == 6  # the device goes on
assert torch.musa.fallback_counts() == {}
""",
        TORCH_MUSA_FALLBACK="error",
    )
    assert "'fallback_test::twice'" in done.stdout and "TORCH_MUSA_FALLBACK=error" in done.stdout
    assert "musa_functions.yaml" in done.stdout


def test_a_misspelt_switch_is_not_taken_for_permission(run_python):
    done = run_python(
        LIBRARY
        + """
x = torch.ones(3, device="musa")
for _ in range(2):
    try:
        torch.ops.fallback_test.twice(x)
    except RuntimeError as error:
        print(error)
assert (x + 1).sum().item() == 6
""",
        TORCH_MUSA_FALLBACK="ERROR",
    )
    assert done.stdout.count("TORCH_MUSA_FALLBACK=ERROR is neither 'error'") == 2


def test_an_operator_that_the_cpu_lacks_too():
    with pytest.raises(NotImplementedError, match=r"'fallback_test::nowhere' has no kernel.*none for the CPU"):
        ops.nowhere(torch.ones(1, 8, device="musa"))
    assert torch.musa.fallback_counts() == {}


def test_listed_fallbacks_are_counted_and_silent(run_python):
    done = run_python(
        """
        import torch
        listed = [op for op, entry in torch.musa.op_table().items() if entry["family"] == "cpu_fallback"]
        print(len(listed))
        if "linalg_eigh" in listed or "_linalg_eigh.eigenvalues" in listed:
            torch.linalg.eigh(torch.eye(3, device="musa"))
            assert sum(torch.musa.fallback_counts().values()) >= 1
        """,
        TORCH_MUSA_FALLBACK="error",
    )
    assert "runs on the CPU" not in done.stderr
