#include <musa_runtime.h>

#include <string>

#include "torch_musa/csrc/aten/musa/MUSAContext.h"
#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"
#include "torch_musa/csrc/bindings/Module.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

namespace torch_musa {
namespace py = pybind11;

namespace {

std::string describe(const musaDeviceProp& p) {
  return c10::str("_MusaDeviceProperties(name='", p.name, "', major=", p.major, ", minor=", p.minor,
                  ", total_memory=", p.totalGlobalMem / (1024 * 1024),
                  "MB, multi_processor_count=", p.multiProcessorCount, ", warp_size=", p.warpSize,
                  ")");
}

}  // namespace

void bind_device(py::module_& m) {
  m.def("_device_count", [] { return static_cast<int>(c10::musa::device_count()); });
  m.def("_current_device", [] { return static_cast<int>(c10::musa::current_device()); });
  m.def("_set_device", [](int device) { c10::musa::set_device(device); });
  m.def("_exchange_device",
        [](int device) { return static_cast<int>(c10::musa::exchange_device(device)); });
  m.def("_maybe_exchange_device",
        [](int device) { return static_cast<int>(c10::musa::maybe_exchange_device(device)); });
  m.def(
      "_synchronize",
      [](int device) {
        const c10::musa::MUSAGuard guard(static_cast<c10::DeviceIndex>(device));
        c10::musa::device_synchronize();
      },
      py::call_guard<py::gil_scoped_release>());
  m.def("_can_access_peer",
        [](int device, int peer) { return c10::musa::can_access_peer(device, peer); });

  m.def("_init", [] { c10::musa::ensure_initialized(c10::musa::current_device()); });
  m.def("_is_initialized", [] { return c10::musa::is_initialized(); });
  m.def("_in_bad_fork", [] { return c10::musa::in_bad_fork(); });

  py::class_<musaDeviceProp>(m, "_MusaDeviceProperties")
      .def_property_readonly("name", [](const musaDeviceProp& p) { return std::string(p.name); })
      .def_readonly("major", &musaDeviceProp::major)
      .def_readonly("minor", &musaDeviceProp::minor)
      .def_readonly("total_memory", &musaDeviceProp::totalGlobalMem)
      .def_readonly("multi_processor_count", &musaDeviceProp::multiProcessorCount)
      .def_readonly("warp_size", &musaDeviceProp::warpSize)
      .def_readonly("max_threads_per_block", &musaDeviceProp::maxThreadsPerBlock)
      .def_readonly("max_threads_per_multi_processor", &musaDeviceProp::maxThreadsPerMultiProcessor)
      .def_readonly("regs_per_multiprocessor", &musaDeviceProp::regsPerMultiprocessor)
      .def_readonly("shared_memory_per_block", &musaDeviceProp::sharedMemPerBlock)
      .def_readonly("L2_cache_size", &musaDeviceProp::l2CacheSize)
      .def_readonly("is_integrated", &musaDeviceProp::integrated)
      .def("__repr__", &describe);
  m.def(
      "_device_properties", [](int device) { return at::musa::getDeviceProperties(device); },
      py::return_value_policy::reference);
  m.def("_driver_version", [] {
    int version = 0;
    C10_MUSA_CHECK(musaDriverGetVersion(&version));
    return version;
  });
  m.def("_runtime_version", [] {
    int version = 0;
    C10_MUSA_CHECK(musaRuntimeGetVersion(&version));
    return version;
  });

  m.def("_default_generator",
        [](int device) { return at::musa::detail::getDefaultMUSAGenerator(device); });
}

}  // namespace torch_musa
