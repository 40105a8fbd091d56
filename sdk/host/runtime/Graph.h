// Graphs: recorded work that can be launched again and again.
#pragma once

#include "Capture.h"

namespace musa::host {

musaGraph_t make_graph(Nodes nodes);

}  // namespace musa::host
