// Where a ported source looks for c10/cuda/CUDAGuard.h.
#pragma once

#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAStream.h>

#include "torch_musa/csrc/core/MUSAGuard.h"

#include <optional>
#include <vector>

namespace c10::musa {

/// MUSAStreamGuard that may hold nothing.
struct OptionalMUSAStreamGuard {
  OptionalMUSAStreamGuard() = default;
  explicit OptionalMUSAStreamGuard(Stream stream) : guard_(stream) {}
  explicit OptionalMUSAStreamGuard(std::optional<Stream> stream) : guard_(stream) {}
  OptionalMUSAStreamGuard(const OptionalMUSAStreamGuard&) = delete;
  OptionalMUSAStreamGuard& operator=(const OptionalMUSAStreamGuard&) = delete;

  void reset_stream(Stream stream) { guard_.reset_stream(stream); }
  std::optional<Stream> original_stream() const { return guard_.original_stream(); }
  std::optional<Stream> current_stream() const { return guard_.current_stream(); }
  void reset() { guard_.reset(); }

 private:
  c10::impl::InlineOptionalStreamGuard<impl::MUSAGuardImpl> guard_;
};

/// Makes several streams current, each on its own device, for the life of the object.
struct MUSAMultiStreamGuard {
  explicit MUSAMultiStreamGuard(ArrayRef<MUSAStream> streams) : guard_(unwrapped(streams)) {}
  MUSAMultiStreamGuard(const MUSAMultiStreamGuard&) = delete;
  MUSAMultiStreamGuard& operator=(const MUSAMultiStreamGuard&) = delete;

 private:
  static std::vector<Stream> unwrapped(ArrayRef<MUSAStream> streams) {
    return {streams.begin(), streams.end()};
  }
  c10::impl::InlineMultiStreamGuard<impl::MUSAGuardImpl> guard_;
};

}  // namespace c10::musa

namespace at::musa {
using c10::musa::MUSAMultiStreamGuard;
using c10::musa::OptionalMUSAStreamGuard;
}  // namespace at::musa
