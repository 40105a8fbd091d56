// isin: the test elements are sorted once, and every element is looked up among them.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>
#include <ATen/ops/result_type.h>
#include <ATen/ops/sort.h>
#include <torch_musa/ops/isin_native.h>

#include <tuple>

#include "kernels/ported/EachElement.cuh"

namespace at::musa {

TORCH_IMPL_FUNC(MusaIsin)
(const Tensor& elements, const Tensor& test_elements, bool /*assume_unique*/, bool invert,
 const Tensor& out) {
  if (elements.numel() == 0) return;
  const ScalarType dtype = at::result_type(elements, test_elements);
  const Tensor sorted = std::get<0>(at::sort(test_elements.to(dtype).reshape({-1}))).contiguous();
  const int64_t count = sorted.numel();
  auto iter = TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .add_output(out)
                  .add_const_input(elements)
                  .build();
  AT_DISPATCH_ALL_TYPES_AND2(kHalf, kBFloat16, dtype, "isin_cuda", [&] {
    const scalar_t* tests = sorted.const_data_ptr<scalar_t>();
    native::gpu_kernel(iter, [=] GPU_LAMBDA(scalar_t x) -> bool {
      int64_t low = 0, high = count;  // the first test element that is not less than x
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (tests[middle] < x) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return (low < count && tests[low] == x) != invert;
    });
  });
}

}  // namespace at::musa
