// What streams are made of: pieces of work, marks that can be waited for, and, with
// MUSA_LAUNCH_BLOCKING=0, a queue with a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace musa::host {

// A piece of work in the order of a stream.
struct Task {
  enum class Kind : uint8_t {
    DEVICE,  // touches device memory
    HOST,    // a host function: may neither touch device memory nor call the runtime
    MARK,    // bookkeeping of the runtime
  };
  std::function<void()> work;
  Kind kind = Kind::DEVICE;
  const char* name = nullptr;  // null: the type of `work`

  const char* label() const { return name != nullptr ? name : work.target_type().name(); }
};

// Runs the task with the rights of its kind. Passes on what it throws.
void run(const Task& task, int device);

// A place in a stream, reached once.
class Mark {
 public:
  using Clock = std::chrono::steady_clock;

  void reach();
  bool reached() const;
  void wait() const;
  Clock::time_point time() const;  // when it was reached

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool reached_ = false;
  Clock::time_point time_;
};

// Tasks in order, run by one thread that starts with the first of them.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  struct Point {
    std::shared_ptr<Queue> queue;
    uint64_t position = 0;

    // A thread does not wait for the queue it works for.
    void wait() const;
    bool reached() const;
  };

  explicit Queue(int device) : device_(device) {}

  // Once all of `after` is reached, the task runs.
  void push(Task task, std::vector<Point> after);
  // The end as it is now.
  Point last();
  // The thread ends when it has run what was pushed.
  void close();
  // Whether the calling thread is this queue's.
  bool is_running_here() const;

 private:
  struct Entry {
    Task task;
    std::vector<Point> after;
  };
  void serve();
  void run_entry(Entry& entry);

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  uint64_t pushed_ = 0;
  uint64_t done_ = 0;
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace musa::host
