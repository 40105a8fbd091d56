// Copies and fills: every pointer is checked against what the runtime knows of it, because a wrong
// direction that happens to work here would fail on a card.
#include <cstring>

#include "Device.h"
#include "Memory.h"
#include "Stream.h"

namespace musa::host {
namespace {

enum class Side { HOST, DEVICE, EITHER };

void check_side(const void* pointer, size_t bytes, Side side) {
  require(pointer != nullptr);
  const auto block = find_block(pointer);
  if (block) require(block->holds(pointer, bytes));
  const bool on_device = block && block->on_device;
  require(side == Side::EITHER || on_device == (side == Side::DEVICE));
}

void check_copy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  switch (kind) {
    case musaMemcpyHostToHost:
      check_side(dst, bytes, Side::HOST);
      check_side(src, bytes, Side::HOST);
      return;
    case musaMemcpyHostToDevice:
      check_side(dst, bytes, Side::DEVICE);
      check_side(src, bytes, Side::HOST);
      return;
    case musaMemcpyDeviceToHost:
      check_side(dst, bytes, Side::HOST);
      check_side(src, bytes, Side::DEVICE);
      return;
    case musaMemcpyDeviceToDevice:
      check_side(dst, bytes, Side::DEVICE);
      check_side(src, bytes, Side::DEVICE);
      return;
    case musaMemcpyDefault:
      check_side(dst, bytes, Side::EITHER);
      check_side(src, bytes, Side::EITHER);
      return;
  }
  require(false, musaErrorInvalidMemcpyDirection);
}

// Overlapping ranges are undefined in the API; memmove keeps them harmless here.
void copy(void* dst, const void* src, size_t bytes, musaStream_t stream) {
  enqueue(stream, [=] { std::memmove(dst, src, bytes); });
}

void fill(void* pointer, int value, size_t bytes, musaStream_t stream) {
  if (bytes == 0) return;
  // A kernel does the filling: pinned host memory is reachable, pageable memory is not.
  require(device_accessible(pointer, bytes, find_block(pointer) ? find_block(pointer)->device : 0));
  enqueue(stream, [=] { std::memset(pointer, value, bytes); });
}

// The blocking calls wait for the default stream, on which they run.
template <typename Body>
musaError_t on_stream(musaStream_t stream, Body&& body) {
  return api([&] {
    resolve(stream, current_device());
    body();
  });
}

}  // namespace
}  // namespace musa::host

using musa::host::check_copy;
using musa::host::on_stream;
using musa::host::require;

musaError_t musaMemcpyAsync(void* dst, const void* src, size_t bytes, musaMemcpyKind kind,
                            musaStream_t stream) {
  return on_stream(stream, [&] {
    require(kind >= musaMemcpyHostToHost && kind <= musaMemcpyDefault,
            musaErrorInvalidMemcpyDirection);
    if (bytes == 0) return;
    check_copy(dst, src, bytes, kind);
    musa::host::copy(dst, src, bytes, stream);
  });
}

musaError_t musaMemcpy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind) {
  const musaError_t error = musaMemcpyAsync(dst, src, bytes, kind, nullptr);
  return error != musaSuccess ? error : musaStreamSynchronize(nullptr);
}

musaError_t musaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                size_t bytes, musaStream_t stream) {
  return on_stream(stream, [&] {
    musa::host::require_device(dst_device);
    musa::host::require_device(src_device);
    if (bytes == 0) return;
    check_copy(dst, src, bytes, musaMemcpyDeviceToDevice);
    require(musa::host::find_block(dst)->device == dst_device &&
            musa::host::find_block(src)->device == src_device);
    musa::host::copy(dst, src, bytes, stream);
  });
}

musaError_t musaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device,
                           size_t bytes) {
  const musaError_t error = musaMemcpyPeerAsync(dst, dst_device, src, src_device, bytes, nullptr);
  return error != musaSuccess ? error : musaStreamSynchronize(nullptr);
}

musaError_t musaMemsetAsync(void* pointer, int value, size_t bytes, musaStream_t stream) {
  return on_stream(stream, [&] { musa::host::fill(pointer, value, bytes, stream); });
}

musaError_t musaMemset(void* pointer, int value, size_t bytes) {
  const musaError_t error = musaMemsetAsync(pointer, value, bytes, nullptr);
  return error != musaSuccess ? error : musaStreamSynchronize(nullptr);
}
