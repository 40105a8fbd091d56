// What the host stand-in adds to a piece of device work: the protection switch alone, and a whole
// enqueue of nothing. Prints "<mode> <nanoseconds of the switch> <nanoseconds of an enqueue>".
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "musa_host.h"
#include "sdk/host/runtime/Protect.h"

namespace {

constexpr int kRounds = 20;
constexpr int kCalls = 100'000;

// The best of some rounds: what else the machine does only ever adds.
template <typename Body>
double nanoseconds(Body&& body) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto started = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) body();
    const std::chrono::duration<double, std::nano> took =
        std::chrono::steady_clock::now() - started;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

}  // namespace

int main() {
  using musa::host::Protection;
  const auto mode = musa::host::protection;
  const char* name = mode == Protection::PKEY  ? "pkey"
                     : mode == Protection::OFF ? "off"
                                               : "mprotect";
  const double pair = nanoseconds([] { const musa::host::DeviceAccess access("bench"); });
  const double whole = nanoseconds([] { musa::host::enqueue(0, nullptr, [] {}, "bench"); });
  std::printf("%s %.1f %.1f\n", name, pair, whole);
}
