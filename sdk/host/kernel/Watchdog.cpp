#include "Watchdog.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../runtime/Environment.h"

namespace musa::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDefaultSeconds = 120;

std::chrono::seconds limit() {
  static const std::chrono::seconds value(
      number_from_environment("TORCH_MUSA_HOST_KERNEL_SECONDS", kDefaultSeconds));
  return value;
}

// Whoever steps through a kernel takes his time.
bool debugged() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("TracerPid:", 0) == 0) {
      return line.find_first_of("123456789") != std::string::npos;
    }
  }
  return false;
}

class Watchdog {
 public:
  // Never destroyed: its thread does not end.
  static Watchdog& instance() {
    static Watchdog* watchdog = new Watchdog;
    return *watchdog;
  }

  void add(Pulse& pulse) {
    std::lock_guard lock(mutex_);
    watched_.push_back({&pulse, 0, Clock::now()});
    if (!started_) {
      started_ = true;
      std::thread([this] { serve(); }).detach();
    }
  }

  void remove(Pulse& pulse) {
    std::lock_guard lock(mutex_);
    std::erase_if(watched_, [&](const Watched& watched) { return watched.pulse == &pulse; });
  }

 private:
  struct Watched {
    Pulse* pulse;
    uint64_t block;
    Clock::time_point since;
  };

  [[noreturn]] void serve() {
    const auto tick = std::clamp<std::chrono::milliseconds>(
        limit() / 8, std::chrono::milliseconds(50), std::chrono::milliseconds(1000));
    for (;;) {
      std::this_thread::sleep_for(tick);
      std::lock_guard lock(mutex_);
      const Clock::time_point now = Clock::now();
      for (Watched& watched : watched_) look_at(watched, now);
    }
  }

  static void look_at(Watched& watched, Clock::time_point now) {
    Pulse& pulse = *watched.pulse;
    const uint64_t block = pulse.blocks.load(std::memory_order_relaxed);
    if (!pulse.running.load(std::memory_order_relaxed) || block != watched.block) {
      watched.block = block;
      watched.since = now;
      return;
    }
    if (now - watched.since < limit() || debugged()) return;
    pulse.overdue.store(block);
    // Until it is heard: the thread may be in the middle of what must not be interrupted.
    pthread_kill(pulse.thread, overdue_signal());
  }

  std::mutex mutex_;
  std::vector<Watched> watched_;
  bool started_ = false;
};

}  // namespace

int overdue_signal() { return SIGRTMIN + 6; }

void watch(Pulse& pulse) {
  if (limit().count() > 0) Watchdog::instance().add(pulse);
}

void unwatch(Pulse& pulse) {
  if (limit().count() > 0) Watchdog::instance().remove(pulse);
}

const char* overdue_text() {
  static const std::string text =
      "the block has run for " + std::to_string(limit().count()) +
      " s and is ended here, where it still was. If the thread waits for another one of its block "
      "to write something, let it wait at a barrier, or read in the loop with an atomic function, "
      "which gives the others their turn; blocks that wait for each other need all of them to run "
      "at once. If it is only slow, TORCH_MUSA_HOST_KERNEL_SECONDS sets the limit (0: none)";
  return text.c_str();
}

}  // namespace musa::host
