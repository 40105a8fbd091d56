#include "torch_musa/csrc/bindings/Module.h"

PYBIND11_MODULE(_C, m) {
  m.doc() = "Bindings of the MUSA device; use torch.musa.";
  torch_musa::bind_device(m);
  torch_musa::bind_streams(m);
  torch_musa::bind_memory(m);
  torch_musa::bind_graphs(m);
  torch_musa::bind_ops(m);
}
