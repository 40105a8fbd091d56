#include "Shared.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

namespace musa::host {
namespace {

constexpr size_t kStrip = 32;
constexpr int kPaint = 0xa5;
// What nobody has written yet: not a number, or -1, so that reading it shows.
constexpr int kUnset = 0xff;
// Room for strips and alignment beside the limit itself.
constexpr size_t kSlack = size_t{64} << 10;

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

size_t usable_bytes() {
  const size_t page = page_bytes();
  return (shared_limit() + kSlack + page - 1) / page * page;
}

// Looked at whenever a thread waits: by words.
bool painted(const char* strip) {
  constexpr uint64_t kWord = 0x0101010101010101u * kPaint;
  uint64_t words[kStrip / sizeof(uint64_t)];
  std::memcpy(words, strip, kStrip);
  uint64_t differences = 0;
  for (const uint64_t word : words) differences |= word ^ kWord;
  return differences == 0;
}

}  // namespace

size_t shared_limit() {
  static const size_t bytes = [] {
    musaDeviceProp properties;
    return musaGetDeviceProperties(&properties, 0) == musaSuccess ? properties.sharedMemPerBlock
                                                                  : size_t{48} << 10;
  }();
  return bytes;
}

SharedMemory::SharedMemory() {
  const size_t page = page_bytes();
  void* mapping = mmap(nullptr, usable_bytes() + 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<char*>(mapping);
  begin_ = mapping_ + page;
  end_ = begin_ + usable_bytes();
  mprotect(mapping_, page, PROT_NONE);
  mprotect(end_, page, PROT_NONE);
  top_ = begin_;
  dynamic_ = end_;
}

SharedMemory::~SharedMemory() { munmap(mapping_, usable_bytes() + 2 * page_bytes()); }

void SharedMemory::paint(char* strip) { std::memset(strip, kPaint, kStrip); }

void SharedMemory::reset(size_t dynamic_bytes) {
  variables_.clear();
  top_ = begin_;
  static_bytes_ = 0;
  dynamic_bytes_ = dynamic_bytes;
  // As CUDA's, aligned to 16 bytes; what that leaves at the end is less than an element.
  dynamic_ = end_ - (dynamic_bytes + 15) / 16 * 16;
  if (dynamic_bytes != 0) {
    std::memset(dynamic_, kUnset, dynamic_bytes);
    std::memset(dynamic_ + dynamic_bytes, kPaint,
                static_cast<size_t>(end_ - dynamic_) - dynamic_bytes);
    paint(dynamic_ - kStrip);
  }
}

void* SharedMemory::variable(const SharedVariable& variable) {
  for (const Placed& placed : variables_) {
    if (placed.variable == &variable) return placed.at;
  }
  if (static_bytes_ + variable.bytes + dynamic_bytes_ > shared_limit()) return nullptr;
  const size_t alignment = std::max<size_t>(variable.alignment, 1);
  const auto address = (reinterpret_cast<uintptr_t>(top_) + alignment - 1) / alignment * alignment;
  auto* at = reinterpret_cast<char*>(address);
  char* strip = at + variable.bytes;
  if (strip + kStrip > dynamic_ - kStrip) return nullptr;
  std::memset(at, kUnset, variable.bytes);
  paint(strip);
  static_bytes_ += variable.bytes;
  top_ = strip + kStrip;
  variables_.push_back({&variable, at, strip});
  return at;
}

std::string SharedMemory::damage() const {
  for (const Placed& placed : variables_) {
    if (!painted(placed.strip)) {
      return std::string("beyond the end of shared variable '") + placed.variable->name + "' (" +
             std::to_string(placed.variable->bytes) + " bytes)";
    }
  }
  if (dynamic_bytes_ != 0) {
    const std::string size = std::to_string(dynamic_bytes_) + " bytes";
    if (!painted(dynamic_ - kStrip))
      return "before the start of the dynamic shared memory (" + size + ")";
    for (const char* at = dynamic_ + dynamic_bytes_; at < end_; ++at) {
      if (static_cast<unsigned char>(*at) != kPaint) {
        return "beyond the end of the dynamic shared memory (" + size + ")";
      }
    }
  }
  return {};
}

bool SharedMemory::guards(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  return (at >= mapping_ && at < begin_) || (at >= end_ && at < end_ + page_bytes());
}

}  // namespace musa::host
