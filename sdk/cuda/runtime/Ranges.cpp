#include "Ranges.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace musa::cuda {
namespace {

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool holds(uintptr_t first, size_t bytes) const {
    return first >= begin && first <= end && bytes <= end - first;
  }
};

struct Blocks {
  std::shared_mutex mutex;
  std::map<uintptr_t, uintptr_t> ends;  // by beginning
};

Blocks& blocks() {
  static auto* all = new Blocks;  // memory may be freed after the process' statics
  return *all;
}

// What a thread has seen is true until something is freed.
std::atomic<uint64_t> frees{0};

struct Seen {
  uint64_t frees = 0;
  std::array<Range, 4> ranges{};
  size_t next = 0;
};
constinit thread_local Seen seen;

}  // namespace

void remember_range(const void* begin, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const std::unique_lock lock(blocks().mutex);
  blocks().ends[first] = first + bytes;
}

void forget_range(const void* begin) {
  const std::unique_lock lock(blocks().mutex);
  if (blocks().ends.erase(reinterpret_cast<uintptr_t>(begin)) != 0) frees.fetch_add(1);
}

bool is_in_range(const void* pointer, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(pointer);
  const uint64_t now = frees.load(std::memory_order_acquire);
  if (seen.frees != now) seen = {.frees = now};
  for (const Range& range : seen.ranges) {
    if (range.holds(first, bytes)) return true;
  }
  const std::shared_lock lock(blocks().mutex);
  auto after = blocks().ends.upper_bound(first);
  if (after == blocks().ends.begin()) return false;
  const auto& [begin, end] = *--after;
  const Range range{begin, end};
  if (!range.holds(first, bytes)) return false;
  seen.ranges[seen.next++ % seen.ranges.size()] = range;
  return true;
}

}  // namespace musa::cuda
