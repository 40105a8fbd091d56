#include "Queue.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "Api.h"
#include "Device.h"
#include "Division.h"
#include "Fault.h"
#include "Memory.h"
#include "Protect.h"

namespace musa::host {
namespace {

constinit thread_local Queue* served_here = nullptr;

// At exit the queues stop as a card does: what runs ends, what waits is dropped.
struct Exit {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  int running = 0;

  static Exit& instance() {
    static Exit* exit = [] {
      std::atexit([] { instance().stop(); });
      return new Exit;
    }();
    return *exit;
  }

  bool begin() {
    std::lock_guard lock(mutex);
    running += stopping ? 0 : 1;
    return !stopping;
  }

  void end() {
    std::lock_guard lock(mutex);
    --running;
    changed.notify_all();
  }

  void stop() {
    std::unique_lock lock(mutex);
    stopping = true;
    if (served_here != nullptr) return;  // the work itself ends the process
    changed.wait_for(lock, std::chrono::seconds(5), [this] { return running == 0; });
  }
};

void report(const Task& task, const std::string& reason) {
  // The first line: PyTorch's exceptions go on with a stack that is nobody's but the queue's.
  print_failed_work(task.label(), reason.substr(0, reason.find('\n')).c_str());
  set_sticky_error(musaErrorLaunchFailure);
}

}  // namespace

void run(const Task& task, int device) {
  switch (task.kind) {
    case Task::Kind::DEVICE: {
      const DeviceAccess access(task.label());
      task.work();
      check_red_zones(device, task.label());  // while memory is open: opening it is what costs
      report_divisions();
      return;
    }
    case Task::Kind::HOST: {
      const HostAccess closed;
      const bool outer = std::exchange(in_host_function, true);
      task.work();
      in_host_function = outer;
      return;
    }
    case Task::Kind::MARK:
      task.work();
      return;
  }
}

void Mark::reach() {
  std::lock_guard lock(mutex_);
  if (reached_) return;
  reached_ = true;
  time_ = Clock::now();
  changed_.notify_all();
}

bool Mark::reached() const {
  std::lock_guard lock(mutex_);
  return reached_;
}

void Mark::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reached_; });
}

Mark::Clock::time_point Mark::time() const {
  std::lock_guard lock(mutex_);
  return time_;
}

void Queue::Point::wait() const {
  if (!queue || queue->is_running_here()) return;
  std::unique_lock lock(queue->mutex_);
  queue->changed_.wait(lock, [this] { return queue->done_ >= position; });
}

bool Queue::Point::reached() const {
  if (!queue || queue->is_running_here()) return true;
  std::lock_guard lock(queue->mutex_);
  return queue->done_ >= position;
}

void Queue::push(Task task, std::vector<Point> after) {
  std::lock_guard lock(mutex_);
  entries_.push_back({std::move(task), std::move(after)});
  ++pushed_;
  if (!std::exchange(started_, true)) {
    (void)Exit::instance();
    std::thread([self = shared_from_this()] { self->serve(); }).detach();
  }
  changed_.notify_all();
}

Queue::Point Queue::last() {
  std::lock_guard lock(mutex_);
  return {shared_from_this(), pushed_};
}

void Queue::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Queue::is_running_here() const { return served_here == this; }

void Queue::serve() {
  served_here = this;
  (void)musaSetDevice(device_);
  for (;;) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closed_ || !entries_.empty(); });
      if (entries_.empty()) return;
      entry = std::move(entries_.front());
      entries_.pop_front();
    }
    run_entry(entry);
    // What the work held goes before anybody is told that it is done.
    entry = {};
    std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

void Queue::run_entry(Entry& entry) {
  for (const Point& point : entry.after) point.wait();
  // After a sticky error, and at exit, nothing runs any more, but marks are still reached: nobody
  // waits for ever.
  if (entry.task.kind == Task::Kind::MARK) {
    entry.task.work();
    return;
  }
  if (blocking_error() != musaSuccess || !Exit::instance().begin()) return;
  try {
    run(entry.task, device_);
  } catch (const std::exception& error) {
    report(entry.task, error.what());
  } catch (...) {
    report(entry.task, "unknown exception");
  }
  Exit::instance().end();
}

}  // namespace musa::host
