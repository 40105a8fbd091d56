#include "torch_musa/csrc/aten/CPUFallback.h"
#include "torch_musa/csrc/aten/OpCounter.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/bindings/Module.h"

namespace torch_musa {
namespace py = pybind11;

void bind_ops(py::module_& m) {
  m.def("_fallback_counts", &at::musa::fallback_counts);
  m.def("_reset_fallback_counts", &at::musa::reset_fallback_counts);
  m.def("_op_counter_start", &at::musa::OpCounter::start);
  m.def("_op_counter_stop", &at::musa::OpCounter::stop);
  m.def("_op_counter_counts", &at::musa::OpCounter::counts);
  m.def("_get_allow_tf32", &at::musa::allow_tf32);
  m.def("_set_allow_tf32", &at::musa::set_allow_tf32);
  m.def("_mudnn_version", &::musa::dnn::GetVersion);
}

}  // namespace torch_musa
