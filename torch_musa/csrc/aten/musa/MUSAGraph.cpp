#include "torch_musa/csrc/aten/musa/MUSAGraph.h"

#include <array>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAGuard.h"
#include "torch_musa/csrc/core/MUSAStream.h"

namespace at::musa {
namespace {

namespace Caching = c10::musa::MUSACachingAllocator;
using c10::musa::getCurrentMUSAStream;
using c10::musa::MUSAGuard;
using c10::musa::MUSAStream;

// Captures that go on, for operators that draw random numbers in them, on whatever thread.
std::mutex captures_mutex;
std::map<unsigned long long, MUSAGraph*>& captures() {
  static auto* graphs = new std::map<unsigned long long, MUSAGraph*>();
  return *graphs;
}

const char* type_name(musaGraphNodeType type) {
  switch (type) {
    case musaGraphNodeTypeKernel:
      return "kernel";
    case musaGraphNodeTypeMemcpy:
      return "memcpy";
    case musaGraphNodeTypeMemset:
      return "memset";
    case musaGraphNodeTypeHost:
      return "host";
    default:
      return "empty";
  }
}

}  // namespace

MUSAGraph::~MUSAGraph() {
  try {
    reset();
  } catch (...) {  // the driver is gone at exit, and the graph with it
  }
}

void MUSAGraph::capture_begin(MempoolId_t pool, musaStreamCaptureMode mode) {
  TORCH_CHECK(!capturing_, "This MUSAGraph is being captured already. End that capture first");
  TORCH_CHECK(graph_ == nullptr && exec_ == nullptr,
              "This MUSAGraph instance already owns a captured graph. To capture a new graph, "
              "create a new instance or call reset");
  const MUSAStream stream = getCurrentMUSAStream();
  TORCH_CHECK(stream.id() != 0,
              "MUSA graphs must be captured on a non-default stream: the default stream waits for "
              "the others. torch.musa.graph makes one current; after capture, it's ok to replay "
              "them on the default stream");
  reset();  // what a failed capture left
  device_ = stream.device_index();
  c10::musa::ensure_initialized(device_);
  static_cast<void>(detail::getDefaultMUSAGenerator(device_));  // its first seed is not captured
  pool_ = pool == MempoolId_t{0, 0} ? Caching::new_graph_pool_id() : pool;
  Caching::createOrIncrefPool(device_, pool_);
  holds_pool_ = true;

  const MUSAGuard guard(device_);
  const musaError_t error = musaStreamBeginCapture(stream.stream(), mode);
  if (error != musaSuccess) {
    reset();
    C10_MUSA_CHECK(error);
  }
  stream_ = stream.stream();
  capture_id_ = stream.capture_id();
  capturing_ = true;
  {
    const std::lock_guard<std::mutex> lock(captures_mutex);
    captures().emplace(capture_id_, this);
  }
  Caching::beginAllocateToPool(
      device_, pool_, [id = capture_id_](const MUSAStream& s) { return s.capture_id() == id; },
      /*captures=*/true);
}

// The allocator and the generators go back to what they do outside captures.
void MUSAGraph::leave_capture() {
  capturing_ = false;
  Caching::endAllocateToPool(device_, pool_);
  const std::lock_guard<std::mutex> lock(captures_mutex);
  captures().erase(capture_id_);
}

void MUSAGraph::capture_end() {
  TORCH_CHECK(capturing_, "This MUSAGraph is not being captured");
  const MUSAStream stream = getCurrentMUSAStream(device_);
  TORCH_CHECK(stream.stream() == stream_, "Capture must end on the same stream it began on.");
  const MUSAGuard guard(device_);
  const musaError_t error = musaStreamEndCapture(stream_, &graph_);
  if (error == musaErrorStreamCaptureWrongThread) {
    C10_MUSA_CHECK(error);  // the capture goes on
  }
  leave_capture();
  if (error != musaSuccess) {
    graph_ = nullptr;
    reset();
    static_cast<void>(musaGetLastError());
    TORCH_CHECK(error != musaErrorStreamCaptureInvalidated,
                "The graph's capture was invalidated: something in it waited for the device "
                "(item(), cpu(), synchronize, print of a tensor), allocated outside the graph or "
                "used the default stream. The first error says what; the stream works as before");
    C10_MUSA_CHECK(error);
  }
  size_t nodes = 0;
  C10_MUSA_CHECK(musaGraphGetNodes(graph_, nullptr, &nodes));
  if (nodes == 0) {
    TORCH_WARN(
        "The MUSA graph is empty. This usually means that the graph was attempted to be captured "
        "on wrong device or stream.");
  }
  if (!keep_graph_) {
    instantiate();
    if (!debug_) {
      C10_MUSA_CHECK(musaGraphDestroy(std::exchange(graph_, nullptr)));
    }
  }
}

void MUSAGraph::instantiate() {
  TORCH_CHECK(!capturing_ && graph_ != nullptr,
              "instantiate needs a graph that was captured with keep_graph=True");
  const MUSAGuard guard(device_);
  if (exec_ != nullptr) {
    C10_MUSA_CHECK(musaGraphExecDestroy(std::exchange(exec_, nullptr)));
  }
  C10_MUSA_CHECK(musaGraphInstantiate(&exec_, graph_, 0));
}

void MUSAGraph::replay() {
  TORCH_CHECK(!capturing_ && (graph_ != nullptr || exec_ != nullptr),
              "Called MUSAGraph::replay without a preceding successful capture.");
  if (exec_ == nullptr) {
    instantiate();
  }
  const MUSAGuard guard(device_);
  const MUSAStream stream = getCurrentMUSAStream(device_);
  TORCH_CHECK(draws_.empty() || !stream.is_capturing(),
              "A graph that draws random numbers cannot be replayed inside a capture");
  for (auto& [key, draws] : draws_) {
    PhiloxState state;
    {
      const std::lock_guard<std::mutex> lock(draws.generator->mutex_);
      state = draws.generator->reserve(draws.count);
    }
    // The copy has read its source when it returns, and is done before the graph runs.
    const std::array<uint64_t, 2> words{state.seed, state.offset};
    C10_MUSA_CHECK(musaMemcpyAsync(draws.words.get(), words.data(), sizeof(words),
                                   musaMemcpyHostToDevice, stream.stream()));
    Caching::recordStream(draws.words, stream);
  }
  C10_MUSA_CHECK(musaGraphLaunch(exec_, stream.stream()));
}

void MUSAGraph::reset() {
  if (capturing_) {
    // Somebody lost interest in the middle: the capture ends, whatever it is worth.
    const MUSAGuard guard(device_);
    if (musaStreamEndCapture(stream_, &graph_) != musaSuccess) {
      static_cast<void>(musaGetLastError());
      graph_ = nullptr;
    }
    leave_capture();
  }
  if (exec_ != nullptr) {
    C10_MUSA_CHECK_WARN(musaGraphExecDestroy(std::exchange(exec_, nullptr)));
  }
  if (graph_ != nullptr) {
    C10_MUSA_CHECK_WARN(musaGraphDestroy(std::exchange(graph_, nullptr)));
  }
  draws_.clear();
  if (std::exchange(holds_pool_, false)) {
    Caching::releasePool(device_, pool_);
  }
}

MempoolId_t MUSAGraph::pool() const {
  TORCH_CHECK(holds_pool_ && !capturing_,
              "Called MUSAGraph::pool() without a preceding successful capture.");
  return pool_;
}

musaGraph_t MUSAGraph::raw_graph() const {
  TORCH_CHECK(keep_graph_, "The captured graph is kept only with MUSAGraph(keep_graph=True)");
  TORCH_CHECK(graph_ != nullptr, "Nothing has been captured yet");
  return graph_;
}

void MUSAGraph::debug_dump(const std::string& path) {
  TORCH_CHECK(graph_ != nullptr && (debug_ || keep_graph_),
              "There is no graph to dump: call enable_debug_mode before the capture");
  size_t count = 0;
  C10_MUSA_CHECK(musaGraphGetNodes(graph_, nullptr, &count));
  std::vector<musaGraphNode_t> nodes(count);
  C10_MUSA_CHECK(musaGraphGetNodes(graph_, nodes.data(), &count));
  std::ofstream out(path);
  out << "digraph musa_graph {\n";
  for (size_t i = 0; i < count; ++i) {
    auto type = musaGraphNodeTypeEmpty;
    C10_MUSA_CHECK(musaGraphNodeGetType(nodes[i], &type));
    out << "  n" << i << " [label=\"" << i << ": " << type_name(type) << "\"];\n";
    if (i > 0) {
      out << "  n" << i - 1 << " -> n" << i << ";\n";  // the order in which they were captured
    }
  }
  out << "}\n";
  out.close();
  TORCH_CHECK(out.good(), "Could not write the graph to ", path);
}

PhiloxState MUSAGraph::draw(unsigned long long capture, MUSAGeneratorImpl& generator,
                            uint64_t count) {
  const std::lock_guard<std::mutex> lock(captures_mutex);
  const auto found = captures().find(capture);
  TORCH_CHECK(found != captures().end(),
              "Random numbers can be captured only by torch.musa.graph or MUSAGraph: a capture "
              "that the runtime was asked for directly would replay the same numbers for ever");
  MUSAGraph& graph = *found->second;
  Draws& draws = graph.draws_[&generator];
  if (!draws.generator) {
    draws.generator = c10::intrusive_ptr<MUSAGeneratorImpl>::reclaim_copy(&generator);
    // Not from the graph's pool: an earlier node may use that memory, and would write over what a
    // replay puts there before the first node runs.
    draws.words = Caching::allocate_outside_pools(graph.device_, 2 * sizeof(uint64_t));
  }
  const PhiloxState state{0, std::exchange(draws.count, draws.count + count),
                          static_cast<const uint64_t*>(draws.words.get())};
  return state;
}

}  // namespace at::musa
