// Indices that leave an array whose size the compiler knows: a __shared__ one, a thread's own. mcc
// compiles with -fsanitize=bounds (GCC's or Clang's), and this is the half of it that reports: a
// read, or a write that jumps over the strip behind a shared variable (Shared.h), would show
// nowhere else.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "Block.h"
#include "musa_runtime_api.h"

namespace musa::host {
namespace {

// What the compiler passes, in the layout that both compilers' runtime library has.
struct TypeName {
  uint16_t kind;
  uint16_t info;
  char text[1];  // quoted, and ends with a zero
};

struct OutOfBounds {
  const char* file;
  uint32_t line;
  uint32_t column;
  const TypeName* array;
  const TypeName* index;
};

constexpr size_t kTextBytes = 1024;

}  // namespace
}  // namespace musa::host

// Declared without throwing by the compilers, so the kernel is given up instead of unwound.
extern "C" MUSART_API void __ubsan_handle_out_of_bounds(musa::host::OutOfBounds* what,
                                                        uintptr_t index) {
  using musa::host::BlockRunner;
  char text[musa::host::kTextBytes];
  std::snprintf(text, sizeof(text), "%s:%u: index %lld is out of the bounds of an array, %s",
                what->file, what->line, static_cast<long long>(index), what->array->text);
  BlockRunner* runner = BlockRunner::active();
  if (runner == nullptr) {  // host code beside kernels: no device's error
    std::fprintf(stderr, "%s\n", text);
    return;
  }
  // The stack is left for good. One place for the text will do: the device is broken after the
  // first report, and what other blocks find in the meantime is as true.
  static char kept[musa::host::kTextBytes];
  static std::atomic_flag taken;
  if (!taken.test_and_set()) std::memcpy(kept, text, sizeof(text));
  runner->give_up(musaErrorIllegalAddress, kept);
}
