#include "Graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "Device.h"
#include "Handles.h"

struct musaGraph {
  musa::host::Nodes nodes;  // in the order of capture, so every node after those it follows
};

struct musaGraphExec {
  musa::host::Nodes nodes;
};

namespace musa::host {
namespace {

Handles<musaGraph>& graphs() {
  static auto* live = new Handles<musaGraph>(musaErrorInvalidValue);
  return *live;
}

Handles<musaGraphExec>& execs() {
  static auto* live = new Handles<musaGraphExec>(musaErrorInvalidValue);
  return *live;
}

// Nodes of graphs that are alive; a node belongs to one graph.
std::mutex nodes_mutex;
std::unordered_set<const musaGraphNode*> live_nodes;

}  // namespace

musaGraph_t make_graph(Nodes nodes) {
  auto graph = std::make_shared<musaGraph>(musaGraph{std::move(nodes)});
  std::lock_guard lock(nodes_mutex);
  for (const auto& node : graph->nodes) live_nodes.insert(node.get());
  return graphs().add(std::move(graph));
}

}  // namespace musa::host

using musa::host::api;
using musa::host::current_device;
using musa::host::execs;
using musa::host::graphs;
using musa::host::require;
using musa::host::resolve;
using musa::host::Task;

musaError_t musaGraphGetNodes(musaGraph_t graph, musaGraphNode_t* nodes, size_t* count) {
  return api([&] {
    require(count != nullptr);
    const auto found = graphs().find(graph);
    if (nodes == nullptr) {
      *count = found->nodes.size();
      return;
    }
    *count = std::min(*count, found->nodes.size());
    for (size_t i = 0; i < *count; ++i) nodes[i] = found->nodes[i].get();
  });
}

musaError_t musaGraphNodeGetType(musaGraphNode_t node, musaGraphNodeType* type) {
  return api([&] {
    require(type != nullptr);
    std::lock_guard lock(musa::host::nodes_mutex);
    require(musa::host::live_nodes.count(node) != 0);
    *type = node->type;
  });
}

musaError_t musaGraphInstantiate(musaGraphExec_t* exec, musaGraph_t graph,
                                 unsigned long long flags) {
  return api([&] {
    require(exec != nullptr && flags == 0);
    *exec = nullptr;
    *exec =
        execs().add(std::make_shared<musaGraphExec>(musaGraphExec{graphs().find(graph)->nodes}));
  });
}

// The nodes run one after the other: an order that every set of dependencies allows.
musaError_t musaGraphLaunch(musaGraphExec_t exec, musaStream_t stream) {
  return api([&] {
    const auto found = execs().find(exec);
    const auto target = resolve(stream, current_device());
    for (const auto& node : found->nodes) {
      // The node's work stays the graph's: it will be run again.
      musa::host::submit(*target,
                         {[node] { node->task.work(); }, node->task.kind, node->task.label()});
    }
  });
}

musaError_t musaGraphExecDestroy(musaGraphExec_t exec) {
  return api([&] { execs().remove(exec); });
}

musaError_t musaGraphDestroy(musaGraph_t graph) {
  return api([&] {
    const auto found = graphs().remove(graph);
    std::lock_guard lock(musa::host::nodes_mutex);
    for (const auto& node : found->nodes) musa::host::live_nodes.erase(node.get());
  });
}
