#include "Results.h"

#include <algorithm>
#include <utility>

#include "Internal.h"
#include "Target.h"

namespace musa::dnn::internal {
namespace {

// CUDA's allocators promise as much, and kernels count on it.
constexpr uintptr_t kAlignment = 512;

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && !are_apart(a, b);
}

// What `make` reads must not change while it runs.
bool may_be_lent(const at::Tensor& place, at::TensorList read) {
  return place.defined() && place.numel() > 0 && place.is_non_overlapping_and_dense() &&
         reinterpret_cast<uintptr_t>(place.const_data_ptr()) % kAlignment == 0 &&
         std::none_of(read.begin(), read.end(),
                      [&](const at::Tensor& r) { return overlap(place, r); });
}

bool is_there(const at::Tensor& result, const at::Tensor& place) {
  if (result.const_data_ptr() != place.const_data_ptr() ||
      result.scalar_type() != place.scalar_type() || result.sizes() != place.sizes()) {
    return false;
  }
  for (int64_t d = 0; d < place.dim(); ++d) {
    if (place.size(d) > 1 && result.stride(d) != place.stride(d)) return false;
  }
  return true;
}

void deliver(Results results, at::TensorList wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const at::Tensor& place = wanted[i];
    if (!place.defined() || is_there(results[i], place)) continue;
    // A result may have got the place's memory and have another layout there, and results of one
    // size each other's.
    for (size_t other = i; other < wanted.size(); ++other) {
      if (overlap(results[other], place)) results[other] = results[other].clone();
    }
    place.copy_(results[i]);
  }
}

}  // namespace

void produce(at::TensorList wanted, at::TensorList read, c10::function_ref<Results()> make) {
  if constexpr (target::kLends) {
    Results lent;
    for (const at::Tensor& place : wanted) {
      if (may_be_lent(place, read)) lent.push_back(place);
    }
    if (!lent.empty()) {
      return target::lend(lent, [&] {
        Results made = make();
        target::stop_lending();  // copies made while delivering have memory of their own
        deliver(std::move(made), wanted);
      });
    }
  }
  deliver(make(), wanted);
}

}  // namespace musa::dnn::internal
