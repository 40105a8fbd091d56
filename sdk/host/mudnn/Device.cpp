// Where ATen computes for a MUSA device: the one place that would differ for another target.
#include "Internal.h"

namespace musa::dnn::internal {

at::Device Call::device() const { return at::Device(at::kCPU); }

}  // namespace musa::dnn::internal
