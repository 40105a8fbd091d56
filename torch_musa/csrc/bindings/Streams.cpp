#include <cstdint>
#include <tuple>

#include "torch_musa/csrc/bindings/Module.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAStream.h"
#include "torch_musa/csrc/core/impl/MUSAGuardImpl.h"

namespace torch_musa {
namespace py = pybind11;

namespace {

// What torch.Stream is made from: (stream_id, device_index, device_type).
using Packed = std::tuple<int64_t, int64_t, int64_t>;

Packed pack(c10::musa::MUSAStream stream) {
  const auto data = stream.pack3();
  return {data.stream_id, data.device_index, static_cast<int64_t>(data.device_type)};
}

c10::musa::MUSAStream unpack(int64_t id, int64_t index, int64_t type) {
  return c10::musa::MUSAStream::unpack3(id, static_cast<c10::DeviceIndex>(index),
                                        static_cast<c10::DeviceType>(type));
}

}  // namespace

void bind_streams(py::module_& m) {
  m.def("_current_stream",
        [](int device) { return pack(c10::musa::getCurrentMUSAStream(device)); });
  m.def("_default_stream",
        [](int device) { return pack(c10::musa::getDefaultMUSAStream(device)); });
  m.def("_external_stream", [](uintptr_t handle, int device) {
    return pack(c10::musa::getStreamFromExternal(reinterpret_cast<musaStream_t>(handle), device));
  });
  m.def("_set_stream", [](int64_t id, int64_t index, int64_t type) {
    c10::musa::setCurrentMUSAStream(unpack(id, index, type));
  });
  m.def("_stream_priority",
        [](int64_t id, int64_t index, int64_t type) { return unpack(id, index, type).priority(); });
  m.def("_stream_handle", [](int64_t id, int64_t index, int64_t type) {
    return reinterpret_cast<uintptr_t>(unpack(id, index, type).stream());
  });
  m.def("_event_elapsed_time", [](uintptr_t start, uintptr_t end) {
    const c10::musa::impl::MUSAGuardImpl impl;
    return impl.elapsedTime(reinterpret_cast<void*>(start), reinterpret_cast<void*>(end),
                            c10::musa::current_device());
  });
}

}  // namespace torch_musa
