// What torch.accelerator.Graph is on this device.
#include "torch_musa/csrc/core/TorchCompat.h"

#if MUSA_HAS_GRAPH_INTERFACE
#include <ATen/core/GraphImplInterface.h>

#include "torch_musa/csrc/aten/musa/MUSAGraph.h"

namespace at::musa {
namespace {

musaStreamCaptureMode runtime_mode(GraphCaptureMode mode) {
  switch (mode) {
    case GraphCaptureMode::ThreadLocal:
      return musaStreamCaptureModeThreadLocal;
    case GraphCaptureMode::Relaxed:
      return musaStreamCaptureModeRelaxed;
    default:
      return musaStreamCaptureModeGlobal;
  }
}

class AcceleratorGraph final : public GraphImplInterface {
 public:
  explicit AcceleratorGraph(const GraphImplArgs& args) : graph_(args.keep_graph) {}

  void capture_begin(MempoolId_t pool, GraphCaptureMode mode) override {
    graph_.capture_begin(pool, runtime_mode(mode));
  }
  void capture_end() override { graph_.capture_end(); }
  void instantiate() override { graph_.instantiate(); }
  void replay() override { graph_.replay(); }
  void reset() override { graph_.reset(); }
  MempoolId_t pool() const override { return graph_.pool(); }
  void enable_debug_mode() override { graph_.enable_debug_mode(); }
  void debug_dump(const std::string& path) override { graph_.debug_dump(path); }

 private:
  MUSAGraph graph_;
};

// PyTorch looks for the name that the device was renamed to.
C10_REGISTER_CLASS(GraphImplRegistry, MUSA, AcceleratorGraph)

}  // namespace
}  // namespace at::musa
#endif
