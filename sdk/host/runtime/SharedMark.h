// The state of an event that several processes use: two counters in a page of shared memory.
#pragma once

#include <cstdint>
#include <memory>

namespace musa::host {

class SharedMark {
 public:
  static std::shared_ptr<SharedMark> create();
  // Another process' (or this one's), by its file; null where that is not one.
  static std::shared_ptr<SharedMark> open(int file);
  ~SharedMark();
  SharedMark(const SharedMark&) = delete;

  int file() const { return file_; }

  // A record, and the stream's coming to it.
  uint64_t record();
  void reach(uint64_t record);

  uint64_t last_record() const;
  bool reached(uint64_t record) const;
  // False where the process that recorded has ended without coming there.
  bool wait(uint64_t record) const;

 private:
  struct Page;
  SharedMark(int file, Page* page) : file_(file), page_(page) {}

  const int file_;
  Page* const page_;
};

}  // namespace musa::host
