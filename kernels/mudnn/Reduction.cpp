#include "kernels/mudnn/Reduction.h"

#include <ATen/ops/empty.h>
#include <c10/util/irange.h>

namespace at::musa {
namespace {

// The operand as Reduce can take it: of dtype `compute`, of rank 8 or less, without stride-0
// repetition.
struct ReduceInput {
  Tensor tensor;
  DimArray sizes;
  DimArray strides;
  c10::SmallVector<int, 8> dims;
  DimArray kept;  // the sizes with 1 for each reduced dimension
};

bool repeats(const Tensor& tensor) {
  for (const auto d : c10::irange(tensor.dim())) {
    if (tensor.stride(d) == 0 && tensor.size(d) > 1) return true;
  }
  return false;
}

ReduceInput prepare(const Tensor& self, const c10::SmallVector<int, 8>& dims, ScalarType compute) {
  ReduceInput in;
  in.tensor = self.scalar_type() == compute ? self : self.to(compute);
  if (repeats(in.tensor)) in.tensor = in.tensor.contiguous();
  in.dims = dims;
  if (in.tensor.dim() > kMaxMudnnRank) {
    // Kept dimensions first, reduced ones last, each group as one.
    c10::SmallVector<int64_t, 16> order;
    int64_t kept = 1;
    std::bitset<dim_bitset_size> reduced;
    for (const int d : dims) reduced.set(d);
    for (const auto d : c10::irange(in.tensor.dim())) {
      if (reduced[d]) continue;
      order.push_back(d);
      kept *= in.tensor.size(d);
    }
    order.append(dims.begin(), dims.end());
    in.tensor = in.tensor.permute(order).reshape({kept, -1});
    in.dims = {1};
  }
  if (static_cast<int64_t>(in.dims.size()) == in.tensor.dim() && in.tensor.is_contiguous()) {
    // Everything: in what order does not matter, so it may as well be a vector.
    in.sizes = {in.tensor.numel()};
    in.strides = {1};
    in.dims = {0};
    in.kept = {1};
    return in;
  }
  in.sizes.assign(in.tensor.sizes().begin(), in.tensor.sizes().end());
  in.strides.assign(in.tensor.strides().begin(), in.tensor.strides().end());
  if (in.sizes.empty()) {
    in.sizes = {1};
    in.strides = {1};
    in.dims = {0};
  }
  in.kept = in.sizes;
  for (const int d : in.dims) in.kept[d] = 1;
  return in;
}

// `out` where muDNN can write it, else a dense tensor of `dtype` and out's shape.
Tensor writable(const Tensor& out, ScalarType dtype) {
  if (out.scalar_type() == dtype && out.is_contiguous()) return out;
  return at::empty(out.sizes(), out.options().dtype(dtype));
}

void set_up(::musa::dnn::Reduce& op, ReduceMode mode, const c10::SmallVector<int, 8>& dims) {
  CHECK_MUDNN_STATUS(op.SetMode(mode), "SetMode");
  CHECK_MUDNN_STATUS(op.SetDim(static_cast<int>(dims.size()), dims.data()), "SetDim");
}

}  // namespace

c10::SmallVector<int, 8> ReducedDims(OptionalIntArrayRef dim, int64_t rank) {
  const bool all = !dim.has_value() || dim->empty();
  const auto mask = dim_list_to_bitset(all ? OptionalIntArrayRef() : dim, rank);
  c10::SmallVector<int, 8> dims;
  for (const auto d : c10::irange(static_cast<int>(rank))) {
    if (mask[d]) dims.push_back(d);
  }
  return dims;
}

DimArray ReducedShape(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  DimArray shape(self.sizes().begin(), self.sizes().end());
  const auto dims = ReducedDims(dim, self.dim());
  for (size_t i = dims.size(); i-- > 0;) {
    if (keepdim) {
      shape[dims[i]] = 1;
    } else {
      shape.erase(shape.begin() + dims[i]);
    }
  }
  return shape;
}

void Reduce(const Reduction& reduction, const Tensor& self, OptionalIntArrayRef dim,
            ScalarType compute, const Tensor& out) {
  const ReduceInput in = prepare(self, ReducedDims(dim, self.dim()), compute);
  const Tensor target = writable(out, compute);
  muTensor mu_in = MakeMUTensor(in.tensor.const_data_ptr(), compute, in.sizes, in.strides);
  muTensor mu_out = MakeContiguousMUTensor(target.mutable_data_ptr(), compute, in.kept);
  ::musa::dnn::Reduce op;
  set_up(op, reduction.mode, in.dims);
  CHECK_MUDNN_STATUS(op.SetNormOrd(reduction.norm_order), "SetNormOrd");
  CHECK_MUDNN_STATUS(op.SetCorrection(reduction.correction), "SetCorrection");
  CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), mu_out, mu_in, InternalMemAlloc), reduction.name);
  if (!target.is_same(out)) out.copy_(target);
}

void ReduceWithIndices(const char* name, ReduceMode mode, const Tensor& self,
                       std::optional<int64_t> dim, const Tensor& values, const Tensor& indices) {
  // Bools compare like the bytes they are; the positions do not care.
  const ScalarType compute = self.scalar_type() == kBool ? kByte : self.scalar_type();
  CheckComputeType(compute, name);
  Tensor source = self;
  c10::SmallVector<int, 8> dims{0};
  if (dim) {
    dims[0] = static_cast<int>(maybe_wrap_dim(*dim, self.dim()));
  } else {
    source = self.reshape({-1});
  }
  const ReduceInput in = prepare(source, dims, compute);
  const Tensor positions = writable(indices, kLong);
  muTensor mu_in = MakeMUTensor(in.tensor.const_data_ptr(), compute, in.sizes, in.strides);
  muTensor mu_indices = MakeContiguousMUTensor(positions.mutable_data_ptr(), kLong, in.kept);
  ::musa::dnn::Reduce op;
  set_up(op, mode, in.dims);
  if (values.defined()) {
    const Tensor extrema = writable(values, compute);
    muTensor mu_values = MakeContiguousMUTensor(extrema.mutable_data_ptr(), compute, in.kept);
    CHECK_MUDNN_STATUS(
        op.RunWithIndices(GetMudnnHandle(), mu_values, mu_indices, mu_in, InternalMemAlloc), name);
    if (!extrema.is_same(values)) values.copy_(extrema);
  } else {
    CHECK_MUDNN_STATUS(op.RunIndices(GetMudnnHandle(), mu_indices, mu_in, InternalMemAlloc), name);
  }
  if (!positions.is_same(indices)) indices.copy_(positions);
}

}  // namespace at::musa
