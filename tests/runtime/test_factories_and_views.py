"""Empty tensors, views, and changes of size, stride and storage."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.needs("two devices")
def test_empty():
    x = torch.empty(2, 3, device="musa", dtype=torch.float16)
    assert x.shape == (2, 3) and x.dtype == torch.float16 and x.is_contiguous() and x.device.index == 0
    y = torch.empty(2, 3, 4, 5, device="musa:1", memory_format=torch.channels_last)
    assert y.is_contiguous(memory_format=torch.channels_last) and y.device.index == 1
    assert torch.empty_strided((2, 3), (1, 2), device="musa").stride() == (1, 2)
    assert torch.empty_like(y).stride() == y.stride()
    assert y.new_empty(3).device == y.device
    assert torch.empty(0, device="musa").numel() == 0
    assert torch.empty((), device="musa").dim() == 0


def test_empty_refuses_as_pytorch_does():
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(-1, device="musa")
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(1, device="musa", pin_memory=True)


def test_filled_factories():
    assert torch.zeros(3, device="musa").tolist() == [0, 0, 0]
    assert torch.ones(3, device="musa", dtype=torch.int64).tolist() == [1, 1, 1]
    assert torch.full((2,), 7.5, device="musa").tolist() == [7.5, 7.5]
    assert torch.zeros(2, 2, device="musa").new_zeros(2).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64, torch.int8, torch.bfloat16])
def test_zero_(dtype):
    base = torch.ones(4, 4).to(dtype).to("musa")
    base[:, ::2].zero_()
    expected = torch.ones(4, 4).to(dtype)
    expected[:, ::2] = 0
    assert torch.equal(base.cpu(), expected)
    base.t().zero_()
    assert not base.cpu().any()
    assert torch.empty(0, device="musa").zero_().numel() == 0


def test_deterministic_fill():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(4, device="musa").isnan().all().item()
        assert torch.empty(4, device="musa", dtype=torch.int16).tolist() == [2**15 - 1] * 4
        grown = torch.zeros(2, device="musa").resize_(4)
        assert grown[:2].tolist() == [0, 0] and grown[2:].isnan().all().item()
    finally:
        torch.use_deterministic_algorithms(False)


def test_views_share_memory():
    x = torch.arange(24.0, device="musa").view(2, 3, 4)
    cpu = torch.arange(24.0).view(2, 3, 4)
    views = [
        lambda t: t.view(6, 4),
        lambda t: t.view(-1),
        lambda t: t.transpose(0, 1),
        lambda t: t.permute(2, 0, 1),
        lambda t: t[1],
        lambda t: t[:, 1:, ::2],
        lambda t: t.unfold(2, 2, 1),
        lambda t: t.as_strided((3, 2), (1, 4), 2),
        lambda t: t.expand(5, 2, 3, 4),
        lambda t: t.squeeze().unsqueeze(0),
        lambda t: t.diagonal(0, 1, 2),
        lambda t: t.reshape(3, 8),
        lambda t: t.flatten(1),
        lambda t: t.view(torch.int32),
        lambda t: t.detach(),
        lambda t: t.T if t.dim() == 2 else t.mT,
        lambda t: t.split(2, 2)[1],
        lambda t: t.unbind(0)[1],
        lambda t: t.movedim(0, 2),
    ]
    for view in views:
        mine, theirs = view(x), view(cpu)
        assert mine.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert mine.stride() == theirs.stride() and mine.storage_offset() == theirs.storage_offset()
        assert torch.equal(mine.cpu(), theirs)
    x[0].fill_(-1)
    assert x.view(-1)[:12].tolist() == [-1] * 12


def test_writes_through_a_view():
    x = torch.zeros(3, 3, device="musa")
    x.diagonal().fill_(1)
    x[0, 1:] = torch.tensor([5.0, 6.0])
    assert x.tolist() == [[1, 5, 6], [0, 1, 0], [0, 0, 1]]


def test_view_errors():
    x = torch.zeros(2, 3, device="musa")
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(6)
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        x.view(5)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.as_strided((4,), (2,))


def test_complex_views():
    x = torch.tensor([1 + 2j, 3 - 4j], device="musa")
    real = torch.view_as_real(x)
    assert real.tolist() == [[1, 2], [3, -4]] and real.data_ptr() == x.data_ptr()
    assert torch.view_as_complex(real).data_ptr() == x.data_ptr()
    assert x.imag.tolist() == [2, -4]
    assert x.conj().is_conj() and x.conj().tolist() == [1 - 2j, 3 + 4j]


@pytest.mark.needs("two devices")
def test_resize_():
    x = torch.arange(6.0, device="musa")
    pointer = x.data_ptr()
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]] and x.data_ptr() == pointer
    x.resize_(6)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]  # shrinking kept the memory
    x.resize_(4, 500)
    assert x.shape == (4, 500) and x.view(-1)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    x.resize_(1, 2, 3, 4, memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)
    y = torch.empty(0, device="musa:1").resize_(3)
    assert y.device.index == 1 and y.untyped_storage().device.index == 1
    with pytest.raises(RuntimeError, match="Unsupported memory format"):
        x.resize_(3, memory_format=torch.preserve_format)
    assert torch.empty(0, device="musa").resize_as_(x).shape == x.shape


@pytest.mark.needs("two devices")
def test_storages():
    storage = torch.ones(4, device="musa").untyped_storage()
    assert storage.device.type == "musa" and storage.nbytes() == 16 and len(storage) == 16
    storage.resize_(32)
    assert storage.nbytes() == 32
    x = torch.empty(0, device="musa").set_(storage, 0, (4,), (1,))
    assert x.tolist() == [1, 1, 1, 1]
    assert torch.UntypedStorage(8, device="musa").device.index == 0
    assert storage.cpu().device.type == "cpu"
    copied = torch.UntypedStorage(32, device="musa:1").copy_(storage)
    assert torch.empty(0, device="musa:1").set_(copied, 0, (4,)).tolist() == [1, 1, 1, 1]


@pytest.mark.needs("two devices")
def test_set_():
    x, y = torch.arange(4.0, device="musa"), torch.empty(0, device="musa")
    y.set_(x)
    assert y.is_set_to(x) and y.tolist() == x.tolist()
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    assert y.tolist() == [1, 3]
    y.set_(x.untyped_storage(), 1, (3,))
    assert y.tolist() == [1, 2, 3]
    y.set_()
    assert y.shape == (0,) and y.device.type == "musa"
    with pytest.raises(RuntimeError, match="invalid storage offset"):
        y.set_(x.untyped_storage(), -1, (2,))
    with pytest.raises(RuntimeError):
        y.set_(torch.ones(2).untyped_storage(), 0, (2,))
    with pytest.raises(RuntimeError, match="different device"):
        torch.empty(1, device="musa:1").set_(x.untyped_storage(), 0, (2,))


def test_equal():
    x = torch.tensor([1.0, 2.0], device="musa")
    assert torch.equal(x, x.clone()) and not torch.equal(x, x + 1) and not torch.equal(x, x[:1])
    assert torch.equal(torch.empty(0, device="musa"), torch.empty(0, device="musa"))
    nan = torch.tensor([float("nan")], device="musa")
    assert not torch.equal(nan, nan)
    with pytest.raises(RuntimeError, match=r"different devices|same device"):
        torch.equal(x, x.cpu())


@pytest.mark.needs("two devices")
def test_repr():
    assert repr(torch.tensor([1.5, 2.0], device="musa")) == "tensor([1.5000, 2.0000], device='musa:0')"
    assert repr(torch.tensor(True, device="musa:1")) == "tensor(True, device='musa:1')"


def test_zero_tensors_of_automatic_differentiation():
    x = torch._efficientzerotensor((2, 3), device="musa")
    assert x._is_zerotensor() and x.device.type == "musa"
    assert (torch.ones(2, 3, device="musa") + x).tolist() == [[1] * 3] * 2
