// The axes of LayerNorm and RMSNorm.
#pragma once

#include <vector>

#include "Internal.h"

namespace musa::dnn::internal {

// The sizes that are normalized over; the axes must be the trailing ones, in order. Negative ones
// count from the end.
inline std::vector<int64_t> normalized_sizes(const std::vector<int>& axes, const Tensor& in) {
  require(!axes.empty(), "SetAxis comes first");
  require(static_cast<int64_t>(axes.size()) <= rank(in), "more axes than dimensions");
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = wrap_dim(axes[i], rank(in));
    require(axis == rank(in) - static_cast<int64_t>(axes.size() - i),
            "axes must be the trailing dimensions");
    sizes.push_back(dims(in)[axis]);
  }
  return sizes;
}

}  // namespace musa::dnn::internal
