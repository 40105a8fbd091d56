// Operators on lists of tensors in as few launches as fit: what the operators of this folder named
// _foreach_* share. Lists that one launch cannot serve go through PyTorch's loop over the tensors.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/native/cuda/ForeachFunctors.cuh>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <array>
#include <type_traits>
#include <vector>

namespace at::musa::foreach {

/// Whether the lists are of one length, their tensors of one device, one floating dtype, dense and
/// pairwise of the same sizes and strides, and no number promotes them. What is not may be an error
/// as well: PyTorch's loop says which.
inline bool fits(ArrayRef<TensorList> lists, ArrayRef<Scalar> numbers = {}) {
  const TensorList first = lists.front();
  if (first.empty() || !first.front().is_privateuseone()) return false;
  for (const TensorList list : lists) {
    if (list.size() != first.size()) return false;
  }
  const ScalarType dtype = first.front().scalar_type();
  return (dtype == kFloat || dtype == kDouble || dtype == kHalf || dtype == kBFloat16) &&
         native::can_use_fast_route(lists, numbers);
}

/// As `fits`, for an operator that takes a number for each tensor.
inline bool fits_with_list(ArrayRef<TensorList> lists, ArrayRef<Scalar> numbers) {
  return numbers.size() == lists.front().size() && fits(lists, numbers);
}

/// Tensors for the results, laid out as those of `self`.
inline std::vector<Tensor> results_like(TensorList self) {
  const c10::cuda::CUDAGuard guard(self.front().device());
  std::vector<Tensor> results;
  results.reserve(self.size());
  for (const Tensor& tensor : self) results.push_back(at::empty_like(tensor));
  return results;
}

/// Announces that the tensors of `self` are written: storage that is shared until the first write
/// parts here, before an address is read, and autograd's counters move.
inline TensorList written(TensorList self) {
  for (const Tensor& tensor : self) tensor.mutable_data_ptr();
  native::increment_version(self);
  return self;
}

// A block takes a chunk of a tensor. On the stand-in, whose threads run one after the other, a
// single one goes over it: a tenth of the time that 512 take over a small tensor.
#ifdef __MUSA__
constexpr int kThreads = native::kBlockSize;
#else
constexpr int kThreads = 1;
#endif

template <typename Metadata, typename Functor, typename... Arguments>
C10_LAUNCH_BOUNDS_1(kThreads)
__global__ void on_chunks(Metadata lists, Functor functor, Arguments... arguments) {
  functor(native::kChunkSize, lists, arguments...);
}

/// Launches `functor` over all chunks of the tensors that `enter(metadata, place, tensor)` puts
/// into the metadata, whose size is the limit of what one launch takes.
template <typename Metadata, typename Functor, typename Enter, typename... Arguments>
void launch_chunks(TensorList sizes, const Enter& enter, Functor functor, Arguments... arguments) {
  constexpr int kTensors = std::extent_v<decltype(Metadata::numel_for_tensor)>;
  constexpr int kBlocks = std::extent_v<decltype(Metadata::block_to_chunk)>;
  Metadata metadata;
  int tensors = 0;
  int blocks = 0;
  const auto stream = at::cuda::getCurrentCUDAStream();
  const auto flush = [&] {
    on_chunks<<<blocks, kThreads, 0, stream>>>(metadata, functor, arguments...);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    tensors = blocks = 0;
  };
  for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
    const int64_t numel = sizes[tensor].numel();
    for (int64_t chunk = 0; chunk * native::kChunkSize < numel; ++chunk) {
      if (blocks == kBlocks || (chunk == 0 && tensors == kTensors)) flush();
      if (chunk == 0 || tensors == 0) {
        metadata.numel_for_tensor[tensors] = numel;
        enter(metadata, tensors, tensor);
        ++tensors;
      }
      metadata.block_to_tensor[blocks] = tensors - 1;
      metadata.block_to_chunk[blocks] = static_cast<int>(chunk);
      ++blocks;
    }
  }
  if (blocks > 0) flush();
}

/// Computes `Op` over the lists in `read`, with the results in those of `results`, which may be one
/// of them. `number` is what the functor takes besides: a Scalar, one for each tensor, or nothing.
template <template <typename, int, int, int> class Functor, template <typename> class Op,
          size_t kRead, typename... Number>
void launch(const std::array<TensorList, kRead>& read, TensorList results,
            const Number&... number) {
  constexpr int kDepth = kRead + 1;
  constexpr bool kNumberForEach = (std::is_same_v<Number, ArrayRef<Scalar>> || ...);
  const c10::cuda::CUDAGuard guard(results.front().device());
  const auto enter_addresses = [&](auto& metadata, int place, size_t tensor) {
    for (size_t list = 0; list < kRead; ++list) {
      metadata.addresses[list][place] = read[list][tensor].const_data_ptr();
    }
    metadata.addresses[kRead][place] = results[tensor].mutable_data_ptr();
  };
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, results.front().scalar_type(), "_foreach", [&] {
    using opmath_t = at::opmath_type<scalar_t>;
    const Functor<scalar_t, kDepth, kRead, kDepth - 1> functor;
    if constexpr (kNumberForEach) {
      using Metadata = native::TensorListScalarListMetadata<opmath_t, kDepth>;
      const auto enter = [&](Metadata& metadata, int place, size_t tensor) {
        enter_addresses(metadata, place, tensor);
        metadata.scalar_vals[place] = (number[tensor], ...).template to<opmath_t>();
      };
      launch_chunks<Metadata>(results, enter, functor, Op<opmath_t>());
    } else {
      launch_chunks<native::TensorListMetadata<kDepth>>(
          results, enter_addresses, functor, Op<opmath_t>(), number.template to<opmath_t>()...);
    }
  });
}

/// As `launch`, into tensors of its own.
template <template <typename, int, int, int> class Functor, template <typename> class Op,
          size_t kRead, typename... Number>
std::vector<Tensor> computed(const std::array<TensorList, kRead>& read, const Number&... number) {
  std::vector<Tensor> results = results_like(read.front());
  launch<Functor, Op>(read, results, number...);
  return results;
}

}  // namespace at::musa::foreach
