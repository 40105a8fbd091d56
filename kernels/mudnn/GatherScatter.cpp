#include "kernels/mudnn/Layout.h"
#include "kernels/mudnn/Operands.h"

#include <torch_musa/ops/gather_native.h>
#include <torch_musa/ops/scatter_add_native.h>
#include <torch_musa/ops/scatter_native.h>

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

namespace at::musa {
namespace {

using ScatterMode = ::musa::dnn::Scatter::Mode;

// The parts of complex numbers, and of one alone as of a vector of length 1.
Tensor parts_of(const Tensor& tensor) {
  return at::view_as_real(tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor);
}

// The index of both parts of a complex number is the index of the number.
Tensor index_of_parts(const Tensor& index) {
  DimArray shape(index.sizes().begin(), index.sizes().end());
  if (shape.empty()) shape.push_back(1);
  shape.push_back(2);
  return index.unsqueeze(-1).expand(shape);
}

void gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const Tensor positions = index.contiguous();
  const DenseOutput target(out);
  muTensor mu_out = target.describe();
  muTensor mu_index = CreateMUTensor(positions);
  muTensor mu_in = CreateMUTensor(self);
  ::musa::dnn::Gather op;
  CHECK_MUDNN_STATUS(op.SetMode(::musa::dnn::Gather::Mode::GATHER_ELEMENTS), "SetMode");
  CHECK_MUDNN_STATUS(op.SetAxis(static_cast<int>(dim)), "SetAxis");
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, mu_index, mu_in, InternalMemAlloc), "gather");
  target.finish();
}

// Writes or adds `src` into `out`, which is dense and of src's dtype.
void scatter(ScatterMode mode, const Tensor& out, int64_t dim, const Tensor& index,
             const Tensor& src) {
  const Tensor positions = index.contiguous();
  muTensor mu_out = CreateMUTensor(out);
  muTensor mu_index = CreateMUTensor(positions);
  muTensor mu_src = CreateMUTensor(src);
  ::musa::dnn::Scatter op;
  CHECK_MUDNN_STATUS(op.SetMode(mode), "SetMode");
  CHECK_MUDNN_STATUS(
      op.Run(GetMudnnHandle(), mu_out, mu_index, mu_src, static_cast<int>(dim), InternalMemAlloc),
      "scatter");
}

void scatter_into(ScatterMode mode, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& src, const Tensor& out) {
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() == 0) return;
  dim = maybe_wrap_dim(dim, self.dim());
  // muDNN does not add bools; counting the hits as bytes could wrap to false, as integers it does
  // not.
  const bool count = mode == ScatterMode::ADD && out.scalar_type() == kBool;
  const Tensor target = count ? out.to(kLong) : out.contiguous();
  const Tensor source = count ? src.to(kLong) : src;
  if (out.is_complex()) {
    scatter(mode, parts_of(target), dim, index_of_parts(index), parts_of(source));
  } else {
    scatter(mode, target, dim, index, source);
  }
  if (!target.is_same(out)) out.copy_(target);
}

}  // namespace

TORCH_IMPL_FUNC(MusaGather)
(const Tensor& self, int64_t dim, const Tensor& index, bool /*sparse_grad*/, const Tensor& out) {
  if (index.numel() == 0) return;
  dim = maybe_wrap_dim(dim, self.dim());
  if (self.is_complex()) {
    gather(parts_of(self), dim, index_of_parts(index), parts_of(out));
  } else {
    gather(self, dim, index, out);
  }
}

TORCH_IMPL_FUNC(MusaScatterSrc)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  scatter_into(ScatterMode::UPDATE_ONLY, self, dim, index, src, out);
}

TORCH_IMPL_FUNC(MusaScatterValue)
(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, const Tensor& out) {
  const Tensor src = at::empty(index.sizes(), out.options()).fill_(value);
  scatter_into(ScatterMode::UPDATE_ONLY, self, dim, index, src, out);
}

TORCH_IMPL_FUNC(MusaScatterAdd)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  scatter_into(ScatterMode::ADD, self, dim, index, src, out);
}

}  // namespace at::musa
