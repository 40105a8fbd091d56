// What the real library refuses or gets wrong. The rows are in limits.def, one a fact with its
// source; this applies them.
#pragma once

#include "Internal.h"

namespace musa::dnn::internal {

struct Outcome {
  Status status = Status::SUCCESS;
  Effect effect = Effect::NONE;
  const char* row = nullptr;     // name of the row that applies
  const char* source = nullptr;  // who says so
};

// The first row of limits.def that applies to the call on its device's architecture.
Outcome apply_limits(const Call& call);

}  // namespace musa::dnn::internal
