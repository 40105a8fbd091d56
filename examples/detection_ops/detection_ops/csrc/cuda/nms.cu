// Non-maximum suppression: which of all boxes each box suppresses is found on the device, 64 boxes
// a word; the greedy choice among them is short and sequential, and the host makes it.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <vector>

#include "../common/geometry.cuh"

namespace {

constexpr int kWord = 64;

template <typename T>
__device__ inline T overlap(const T* a, const T* b) {
  const T left = max(a[0], b[0]), right = min(a[2], b[2]);
  const T top = max(a[1], b[1]), bottom = min(a[3], b[3]);
  const T width = max(right - left, static_cast<T>(0)),
          height = max(bottom - top, static_cast<T>(0));
  const T both = width * height;
  const T area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
  const T all = area_a + area_b - both;
  return all > 0 ? both / all : 0;
}

// Block (column, row): do the boxes of this row's word suppress those of the column's? Boxes are
// sorted by score.
template <typename T>
__global__ void suppress_kernel(int64_t count, T threshold, const T* boxes, uint64_t* mask) {
  const int row = blockIdx.y, column = blockIdx.x;
  if (row > column) {
    return;
  }
  __shared__ T others[kWord * 4];
  const int64_t first = static_cast<int64_t>(column) * kWord;
  const int width = min(static_cast<int>(count - first), kWord);
  if (static_cast<int>(threadIdx.x) < width) {
    for (int k = 0; k < 4; ++k) {
      others[threadIdx.x * 4 + k] = boxes[(first + threadIdx.x) * 4 + k];
    }
  }
  __syncthreads();
  const int64_t mine = static_cast<int64_t>(row) * kWord + threadIdx.x;
  if (mine >= count) {
    return;
  }
  uint64_t bits = 0;
  for (int j = row == column ? threadIdx.x + 1 : 0; j < width; ++j) {
    if (overlap(boxes + mine * 4, others + j * 4) > threshold) {
      bits |= 1ULL << j;
    }
  }
  mask[mine * gridDim.x + column] = bits;
}

}  // namespace

at::Tensor nms_cuda(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  TORCH_CHECK(boxes.is_cuda() && scores.is_cuda(), "nms: boxes and scores must be on the device");
  const at::cuda::CUDAGuard guard(boxes.device());
  const int64_t count = boxes.size(0);
  const auto order = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  if (count == 0) {
    return order;
  }
  const at::Tensor sorted = boxes.index_select(0, order).contiguous();
  const int words = static_cast<int>((count + kWord - 1) / kWord);
  at::Tensor mask = at::zeros({count, words}, boxes.options().dtype(at::kLong));
  AT_DISPATCH_FLOATING_TYPES(boxes.scalar_type(), "nms_cuda", [&] {
    suppress_kernel<scalar_t><<<dim3(words, words), kWord, 0, at::cuda::getCurrentCUDAStream()>>>(
        count, static_cast<scalar_t>(threshold), sorted.data_ptr<scalar_t>(),
        reinterpret_cast<uint64_t*>(mask.data_ptr<int64_t>()));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  const at::Tensor host = mask.cpu();
  const auto* rows = reinterpret_cast<const uint64_t*>(host.data_ptr<int64_t>());
  std::vector<uint64_t> gone(words, 0);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < count; ++i) {
    if (gone[i / kWord] >> (i % kWord) & 1) {
      continue;
    }
    kept.push_back(i);
    for (int word = static_cast<int>(i / kWord); word < words; ++word) {
      gone[word] |= rows[i * words + word];
    }
  }
  const at::Tensor places = at::tensor(kept, at::kLong).to(boxes.device());
  return order.index_select(0, places);
}
