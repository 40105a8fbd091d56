#include "Division.h"

#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>

#include "Fault.h"
#include "Protect.h"

namespace musa::host {
namespace {

// The last work that divided by zero and was not reported yet.
std::atomic<const char*> divided_by_zero{nullptr};

#if defined(__x86_64__)

struct Instruction {
  int bytes;
  int width;  // of divisor, quotient and remainder, in bits
  bool has_sign;
};

constexpr uint8_t kNarrow = 0x66;
constexpr uint8_t kPrefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, kNarrow, 0x67, 0xf2, 0xf3};

// `div` or `idiv`; Intel's manual, volume 2, chapter 2, says how instructions are put together.
std::optional<Instruction> read_division(const uint8_t* const begin) {
  const uint8_t* at = begin;
  bool narrow = false;
  for (; std::find(std::begin(kPrefixes), std::end(kPrefixes), *at) != std::end(kPrefixes); ++at) {
    narrow |= *at == kNarrow;
  }
  const bool has_rex = (*at & 0xf0) == 0x40;
  const bool wide = has_rex && (*at & 0x08) != 0;
  if (has_rex) ++at;
  const uint8_t opcode = *at++;
  if (opcode != 0xf6 && opcode != 0xf7) return std::nullopt;
  const uint8_t operand = *at++;
  const int operation = (operand >> 3) & 7;
  if (operation != 6 && operation != 7) return std::nullopt;
  // Where a divisor in memory lies: a byte on scale and index, and a displacement.
  const int mode = operand >> 6;
  const int base = operand & 7;
  if (mode != 3) {
    const bool scaled = base == 4;
    const int of_base = scaled ? *at & 7 : base;
    if (scaled) ++at;
    if (mode == 1) at += 1;
    if (mode == 2 || (mode == 0 && of_base == 5)) at += 4;
  }
  const int width = opcode == 0xf6 ? 8 : wide ? 64 : narrow ? 16 : 32;
  return Instruction{static_cast<int>(at - begin), width, operation == 7};
}

// The lower `width` bits of a register become `value`, as instructions of that width write it.
void write(greg_t& target, int width, uint64_t value) {
  const auto old = static_cast<uint64_t>(target);
  const uint64_t bits = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  // 32 bits clear the others.
  target = static_cast<greg_t>(width == 32 ? value & bits : (old & ~bits) | (value & bits));
}

bool finish(greg_t* registers) {
  const auto* code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  const std::optional<Instruction> division = read_division(code);
  if (!division) return false;
  const int width = division->width;
  const uint64_t lowest = uint64_t{1} << (width - 1);
  const uint64_t bits = (lowest << 1) - 1;
  auto low = static_cast<uint64_t>(registers[REG_RAX]);
  // Bytes have their upper half in AH.
  const uint64_t high = width == 8 ? low >> 8 : static_cast<uint64_t>(registers[REG_RDX]);
  // By -1, or by 0: then it is as good a number as any.
  const bool wraps = division->has_sign && (low & bits) == lowest && (high & bits) == bits;
  const uint64_t quotient = wraps ? lowest : bits;
  const uint64_t remainder = wraps ? 0 : bits;
  if (width == 8) {
    write(registers[REG_RAX], 16, remainder << 8 | quotient);
  } else {
    write(registers[REG_RAX], width, quotient);
    write(registers[REG_RDX], width, remainder);
  }
  registers[REG_RIP] += division->bytes;
  if (!wraps) divided_by_zero.store(DeviceAccess::current_work, std::memory_order_relaxed);
  return true;
}

#endif

}  // namespace

bool finish_division([[maybe_unused]] const siginfo_t& info, [[maybe_unused]] void* context) {
#if defined(__x86_64__)
  return info.si_code == FPE_INTDIV && DeviceAccess::current_work != nullptr &&
         finish(static_cast<ucontext_t*>(context)->uc_mcontext.gregs);
#else
  return false;  // AArch64's processors give 0 by themselves
#endif
}

void report_divisions() {
  if (!debug_memory) return;
  const char* work = divided_by_zero.exchange(nullptr, std::memory_order_relaxed);
  if (work == nullptr) return;
  static std::mutex mutex;
  static std::set<const char*> reported;
  std::lock_guard lock(mutex);
  if (reported.insert(work).second) print_division_by_zero(work);
}

}  // namespace musa::host
