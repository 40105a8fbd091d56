// Sparse COO tensors on musa. PyTorch's own functions build, read and reshape them on any device;
// here is what has to compute with coordinates. Sorting, gathering and adding up are muDNN's.

#include <torch_musa/ops/_coalesce_native.h>
#include <torch_musa/ops/add_native.h>
#include <torch_musa/ops/addmm_native.h>
#include <torch_musa/ops/mul_native.h>

#include <ATen/ExpandUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/Resize.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace at::musa {
namespace {

using at::sparse::get_sparse_impl;
using c10::musa::MUSAGuard;

void check_on_musa(const char* op, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors) {
    TORCH_CHECK((*tensors.begin())->device() == tensor->device(), op, ": expected all tensors on ",
                (*tensors.begin())->device(), ", but got one on ", tensor->device());
  }
}

/// Each entry's place in the tensor as a number, [nnz]; all zero where there are no sparse dims.
Tensor places(const Tensor& indices, IntArrayRef sizes) {
  Tensor numbers = at::zeros({indices.size(1)}, indices.options().dtype(kLong));
  for (int64_t dim = 0; dim < indices.size(0); ++dim) {
    numbers.mul_(sizes[dim]).add_(indices.select(0, dim));
  }
  return numbers;
}

/// Puts `indices` and `values` into the sparse tensor `out`, whose dtype the values take.
void deliver(const Tensor& out, IntArrayRef sizes, const Tensor& indices, const Tensor& values,
             bool coalesced) {
  auto* impl = get_sparse_impl(out);
  const int64_t sparse_dim = indices.size(0);
  if (!out.sizes().equals(sizes) || out.sparse_dim() != sparse_dim) {
    impl->resize_and_clear_(sparse_dim, values.dim() - 1, sizes);
  }
  impl->set_indices_and_values_unsafe(indices, values.to(out.scalar_type()));
  impl->set_coalesced(coalesced);
}

void check_result_dtype(const char* op, ScalarType computed, const Tensor& out) {
  TORCH_CHECK(canCast(computed, out.scalar_type()), op, ": result type ", computed,
              " can't be cast to the desired output type ", out.scalar_type());
}

/// out = self + alpha * other, where only `other` is sparse. Entries of one place add up.
void add_to_dense(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(!out.is_sparse(), "add: expected a dense result for a dense and a sparse operand");
  TORCH_CHECK(self.sizes().equals(other.sizes()), "add: expected 'self' and 'other' to have same ",
              "size, but self has size ", self.sizes(), " while other has size ", other.sizes());
  const ScalarType dtype = promoteTypes(self.scalar_type(), other.scalar_type());
  check_result_dtype("add", dtype, out);
  Tensor sum = self.to(dtype, /*non_blocking=*/false, /*copy=*/true, MemoryFormat::Contiguous);
  if (other._nnz() != 0 && sum.numel() != 0) {
    const int64_t sparse_dim = other.sparse_dim();
    Tensor values = other._values().to(dtype);
    if (alpha.to<c10::complex<double>>() != 1.) {
      values = at::mul(values, alpha);
    }
    DimVector flat{c10::multiply_integers(sum.sizes().slice(0, sparse_dim))};
    flat.append(sum.sizes().begin() + sparse_dim, sum.sizes().end());
    sum.view(flat).index_add_(0, places(other._indices(), other.sizes()), values);
  }
  at::native::resize_output(out, self.sizes());
  out.copy_(sum);
}

/// The product's values where a dense tensor and a sparse one of the same sizes meet.
Tensor values_at(const Tensor& dense, const Tensor& sparse) {
  const int64_t sparse_dim = sparse.sparse_dim();
  DimVector flat{c10::multiply_integers(dense.sizes().slice(0, sparse_dim))};
  flat.append(dense.sizes().begin() + sparse_dim, dense.sizes().end());
  return dense.reshape(flat).index_select(0, places(sparse._indices(), sparse.sizes()));
}

void multiply_by_dense(const Tensor& sparse, const Tensor& dense, ScalarType dtype, Tensor& out) {
  if (dense.dim() == 0) {
    deliver(out, sparse.sizes(), sparse._indices(), at::mul(sparse._values(), dense).to(dtype),
            sparse.is_coalesced());
    return;
  }
  const auto sizes = at::infer_size_dimvector(sparse.sizes(), dense.sizes());
  TORCH_CHECK(sparse.sizes().equals(sizes), "mul(sparse, dense): the sparse operand of size ",
              sparse.sizes(), " would have to be broadcast to ", IntArrayRef(sizes));
  const Tensor values = at::mul(sparse._values().to(dtype), values_at(dense.expand(sizes), sparse));
  deliver(out, sizes, sparse._indices(), values, sparse.is_coalesced());
}

/// Which entries of two coalesced tensors are at one place, as their numbers in either.
///
/// In the sorted places of both, a pair of equal neighbours is one: the sort is stable, so the
/// first of the two is the left tensor's.
std::pair<Tensor, Tensor> common_entries(const Tensor& left, const Tensor& right) {
  const Tensor all =
      at::cat({places(left._indices(), left.sizes()), places(right._indices(), right.sizes())});
  auto [sorted, order] = at::sort(all, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const int64_t pairs = std::max<int64_t>(all.size(0) - 1, 0);
  const int64_t second = std::min<int64_t>(all.size(0), 1);
  const Tensor at_pair =
      at::nonzero(sorted.narrow(0, 0, pairs).eq(sorted.narrow(0, second, pairs))).squeeze(1);
  return {order.index_select(0, at_pair), order.index_select(0, at_pair + 1) - left._nnz()};
}

void multiply_sparse(const Tensor& a, const Tensor& b, ScalarType dtype, Tensor& out) {
  TORCH_CHECK(a.sizes().equals(b.sizes()), "mul: expected 'self' and 'other' to have same sizes, ",
              "but ", a.sizes(), " != ", b.sizes());
  TORCH_CHECK(at::sparse::is_same_density(a, b), "mul: expected 'self' and 'other' to have same ",
              "density: sparse and dense dims of self are ", a.sparse_dim(), " and ", a.dense_dim(),
              ", of other ", b.sparse_dim(), " and ", b.dense_dim());
  const Tensor left = a.coalesce(), right = b.coalesce();
  const auto [from_left, from_right] = common_entries(left, right);
  const Tensor values = at::mul(left._values().index_select(0, from_left).to(dtype),
                                right._values().index_select(0, from_right).to(dtype));
  deliver(out, a.sizes(), left._indices().index_select(1, from_left), values, /*coalesced=*/true);
}

/// x where mask has an entry, too: what sparse_mask makes of two sparse tensors.
void mask_sparse(Tensor& out, const Tensor& x, const Tensor& mask,
                 const std::optional<Tensor>& /*places_of_x*/) {
  const MUSAGuard guard(x.device());
  const Tensor left = x.coalesce();
  const Tensor entries = common_entries(left, mask.coalesce()).first;
  deliver(out, x.sizes(), left._indices().index_select(1, entries),
          left._values().index_select(0, entries), /*coalesced=*/true);
}

/// beta * self + alpha * (sparse @ dense), each entry of `sparse` adding its share of a row. Takes
/// nnz x columns of memory for those shares.
Tensor product_sum(const Tensor& self, const Tensor& sparse, const Tensor& dense,
                   const Scalar& beta, const Scalar& alpha) {
  TORCH_CHECK(sparse.is_sparse() && !dense.is_sparse() && !self.is_sparse(),
              "addmm: a sparse first matrix and a dense second one are supported on musa, but the ",
              "layouts are ", sparse.layout(), " and ", dense.layout());
  check_on_musa("addmm", {&self, &sparse, &dense});
  TORCH_CHECK(sparse.sparse_dim() == 2 && sparse.dense_dim() == 0, "addmm: matrices expected, got ",
              sparse.dim(), "D tensor with ", sparse.dense_dim(), " dense dims");
  TORCH_CHECK(dense.dim() == 2, "addmm: matrices expected, got ", dense.dim(), "D tensor");
  TORCH_CHECK(sparse.size(1) == dense.size(0), "addmm: Argument #3 (dense): Expected dim 0 size ",
              sparse.size(1), ", got ", dense.size(0));
  TORCH_CHECK(
      self.scalar_type() == dense.scalar_type() && sparse.scalar_type() == dense.scalar_type(),
      "addmm: expected one dtype, but got ", self.scalar_type(), ", ", sparse.scalar_type(),
      " and ", dense.scalar_type());
  const MUSAGuard guard(self.device());
  const DimVector sizes{sparse.size(0), dense.size(1)};
  const Tensor start = self.expand(sizes);
  // A beta of zero forgets what self holds, infinities and NaN included.
  Tensor out = beta.to<c10::complex<double>>() == 0. ? at::zeros(sizes, self.options())
                                                     : at::mul(start, beta).contiguous();
  if (sparse._nnz() == 0 || out.numel() == 0) {
    return out;
  }
  const Tensor indices = sparse._indices();
  const Tensor weights = at::mul(sparse._values(), alpha).unsqueeze(1);
  const Tensor shares = at::mul(weights, dense.index_select(0, indices.select(0, 1)));
  return out.index_add_(0, indices.select(0, 0), shares.to(out.scalar_type()));
}

}  // namespace

Tensor CoalesceSparse(const Tensor& self) {
  const MUSAGuard guard(self.device());
  if (self._nnz() < 2) {
    Tensor only = self.clone();
    get_sparse_impl(only)->set_coalesced(true);
    return only;
  }
  auto [sorted, order] = at::sort(places(self._indices(), self.sizes()), /*stable=*/true,
                                  /*dim=*/0, /*descending=*/false);
  const int64_t nnz = self._nnz();
  // Where a place differs from the one before it, a new entry begins.
  const Tensor begins = at::cat({at::ones({1}, sorted.options().dtype(kBool)),
                                 sorted.narrow(0, 1, nnz - 1).ne(sorted.narrow(0, 0, nnz - 1))});
  const Tensor entry_of = at::cumsum(begins, 0) - 1;
  const Tensor first = order.index_select(0, at::nonzero(begins).squeeze(1));
  const Tensor given = self._values().index_select(0, order);
  // muDNN adds no booleans: their sum is "any of them".
  const bool boolean = given.scalar_type() == kBool;
  DimVector sizes(given.sizes());
  sizes[0] = first.size(0);
  Tensor values = at::zeros(sizes, given.options().dtype(boolean ? kInt : given.scalar_type()));
  values.index_add_(0, entry_of, boolean ? given.to(kInt) : given);
  return at::_sparse_coo_tensor_unsafe(self._indices().index_select(1, first),
                                       boolean ? values.ne(0) : values, self.sizes(),
                                       self.options(), /*is_coalesced=*/true);
}

Tensor& AddSparseOut(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  check_on_musa("add", {&self, &other, &out});
  const MUSAGuard guard(self.device());
  if (!self.is_sparse()) {
    add_to_dense(self, other, alpha, out);
    return out;
  }
  TORCH_CHECK(other.is_sparse(),
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(out.is_sparse(), "add: expected a sparse result for sparse operands");
  TORCH_CHECK(self.sizes().equals(other.sizes()), "add: expected sizes of 'self' and 'other' to ",
              "match, but ", self.sizes(), " != ", other.sizes());
  TORCH_CHECK(at::sparse::is_same_density(self, other), "add: expected 'self' and 'other' to have ",
              "same density, but 'self' has ", self.sparse_dim(), " sparse dims while 'other' has ",
              other.sparse_dim());
  const ScalarType dtype = promoteTypes(self.scalar_type(), other.scalar_type());
  check_result_dtype("add", dtype, out);
  const Tensor sum = at::_sparse_coo_tensor_unsafe(
      at::cat({self._indices(), other._indices()}, 1),
      at::cat({self._values().to(dtype), at::mul(other._values().to(dtype), alpha)}), self.sizes());
  // As on the CPU, coalesced operands have a coalesced sum.
  const bool coalesced = self.is_coalesced() && other.is_coalesced();
  const Tensor result = coalesced ? sum.coalesce() : sum;
  deliver(out, self.sizes(), result._indices(), result._values(), coalesced);
  return out;
}

Tensor& MulSparseOut(const Tensor& self, const Tensor& other, Tensor& out) {
  const MUSAGuard guard(out.device());
  TORCH_CHECK(out.is_sparse(), "mul: expected a sparse result where an operand is sparse");
  const ScalarType dtype = at::result_type(self, other);
  check_result_dtype("mul", dtype, out);
  if (!self.is_sparse()) {
    multiply_by_dense(other, self, dtype, out);
  } else if (!other.is_sparse()) {
    multiply_by_dense(self, other, dtype, out);
  } else if (other.dim() == 0 || self.dim() == 0) {
    const Tensor& scalar = other.dim() == 0 ? other : self;
    multiply_by_dense(other.dim() == 0 ? self : other, scalar.to_dense(), dtype, out);
  } else {
    check_on_musa("mul", {&self, &other, &out});
    multiply_sparse(self, other, dtype, out);
  }
  return out;
}

Tensor AddmmSparse(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                   const Scalar& alpha) {
  return product_sum(self, mat1, mat2, beta, alpha);
}

Tensor& AddmmSparse_(Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  const Tensor sum = product_sum(self, mat1, mat2, beta, alpha);
  TORCH_CHECK(self.sizes().equals(sum.sizes()), "addmm_: the output shape ", self.sizes(),
              " does not match the sum's ", sum.sizes());
  return self.copy_(sum);
}

Tensor& AddmmSparseOut(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                       const Scalar& beta, const Scalar& alpha, Tensor& out) {
  const Tensor sum = product_sum(self, mat1, mat2, beta, alpha);
  at::native::resize_output(out, sum.sizes());
  return out.copy_(sum);
}

}  // namespace at::musa

// PyTorch's functions for sparse tensors reach these on any device. The stubs are exported, but the
// header that declares them is not among those that come with PyTorch.
namespace at::native {

using flatten_indices_fn = Tensor (*)(const Tensor&, IntArrayRef);
DECLARE_DISPATCH(flatten_indices_fn, flatten_indices_stub)
using sparse_mask_intersection_out_fn = void (*)(Tensor&, const Tensor&, const Tensor&,
                                                 const std::optional<Tensor>&);
DECLARE_DISPATCH(sparse_mask_intersection_out_fn, sparse_mask_intersection_out_stub)

REGISTER_MUSA_DISPATCH(flatten_indices_stub, &at::musa::places)
REGISTER_MUSA_DISPATCH(sparse_mask_intersection_out_stub, &at::musa::mask_sparse)

}  // namespace at::native
