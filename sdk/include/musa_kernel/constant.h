// Constant memory: a source's `__constant__` variables share 64 KiB. What compiles for a card is
// refused by its compiler beyond that; here one variable that is too large is refused by the
// compiler, and too many of them when the program or library is loaded.
#pragma once

#include <cstddef>

#include "engine.h"

namespace musa::host {

constexpr size_t kConstantBytes = size_t{64} << 10;

namespace {
// One in each source: `__constant__` variables of others lie in other banks.
[[maybe_unused]] size_t constant_bytes_here = 0;
}  // namespace

template <typename T>
class Constant {
  static_assert(sizeof(T) <= kConstantBytes,
                "a __constant__ variable has more than the 64 KiB that there are");

 public:
  Constant(size_t& bytes_of_source, const char* name, const char* file, unsigned int line) {
    count_constant(bytes_of_source, sizeof(T), name, file, line);
  }
};

}  // namespace musa::host
