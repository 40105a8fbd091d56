"""Wrong input: PyTorch's usual exception with a clear text, and a device that goes on."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def device_survives():
    yield
    x = torch.arange(4.0, device="musa")
    assert (x + x).tolist() == [0, 2, 4, 6]


@pytest.mark.needs("two devices")
def test_mixed_devices():
    a, b = torch.ones(3, device="musa"), torch.ones(3)
    with pytest.raises(RuntimeError, match=r"same device.*musa:0.*cpu|same device.*cpu.*musa:0"):
        a + b
    with pytest.raises(RuntimeError, match="same device"):
        a + torch.ones(3, device="musa:1")
    with pytest.raises(RuntimeError, match=r"same device|musa"):
        torch.ones(2, 2, device="musa") @ torch.ones(2, 2)
    with pytest.raises(RuntimeError):
        torch.cat([a, b])


def test_cpu_scalars_are_welcome():
    assert (torch.ones(2, device="musa") * torch.tensor(3.0)).tolist() == [3, 3]


def test_wrong_dtype():
    a = torch.ones(3, device="musa")
    with pytest.raises(RuntimeError, match=r"dtype|type"):
        torch.ones(2, 2, device="musa") @ torch.ones(2, 2, device="musa", dtype=torch.float64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        a.to(torch.int64).add_(1.5)
    with pytest.raises(RuntimeError, match=r"bool"):
        torch.ones(2, device="musa", dtype=torch.bool) - torch.ones(2, device="musa", dtype=torch.bool)


def test_wrong_shape():
    with pytest.raises(RuntimeError, match="size of tensor a"):
        torch.ones(3, device="musa") + torch.ones(4, device="musa")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.ones(2, 3, device="musa") @ torch.ones(2, 3, device="musa")


@pytest.mark.needs("blocking launches")
@pytest.mark.parametrize("index", [-1, 4, 2**40])
def test_index_out_of_range(index):
    table, indices = torch.ones(4, 5, device="musa"), torch.tensor([index], device="musa")
    for call in (
        lambda: table.index_select(0, indices),
        lambda: table.gather(0, indices[None]),
        lambda: torch.nn.functional.embedding(indices, table),
        lambda: torch.nn.functional.nll_loss(table[:1, :4], indices),
    ):
        with pytest.raises(RuntimeError, match=r"EXECUTION_FAILED \(the reason is in muDNN's log, on standard error\)"):
            call()


@pytest.mark.needs("host")
def test_the_log_says_which_index(run_python):
    done = run_python(
        """
        import torch
        try:
            torch.ones(4, 5, device="musa").index_select(0, torch.tensor([17], device="musa"))
        except RuntimeError as error:
            print(error)
        """,
        MUSA_LAUNCH_BLOCKING="1",
    )
    assert "standard error" in done.stdout and "17" in done.stderr


def test_unknown_dtype_for_mudnn_is_named():
    with pytest.raises((RuntimeError, NotImplementedError), match=r"UInt16|uint16"):
        torch.ones(2, device="musa").to(torch.uint16).relu()
