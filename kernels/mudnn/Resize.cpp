// Sizes, strides and storages of existing tensors.

#include <torch_musa/ops/resize_native.h>
#include <torch_musa/ops/set_native.h>

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/empty.h>

#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace at::musa {
namespace {

using c10::musa::MUSAGuard;

// Grows the storage if the tensor needs more; never shrinks it, so that resizing back and forth
// allocates once.
void ensure_storage(TensorImpl* impl, size_t nbytes) {
  if (impl->numel() == 0) {
    return;  // whatever the offset is, nothing will be addressed
  }
  const Storage& storage = impl->unsafe_storage();
  if (!storage) {
    impl->set_storage_keep_dtype(Storage(Storage::use_byte_size_t(), nbytes,
                                         c10::musa::MUSACachingAllocator::get(),
                                         /*resizable=*/true));
  } else if (nbytes > storage.nbytes()) {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(storage, nbytes);
  }
}

// `stride` empty: contiguous.
void resize_impl(TensorImpl* impl, IntArrayRef size, std::optional<IntArrayRef> stride) {
  if (impl->sizes() == size && (!stride.has_value() || impl->strides() == *stride)) {
    return;
  }
  const MUSAGuard guard(impl->device());
  const size_t item = impl->itemsize();
  size_t nbytes = 0;
  if (stride.has_value()) {
    impl->set_sizes_and_strides(size, *stride);
    nbytes = at::detail::computeStorageNbytes(size, *stride, item, impl->storage_offset());
  } else {
    impl->set_sizes_contiguous(size);
    nbytes = at::detail::computeStorageNbytesContiguous(size, item, impl->storage_offset());
  }
  ensure_storage(impl, nbytes);
}

}  // namespace

const Tensor& Resize(const Tensor& self, IntArrayRef size,
                     std::optional<MemoryFormat> memory_format) {
  TensorImpl* impl = self.unsafeGetTensorImpl();
  const Storage& storage = impl->unsafe_storage();
  const int64_t old_nbytes = storage ? static_cast<int64_t>(storage.nbytes()) : 0;
  resize_impl(impl, size, std::nullopt);
  if (memory_format.has_value()) {
    TORCH_CHECK(*memory_format != MemoryFormat::Preserve, "Unsupported memory format",
                *memory_format);
    impl->empty_tensor_restride(*memory_format);
  }
  const auto& context = at::globalContext();
  if (C10_UNLIKELY(context.deterministicAlgorithms() &&
                   context.deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(self, old_nbytes);
  }
  return self;
}

Tensor& SetStorage_(Tensor& self, Storage source, int64_t storage_offset, IntArrayRef size,
                    IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), storage_offset, size, stride);
  TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(storage_offset);
  // An absent stride is a null pointer, unlike the empty stride of a scalar.
  resize_impl(impl, size,
              stride.data() != nullptr ? std::optional<IntArrayRef>(stride) : std::nullopt);
  return self;
}

Tensor& Set_(Tensor& self) {
  const MUSAGuard guard(self.device());
  Storage storage(Storage::use_byte_size_t(), 0, c10::musa::MUSACachingAllocator::get(),
                  /*resizable=*/true);
  return self.set_(std::move(storage), 0, {0}, {});
}

}  // namespace at::musa
