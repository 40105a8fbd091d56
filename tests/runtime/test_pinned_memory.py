"""Page-locked host memory and the copies that may run on behind the caller's back."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset


def test_pin_memory():
    x = torch.arange(100.0)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned.device.type == "cpu"
    assert torch.equal(pinned, x)
    assert pinned.pin_memory() is pinned


def test_factory_argument():
    assert torch.empty(10, pin_memory=True).is_pinned()
    assert torch.zeros(3, pin_memory=True).tolist() == [0, 0, 0]


def test_non_blocking_copies_arrive():
    host = torch.randn(1000).pin_memory()
    device = host.to("musa", non_blocking=True)
    back = torch.empty(1000, pin_memory=True)
    back.copy_(device, non_blocking=True)
    torch.musa.current_stream().synchronize()
    assert torch.equal(back, host)


def test_non_blocking_from_pageable_memory_is_safe():
    host = torch.ones(1000)
    device = host.to("musa", non_blocking=True)
    host.zero_()
    assert device.sum().item() == 1000


def test_host_memory_is_not_reused_before_the_copy_has_passed():
    values = torch.arange(50_000.0)
    results = []
    for i in range(20):
        staged = (values + i).pin_memory()
        results.append(staged.to("musa", non_blocking=True))
        del staged  # its memory goes back to the cache while the copy may be in flight
    for i, result in enumerate(results):
        assert torch.equal(result.cpu(), values + i)


def test_data_loader():
    data = TensorDataset(torch.arange(64.0).view(32, 2), torch.arange(32))
    for workers in (0, 2):
        batches = list(DataLoader(data, batch_size=8, pin_memory=True, num_workers=workers))
        assert len(batches) == 4
        assert all(x.is_pinned() and y.is_pinned() for x, y in batches)
        x, _ = batches[0]
        assert torch.equal(x.to("musa", non_blocking=True).cpu(), x)


def test_device_memory_cannot_be_pinned():
    x = torch.ones(2, device="musa")
    assert not x.is_pinned()
    try:
        x.pin_memory()
    except RuntimeError as error:
        assert "cannot pin" in str(error) and "CPU" in str(error)
    else:
        raise AssertionError("pinned device memory")
