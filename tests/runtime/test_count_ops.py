"""torch.musa.count_ops: which operators ran, and on which kernel family."""

from __future__ import annotations

import warnings

import torch


def test_counts_by_overload_and_family():
    x = torch.ones(4, 4, device="musa")
    with torch.musa.count_ops() as counts:
        y = x + x
        torch.nn.functional.relu(y)
        x + 1
    assert counts["add.Tensor"] == 2 and counts["relu"] == 1
    assert counts.family("add.Tensor") == "mudnn"
    assert counts.by_family()["mudnn"] >= 3
    assert "CPU fallback 0" in counts.summary()


def test_operators_on_the_cpu_are_not_counted():
    with torch.musa.count_ops() as counts:
        torch.ones(2) + 1
    assert len(counts) == 0 and counts["add.Tensor"] == 0


def test_factories_are_counted_by_their_result():
    with torch.musa.count_ops() as counts:
        torch.empty(3, device="musa")
        torch.empty(3)
    assert counts["empty.memory_format"] == 1


def test_backward_threads_are_counted():
    x = torch.ones(3, device="musa", requires_grad=True)
    with torch.musa.count_ops() as counts:
        (x * x).sum().backward()
    assert counts["mul.Tensor"] >= 2
    assert "sum" in counts and counts.family("sum") in ("composite", "mudnn", "ported", "upstream")


def test_fallback_is_a_family():
    library = torch.library.Library("counted", "FRAGMENT")
    library.define("once(Tensor x) -> Tensor")
    library.impl("once", lambda x: x + 1, "CPU")
    x = torch.ones(3, device="musa")
    with warnings.catch_warnings(), torch.musa.count_ops() as counts:
        warnings.simplefilter("ignore")
        torch.ops.counted.once(x)
    assert counts.by_family()["cpu_fallback"] == 1
    assert "CPU fallback 1" in counts.summary()


def test_counters_nest_and_stop():
    x = torch.ones(3, device="musa")
    with torch.musa.count_ops() as outer:
        x + 1
        with torch.musa.count_ops() as inner:
            x + 1
    x + 1
    assert inner["add.Tensor"] == 1 and outer["add.Tensor"] == 2


def test_tensor_lists():
    with torch.musa.count_ops() as counts:
        torch.cat([torch.ones(2), torch.ones(2)])
    assert "cat" not in counts
    parts = [torch.ones(2, device="musa")] * 2
    with torch.musa.count_ops() as counts:
        torch.cat(parts)
    assert counts["cat"] == 1


def test_op_table_names_every_registration():
    table = torch.musa.op_table()
    assert table["add.Tensor"]["family"] == "mudnn"
    assert table["view"]["family"] == "upstream"
    assert len(table) >= 150
