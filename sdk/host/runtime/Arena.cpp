#include "Arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "Protect.h"

namespace musa::host {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 256;
constexpr size_t kRedZone = 256;  // at least; it reaches to the end of the last page
constexpr size_t kOpenedAtOnce = size_t{32} << 20;
constexpr size_t kLeavesMemoryFrom = size_t{1} << 20;

size_t rounded(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

Arena::Arena(size_t capacity) {
  reserved_ = rounded(capacity, kOpenedAtOnce) * (debug_memory ? 16 : 4);
  file_ = memfd_create("musa-device-memory", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(reserved_)) != 0) {
    reserved_ = 0;
    return;
  }
  void* range = mmap(nullptr, reserved_, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (range == MAP_FAILED) {
    reserved_ = 0;
    return;
  }
  begin_ = opened_ = static_cast<char*>(range);
  // As a card's memory, whose pages are large. Where the kernel has none for files it says no.
  if (!debug_memory) madvise(begin_, reserved_, MADV_HUGEPAGE);
  give_back(begin_, reserved_);
}

size_t Arena::with_red_zone(size_t bytes) { return rounded(bytes + kRedZone, kPage); }

char* Arena::allocate(size_t bytes) {
  if (!debug_memory) {
    const size_t size = rounded(bytes, kAlignment);
    char* piece = take(size);
    if (piece != nullptr && piece + size > opened_) {
      const auto missing = static_cast<size_t>(piece + size - opened_);
      const size_t most = static_cast<size_t>(begin_ + reserved_ - opened_);
      const size_t open = std::min(rounded(missing, kOpenedAtOnce), most);
      unseal(opened_, open);
      opened_ += open;
    }
    return piece;
  }
  const size_t pages = with_red_zone(bytes);
  char* piece = take(pages + 2 * kPage);
  while (piece == nullptr && !quarantine_.empty()) {
    give_back(quarantine_.front().first, quarantine_.front().second);
    quarantine_.pop_front();
    piece = take(pages + 2 * kPage);
  }
  if (piece == nullptr) return nullptr;
  unseal(piece + kPage, pages);
  return piece + kPage;
}

void Arena::free(char* begin, size_t bytes) {
  const auto release = [this](char* from, char* to) {
    if (from >= to) return;
    const auto offset = static_cast<off_t>(from - begin_);
    (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, to - from);
  };
  if (!debug_memory) {
    const size_t size = rounded(bytes, kAlignment);
    if (size >= kLeavesMemoryFrom) {
      release(begin_ + rounded(offset(begin), kPage),
              begin_ + offset(begin + size) / kPage * kPage);
    }
    give_back(begin, size);
    return;
  }
  const size_t pages = with_red_zone(bytes);
  seal(begin, pages);
  release(begin, begin + pages);
  quarantine_.emplace_back(begin - kPage, pages + 2 * kPage);
}

// Best fit, lowest address among equals.
char* Arena::take(size_t size) {
  const auto found = by_size_.lower_bound({size, nullptr});
  if (found == by_size_.end()) return nullptr;
  const auto [have, begin] = *found;
  by_size_.erase(found);
  free_.erase(begin);
  if (have > size) {
    free_.emplace(begin + size, have - size);
    by_size_.emplace(have - size, begin + size);
  }
  return begin;
}

void Arena::give_back(char* begin, size_t size) {
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + size == next->first) {
    size += next->second;
    by_size_.erase({next->second, next->first});
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      size += previous->second;
      by_size_.erase({previous->second, previous->first});
      free_.erase(previous);
    }
  }
  free_.emplace(begin, size);
  by_size_.emplace(size, begin);
}

}  // namespace musa::host
