#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <musa_runtime.h>

#include <map>
#include <string>

#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"

namespace at::musa {

/// Work of one stream, and of those that wait for it, recorded once and replayed any number of
/// times with the same addresses.
///
/// What is allocated during the capture comes from a private pool that lives as long as the graph.
/// Random operators draw on each replay what they would draw if they ran anew. Not thread-safe; one
/// capture at a time in a graph.
class MUSAGraph {
 public:
  /// `keep_graph`: capture_end leaves the graph to be looked at (raw_graph), and the first replay,
  /// or instantiate, makes it executable.
  explicit MUSAGraph(bool keep_graph = false) : keep_graph_(keep_graph) {}
  ~MUSAGraph();
  MUSAGraph(const MUSAGraph&) = delete;
  MUSAGraph& operator=(const MUSAGraph&) = delete;

  /// Records what the current stream, not the default one, is given from now on. `pool`: that of
  /// another graph ({0, 0}: a pool of its own), whose replays then may not overlap with this one's.
  void capture_begin(MempoolId_t pool = {0, 0},
                     musaStreamCaptureMode mode = musaStreamCaptureModeGlobal);
  /// Throws where something that may not be done during a capture has invalidated it; the stream
  /// and the allocator are then as they were before capture_begin.
  void capture_end();
  void instantiate();
  /// Enqueues the graph's work on the current stream.
  void replay();
  /// Forgets the graph and leaves its pool; another capture may follow.
  void reset();

  MempoolId_t pool() const;
  /// The runtime's objects, null where there is none. `raw_graph` needs keep_graph.
  musaGraph_t raw_graph() const;
  musaGraphExec_t raw_graph_exec() const { return exec_; }

  /// Keeps what debug_dump shows (as keep_graph does).
  void enable_debug_mode() { debug_ = true; }
  /// Writes the graph's nodes and their types as a Graphviz file.
  void debug_dump(const std::string& path);

  /// `count` more words for every thread of a launch that is being captured. The generator's mutex
  /// is held. Throws for a capture that no MUSAGraph began.
  static PhiloxState draw(unsigned long long capture, MUSAGeneratorImpl& generator, uint64_t count);

 private:
  // A generator that the graph draws from: how much, and the device memory where kernels look.
  struct Draws {
    c10::intrusive_ptr<MUSAGeneratorImpl> generator;
    DataPtr words;
    uint64_t count = 0;
  };

  void leave_capture();

  const bool keep_graph_;
  bool debug_ = false;
  bool capturing_ = false;
  unsigned long long capture_id_ = 0;
  DeviceIndex device_ = -1;
  musaStream_t stream_ = nullptr;
  MempoolId_t pool_{0, 0};
  bool holds_pool_ = false;
  musaGraph_t graph_ = nullptr;
  musaGraphExec_t exec_ = nullptr;
  std::map<const MUSAGeneratorImpl*, Draws> draws_;
};

}  // namespace at::musa
