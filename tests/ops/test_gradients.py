"""Gradients on the device equal those on the CPU, for every differentiable overload of the list: first and second
derivatives in float32 and float64, and in float64 against differences."""

from __future__ import annotations

import re

import pytest
from tested_elsewhere import TESTED_ELSEWHERE

from opgen.project import find_root
from opgen.testing.listing import Listed, read_listed

LIST = find_root() / "yaml" / "musa_functions.yaml"
# out= forms have no derivative; backward operators are first-order only
DIFFERENTIABLE = [
    listed
    for listed in read_listed(LIST)
    if listed.op not in {*TESTED_ELSEWHERE, "_copy_from", "_copy_from_and_resize"}
    and not re.search(r"_backward|overrideable|(^|\.)(\w*_)?(out|grad_input|output)(_\w+)?$", listed.op)
    and "::" not in listed.op  # the CPU lacks our own operators: tests/ops/test_own_operators.py
]
FUNCTIONAL = [listed for listed in DIFFERENTIABLE if not listed.op.partition(".")[0].endswith("_")]


@pytest.mark.parametrize("listed", FUNCTIONAL, ids=lambda listed: listed.op)
def test_gradients_agree_with_cpu(listed: Listed, device: str) -> None:
    from opgen.testing.gradients import check_gradients

    check_gradients(listed.op, device, fallback=listed.fallback)


@pytest.mark.parametrize("listed", [one for one in DIFFERENTIABLE if one not in FUNCTIONAL], ids=lambda one: one.op)
def test_gradients_of_in_place_forms_agree_with_cpu(listed: Listed, device: str) -> None:
    from opgen.testing.gradients import check_gradients

    # the gradient by the value asks for aten::_unique, which the list does not have
    asks_for_more = listed.op == "index_fill_.int_Tensor"
    check_gradients(listed.op, device, count=2, fallback=listed.fallback or asks_for_more)


# the backbone of training: here an operator without a gradient would be a fault of the test
@pytest.mark.parametrize(
    "op",
    [
        "add.Tensor", "mul.Tensor", "div.Tensor", "mm", "addmm", "bmm", "relu", "tanh", "sigmoid", "exp", "log", "sqrt",
        "sum.dim_IntList", "mean.dim", "convolution", "native_batch_norm", "native_layer_norm", "_log_softmax",
        "nll_loss_forward", "max_pool2d_with_indices", "avg_pool2d", "embedding", "index_select", "gather", "cat",
    ],
)  # fmt: skip
def test_training_operators_have_gradients(op: str, device: str) -> None:
    from opgen.testing.gradients import check_gradients

    assert check_gradients(op, device, count=8).cases >= 3
