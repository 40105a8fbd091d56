#include "torch_musa/csrc/core/MUSAGuard.h"

#include <torch_musa/ops/eye_native.h>

#include <ATen/DeviceGuard.h>

namespace at::musa {

Tensor& EyeMOut(int64_t n, int64_t m, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  const c10::musa::OptionalMUSAGuard guard(device_of(out));
  out.resize_({n, m});
  out.zero_();
  out.diagonal().fill_(1);
  return out;
}

Tensor& EyeOut(int64_t n, Tensor& out) { return EyeMOut(n, n, out); }

}  // namespace at::musa
