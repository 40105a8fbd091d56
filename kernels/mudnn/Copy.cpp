// Copies: within a device, between devices, and between device and host. `copy_`, `to`, `clone`,
// `contiguous` and `item` all end here.

#include <torch_musa/ops/_copy_from_native.h>
#include <torch_musa/ops/_copy_from_and_resize_native.h>
#include <torch_musa/ops/_local_scalar_dense_native.h>

#include <ATen/Dispatch_v2.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/view_as_real.h>
#include <musa_runtime.h>
#include <torch/library.h>

#include "kernels/ported/PortedKernels.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSACachingHostAllocator.h"
#include "torch_musa/csrc/core/MUSAEvent.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

using c10::musa::getCurrentMUSAStream;
using c10::musa::MUSAEvent;
using c10::musa::MUSAGuard;
using c10::musa::MUSAStream;
using Dims = c10::SmallVector<int64_t, 8>;

// Checks shapes and overlaps as on the CPU, broadcasts, and merges dimensions that lie in memory as
// one.
TensorIterator copy_iterator(const Tensor& dst, const Tensor& src) {
  return TensorIteratorConfig()
      .add_output(dst)
      .add_const_input(src)
      .resize_outputs(false)
      .check_all_same_dtype(false)
      .check_all_same_device(false)
      .build();
}

bool on_musa(const Tensor& tensor) { return tensor.device().type() == kMUSA; }

// ---- within a device ----

/// One operand of a strided copy: bytes and strides in units of `unit` bytes, slowest dimension
/// first.
struct Operand {
  char* data;
  Dims strides;
};

struct Layout {
  Dims sizes;
  Operand dst;
  Operand src;
};

Dims element_strides(const TensorIteratorBase& iter, int arg) {
  Dims strides;
  const auto bytes = iter.strides(arg);
  const auto item = static_cast<int64_t>(iter.element_size(arg));
  for (auto dim = static_cast<int64_t>(bytes.size()) - 1; dim >= 0; --dim) {
    strides.push_back(bytes[dim] / item);
  }
  return strides;
}

// The iterator counts dimensions from the fastest.
Layout layout_of(const TensorIteratorBase& iter) {
  const auto shape = iter.shape();
  return {Dims(shape.rbegin(), shape.rend()),
          {static_cast<char*>(iter.data_ptr(0)), element_strides(iter, 0)},
          {static_cast<char*>(iter.data_ptr(1)), element_strides(iter, 1)}};
}

// muDNN takes eight dimensions. What is left over after merging is looped over on the outside.
template <typename F>
void for_each_mudnn_piece(const Layout& layout, int64_t dst_item, int64_t src_item, const F& f) {
  constexpr size_t kMaxRank = 8;
  if (layout.sizes.size() <= kMaxRank) {
    f(layout);
    return;
  }
  Layout inner = layout;
  for (Dims* dims : {&inner.sizes, &inner.dst.strides, &inner.src.strides}) {
    dims->erase(dims->begin());
  }
  for (int64_t i = 0; i < layout.sizes[0]; ++i) {
    for_each_mudnn_piece(inner, dst_item, src_item, f);
    inner.dst.data += layout.dst.strides[0] * dst_item;
    inner.src.data += layout.src.strides[0] * src_item;
  }
}

// Elements moved as they are have no type, only a width; this way every dtype takes the same path
// and no profile's missing type (bfloat16, double) gets in the way.
ScalarType carrier_of_width(int64_t bytes) {
  switch (bytes) {
    case 1:
      return kChar;
    case 2:
      return kShort;
    case 4:
      return kInt;
    case 8:
      return kLong;
    default:
      TORCH_INTERNAL_ASSERT(false, "no integer of ", bytes, " bytes");
  }
}

void strided_move(const TensorIteratorBase& iter) {
  Layout layout = layout_of(iter);
  auto item = static_cast<int64_t>(iter.element_size(0));
  if (item == 16) {  // complex128: two words side by side
    for (Operand* operand : {&layout.dst, &layout.src}) {
      for (int64_t& stride : operand->strides) {
        stride *= 2;
      }
      operand->strides.push_back(1);
    }
    layout.sizes.push_back(2);
    item = 8;
  }
  const ScalarType carrier = carrier_of_width(item);
  for_each_mudnn_piece(layout, item, item, [&](const Layout& piece) {
    muTensor out = CreateMUTensor(piece.dst.data, carrier, piece.sizes, piece.dst.strides);
    const muTensor in = CreateMUTensor(piece.src.data, carrier, piece.sizes, piece.src.strides);
    ::musa::dnn::Permute op;
    CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), out, in), "Permute::Run for copy_");
  });
}

bool mudnn_casts(ScalarType dtype) {
  switch (dtype) {
    case kHalf:
    case kFloat:
    case kDouble:
    case kBFloat16:
    case kChar:
    case kShort:
    case kInt:
    case kLong:
    case kByte:
    case kBool:
      return true;
    default:
      return false;
  }
}

void strided_cast(TensorIteratorBase& iter) {
  const ScalarType to = iter.dtype(0);
  const ScalarType from = iter.dtype(1);
  if (!mudnn_casts(to) || !mudnn_casts(from)) {
    copy_kernel(iter);
    return;
  }
  for_each_mudnn_piece(
      layout_of(iter), static_cast<int64_t>(iter.element_size(0)),
      static_cast<int64_t>(iter.element_size(1)), [&](const Layout& piece) {
        muTensor out = CreateMUTensor(piece.dst.data, to, piece.sizes, piece.dst.strides);
        const muTensor in = CreateMUTensor(piece.src.data, from, piece.sizes, piece.src.strides);
        ::musa::dnn::Unary op;
        CHECK_MUDNN_STATUS(op.SetMode(::musa::dnn::Unary::Mode::CAST), "Unary::SetMode");
        CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), out, in), "Unary::Run CAST for copy_");
      });
}

// ---- conjugate and negative bits: a tensor that carries one stands for the conjugate or negative
// of its memory ----

/// `tensor` as it lies in memory.
Tensor without_bits(const Tensor& tensor) {
  Tensor raw = tensor;
  if (raw.is_neg()) {
    raw = raw._neg_view();
  }
  return raw.is_conj() ? raw.conj() : raw;
}

/// Multiplies by -1 in place, bits ignored. `raw` is real.
void negate_(const Tensor& raw) {
  TensorIterator iter = copy_iterator(raw, raw);
  const Layout layout = layout_of(iter);
  const auto item = static_cast<int64_t>(iter.element_size(0));
  const ScalarType dtype = raw.scalar_type();
  for_each_mudnn_piece(layout, item, item, [&](const Layout& piece) {
    muTensor out = CreateMUTensor(piece.dst.data, dtype, piece.sizes, piece.dst.strides);
    ::musa::dnn::Unary op;
    CHECK_MUDNN_STATUS(op.SetMode(::musa::dnn::Unary::Mode::MUL), "Unary::SetMode");
    CHECK_MUDNN_STATUS(isFloatingType(dtype) ? op.SetAlpha(-1.0) : op.SetAlpha(int64_t{-1}),
                       "Unary::SetAlpha");
    CHECK_MUDNN_STATUS(op.Run(GetMudnnHandle(), out, out), "Unary::Run MUL for copy_");
  });
}

void settle_bits(const Tensor& dst, const Tensor& src) {
  const Tensor raw = without_bits(dst);
  if (dst.is_complex()) {
    const Tensor parts = at::view_as_real(raw);
    if (dst.is_conj() != src.is_conj()) {
      negate_(parts.select(-1, 1));
    }
    if (dst.is_neg() != src.is_neg()) {
      negate_(parts);
    }
  } else if (dst.is_neg() != src.is_neg()) {
    negate_(raw);
  }
}

void copy_on_device(const Tensor& dst, const Tensor& src) {
  const MUSAGuard guard(dst.device());
  TensorIterator iter = copy_iterator(dst, src);
  if (iter.numel() == 0) {
    return;
  }
  if (dst.scalar_type() != src.scalar_type()) {
    // A bool tells whether either part is there, so nothing is discarded.
    if (src.is_complex() && !dst.is_complex() && dst.scalar_type() != kBool) {
      TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
    }
    strided_cast(iter);
  } else if (iter.is_contiguous()) {
    if (iter.data_ptr(0) != iter.data_ptr(1)) {
      C10_MUSA_CHECK(musaMemcpyAsync(iter.data_ptr(0), iter.data_ptr(1),
                                     iter.numel() * iter.element_size(0), musaMemcpyDeviceToDevice,
                                     getCurrentMUSAStream().stream()));
    }
  } else {
    strided_move(iter);
  }
  settle_bits(dst, src);
}

// ---- between layouts that bytes can be poured through ----

/// Whether the elements fill their memory without gaps, in whatever order.
bool is_dense(const Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && is_dense(a) && a.is_conj() == b.is_conj() &&
         a.is_neg() == b.is_neg();
}

/// An uninitialized tensor with the sizes and strides of `like`, which is dense, on `device`.
Tensor dense_like(const Tensor& like, Device device) {
  return at::empty_strided(like.sizes(), like.strides(), like.options().device(device));
}

Tensor to_dense(const Tensor& raw) {
  if (is_dense(raw)) {
    return raw;
  }
  Tensor dense = at::empty(raw.sizes(), raw.options());
  copy_on_device(dense, raw);
  return dense;
}

// ---- between devices ----

void copy_between_devices(const Tensor& dst, const Tensor& src) {
  // Convert where the data is; then only bytes have to travel.
  Tensor packed;
  {
    const MUSAGuard guard(src.device());
    packed = at::empty(src.sizes(), src.options().dtype(dst.scalar_type()));
    copy_on_device(packed, src);
  }
  const bool direct =
      dst.sizes() == packed.sizes() && dst.is_contiguous() && !dst.is_conj() && !dst.is_neg();
  const MUSAGuard guard(dst.device());
  const Tensor landing =
      direct ? dst : at::empty(packed.sizes(), packed.options().device(dst.device()));

  const MUSAStream src_stream = getCurrentMUSAStream(src.device().index());
  const MUSAStream dst_stream = getCurrentMUSAStream(dst.device().index());
  c10::musa::can_access_peer(src.device().index(), dst.device().index());
  // The copy runs on the source's stream, after what is queued on the destination's (it may still
  // read `landing`), and the destination's stream goes on when it is done.
  MUSAEvent landing_free;
  landing_free.record(dst_stream);
  landing_free.block(src_stream);
  {
    const MUSAGuard src_guard(src.device());
    C10_MUSA_CHECK(musaMemcpyPeerAsync(landing.mutable_data_ptr(), dst.device().index(),
                                       packed.const_data_ptr(), src.device().index(),
                                       packed.nbytes(), src_stream.stream()));
  }
  MUSAEvent arrived;
  arrived.record(src_stream);
  arrived.block(dst_stream);
  if (!direct) {
    copy_on_device(dst, landing);
  }
}

// ---- between host and device ----

/// Queues a copy of the bytes and, unless it may run on behind the caller's back, waits for it.
/// `pinned` is the host tensor if it is page-locked and the caller asked for non_blocking: only
/// then can the copy be left in flight, and the host allocator is told to keep the memory until the
/// copy has passed.
void transfer(void* dst, const void* src, size_t nbytes, musaMemcpyKind kind,
              const Tensor* pinned) {
  const MUSAStream stream = getCurrentMUSAStream();
  C10_MUSA_CHECK(musaMemcpyAsync(dst, src, nbytes, kind, stream.stream()));
  if (pinned == nullptr) {
    stream.synchronize();
    return;
  }
  const auto& storage = pinned->storage();
  const bool tracked = getMUSAPinnedMemoryAllocator()->record_event(
      const_cast<void*>(storage.data()), storage.data_ptr().get_context(), stream.unwrap());
  if (!tracked) {  // page-locked by someone else, who knows nothing of this copy
    stream.synchronize();
  }
}

void copy_from_host(const Tensor& dst, const Tensor& src, bool non_blocking) {
  const MUSAGuard guard(dst.device());
  if (same_bytes(dst, src)) {
    const bool asynchronous = non_blocking && src.is_pinned();
    transfer(dst.mutable_data_ptr(), src.const_data_ptr(), dst.nbytes(), musaMemcpyHostToDevice,
             asynchronous ? &src : nullptr);
    return;
  }
  // Casts and conjugation are the CPU's own, so every dtype that it converts arrives. A broadcast
  // is left to the device: fewer bytes travel.
  const Tensor raw = without_bits(dst);
  const bool into_place = is_dense(raw) && raw.sizes() == src.sizes();
  Tensor host =
      into_place ? dense_like(raw, kCPU) : at::empty(src.sizes(), raw.options().device(kCPU));
  Tensor wanted = src;  // the value that dst's memory has to hold for dst to read as src
  if (dst.is_conj()) {
    wanted = wanted.conj();
  }
  if (dst.is_neg()) {
    wanted = wanted.neg();
  }
  host.copy_(wanted);
  if (into_place) {
    transfer(raw.mutable_data_ptr(), host.const_data_ptr(), host.nbytes(), musaMemcpyHostToDevice,
             nullptr);
  } else {
    const Tensor landing = dense_like(host, dst.device());
    transfer(landing.mutable_data_ptr(), host.const_data_ptr(), host.nbytes(),
             musaMemcpyHostToDevice, nullptr);
    copy_on_device(raw, landing);
  }
}

void copy_to_host(const Tensor& dst, const Tensor& src, bool non_blocking) {
  const MUSAGuard guard(src.device());
  if (same_bytes(dst, src)) {
    const bool asynchronous = non_blocking && dst.is_pinned();
    transfer(dst.mutable_data_ptr(), src.const_data_ptr(), src.nbytes(), musaMemcpyDeviceToHost,
             asynchronous ? &dst : nullptr);
    return;
  }
  const Tensor dense = to_dense(without_bits(src));
  Tensor host = dense_like(dense, kCPU);
  transfer(host.mutable_data_ptr(), dense.const_data_ptr(), dense.nbytes(), musaMemcpyDeviceToHost,
           nullptr);
  if (src.is_conj()) {
    host = host.conj();
  }
  if (src.is_neg()) {
    host = host._neg_view();
  }
  dst.copy_(host);
}

}  // namespace

Tensor CopyFrom(const Tensor& self, const Tensor& dst, bool non_blocking) {
  TORCH_CHECK(self.defined() && dst.defined(), "copy_: both tensors must be defined");
  TORCH_CHECK(self.layout() == kStrided && dst.layout() == kStrided, "copy_ between ",
              self.layout(), " on ", self.device(), " and ", dst.layout(), " on ", dst.device(),
              " is not supported");
  // Shape and overlap errors come first and read the same on every path.
  if (copy_iterator(dst, self).numel() == 0) {
    return dst;
  }
  if (on_musa(self) && on_musa(dst)) {
    if (self.device() == dst.device()) {
      copy_on_device(dst, self);
    } else {
      copy_between_devices(dst, self);
    }
    return dst;
  }
  const Tensor& other = on_musa(dst) ? self : dst;
  TORCH_CHECK_NOT_IMPLEMENTED(other.is_cpu(), "copy_ between musa and ", other.device(),
                              " is not supported");
  if (on_musa(dst)) {
    copy_from_host(dst, self, non_blocking);
  } else {
    copy_to_host(dst, self, non_blocking);
  }
  return dst;
}

Tensor CopyFromAndResize(const Tensor& self, const Tensor& dst) {
  dst.resize_(self.sizes());
  return CopyFrom(self, dst, /*non_blocking=*/false);
}

Scalar LocalScalarDense(const Tensor& self) {
  const MUSAGuard guard(self.device());
  Scalar result;
  AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense_musa", AT_WRAP([&] {
                   scalar_t value;
                   transfer(&value, self.const_data_ptr(), sizeof(value), musaMemcpyDeviceToHost,
                            nullptr);
                   result = Scalar(value);
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 AT_EXPAND(AT_FLOAT8_TYPES), kComplexHalf, kHalf, kBool, kBFloat16);
  return result;
}

// copy_ reaches _copy_from with the destination as a plain operand. Without these two, PyTorch's
// fallback for the bits would hand over a resolved copy of the destination and the write would be
// lost; the kernel above knows the bits.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace at::musa
