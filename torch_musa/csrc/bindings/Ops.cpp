#include "torch_musa/csrc/aten/CPUFallback.h"
#include "torch_musa/csrc/aten/OpCounter.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/bindings/Module.h"

namespace torch_musa {
namespace py = pybind11;

namespace {

/// name -> (calls, nanoseconds of self time, torch.dtype -> calls).
py::dict op_counter_calls() {
  py::dict found;
  for (const auto& [name, op] : at::musa::OpCounter::calls()) {
    py::dict dtypes;
    for (const auto& [dtype, calls] : op.dtypes) {
      dtypes[py::cast(dtype)] = calls;
    }
    found[py::str(name)] = py::make_tuple(op.calls, op.self_nanoseconds, dtypes);
  }
  return found;
}

}  // namespace

void bind_ops(py::module_& m) {
  m.def("_fallback_counts", &at::musa::fallback_counts);
  m.def("_reset_fallback_counts", &at::musa::reset_fallback_counts);
  m.def("_op_counter_start", &at::musa::OpCounter::start);
  m.def("_op_counter_stop", &at::musa::OpCounter::stop);
  m.def("_op_counter_calls", &op_counter_calls);
  m.def("_op_counter_host_calls", &at::musa::OpCounter::host_calls);
  m.def("_get_allow_tf32", &at::musa::allow_tf32);
  m.def("_set_allow_tf32", &at::musa::set_allow_tf32);
  m.def("_mudnn_version", &::musa::dnn::GetVersion);
}

}  // namespace torch_musa
