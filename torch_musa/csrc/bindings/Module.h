#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_musa {

// One function per room; each adds its functions, all with a leading underscore, to the extension
// module. The Python package wraps them and checks arguments; nothing here is public.
void bind_device(pybind11::module_& m);
void bind_streams(pybind11::module_& m);
void bind_memory(pybind11::module_& m);
void bind_graphs(pybind11::module_& m);
void bind_ops(pybind11::module_& m);

}  // namespace torch_musa
