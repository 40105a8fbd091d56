#include <array>
#include <cstdint>

#include "torch_musa/csrc/bindings/Module.h"
#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSACachingHostAllocator.h"

namespace torch_musa {
namespace py = pybind11;
namespace Caching = c10::musa::MUSACachingAllocator;

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

py::dict to_dict(const Stat& stat) {
  py::dict out;
  out["current"] = stat.current;
  out["peak"] = stat.peak;
  out["allocated"] = stat.allocated;
  out["freed"] = stat.freed;
  return out;
}

py::dict to_dict(const StatArray& stats) {
  constexpr std::array<const char*, static_cast<size_t>(StatType::NUM_TYPES)> kNames = {
      "all", "small_pool", "large_pool"};
  py::dict out;
  for (size_t i = 0; i < kNames.size(); ++i) {
    out[kNames[i]] = to_dict(stats[i]);
  }
  return out;
}

// The nesting of torch.cuda.memory_stats_as_nested_dict.
py::dict memory_stats(int device) {
  const auto stats = Caching::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  py::dict out;
  out["num_alloc_retries"] = stats.num_alloc_retries;
  out["num_ooms"] = stats.num_ooms;
  out["num_sync_all_streams"] = stats.num_sync_all_streams;
  out["num_device_alloc"] = stats.num_device_alloc;
  out["num_device_free"] = stats.num_device_free;
  out["allocation"] = to_dict(stats.allocation);
  out["segment"] = to_dict(stats.segment);
  out["active"] = to_dict(stats.active);
  out["inactive_split"] = to_dict(stats.inactive_split);
  out["allocated_bytes"] = to_dict(stats.allocated_bytes);
  out["reserved_bytes"] = to_dict(stats.reserved_bytes);
  out["active_bytes"] = to_dict(stats.active_bytes);
  out["inactive_split_bytes"] = to_dict(stats.inactive_split_bytes);
  out["requested_bytes"] = to_dict(stats.requested_bytes);
  return out;
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("_memory_stats", &memory_stats);
  m.def("_empty_cache", [] { Caching::emptyCache(); }, py::call_guard<py::gil_scoped_release>());
  m.def("_reset_peak_memory_stats",
        [](int device) { Caching::resetPeakStats(static_cast<c10::DeviceIndex>(device)); });
  m.def("_reset_accumulated_memory_stats",
        [](int device) { Caching::resetAccumulatedStats(static_cast<c10::DeviceIndex>(device)); });
  m.def("_mem_get_info",
        [](int device) { return Caching::getMemoryInfo(static_cast<c10::DeviceIndex>(device)); });
  m.def(
      "_host_empty_cache", [] { at::musa::getMUSAPinnedMemoryAllocator()->empty_cache(); },
      py::call_guard<py::gil_scoped_release>());
}

}  // namespace torch_musa
