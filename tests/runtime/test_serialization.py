"""Saving, loading, pickling and copying."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch


def saved(obj) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return buffer


@pytest.mark.needs("two devices")
def test_round_trip_keeps_device_dtype_and_strides():
    x = torch.arange(12.0, device="musa:1").view(3, 4).t()
    y = torch.load(saved(x))
    assert y.device == x.device and y.stride() == x.stride()
    assert torch.equal(x, y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.bool, torch.complex64, torch.int64])
def test_dtypes(dtype):
    x = torch.ones(3).to(dtype).to("musa")
    y = torch.load(saved(x))
    assert y.dtype == dtype and torch.equal(x.cpu(), y.cpu())


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("cpu", "musa"),
        ("musa", "cpu"),
        pytest.param("musa:1", "musa:0", marks=pytest.mark.needs("two devices")),
        pytest.param("musa:0", "musa:1", marks=pytest.mark.needs("two devices")),
        pytest.param("cpu", "musa:1", marks=pytest.mark.needs("two devices")),
    ],
)
def test_map_location(source, target):
    x = torch.arange(5, device=source)
    y = torch.load(saved(x), map_location=target)
    assert y.device.type == torch.device(target).type
    assert y.device.index == (torch.device(target).index if ":" in target else y.device.index)
    assert y.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.needs("two devices")
def test_map_location_as_function_and_dict():
    x = torch.ones(2, device="musa:1")
    assert torch.load(saved(x), map_location=lambda storage, location: storage).device.type == "cpu"
    assert torch.load(saved(x), map_location={"musa:1": "musa:0"}).device.index == 0


@pytest.mark.needs("two devices")
def test_index_out_of_range_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"MUSA device 9 but torch.musa.device_count\(\) is 2"):
        torch.load(saved(torch.ones(1)), map_location="musa:9")


def test_shared_storage_stays_shared():
    x = torch.zeros(4, device="musa")
    a, b = torch.load(saved((x, x[2:])))
    a[3] = 7
    assert b.tolist() == [0, 7]


def test_module_and_optimizer_state():
    model = torch.nn.Linear(3, 2).to("musa")
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3, device="musa")).sum().backward()
    optimizer.step()
    loaded = torch.load(saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
    fresh = torch.nn.Linear(3, 2).to("musa")
    fresh.load_state_dict(loaded["model"])
    torch.optim.Adam(fresh.parameters()).load_state_dict(loaded["optimizer"])
    assert torch.equal(fresh.weight, model.weight)


def test_pickle_and_deepcopy():
    x = torch.randn(3, 3, device="musa", requires_grad=True)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.device == x.device and y.requires_grad and torch.equal(x, y)
        assert y.data_ptr() != x.data_ptr()
    model = torch.nn.Linear(2, 2).to("musa")
    assert torch.equal(copy.deepcopy(model).weight, model.weight)


def test_a_file_written_here_loads_without_the_backend(run_python, tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(3, device="musa"), path)
    done = run_python(
        f"""
        import torch
        print(torch.load({str(path)!r}, map_location="cpu").tolist())
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert done.stdout.strip() == "[0, 1, 2]"
