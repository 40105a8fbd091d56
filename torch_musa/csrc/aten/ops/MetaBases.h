#pragma once

#include <ATen/TensorMeta.h>

#include "torch_musa/csrc/core/TorchCompat.h"

namespace at::musa {

/// Base class for meta functions of our own (`structured_inherits: MyMetaBase` in the operator
/// list).
///
/// A generated structured class that inherits a base other than MetaBase calls that base's
/// set_output_raw_strided after it has made the output, so that TensorIterator-like bases can take
/// note of it. MetaBase's own version is an internal assert; a base of ours must override it. This
/// one counts the outputs, which lets a meta function check that it has declared every one of them.
struct MyMetaBase : public at::impl::MetaBase {
  void set_output_raw_strided(int64_t /*output_idx*/, IntArrayRef /*sizes*/,
                              IntArrayRef /*strides*/,
                              TensorOptions /*options*/ MUSA_SET_OUTPUT_NAMES) override {
    ++outputs_declared;
  }

  int64_t outputs_declared = 0;
};

}  // namespace at::musa
