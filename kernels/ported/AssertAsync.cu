// A check of a value that is on the device, made there: the host does not wait for it.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <torch_musa/ops/_assert_async_native.h>

#include <algorithm>
#include <string_view>

#include "kernels/ported/EachElement.cuh"
#include "kernels/ported/KernelCheck.cuh"

namespace at::musa {
namespace {

// Travels to the device as a kernel's argument, so of a fixed size.
struct Message {
  char text[128] = {};

  explicit Message(std::string_view full) {
    full.copy(text, std::min(full.size(), sizeof(text) - 1));
  }
};

}  // namespace

void AssertAsyncMsg(const Tensor& self, std::string_view text) {
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  const Message message(text);
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(
      kBool, kHalf, kBFloat16, self.scalar_type(), "_assert_async_cuda", [&] {
        const scalar_t* value = self.const_data_ptr<scalar_t>();
        native::for_each_index(self.device(), 1, [value, message] GPU_LAMBDA(int64_t) {
          KERNEL_CHECK(*value != scalar_t(0), message.text);
        });
      });
}

void AssertAsync(const Tensor& self) {
  AssertAsyncMsg(self, "Expected Tensor with single nonzero value, but got zero");
}

}  // namespace at::musa
