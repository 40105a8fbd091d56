#include "torch_musa/csrc/core/MUSACachingHostAllocator.h"

#include <musa_runtime.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "torch_musa/csrc/core/MUSAEvent.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAStream.h"

namespace at::musa {
namespace {

using c10::musa::MUSAEvent;
using c10::musa::MUSAStream;
using Block = HostBlock<MUSAStream>;

/// PyTorch's host cache over musaHostAlloc. A block whose copies are still queued waits for their
/// events.
class HostAllocatorImpl final : public CachingHostAllocatorImpl<MUSAStream, MUSAEvent> {
 public:
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    std::memcpy(dest, src, count);
  }

 private:
  void allocate_host_memory(size_t size, void** ptr) override {
    const c10::DeviceIndex device = c10::musa::current_device();
    c10::musa::ensure_initialized(device);
    const musaError_t error = musaHostAlloc(ptr, size, musaHostAllocDefault);
    if (error == musaErrorMemoryAllocation) {
      static_cast<void>(musaGetLastError());
      TORCH_CHECK_WITH(OutOfMemoryError, false,
                       "MUSA out of page-locked host memory. Tried to allocate ",
                       c10::CachingAllocator::format_size(size), ".");
    }
    C10_MUSA_CHECK(error);
  }

  void free_block(Block* block) override { C10_MUSA_CHECK(musaFreeHost(block->ptr_)); }

  void record_stream(std::optional<std::vector<MUSAEvent>>& events, MUSAStream stream) override {
    // Each replay reads the memory again, which no event tells: whoever captures keeps it alive.
    if (stream.is_capturing()) {
      return;
    }
    MUSAEvent event;
    event.record(stream);
    events->push_back(std::move(event));
  }

  bool query_event(MUSAEvent& event) override { return event.query(); }

  // Newer PyTorch asks these two; without `override` the class also serves versions that do not.
  MUSAStream get_current_stream() const { return c10::musa::getCurrentMUSAStream(); }
  bool stream_is_capturing(MUSAStream stream) const { return stream.is_capturing(); }
};

void delete_host_data(void* ptr);

class PinnedAllocator final
    : public CachingHostAllocatorInterface<HostAllocatorImpl, &delete_host_data> {};

PinnedAllocator& instance() {
  static auto* allocator = new PinnedAllocator();  // outlives the tensors of static variables
  return *allocator;
}

void delete_host_data(void* ptr) { instance().free(ptr); }

REGISTER_HOST_ALLOCATOR(DeviceType::PrivateUse1, &instance())

}  // namespace

HostAllocator* getMUSAPinnedMemoryAllocator() { return &instance(); }

bool isPinnedPtr(const void* ptr) {
  // A process that never touched a device cannot own pinned memory, and asking would initialize the
  // driver.
  if (!c10::musa::is_initialized() || c10::musa::in_bad_fork()) {
    return false;
  }
  musaPointerAttributes attributes{};
  if (musaPointerGetAttributes(&attributes, ptr) != musaSuccess) {
    static_cast<void>(musaGetLastError());
    return false;
  }
  return attributes.type == musaMemoryTypeHost;
}

}  // namespace at::musa
