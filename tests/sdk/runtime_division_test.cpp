// libmusart: device work that divides by zero goes on, as on a card; host code does not.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "runtime_support.h"

// UndefinedBehaviorSanitizer would report what is asked for here.
#define DIVIDES __attribute__((no_sanitize("undefined"), noinline))

namespace {

template <class T>
DIVIDES T quotient(volatile const T* a, volatile const T* b) {
  return *a / *b;
}

template <class T>
DIVIDES T remainder(volatile const T* a, volatile const T* b) {
  return *a % *b;
}

// As a kernel does: a piece of work on a stream, with memory of the device known to the runtime.
void on_stream(const std::function<void()>& work) {
  const Buffer buffer(256);
  musa::host::enqueue(nullptr, work);
  CHECK_OK(musaDeviceSynchronize());
}

template <class T>
void divides() {
  const T lowest = std::numeric_limits<T>::min();
  const std::vector<T> values = {0, 1, 7, lowest, std::numeric_limits<T>::max()};
  std::vector<T> quotients;
  std::vector<T> remainders;
  on_stream([&] {
    const T zero = 0;
    for (const T& value : values) {
      quotients.push_back(quotient(&value, &zero));
      remainders.push_back(remainder(&value, &zero));
    }
    const T seven = 7;
    const T two = 2;
    quotients.push_back(quotient(&seven, &two));
    remainders.push_back(remainder(&seven, &two));
  });
  CHECK_EQ(quotients.size(), values.size() + 1);  // it came to its end
  CHECK_EQ(quotients.back(), T{3});
  CHECK_EQ(remainders.back(), T{1});
  if (!std::numeric_limits<T>::is_signed) return;
  on_stream([&] {
    const T minus_one = static_cast<T>(-1);
    quotients = {quotient(&lowest, &minus_one)};
    remainders = {remainder(&lowest, &minus_one)};
  });
  CHECK_EQ(quotients[0], lowest);
  CHECK_EQ(remainders[0], T{0});
}

}  // namespace

TEST(work_that_divides_an_integer_by_zero_goes_on) {
  divides<int32_t>();
  divides<int64_t>();
  divides<uint32_t>();
  divides<uint64_t>();
  divides<int8_t>();
  divides<int16_t>();
  divides<uint8_t>();
  divides<uint16_t>();
}

TEST_WITH_ENV(every_thread_of_the_work_divides_by_zero, "OMP_NUM_THREADS=4") {
  std::vector<int64_t> quotients(4096);
  on_stream([&] {
    musa::host::parallel_for(0, 4096, 16, [&](int64_t begin, int64_t end) {
      const int64_t zero = 0;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t value = i + 1;
        quotients[i] = quotient(&value, &zero) == quotient(&value, &value) ? 0 : 1;
      }
    });
  });
  for (const int64_t done : quotients) CHECK_EQ(done, 1);
}

#if defined(__x86_64__)

namespace {

struct Registers {
  uint64_t low;   // rax: dividend, quotient
  uint64_t high;  // rdx: the dividend's upper half, remainder
};

// `instructions` divide by a register or by memory that holds zero.
#define DIVISION(name, instructions)                                                            \
  Registers name(Registers r) {                                                                 \
    static const uint64_t zeros[64] = {};                                                       \
    const uint64_t* where = zeros;                                                              \
    uint64_t index = 2;                                                                         \
    uint64_t by = 0;                                                                            \
    asm volatile(instructions                                                                   \
                 : "+a"(r.low), "+d"(r.high)                                                    \
                 : [where] "r"(where), [index] "r"(index), [by] "r"(by), [named] "m"(zeros[40]) \
                 : "cc", "r12", "r13");                                                         \
    return r;                                                                                   \
  }

DIVISION(by_register_8, "divb %b[by]")
DIVISION(by_register_16, "divw %w[by]")
DIVISION(by_register_32, "divl %k[by]")
DIVISION(by_register_64, "divq %[by]")
DIVISION(by_register_8_signed, "idivb %b[by]")
DIVISION(by_register_16_signed, "idivw %w[by]")
DIVISION(by_register_32_signed, "idivl %k[by]")
DIVISION(by_register_64_signed, "idivq %[by]")
DIVISION(by_memory, "divl (%[where])")
DIVISION(by_memory_near, "divl 16(%[where])")
DIVISION(by_memory_far, "divl 256(%[where])")
DIVISION(by_memory_scaled, "divl (%[where],%[index],8)")
DIVISION(by_memory_scaled_near, "divq 8(%[where],%[index],4)")
DIVISION(by_memory_scaled_far, "divw 256(%[where],%[index])")
DIVISION(by_memory_without_base, "divl 0(,%[where],1)")
DIVISION(by_memory_of_a_name, "divq %[named]")
DIVISION(by_extended_register, "movq %[by], %%r13\n\tdivl %%r13d")
DIVISION(by_memory_of_extended_register, "movq %[where], %%r13\n\tdivl (%%r13)")
DIVISION(by_memory_of_extended_base, "movq %[where], %%r12\n\tdivb (%%r12)")
DIVISION(by_memory_of_extended_registers,
         "movq %[where], %%r13\n\tmovq %[index], %%r12\n\tdivl (%%r13,%%r12,2)")

// What an instruction of that width leaves in a register.
uint64_t written(uint64_t old, int width, uint64_t value) {
  if (width == 64) return value;
  if (width == 32) return value & 0xffffffff;
  const uint64_t bits = (uint64_t{1} << width) - 1;
  return (old & ~bits) | (value & bits);
}

}  // namespace

#endif

TEST(a_division_of_any_width_by_any_operand_goes_on) {
#if defined(__x86_64__)
  struct Case {
    Registers (*divide)(Registers);
    int width;
    bool has_sign = false;
  };
  const Case cases[] = {{by_register_8, 8},
                        {by_register_16, 16},
                        {by_register_32, 32},
                        {by_register_64, 64},
                        {by_register_8_signed, 8, true},
                        {by_register_16_signed, 16, true},
                        {by_register_32_signed, 32, true},
                        {by_register_64_signed, 64, true},
                        {by_memory, 32},
                        {by_memory_near, 32},
                        {by_memory_far, 32},
                        {by_memory_scaled, 32},
                        {by_memory_scaled_near, 64},
                        {by_memory_scaled_far, 16},
                        {by_memory_without_base, 32},
                        {by_memory_of_a_name, 64},
                        {by_extended_register, 32},
                        {by_memory_of_extended_register, 32},
                        {by_memory_of_extended_base, 8},
                        {by_memory_of_extended_registers, 32}};
  const auto check = [](const Case& each, Registers before, uint64_t quotient, uint64_t remainder) {
    Registers after{};
    on_stream([&] { after = each.divide(before); });
    if (each.width == 8) {  // both in rax
      CHECK_EQ(after.low, written(before.low, 16, (remainder & 0xff) << 8 | (quotient & 0xff)));
      CHECK_EQ(after.high, before.high);
    } else {
      CHECK_EQ(after.low, written(before.low, each.width, quotient));
      CHECK_EQ(after.high, written(before.high, each.width, remainder));
    }
  };
  for (const Case& each : cases) {
    constexpr uint64_t kOnes = ~uint64_t{0};
    check(each, {0x1122334455667788, 0x1122334455667788}, kOnes, kOnes);
    check(each, {0, 0}, kOnes, kOnes);
    if (!each.has_sign) continue;
    // The lowest number, sign and all: what does not fit by -1 wraps around.
    const uint64_t lowest = uint64_t{1} << (each.width - 1);
    const Registers before =
        each.width == 8 ? Registers{0x112233445566ff80, 5} : Registers{lowest, kOnes};
    check(each, before, lowest, 0);
  }
#else
  throw check::Skipped("only x86 stops at a division by zero");
#endif
}

namespace {

void divide_on_the_host(void* = nullptr) {
#if defined(__x86_64__)
  std::fputs("about to divide\n", stderr);
  const int seven = 7;
  const int zero = 0;
  std::fprintf(stderr, "%d\n", quotient(&seven, &zero));
#else
  throw check::Skipped("only x86 stops at a division by zero");
#endif
}

}  // namespace

TEST_DIES(host_code_that_divides_by_zero_still_stops, "", "about to divide") {
  const Buffer buffer(256);
  divide_on_the_host();
}

TEST_DIES(a_host_function_that_divides_by_zero_still_stops, "", "about to divide") {
  const Buffer buffer(256);
  CHECK_OK(musaLaunchHostFunc(nullptr, divide_on_the_host, nullptr));
  CHECK_OK(musaDeviceSynchronize());
}
