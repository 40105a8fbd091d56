"""Sparse tensors on the device: built, read, converted, copied, computed with and differentiated, as on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

COO = torch.sparse_coo
COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC|BSR|BSC):UserWarning")


def coo(dtype: torch.dtype = torch.float32, dense: tuple[int, ...] = (), *, repeats: bool = True) -> Tensor:
    """A 4x5 matrix of values in COO layout, with one place named twice and the places out of order."""
    indices = torch.tensor([[3, 0, 1, 3, 0], [4, 2, 0, 4 if repeats else 3, 0]])
    values = torch.arange(1, 1 + 5 * torch.Size(dense).numel()).reshape(5, *dense).to(dtype)
    return torch.sparse_coo_tensor(indices, values * 2 - 7 if dtype is not torch.bool else values % 2, (4, 5, *dense))


def compressed(layout: torch.layout, dtype: torch.dtype = torch.float32) -> Tensor:
    """A 4x6 matrix in a compressed layout."""
    dense = torch.zeros(4, 6)
    dense[0, 1], dense[1, 4], dense[3, 0], dense[3, 5] = 1.5, -2, 3, -4
    block = {"blocksize": (2, 3)} if layout in (torch.sparse_bsr, torch.sparse_bsc) else {}
    return dense.to(dtype).to_sparse(layout=layout, **block)


def agree(ours: Tensor, expected: Tensor) -> None:
    """Same layout, places and values; COO tensors that are not coalesced may have their entries in another way."""
    assert ours.device.type == "musa" and expected.device.type == "cpu"
    assert ours.layout == expected.layout and ours.dtype == expected.dtype
    if ours.layout == COO:
        assert ours.is_coalesced() >= expected.is_coalesced()
        ours, expected = ours.coalesce(), expected.coalesce()
    torch.testing.assert_close(ours.cpu(), expected, equal_nan=True)


def both(function: Callable[..., Tensor], *operands: Tensor) -> None:
    before = torch.musa.fallback_counts()
    ours = function(*(operand.to("musa") for operand in operands))
    agree(ours, function(*operands))
    assert torch.musa.fallback_counts() == before, "it went through the CPU"


# ---- the key that entries register for ----


@pytest.mark.parametrize(
    ("tensor", "key"),
    [(coo(), "SparsePrivateUse1"), *((compressed(layout), "SparseCsrPrivateUse1") for layout in COMPRESSED)],
    ids=lambda value: str(value.layout) if isinstance(value, Tensor) else value,
)
def test_layout_decides_the_dispatch_key(tensor: Tensor, key: str) -> None:
    assert torch._C._dispatch_keys(tensor.to("musa")).has(getattr(torch._C.DispatchKey, key))


# ---- building and reading ----


def test_coo_is_built_on_the_device_and_read_there() -> None:
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    ours = torch.sparse_coo_tensor(indices, values, (2, 3), device="musa")
    assert ours.is_sparse and ours.device.type == "musa" and (ours.sparse_dim(), ours.dense_dim()) == (2, 0)
    assert ours._nnz() == 3 and not ours.is_coalesced()
    assert torch.equal(ours._indices().cpu(), indices) and torch.equal(ours._values().cpu(), values)
    ours = ours.coalesce()
    assert ours.is_coalesced() and ours.indices().device.type == ours.values().device.type == "musa"
    assert "musa:0" in repr(ours) and "sparse_coo" in repr(ours)


def test_coo_checks_its_arguments() -> None:
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.sparse_coo_tensor([[5]], [1.0], (2,), device="musa", check_invariants=True)


def test_empty_sparse_tensors() -> None:
    ours = torch.empty(2, 3, layout=COO, device="musa")
    assert ours._nnz() == 0 and ours.to_dense().cpu().tolist() == [[0.0] * 3] * 2
    agree(torch.zeros(2, 3, layout=torch.sparse_csr, device="musa"), torch.zeros(2, 3, layout=torch.sparse_csr))


def test_csr_is_built_from_its_parts() -> None:
    parts = torch.tensor([0, 1, 1, 3]), torch.tensor([2, 0, 1]), torch.tensor([1.0, 2.0, 3.0])
    ours = torch.sparse_csr_tensor(*(part.to("musa") for part in parts), (3, 3))
    agree(ours, torch.sparse_csr_tensor(*parts, (3, 3)))
    assert ours.crow_indices().device.type == ours.values().device.type == "musa"


# ---- coalescing ----


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("dense", [(), (3,), (2, 0)])
def test_coalesce_adds_up_what_names_one_place(dtype: torch.dtype, dense: tuple[int, ...]) -> None:
    both(Tensor.coalesce, coo(dtype, dense))


def test_coalesce_without_sparse_dims_and_with_one_entry() -> None:
    both(Tensor.coalesce, torch.sparse_coo_tensor(torch.empty(0, 3, dtype=torch.long), torch.ones(3, 2), (2,)))
    both(Tensor.coalesce, torch.sparse_coo_tensor([[1]], [2.0], (3,)))
    both(Tensor.coalesce, torch.sparse_coo_tensor(torch.empty(1, 0, dtype=torch.long), torch.empty(0), (3,)))


# ---- between layouts, dtypes and devices ----


@pytest.mark.parametrize("source", [coo(), coo(dense=(2,)), *map(compressed, COMPRESSED)], ids=lambda t: str(t.layout))
def test_to_dense_and_copies(source: Tensor) -> None:
    both(Tensor.to_dense, source)
    both(Tensor.clone, source)
    both(lambda x: x.to(torch.float64), source)
    both(torch.zeros_like, source)
    ours = source.to("musa")
    torch.testing.assert_close(ours.cpu(), source)
    agree(torch.empty_like(ours).copy_(ours), source)


@pytest.mark.parametrize("layout", [COO, *COMPRESSED])
def test_dense_to_sparse_and_back(layout: torch.layout) -> None:
    dense = torch.tensor([[0.0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 0], [0, 0, 4, 0]])
    block = {"blocksize": (2, 2)} if layout in (torch.sparse_bsr, torch.sparse_bsc) else {}
    both(lambda x: x.to_sparse(layout=layout, **block), dense)
    assert torch.equal(dense.to("musa").to_sparse(layout=layout, **block).to_dense().cpu(), dense)
    # where rows stay dense, PyTorch looks for the ones to keep with unique_dim, which goes through the CPU here
    agree(dense.to("musa").to_sparse(1), dense.to_sparse(1))


@pytest.mark.parametrize("target", [torch.sparse_csr, torch.sparse_csc])
def test_coo_to_compressed_and_back(target: torch.layout) -> None:
    both(lambda x: x.to_sparse(layout=target), coo())
    both(Tensor.to_sparse, compressed(target))


def test_batched_csr_becomes_coo() -> None:
    batch = torch.stack([torch.eye(3), torch.eye(3).flip(0)]).unsqueeze(0).expand(2, 2, 3, 3)
    both(Tensor.to_sparse, batch.to_sparse_csr())
    both(Tensor.to_dense, batch.to_sparse_csr())


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("out_int32", [False, True])
def test_index_conversions(index: torch.dtype, out_int32: bool) -> None:
    rows = torch.tensor([0, 0, 2, 2, 2, 5], dtype=index)
    offsets, columns = torch.tensor([0, 2, 2, 3], dtype=index), torch.tensor([1, 4, 0], dtype=index)
    both(lambda x: torch._convert_indices_from_coo_to_csr(x, 7, out_int32=out_int32), rows)
    both(lambda x: torch._convert_indices_from_coo_to_csr(x, 3, out_int32=out_int32), rows[:0])
    out = torch.empty(0, dtype=torch.int64, device="musa")
    x, y = offsets.to("musa"), columns.to("musa")
    agree(
        torch._convert_indices_from_csr_to_coo(x, y, out=out).clone(),
        torch._convert_indices_from_csr_to_coo(offsets, columns),
    )
    x = rows.to("musa")
    agree(torch._convert_indices_from_coo_to_csr(x, 7, out=out), torch._convert_indices_from_coo_to_csr(rows, 7))
    for transpose in (False, True):
        both(
            lambda x, y, t=transpose: torch._convert_indices_from_csr_to_coo(x, y, out_int32=out_int32, transpose=t),
            offsets,
            columns,
        )


# ---- arithmetic ----


@pytest.mark.parametrize("alpha", [1, 2.5])
def test_coo_sums(alpha: float) -> None:
    once, twice, dense = coo(repeats=False).coalesce(), coo(), torch.randn(4, 5)
    for a, b in ((once, twice), (twice, once), (once, once), (dense, twice), (dense.t().contiguous().t(), once)):
        both(lambda x, y: torch.add(x, y, alpha=alpha), a, b)
        both(lambda x, y: x.clone().add_(y, alpha=alpha), a, b)
        both(lambda x, y: torch.sub(x, y, alpha=alpha), a, b)
    hybrid = coo(dense=(2,))
    both(torch.add, hybrid, hybrid)
    both(torch.add, torch.randn(4, 5, 2), hybrid)
    both(torch.add, coo(torch.int64), coo(torch.float64))
    both(torch.add, torch.zeros(4, 5), torch.empty(4, 5, layout=COO))


def test_coo_sums_refuse_what_the_cpu_refuses() -> None:
    ours = coo().to("musa")
    with pytest.raises(RuntimeError, match=r"Use add\(dense, sparse\)"):
        torch.add(ours, torch.zeros(4, 5, device="musa"))
    with pytest.raises(RuntimeError, match="match"):
        torch.add(ours, torch.empty(4, 6, layout=COO, device="musa"))
    with pytest.raises(RuntimeError, match="one on cpu"):
        torch.add(ours, coo())
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.zeros(4, 5, dtype=torch.int64, device="musa").add_(ours)


def test_coo_products() -> None:
    once, twice, dense = coo(repeats=False).coalesce(), coo(), torch.randn(4, 5)
    both(lambda x: x * 3, twice)
    both(lambda x: x * torch.tensor(2.0), twice)
    both(lambda x: x / 2, twice)
    both(torch.mul, once, twice)
    both(torch.mul, once, coo(torch.float64, repeats=False))
    both(torch.mul, once, dense)
    both(torch.mul, dense, once)
    both(torch.mul, once, torch.randn(5))
    both(lambda x, y: x.clone().mul_(y), once, once)
    both(torch.mul, once, torch.empty(4, 5, layout=COO))
    both(torch.mul, coo(dense=(2,)), coo(dense=(2,)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_coo_matrix_products(dtype: torch.dtype) -> None:
    sparse, dense, start = coo(dtype), torch.randn(5, 3, dtype=dtype), torch.randn(4, 3, dtype=dtype)
    both(torch.sparse.mm, sparse, dense)
    both(torch.mm, sparse, dense)
    both(torch.mv, sparse, dense[:, 0])
    both(lambda a, b, c: torch.sparse.addmm(a, b, c, beta=0.5, alpha=2), start, sparse, dense)
    both(lambda a, b, c: torch.addmm(a, b, c, beta=0), start.fill_(float("nan")), sparse, dense)
    both(torch.sparse.mm, torch.empty(4, 5, layout=COO, dtype=dtype), dense)


def test_coo_matrix_products_refuse_what_does_not_fit() -> None:
    ours = coo().to("musa")
    with pytest.raises(RuntimeError, match="Expected dim 0 size 5, got 4"):
        torch.sparse.mm(ours, torch.zeros(4, 2, device="musa"))
    with pytest.raises(RuntimeError, match="one dtype"):
        torch.sparse.mm(ours, torch.zeros(5, 2, device="musa", dtype=torch.float64))


# Zero stays zero under these, so that a sparse tensor stays one. PyTorch's functions for them serve every device.
UNARY = [
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "isinf",
    "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "neg", "rad2deg", "relu", "round", "sgn", "sign", "signbit",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("layout", [COO, torch.sparse_csr])
def test_unary_functions(name: str, layout: torch.layout) -> None:
    if name == "nan_to_num" and layout != COO:
        pytest.skip("PyTorch has no nan_to_num of compressed tensors on any device")
    source = (coo() if layout == COO else compressed(layout)) * (1 / 16)
    both(getattr(torch, name), source)
    if hasattr(source, f"{name}_"):
        both(lambda x: getattr(x.clone().coalesce() if layout == COO else x.clone(), f"{name}_")(), source)


def test_coo_shapes_and_reductions() -> None:
    source = coo(repeats=False).coalesce()
    both(Tensor.t, source)
    both(lambda x: x.permute(1, 0), source)
    both(lambda x: x.unsqueeze(1), source)
    both(lambda x: x.narrow_copy(1, 1, 3), source)
    both(lambda x: torch.sparse.sum(x), source)
    both(lambda x: torch.sparse.sum(x, 0), source)
    both(lambda x: torch.cat([x, x]), source)
    both(lambda x: x.pow(2), source)
    both(lambda x: x.clone().zero_(), source)
    both(lambda x: torch.norm(x), source)
    both(lambda x, mask: x.sparse_mask(mask), torch.randn(4, 5), source)


@pytest.mark.parametrize("layout", COMPRESSED)
def test_compressed_matrix_products(layout: torch.layout) -> None:
    sparse, start = compressed(layout, torch.float64).to("musa"), torch.randn(4, 3, dtype=torch.float64)
    dense, left = torch.randn(6, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    # the CPU computes these only where PyTorch was built with MKL, so the reference is dense
    plain, before = sparse.cpu().to_dense(), torch.musa.fallback_counts()
    agree(sparse @ dense.to("musa"), plain @ dense)
    agree(left.to("musa") @ sparse, left @ plain)
    ours = torch.addmm(start.to("musa"), sparse, dense.to("musa"), beta=0.5, alpha=2)
    agree(ours, torch.addmm(start, plain, dense, beta=0.5, alpha=2))
    if layout == torch.sparse_csr:
        agree(sparse @ dense[:, 0].to("musa"), plain @ dense[:, 0])
    assert torch.musa.fallback_counts() == before


def test_csr_sums() -> None:
    csr, dense = compressed(torch.sparse_csr), torch.randn(4, 6)
    both(torch.add, csr, csr)
    both(lambda x, y: torch.add(x, y, alpha=-3), csr, csr)
    both(lambda x, y: x.clone().add_(y), csr, csr)
    ours = torch.add(dense.to("musa"), csr.to("musa"), alpha=2)
    agree(ours, dense + 2 * csr.to_dense())
    with pytest.raises(NotImplementedError, match="SparseBsr on musa"):
        torch.add(compressed(torch.sparse_bsr).to("musa"), compressed(torch.sparse_bsr).to("musa"))


def test_csr_scaling_and_views() -> None:
    csr = compressed(torch.sparse_csr)
    both(lambda x: x * 2, csr)
    both(lambda x: x.clone().zero_(), csr)
    both(lambda x: x.transpose(0, 1), csr)
    both(lambda x: x[3], csr)
    both(lambda x: torch.sum(x), csr)


# ---- autograd ----


def test_gradients_through_sparse_products() -> None:
    sparse, dense = coo(torch.float64, repeats=False).coalesce(), torch.randn(5, 3, dtype=torch.float64)

    def gradients(device: str) -> tuple[Tensor, Tensor]:
        a, b = (x.detach().to(device).requires_grad_() for x in (sparse, dense))
        torch.sparse.mm(a, b).sin().sum().backward()
        assert a.grad is not None and b.grad is not None
        return a.grad, b.grad

    for ours, expected in zip(gradients("musa"), gradients("cpu"), strict=True):
        torch.testing.assert_close(ours.cpu().to_dense(), expected.to_dense())


def test_sparse_gradients_of_an_embedding_train_it() -> None:
    def trained(device: str) -> Tensor:
        weight = torch.arange(12.0).reshape(4, 3).to(device).requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            rows = torch.nn.functional.embedding(torch.tensor([1, 3, 1], device=device), weight, sparse=True)
            rows.pow(2).sum().backward()
            assert weight.grad is not None and weight.grad.is_sparse
            optimizer.step()
        return weight.detach()

    torch.testing.assert_close(trained("musa").cpu(), trained("cpu"))


def test_sparse_adam() -> None:
    def trained(device: str) -> Tensor:
        table = torch.nn.Embedding(5, 2, sparse=True, _weight=torch.ones(5, 2)).to(device)
        optimizer = torch.optim.SparseAdam(list(table.parameters()), lr=0.1)
        for rows in ([0, 2, 0], [4, 2, 1]):
            optimizer.zero_grad()
            table(torch.tensor(rows, device=device)).sin().sum().backward()
            optimizer.step()
        return table.weight.detach()

    torch.testing.assert_close(trained("musa").cpu(), trained("cpu"))
