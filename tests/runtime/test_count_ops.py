"""torch.musa.count_ops: which operators ran, and on which kernel family."""

from __future__ import annotations

import threading
import time
import warnings

import pytest
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


def test_times_are_self_times_and_dtypes_are_those_of_the_device_tensors():
    x, index = torch.ones(400, 400, device="musa"), torch.tensor([0, 1], device="musa")
    weight = torch.ones(400, 400, device="musa")
    with torch.musa.count_ops() as counts:
        for _ in range(3):
            torch.nn.functional.linear(x, weight)
        x.index_select(0, index)
        x.to(torch.float16)
    assert counts.dtypes("mm") == {torch.float32: 3}
    assert counts.dtypes("index_select") == {torch.float32: 1}
    # linear does nothing itself: its time is that of what it calls, which is counted there.
    assert 0 <= counts.seconds("linear") < counts.seconds("mm")
    assert counts.seconds("no_such_op") == 0 and counts.dtypes("no_such_op") == {}
    assert sum(counts.dtypes("_to_copy").values()) == counts["_to_copy"]


def test_time_on_the_cpu_belongs_to_the_operator_that_went_there():
    library = torch.library.Library("timed", "FRAGMENT")
    library.define("slow(Tensor x) -> Tensor")
    library.impl("slow", lambda x: (time.sleep(0.05), x + 1)[1], "CPU")
    x = torch.ones(3, device="musa")
    with warnings.catch_warnings(), torch.musa.count_ops() as counts:
        warnings.simplefilter("ignore")
        torch.ops.timed.slow(x)
    assert counts.seconds("timed::slow") >= 0.05 and counts.fallbacks("timed::slow") == 1


def test_times_of_threads_are_added_up_and_exceptions_leave_nothing_behind():
    x = torch.ones(3, device="musa")

    def work():
        for _ in range(50):
            x + 1
            with pytest.raises(RuntimeError):
                torch.mm(x, x)

    with torch.musa.count_ops() as counts:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts["add.Tensor"] == 200 and counts["mm"] == 200
    assert counts.seconds("add.Tensor") > 0
    with torch.musa.count_ops() as again:
        x + 1
    assert dict(again)["add.Tensor"] == 1 and 0 < again.seconds("add.Tensor") < counts.seconds("add.Tensor")


def test_work_that_an_operator_takes_to_the_cpu_is_seen():
    library = torch.library.Library("counted_trip", "FRAGMENT")
    library.define("exp(Tensor x) -> Tensor")
    library.impl("exp", lambda x: x.cpu().exp().to(x.device), "PrivateUse1")
    with torch.musa.count_ops() as counts:
        torch.ops.counted_trip.exp(torch.ones(3, device="musa"))
    assert counts.on_host["exp"] == 1
    with torch.musa.count_ops() as counts:
        torch.ones(3, device="musa") + 1
        torch.ones(3) + torch.ones(3)
        torch.ones(3, device="musa").cpu().exp()
    assert counts.on_host == {}
