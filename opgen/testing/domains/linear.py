"""Matrix products and linear algebra."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from opgen.testing.build import Build, Domain
from opgen.testing.case import TensorSpec
from opgen.testing.rules import one_of
from opgen.testing.tensors import FLOATING, INTEGRAL, Numbers, broadcastable

_SMALL = Numbers(-2, 2)


def _size(build: Build) -> int:
    return 0 if build.maybe(16) else build.pick(2, 3, 1, 5, 4, 8, 17)


def _prepare_product(build: Build) -> dict[str, Any]:
    """Every argument name of the family at once: m x k times k x n, batches of b, an addend that broadcasts."""
    b, m, k, n = (_size(build) for _ in range(4))
    root = build.op.root
    batched = root in {"bmm", "baddbmm", "addbmm"}
    left: tuple[int, ...] = (b, m, k) if batched else (m, k)
    right: tuple[int, ...] = (b, k, n) if batched else (k, n)
    out: tuple[int, ...] = (b, m, n) if root == "baddbmm" else (m, n)
    if root in {"mv", "addmv"}:
        # of an empty matrix the CPU's addmv gives the shape of its addend
        m, k = max(m, 1), max(k, 1)
        left, right, out = (m, k), (k,), (m,)
    if root in {"dot", "vdot"}:
        left, right = (k,), (k,)
    if root in {"ger", "outer", "addr"}:
        left, right = (m,), (n,)
    names = [a.name for a in build.op.inputs if a.tensor]
    operands = names[-2:]
    made: dict[str, Any] = {operands[0]: build.tensor(left), operands[1]: build.tensor(right)}
    if len(names) == 3:
        made[names[0]] = (
            build.tensor(out, expand=False) if build.op.inplace else build.tensor(broadcastable(build.source, out))
        )
    return made


def _prepare_matmul(build: Build) -> dict[str, Any]:
    """torch.matmul's own broadcasting: ranks 1 to 4, batch dims that broadcast."""
    m, k, n = (_size(build) for _ in range(3))
    batch = (2, 3)[: build.size(0, 2)]
    left = (k,) if build.maybe(5) else (*broadcastable(build.source, batch), m, k)
    right = (k,) if build.maybe(5) else (*broadcastable(build.source, batch), k, n)
    return {"self": build.tensor(left), "other": build.tensor(right)}


def _prepare_linear(build: Build) -> dict[str, Any]:
    k, n = _size(build), _size(build)
    batch = (2, 3)[: build.size(0, 2)]
    made: dict[str, Any] = {"input": build.tensor((*batch, k)), "weight": build.tensor((n, k))}
    made["bias"] = build.pick(None, build.tensor((n,)))
    return made


def _prepare_linear_backward(build: Build) -> dict[str, Any]:
    k, n = _size(build), _size(build)
    batch = (2, 3)[: build.size(0, 2)]
    return {
        "self": build.tensor((*batch, k)),
        "grad_output": build.tensor((*batch, n)),
        "weight": build.tensor((n, k)),
    }


def _square(build: Build) -> torch.Tensor:
    """Well-conditioned square matrices: dominated by their diagonal."""
    n = build.pick(2, 3, 1, 4)
    batch = build.pick((), (2,), (2, 3))
    noise = build.tensor((*batch, n, n), of=Numbers(-0.5, 0.5)).value
    return noise + 4 * torch.eye(n, dtype=build.dtype)


def _prepare_square(build: Build) -> dict[str, Any]:
    matrix = _square(build)
    name = build.op.inputs[0].name
    return {name: build.lay_out(matrix), "pivot": True}


def _prepare_definite(build: Build) -> dict[str, Any]:
    matrix = _square(build)
    return {build.op.inputs[0].name: build.lay_out(matrix @ matrix.mH)}


def _prepare_solve(build: Build) -> dict[str, Any]:
    matrix = _square(build)
    rows = (*matrix.shape[:-1], build.pick(1, 2, 3))
    return {"A": build.lay_out(matrix), "B": build.tensor(rows), "left": True, "self": build.lay_out(matrix)}


def _prepare_triangular(build: Build) -> dict[str, Any]:
    """Either triangle, on either side; what stands in the other one does not count."""
    matrix = _square(build)
    left, other = build.flag(), build.pick(1, 2, 3)
    n = matrix.shape[-1]
    rows = (*matrix.shape[:-2], n, other) if left else (*matrix.shape[:-2], other, n)
    return {
        "self": build.lay_out(matrix),
        "B": build.tensor(rows),
        "upper": build.flag(),
        "left": left,
        "unitriangular": build.flag(),
    }


def _prepare_lu_solve(build: Build) -> dict[str, Any]:
    """A factorization, and right-hand sides for it."""
    factors, pivots = torch.linalg.lu_factor(_square(build).flip(-1))
    left, other = build.flag(), build.pick(1, 2, 3)
    n = factors.shape[-1]
    rows = (*factors.shape[:-2], n, other) if left else (*factors.shape[:-2], other, n)
    return {
        "LU": build.lay_out(factors),
        "pivots": build.lay_out(pivots),
        "B": build.tensor(rows),
        "left": left,
        "adjoint": build.flag(),
    }


def _prepare_lu_unpack(build: Build) -> dict[str, Any]:
    """Factors of any shape, and row exchanges that go downwards."""
    m, n = build.pick(3, 1, 4, 0), build.pick(3, 2, 5, 0)
    batch = build.pick((), (2,), (2, 3))
    below = torch.tensor([[build.size(i, m - 1) for i in range(min(m, n))] for _ in range(math.prod(batch))])
    pivots = (below.reshape(*batch, min(m, n)) + 1).to(torch.int32)
    return {
        "LU_data": build.tensor((*batch, m, n)),
        "LU_pivots": build.lay_out(pivots),
        "unpack_data": not build.maybe(4),
        "unpack_pivots": not build.maybe(4),
    }


def _prepare_symmetric(build: Build) -> dict[str, Any]:
    matrix = _square(build)
    return {"A": build.lay_out(matrix + matrix.mH), "UPLO": build.pick("L", "U"), "compute_v": True}


def _prepare_cross(build: Build) -> dict[str, Any]:
    """Vectors of three elements along any dim, in batches that broadcast."""
    batch = (2, 4)[: build.size(0, 2)]
    dim = build.size(0, len(batch))
    shapes = [broadcastable(build.source, batch) for _ in range(2)]
    full = [(*(1,) * (len(batch) - len(shape)), *shape) for shape in shapes]
    left, right = ((*shape[:dim], 3, *shape[dim:]) for shape in full)
    return {"self": build.tensor(left), "other": build.tensor(right), "dim": dim - build.pick(0, len(batch) + 1)}


def _prepare_grouped(build: Build) -> dict[str, Any]:
    """A batch of products; rows and columns are multiples of 16 bytes, as the operator demands."""
    groups, m, k, n = build.size(1, 3), 8 * build.size(1, 2), 8 * build.size(1, 2), 8 * build.size(1, 2)
    right = TensorSpec.of(build.tensor((groups, n, k)).value)
    return {
        "self": TensorSpec.of(build.tensor((groups, m, k)).value),
        "mat2": replace(right, shape=(groups, k, n), strides=(n * k, 1, k)),
        "offs": None,
        "bias": None,
        "out_dtype": None,
    }


_PRODUCT = Domain(prepare=_prepare_product, numbers=_SMALL, accumulates=True)
_DECOMPOSED = (torch.float32, torch.float64, torch.complex64, torch.complex128)

TABLE = {
    "mm bmm mv dot vdot ger outer addmm addmv baddbmm addbmm": _PRODUCT,
    # the CPU has rules of its own for bools, which PyTorch's composition for all other devices lacks
    "addr": replace(
        _PRODUCT,
        dtypes=(*FLOATING, *INTEGRAL, torch.complex64, torch.complex128),
        arguments={"beta": one_of(1, 2, 0), "alpha": one_of(1, 2, -1)},
    ),
    "_addmm_activation": replace(_PRODUCT, dtypes=FLOATING),
    "_grouped_mm": Domain(prepare=_prepare_grouped, numbers=_SMALL, accumulates=True, dtypes=(torch.bfloat16,)),
    "matmul": Domain(prepare=_prepare_matmul, numbers=_SMALL, accumulates=True),
    "linear": Domain(prepare=_prepare_linear, numbers=_SMALL, accumulates=True),
    "linear_backward": Domain(prepare=_prepare_linear_backward, numbers=_SMALL, accumulates=True),
    "linalg_inv_ex linalg_lu_factor_ex": Domain(prepare=_prepare_square, dtypes=_DECOMPOSED, accumulates=True),
    # the factorization that comes along may be the transposed matrix's
    "_linalg_det": Domain(prepare=_prepare_square, dtypes=_DECOMPOSED, accumulates=True, private=frozenset({1, 2})),
    "_linalg_slogdet": Domain(prepare=_prepare_square, dtypes=_DECOMPOSED, accumulates=True, private=frozenset({2, 3})),
    "linalg_qr _linalg_svd": Domain(
        ranks=(2, 4),
        least_size=1,
        dtypes=_DECOMPOSED,
        accumulates=True,
        arguments={"mode": one_of("reduced", "complete")},
    ),
    "_linalg_eigh": Domain(prepare=_prepare_symmetric, dtypes=_DECOMPOSED, accumulates=True),
    "cholesky linalg_cholesky_ex cholesky_inverse": Domain(
        prepare=_prepare_definite, dtypes=_DECOMPOSED, accumulates=True
    ),
    "_linalg_solve_ex": Domain(prepare=_prepare_solve, dtypes=_DECOMPOSED, accumulates=True, private=frozenset({1, 2})),
    "linalg_solve_triangular": Domain(prepare=_prepare_triangular, dtypes=_DECOMPOSED, accumulates=True),
    "linalg_lu_solve": Domain(prepare=_prepare_lu_solve, dtypes=_DECOMPOSED, accumulates=True),
    "lu_unpack": Domain(prepare=_prepare_lu_unpack, dtypes=_DECOMPOSED),
    # the CPU's kernel crashes on out= tensors of a wrong size
    "lu_unpack.out": Domain(prepare=_prepare_lu_unpack, dtypes=_DECOMPOSED, trusts_out=True),
    "linalg_cross": Domain(prepare=_prepare_cross, numbers=_SMALL),
}
