#include <torch/csrc/Exceptions.h>

#include <memory>
#include <string>
#include <thread>

#include "torch_musa/csrc/aten/musa/MUSAGraph.h"
#include "torch_musa/csrc/bindings/Module.h"
#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAMemPool.h"
#include "torch_musa/csrc/core/MUSAStream.h"

namespace torch_musa {
namespace py = pybind11;

namespace {

namespace Allocator = c10::musa::MUSACachingAllocator;
using at::musa::MUSAGraph;
using c10::MempoolId_t;
using Released = py::call_guard<py::gil_scoped_release>;

musaStreamCaptureMode capture_mode(const std::string& name) {
  if (name == "global") return musaStreamCaptureModeGlobal;
  if (name == "thread_local") return musaStreamCaptureModeThreadLocal;
  if (name == "relaxed") return musaStreamCaptureModeRelaxed;
  TORCH_CHECK_VALUE(
      false, "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got ",
      name);
}

}  // namespace

void bind_graphs(py::module_& m) {
  m.def("_is_current_stream_capturing", [] {
    return c10::musa::is_initialized() && c10::musa::getCurrentMUSAStream().is_capturing();
  });
  m.def("_graph_pool_handle", &Allocator::new_user_pool_id);

  py::class_<MUSAGraph, std::shared_ptr<MUSAGraph>>(m, "_MUSAGraph")
      .def(py::init<bool>(), py::arg("keep_graph") = false)
      .def(
          "register_generator_state",
          // Any generator that draws in the capture is the graph's: only the type is checked.
          [](MUSAGraph&, const at::Generator& generator) {
            static_cast<void>(at::check_generator<at::musa::MUSAGeneratorImpl>(generator));
          },
          py::arg("generator"))
      .def(
          "capture_begin",
          [](MUSAGraph& graph, std::optional<MempoolId_t> pool, const std::string& mode) {
            graph.capture_begin(pool.value_or(MempoolId_t{0, 0}), capture_mode(mode));
          },
          py::arg("pool"), py::arg("capture_error_mode"), Released())
      // With PyTorch's way to Python for the warning about an empty graph.
      .def("capture_end", torch::wrap_pybind_function_no_gil(&MUSAGraph::capture_end))
      .def("instantiate", &MUSAGraph::instantiate, Released())
      .def("replay", &MUSAGraph::replay, Released())
      .def("reset", &MUSAGraph::reset, Released())
      .def("pool", &MUSAGraph::pool)
      .def("enable_debug_mode", &MUSAGraph::enable_debug_mode)
      .def("debug_dump", &MUSAGraph::debug_dump, Released())
      .def("raw_musa_graph",
           [](const MUSAGraph& graph) { return reinterpret_cast<uintptr_t>(graph.raw_graph()); })
      .def("raw_musa_graph_exec", [](const MUSAGraph& graph) {
        return reinterpret_cast<uintptr_t>(graph.raw_graph_exec());
      });

  py::class_<c10::musa::MemPool, std::shared_ptr<c10::musa::MemPool>>(m, "_MemPool")
      .def(py::init<bool, bool>(), py::arg("use_on_oom"), py::arg("no_split"))
      .def_property_readonly("id", &c10::musa::MemPool::id)
      .def_property_readonly(
          "device", [](const c10::musa::MemPool& pool) { return static_cast<int>(pool.device()); })
      .def("use_count", &c10::musa::MemPool::use_count);
  m.def("_begin_allocate_current_thread_to_pool", [](int device, MempoolId_t pool) {
    const auto index = static_cast<c10::DeviceIndex>(device);
    Allocator::createOrIncrefPool(index, pool);
    Allocator::beginAllocateToPool(
        index, pool,
        [me = std::this_thread::get_id()](const c10::musa::MUSAStream&) {
          return std::this_thread::get_id() == me;
        },
        /*captures=*/false);
  });
  m.def("_end_allocate_to_pool", [](int device, MempoolId_t pool) {
    const auto index = static_cast<c10::DeviceIndex>(device);
    Allocator::endAllocateToPool(index, pool);
    Allocator::releasePool(index, pool);
  });
}

}  // namespace torch_musa
