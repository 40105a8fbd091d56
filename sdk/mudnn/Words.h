// Seeds and offsets as callers name them: by value or in device memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "Internal.h"

namespace musa::dnn::internal {

// INT64 has the size; the bits are the caller's.
inline at::Tensor word(const Call& c, const uint64_t* address) {
  if (address == nullptr) return {};
  Tensor t;
  (void)t.SetType(Type::INT64);
  (void)t.SetAddr(const_cast<uint64_t*>(address));
  (void)t.SetNdInfo({1});
  c.require_accessible("seed or offset", t);
  return c.alias(t);
}

}  // namespace musa::dnn::internal
