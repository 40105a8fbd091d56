// One block at a time, on one thread of the operating system: its threads, who waits for whom, and
// what went wrong.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "Fiber.h"
#include "Shared.h"
#include "Watchdog.h"
#include "musa_kernel/engine.h"
#include "musa_kernel/index.h"
#include "musa_kernel/lane_mask.h"

namespace musa::host {

// A kernel did what a device would punish. `error` is what the device's later calls return.
struct KernelFault : std::runtime_error {
  KernelFault(musaError_t error_, const std::string& text)
      : std::runtime_error(text), error(error_) {}
  musaError_t error;
};

// A launch that runs.
struct Grid {
  LaunchSite site;
  LaunchConfig config;
  KernelFacts& facts;
  const ThreadLoop& threads;
  std::atomic<bool> failed{false};  // some block did: no further one is begun
};

// A launch with more threads a block than the kernel's __launch_bounds__ allow.
struct LaunchBoundsExceeded {
  unsigned int allowed;
};

class BlockRunner {
 public:
  // The runner of the calling thread of the operating system.
  static BlockRunner& mine();
  // The one that is inside a kernel now; null outside.
  static BlockRunner* active();

  BlockRunner();
  ~BlockRunner();

  // Runs blocks [begin, end). Throws what a thread threw, or a KernelFault.
  void run(Grid& grid, int64_t begin, int64_t end);

  int barrier(Vote vote, bool predicate, const std::source_location& where);
  void meet(const LaneMask& mask, void* payload, WarpComplete complete, const char* operation,
            const std::source_location& where);
  LaneMask converged(const std::source_location& where);
  // Every few thousand atomic functions: who comes here again and again may be waiting for another
  // thread of the block, and lets the others run.
  void take_turns();
  void* variable(const SharedVariable& variable);
  void* dynamic() const { return shared_.dynamic(); }

  // Throws a KernelFault about the calling thread.
  [[noreturn]] void fail(musaError_t error, const std::string& what);
  // Gives up the block from a signal's handler: the current fibre is never gone back to. False
  // where no kernel runs here.
  bool abandon(int signal, void* address);
  // The same for a fault that the kernel's own code found where it may not throw.
  [[noreturn]] void give_up(musaError_t error, const char* what);
  // In the handler of the watchdog's signal: gives up the block if its time is up.
  void give_up_overdue();

 private:
  enum class Wait { none, barrier, warp, convergence, turn };

  // While the runner's own code runs the watchdog's signal waits.
  class Busy {
   public:
    explicit Busy(BlockRunner& runner) : runner_(runner) { runner_.in_kernel_ = false; }
    ~Busy() { runner_.in_kernel_ = true; }
    Busy(const Busy&) = delete;

   private:
    BlockRunner& runner_;
  };

  // A fibre, and the thread of the block that it has come to belong to.
  struct Fiber {
    Context context;
    Stack stack;
    BlockRunner* runner;
    bool begun = false;  // its entry runs
    bool owned = false;  // a thread of the block has waited on it
    uint32_t index = 0;  // of that thread; before, of the first one to run
    uint3 thread{};
    Wait wait = Wait::none;
    std::source_location where;
    const char* operation = "";
    LaneMask lanes;  // what `converged` returns
  };

  // Lanes of a warp on their way to a meeting.
  struct Meeting {
    LaneMask mask;
    WarpComplete complete;
    LaneMask there;
    std::vector<void*> payloads;
  };

  static void fiber_main(void* fiber);
  void run_threads(Fiber& self);
  void finish(Fiber& self);
  Fiber* acquire(uint32_t first);
  void begin_block(int64_t index);
  void own(Fiber& self);
  void check_strips(const Fiber* self);
  void wait(Fiber& self, Wait kind, const char* operation, const std::source_location& where);
  // Goes on with another fibre of the block, or with the thread's own stack once all is done.
  void leave(Fiber& self, bool new_ones_first = false);
  Context* next(bool new_ones_first);
  void run_kernel(uint3 first);
  bool overdue() const {
    return pulse_.overdue.load(std::memory_order_relaxed) ==
           pulse_.blocks.load(std::memory_order_relaxed);
  }
  // A block whose threads meet for ever is hardly ever found outside of the runner.
  void check_time() {
    if (overdue()) fail(musaErrorLaunchTimeout, overdue_text());
  }
  bool release_converged();
  bool complete_meeting(uint32_t warp, Meeting& meeting);
  void complete_meetings(uint32_t warp);
  void stop(std::exception_ptr error);
  void take_up_fault();
  KernelFault fault(musaError_t error, const std::string& what) const;
  KernelFault deadlock() const;

  uint32_t warp_of(uint32_t index) const { return index / lanes_; }
  int lane_of(uint32_t index) const { return static_cast<int>(index % lanes_); }
  uint3 place(uint32_t index) const;
  std::string describe(uint32_t index) const;  // "thread (1,0,0)"
  std::string prefix() const;                  // "kernel 'k' at f.mu:3, block (0,0,0)"

  const uint32_t lanes_ = static_cast<uint32_t>(warp_size());
  Context thread_context_;
  SharedMemory shared_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> spare_;

  Pulse pulse_;
  volatile bool in_kernel_ = false;

  Grid* grid_ = nullptr;
  int64_t next_block_ = 0;
  int64_t end_block_ = 0;

  // The current block.
  Fiber* current_ = nullptr;
  uint32_t total_ = 0;
  uint32_t begun_ = 0;     // threads [0, begun_) have run or run
  uint32_t finished_ = 0;  // threads that have returned
  uint32_t owned_ = 0;     // threads with a fibre of their own
  std::vector<Fiber*> by_thread_;
  std::deque<Fiber*> ready_;
  uint32_t waiting_at_barrier_ = 0;
  int votes_ = 0;
  int vote_result_ = 0;
  std::vector<LaneMask> returned_;  // by warp
  std::vector<std::vector<Meeting>> meetings_;
  uint64_t spinning_block_ = 0;  // who was last seen in take_turns
  uint3 spinning_thread_{};
  std::exception_ptr error_;
  int fault_signal_ = 0;  // what the processor noticed, and where
  void* fault_address_ = nullptr;
  musaError_t given_up_ = musaSuccess;
  const char* given_up_why_ = "";
};

}  // namespace musa::host
