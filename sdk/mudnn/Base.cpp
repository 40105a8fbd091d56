// Tensor and Handle: descriptors, no computation.
#include "mudnn_base.h"

#include <algorithm>
#include <limits>

namespace musa::dnn {

size_t GetVersion() { return MUDNN_VERSION; }

Status Tensor::SetFormat(Format format) {
  if (format < Format::NCW || format > Format::DHWCN) return Status::INVALID_PARAMETER;
  format_ = format;
  return Status::SUCCESS;
}

Status Tensor::SetQuantizationInfo(float scale, unsigned int zero_point) {
  scale_ = scale;
  zero_point_ = zero_point;
  return Status::SUCCESS;
}

Status Tensor::SetNdInfo(int rank, const int64_t* dims) { return SetNdInfo(rank, dims, nullptr); }

Status Tensor::SetNdInfo(int rank, const int64_t* dims, const int64_t* strides) {
  shaped_ = true;
  rank_ = 0;
  if (rank < 1 || rank > kMaxRank || dims == nullptr) return Status::INVALID_PARAMETER;
  for (int d = 0; d < rank; ++d) {
    if (dims[d] < 0 || (strides != nullptr && strides[d] < 0)) return Status::INVALID_PARAMETER;
    dims_[d] = dims[d];
    if (strides != nullptr) strides_[d] = strides[d];
  }
  rank_ = rank;
  if (strides == nullptr) {
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      strides_[d] = stride;
      // Sizes that overflow fit no memory, which the call finds out: any stride will do.
      if (__builtin_mul_overflow(stride, std::max<int64_t>(dims[d], 1), &stride)) {
        stride = std::numeric_limits<int64_t>::max();
      }
    }
  }
  return Status::SUCCESS;
}

Status Tensor::SetNdInfo(std::initializer_list<int64_t> dims) {
  return SetNdInfo(static_cast<int>(dims.size()), dims.begin());
}

Status Tensor::SetNdInfo(std::initializer_list<int64_t> dims,
                         std::initializer_list<int64_t> strides) {
  if (dims.size() != strides.size()) {
    shaped_ = true;
    rank_ = 0;
    return Status::INVALID_PARAMETER;
  }
  return SetNdInfo(static_cast<int>(dims.size()), dims.begin(), strides.begin());
}

Status Tensor::GetNdInfo(std::vector<int64_t>& dims) const {
  dims.assign(dims_, dims_ + rank_);
  return Status::SUCCESS;
}

Status Tensor::GetNdInfo(std::vector<int64_t>& dims, std::vector<int64_t>& strides) const {
  strides.assign(strides_, strides_ + rank_);
  return GetNdInfo(dims);
}

Handle::Handle() : device_(0) { (void)musaGetDevice(&device_); }

Handle::Handle(int device) : device_(device) {}

Status Handle::SetStream(musaStream_t stream) {
  stream_ = stream;
  return Status::SUCCESS;
}

Status Handle::SetAllowTF32(bool allow) {
  allow_tf32_ = allow;
  return Status::SUCCESS;
}

}  // namespace musa::dnn
