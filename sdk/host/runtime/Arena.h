// The address range of one device's memory, and which parts of it are taken. One file in memory
// stands behind the whole range, so that other processes can map a piece of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>

namespace musa::host {

// Not thread-safe: the registry locks.
class Arena {
 public:
  // `capacity` bytes can be taken; the range of addresses is several times as long, so that holes
  // between blocks cost none of it.
  explicit Arena(size_t capacity);

  // A piece of at least `bytes`, null when nothing is left. Without debug_memory pieces are
  // multiples of 256 bytes and lie side by side. With it they are whole pages between guard pages
  // and hold a red zone.
  char* allocate(size_t bytes);

  // Gives back what allocate(bytes) returned. Big pieces leave physical memory at once; with
  // debug_memory the addresses stay inaccessible until no others are left.
  void free(char* begin, size_t bytes);

  bool holds(const void* pointer) const {
    return pointer >= begin_ && pointer < begin_ + reserved_;
  }
  bool touches(const void* pointer, size_t bytes) const {
    const auto from = reinterpret_cast<uintptr_t>(pointer);
    const auto begin = reinterpret_cast<uintptr_t>(begin_);
    return from < begin + reserved_ && (from >= begin || bytes > begin - from);
  }
  int file() const { return file_; }
  size_t offset(const char* pointer) const { return static_cast<size_t>(pointer - begin_); }

  // Bytes that a block of `bytes` takes within its piece before the red zone ends (debug_memory).
  static size_t with_red_zone(size_t bytes);

 private:
  char* take(size_t size);
  void give_back(char* begin, size_t size);

  int file_ = -1;
  char* begin_ = nullptr;
  size_t reserved_ = 0;
  char* opened_ = nullptr;  // pages below have their permissions (without debug_memory)
  std::map<char*, size_t> free_;
  std::set<std::pair<size_t, char*>> by_size_;
  std::deque<std::pair<char*, size_t>> quarantine_;
};

}  // namespace musa::host
