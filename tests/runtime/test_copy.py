"""Copies between host and device, within a device and across devices, for every dtype, layout and bit."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip
ODD_DTYPES = [torch.uint16, torch.uint32, torch.uint64, torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2]
ROUTES = [
    ("cpu", "musa:0"),
    ("musa:0", "cpu"),
    ("musa:0", "musa:0"),
    pytest.param("musa:0", "musa:1", marks=pytest.mark.needs("two devices")),
    pytest.param("musa:1", "musa:0", marks=pytest.mark.needs("two devices")),
]


def values(dtype: torch.dtype, shape=(2, 3, 4)) -> torch.Tensor:
    n = torch.Size(shape).numel()
    numbers = torch.arange(n, dtype=torch.float64) % 7 - (0 if dtype == torch.uint8 else 2)
    if dtype.is_complex:
        return torch.complex(numbers, numbers.flip(0)).to(dtype).view(shape)
    return numbers.to(dtype).view(shape)


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit for bit."""
    a, b = a.cpu().contiguous().clone(), b.cpu().contiguous().clone()
    return a.dtype == b.dtype and a.shape == b.shape and bytes(a.untyped_storage()) == bytes(b.untyped_storage())


@pytest.mark.parametrize(("source", "target"), ROUTES)
@pytest.mark.parametrize("dtype", DTYPES + ODD_DTYPES, ids=str)
def test_moves_every_dtype(source, target, dtype):
    x = values(dtype) if dtype in DTYPES else values(torch.float32).abs().to(dtype)
    assert same(x.to(source).to(target), x)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(("source", "target"), ROUTES)
@pytest.mark.parametrize(("from_", "to"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_casts_as_the_cpu_does(source, target, from_, to):
    x = values(from_)
    if from_ == torch.uint8 or not to.is_signed:
        x = values(torch.uint8).to(from_)  # a negative float to an unsigned integer is undefined on the CPU too
    expected = x.to(to)
    out = torch.empty(x.shape, dtype=to, device=target)
    out.copy_(x.to(source))
    assert same(out, expected)


@pytest.mark.parametrize("to", [torch.uint16, torch.uint32, torch.uint64, torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("from_", [torch.uint16, torch.uint32, torch.uint64], ids=str)
def test_casts_of_wide_unsigned_types_on_the_device(from_, to):
    x = torch.arange(50).to(from_)
    assert same(x.to("musa").to(to), x.to(to))


LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 2),
    "strided": lambda t: t[:, ::2, 1::2],
    "offset": lambda t: t[1:],
    "expanded": lambda t: t[:, :1].expand(-1, 5, -1),
    "flipped dims": lambda t: t.permute(1, 2, 0),
    "scalar": lambda t: t[1, 2, 3],
    "empty": lambda t: t[:, :0],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128, torch.bfloat16, torch.bool], ids=str)
@pytest.mark.parametrize(("source", "target"), ROUTES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_the_source(layout, source, target, dtype):
    x = values(dtype)
    assert same(LAYOUTS[layout](x.to(source)).to(target), LAYOUTS[layout](x))


@pytest.mark.parametrize("to", [torch.float32, torch.complex128, torch.int16], ids=str)
@pytest.mark.parametrize(("source", "target"), ROUTES)
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "expanded"])
def test_layouts_of_the_destination(layout, source, target, to):
    full = torch.full((2, 3, 4), 9, dtype=to)
    expected, got = full.clone(), full.to(target, copy=True)
    x = values(torch.float32, LAYOUTS[layout](full).shape)
    LAYOUTS[layout](expected).copy_(x)
    LAYOUTS[layout](got).copy_(x.to(source))
    assert same(got, expected)  # also what lies around the destination


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_strided_copy(data):
    rank = data.draw(st.integers(0, 5))
    shape = data.draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    order = data.draw(st.permutations(range(rank)))
    step = data.draw(st.integers(1, 2))
    dtype = data.draw(st.sampled_from(DTYPES))
    other = data.draw(st.sampled_from([dtype, torch.float32, torch.int64]))

    def tensor(t: torch.Tensor) -> torch.Tensor:  # of the shape, with permuted, perhaps gapped memory
        return t.view([shape[i] * step for i in order])[tuple(slice(None, None, step) for _ in order)].permute(
            [order.index(i) for i in range(rank)]
        )

    n = 1
    for extent in shape:
        n *= extent * step
    x = (torch.arange(n) % 5).to(dtype)
    dst = torch.zeros(n, dtype=other)
    if dtype.is_complex and not other.is_complex:
        return  # a warning, tested elsewhere
    on_device = dst.to("musa")
    tensor(dst).copy_(tensor(x))
    tensor(on_device).copy_(tensor(x.to("musa")))
    assert same(on_device, dst)


def test_more_dimensions_than_mudnn_has():
    x = torch.arange(2**10).view([2] * 10)
    order = [9, 0, 8, 1, 7, 2, 6, 3, 5, 4]
    assert same(x.to("musa").permute(order).contiguous(), x.permute(order))
    assert same(x.to("musa").permute(order).to(torch.float32), x.permute(order).to(torch.float32))


@pytest.mark.parametrize(("source", "target"), ROUTES)
@pytest.mark.parametrize("src_conj", [False, True])
@pytest.mark.parametrize("dst_conj", [False, True])
@pytest.mark.parametrize("dtypes", [(torch.complex64,) * 2, (torch.complex64, torch.complex128)], ids=str)
def test_conjugate_bits(source, target, src_conj, dst_conj, dtypes):
    x, out = values(dtypes[0]), torch.zeros(2, 3, 4, dtype=dtypes[1])
    got = out.to(target)
    src, dst = (x.conj() if src_conj else x), (out.conj() if dst_conj else out)
    src_musa = x.to(source).conj() if src_conj else x.to(source)
    dst_musa = got.conj() if dst_conj else got
    dst.copy_(src)
    dst_musa.copy_(src_musa)
    assert torch.equal(torch.view_as_real(got).cpu(), torch.view_as_real(out))


@pytest.mark.parametrize(("source", "target"), ROUTES)
@pytest.mark.parametrize("neg_on", ["source", "destination", "both"])
def test_negative_bits(source, target, neg_on):
    def negative(base: torch.Tensor) -> torch.Tensor:  # the imaginary part of a conjugate is a view with the bit
        view = base.conj().imag
        assert view.is_neg()
        return view

    x, base = values(torch.complex64), torch.zeros(2, 3, 4, dtype=torch.complex64)
    got = base.to(target)
    take = negative if neg_on != "source" else (lambda t: t.imag)
    give = negative if neg_on != "destination" else (lambda t: t.imag)
    take(base).copy_(give(x))
    take(got).copy_(give(x.to(source)))
    assert torch.equal(torch.view_as_real(got).cpu(), torch.view_as_real(base))


def test_conj_of_itself():
    x = values(torch.complex64)
    y = x.to("musa")
    y.copy_(y.conj())
    assert torch.equal(torch.view_as_real(y).cpu(), torch.view_as_real(x.conj().resolve_conj()))


@pytest.mark.parametrize(("source", "target"), ROUTES)
def test_broadcast(source, target):
    out = torch.zeros(4, 3, device=target)
    out.copy_(torch.tensor([1.0, 2.0, 3.0], device=source))
    assert out.tolist() == [[1, 2, 3]] * 4
    out.copy_(torch.tensor(5, device=source))
    assert out.unique().tolist() == [5] if target == "cpu" else out.cpu().unique().tolist() == [5]


@pytest.mark.parametrize(("source", "target"), ROUTES)
def test_errors_read_as_on_the_cpu(source, target):
    def message(make) -> str:
        with pytest.raises(RuntimeError) as caught:
            make()
        return str(caught.value)

    mismatch = message(lambda: torch.zeros(3).copy_(torch.zeros(4)))
    assert message(lambda: torch.zeros(3, device=target).copy_(torch.zeros(4, device=source))) == mismatch
    internal = message(lambda: torch.zeros(1).expand(3).copy_(torch.zeros(3)))
    got = message(lambda: torch.zeros(1, device=target).expand(3).copy_(torch.zeros(3, device=source)))
    assert got == internal


def test_overlap_of_source_and_destination():
    x = torch.arange(5, device="musa")
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_complex_to_real_warns():
    x = torch.ones(2, dtype=torch.complex64, device="musa")
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            torch.zeros(2, device="musa").copy_(x)
    finally:
        torch.set_warn_always(False)


@pytest.mark.needs("two devices")
def test_copy_on_a_side_stream_and_across_devices():
    with torch.musa.stream(torch.musa.Stream(device=0)):
        x = torch.arange(1000.0, device="musa:0")
        y = x.to("musa:1")
    assert torch.equal(y.cpu(), torch.arange(1000.0))


def test_item_of_every_dtype():
    for dtype in DTYPES:
        x = values(dtype)[0, 1, 2]
        assert x.to("musa").item() == x.item()
        assert type(x.to("musa").item()) is type(x.item())
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2, device="musa").item()


def test_tensors_of_numpy_and_lists():
    assert torch.tensor([[1, 2], [3, 4]], device="musa").tolist() == [[1, 2], [3, 4]]
    array = torch.ones(2, device="musa").cpu().numpy()
    assert torch.as_tensor(array, device="musa").device.type == "musa"
    with pytest.raises(TypeError, match="musa"):
        torch.ones(2, device="musa").numpy()


def test_meta_and_sparse_partners():
    x = torch.ones(2, device="musa")
    assert x.to("meta").device.type == "meta"
    with pytest.raises(NotImplementedError):
        x.copy_(torch.ones(2, device="meta"))
