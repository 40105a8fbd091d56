#include "Block.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "Fault.h"

namespace musa::host {

constinit thread_local const void* waited __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constinit thread_local BlockRunner* active_runner __attribute__((tls_model("initial-exec"))) =
    nullptr;

// Unwinds the threads of a block that another one has ended.
struct BlockEnded {};

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

std::string text(const uint3& v) {
  return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

std::string text(const std::source_location& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

}  // namespace

BlockRunner& BlockRunner::mine() {
  static thread_local BlockRunner runner;
  return runner;
}

BlockRunner* BlockRunner::active() { return active_runner; }

BlockRunner::BlockRunner() {
  enter_thread(thread_context_);
  watch_this_thread();
  watch(pulse_);
}

BlockRunner::~BlockRunner() {
  unwatch(pulse_);
  for (const auto& fiber : fibers_) release(fiber->context);
}

// ---- blocks
// --------------------------------------------------------------------------------------

void BlockRunner::run(Grid& grid, int64_t begin, int64_t end) {
  if (active_runner != nullptr) {
    throw KernelFault(musaErrorNotSupported, prefix() + ": a kernel launched another one");
  }
  enter_thread(thread_context_);
  grid_ = &grid;
  next_block_ = begin;
  end_block_ = end;
  gridDim = grid.config.grid;
  blockDim = grid.config.block;
  total_ = grid.config.block.x * grid.config.block.y * grid.config.block.z;
  block_threads = total_;
  active_runner = this;
  pulse_.running.store(true, std::memory_order_relaxed);
  while (next_block_ < end_block_ && !grid.failed.load(std::memory_order_relaxed)) {
    begin_block(next_block_);
    switch_context(thread_context_, acquire(0)->context);
    if (fault_signal_ != 0 || given_up_ != musaSuccess) take_up_fault();
    current_ = nullptr;
    if (error_) break;
  }
  pulse_.running.store(false, std::memory_order_relaxed);
  active_runner = nullptr;
  grid_ = nullptr;
  if (error_) {
    grid.failed.store(true, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void BlockRunner::begin_block(int64_t index) {
  next_block_ = index + 1;
  pulse_.blocks.store(pulse_.blocks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const dim3& grid = grid_->config.grid;
  blockIdx.x = static_cast<unsigned int>(index % grid.x);
  blockIdx.y = static_cast<unsigned int>(index / grid.x % grid.y);
  blockIdx.z = static_cast<unsigned int>(index / grid.x / grid.y);
  begun_ = 0;
  finished_ = 0;
  if (owned_ != 0 || by_thread_.size() != total_) {
    by_thread_.assign(total_, nullptr);
    const uint32_t warps = (total_ + lanes_ - 1) / lanes_;
    returned_.assign(warps, LaneMask());
    meetings_.resize(warps);
    for (auto& meetings : meetings_) meetings.clear();
    owned_ = 0;
  }
  ready_.clear();
  waiting_at_barrier_ = 0;
  votes_ = 0;
  shared_.reset(grid_->config.shared_bytes);
}

// ---- fibres
// --------------------------------------------------------------------------------------

BlockRunner::Fiber* BlockRunner::acquire(uint32_t first) {
  if (spare_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>());
    fibers_.back()->runner = this;
    spare_.push_back(fibers_.back().get());
  }
  Fiber* fiber = spare_.back();
  spare_.pop_back();
  if (!fiber->begun) {
    prepare(fiber->context, fiber->stack, &fiber_main, fiber);
    fiber->begun = true;
  }
  fiber->owned = false;
  fiber->index = first;
  fiber->wait = Wait::none;
  return fiber;
}

void BlockRunner::fiber_main(void* argument) {
  Fiber& self = *static_cast<Fiber*>(argument);
  arrived(self.context);
  self.runner->current_ = &self;
  waited = nullptr;
  for (;;) {
    self.runner->run_threads(self);
    self.runner->finish(self);
  }
}

void BlockRunner::run_kernel(uint3 first) {
  in_kernel_ = true;
  grid_->threads(first);
  in_kernel_ = false;
}

void BlockRunner::run_threads(Fiber& self) {
  try {
    run_kernel(place(self.index));
    // While nobody waits, further blocks need no further fibre.
    while (!self.owned && owned_ == 0) {
      if (shared_.has_strips()) {
        begun_ = total_;
        check_strips(nullptr);
      }
      if (next_block_ >= end_block_ || grid_->failed.load(std::memory_order_relaxed)) break;
      begin_block(next_block_);
      run_kernel(uint3{0, 0, 0});
    }
    if (self.owned) check_strips(&self);
  } catch (const BlockEnded&) {
    in_kernel_ = false;
  } catch (...) {
    in_kernel_ = false;
    stop(std::current_exception());
  }
}

// The threads that ran on this fibre have returned, or the block has ended.
void BlockRunner::finish(Fiber& self) {
  if (self.owned) {
    ++finished_;
    by_thread_[self.index] = nullptr;
    returned_[warp_of(self.index)] |= LaneMask::lane(lane_of(self.index));
    if (!error_) complete_meetings(warp_of(self.index));
  } else if (owned_ == 0) {
    begun_ = finished_ = total_;
  } else {
    const uint32_t from = self.index;
    finished_ += total_ - from;
    begun_ = total_;
    for (uint32_t i = from; i < total_; ++i) {
      returned_[warp_of(i)] |= LaneMask::lane(lane_of(i));
    }
    if (!error_) {
      for (uint32_t warp = warp_of(from); warp < returned_.size(); ++warp) complete_meetings(warp);
    }
  }
  self.wait = Wait::none;
  spare_.push_back(&self);
  leave(self);
}

// A thread that has to wait keeps the fibre it runs on.
void BlockRunner::own(Fiber& self) {
  if (self.owned) return;
  self.thread = threadIdx;
  self.index = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  self.owned = true;
  waited = &self;
  by_thread_[self.index] = &self;
  // Those that ran on this fibre before it have returned.
  const uint32_t from = begun_;
  for (; begun_ < self.index; ++begun_) {
    ++finished_;
    returned_[warp_of(begun_)] |= LaneMask::lane(lane_of(begun_));
  }
  begun_ = self.index + 1;
  ++owned_;
  for (uint32_t warp = warp_of(from); from < self.index && warp <= warp_of(self.index); ++warp) {
    complete_meetings(warp);
  }
}

void BlockRunner::wait(Fiber& self, Wait kind, const char* operation,
                       const std::source_location& where) {
  self.wait = kind;
  self.operation = operation;
  self.where = where;
  leave(self);
  if (error_) throw BlockEnded{};
}

void BlockRunner::leave(Fiber& self, bool new_ones_first) {
  Context* to = next(new_ones_first);
  if (to != &self.context) switch_context(self.context, *to);
  current_ = &self;
  if (self.owned) {
    threadIdx = self.thread;
    waited = &self;
  } else {
    waited = nullptr;
  }
}

Context* BlockRunner::next(bool new_ones_first) {
  for (;;) {
    if (!ready_.empty() && !(new_ones_first && begun_ < total_ && !error_)) {
      Fiber* fiber = ready_.front();
      ready_.pop_front();
      fiber->wait = Wait::none;
      return &fiber->context;
    }
    if (begun_ < total_ && !error_) {
      Fiber* fiber = acquire(begun_);
      return &fiber->context;
    }
    if (finished_ >= total_ || owned_ == 0) return &thread_context_;
    if (error_) {
      // Everybody who could be unwound has been.
      const bool someone = std::any_of(by_thread_.begin(), by_thread_.end(),
                                       [](const Fiber* fiber) { return fiber != nullptr; });
      if (!someone) return &thread_context_;
    }
    if (!error_ && release_converged()) continue;
    stop(std::make_exception_ptr(deadlock()));
  }
}

// The block ends with this error: whoever waits is unwound.
void BlockRunner::stop(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  ready_.clear();
  for (Fiber* fiber : by_thread_) {
    if (fiber != nullptr && fiber != current_) ready_.push_back(fiber);
  }
  if (current_ != nullptr && current_->owned && current_->wait != Wait::none) {
    ready_.push_back(current_);
  }
}

// ---- meetings
// ------------------------------------------------------------------------------------

int BlockRunner::barrier(Vote vote, bool predicate, const std::source_location& where) {
  const Busy busy(*this);
  check_time();
  Fiber& self = *current_;
  if (begun_ == 0 || owned_ == 0) grid_->facts.synchronises.store(true, std::memory_order_relaxed);
  own(self);
  check_strips(&self);
  votes_ += vote == Vote::conjunction ? !predicate : predicate;
  if (++waiting_at_barrier_ < total_) {
    wait(self, Wait::barrier, "__syncthreads", where);
  } else {
    vote_result_ = vote == Vote::count         ? votes_
                   : vote == Vote::conjunction ? votes_ == 0
                                               : votes_ != 0;
    for (Fiber* fiber : by_thread_) {
      if (fiber == &self) continue;
      if (!same_place(fiber->where, where)) {
        self.where = where;
        fail(musaErrorLaunchFailure, "divergent barrier: here the thread waits at " + text(where) +
                                         ", but " + describe(fiber->index) + " waits at " +
                                         text(fiber->where));
      }
      ready_.push_back(fiber);
    }
    waiting_at_barrier_ = 0;
    votes_ = 0;
  }
  return vote_result_;
}

void BlockRunner::meet(const LaneMask& given, void* payload, WarpComplete complete,
                       const char* operation, const std::source_location& where) {
  const Busy busy(*this);
  check_time();
  Fiber& self = *current_;
  if (owned_ == 0) grid_->facts.synchronises.store(true, std::memory_order_relaxed);
  own(self);
  check_strips(&self);
  const uint32_t warp = warp_of(self.index);
  const int lane = lane_of(self.index);
  const int present = static_cast<int>(std::min(lanes_, total_ - warp * lanes_));
  // Ones in all of an integer's bits name every lane (lane_mask.h).
  const bool everyone = given.bits() == 0xffffffffu || given.bits() == ~uint64_t{0};
  const LaneMask mask = (everyone ? ~LaneMask() : given) & LaneMask::first(present);
  if (!mask.has(lane)) {
    self.where = where;
    fail(musaErrorLaunchFailure, std::string(operation) + " at " + text(where) + ": lane " +
                                     std::to_string(lane) + " is not in the mask that it passes");
  }
  auto& meetings = meetings_[warp];
  auto found = std::find_if(meetings.begin(), meetings.end(), [&](const Meeting& meeting) {
    return meeting.mask == mask && meeting.complete == complete;
  });
  if (found == meetings.end()) {
    meetings.push_back({mask, complete, LaneMask(), std::vector<void*>(lanes_, nullptr)});
    found = std::prev(meetings.end());
  }
  found->there |= LaneMask::lane(lane);
  found->payloads[static_cast<size_t>(lane)] = payload;
  self.wait = Wait::none;
  if (complete_meeting(warp, *found)) {
    meetings.erase(found);
    return;
  }
  wait(self, Wait::warp, operation, where);
}

// Whether all lanes that can still come are there; then they go on.
bool BlockRunner::complete_meeting(uint32_t warp, Meeting& meeting) {
  if ((meeting.mask & ~returned_[warp] & ~meeting.there) != LaneMask()) return false;
  meeting.complete(meeting.payloads.data(), static_cast<int>(lanes_));
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    Fiber* fiber =
        meeting.there.has(static_cast<int>(lane)) ? by_thread_[warp * lanes_ + lane] : nullptr;
    if (fiber != nullptr && fiber != current_) ready_.push_back(fiber);
  }
  return true;
}

// After some lane of the warp has returned.
void BlockRunner::complete_meetings(uint32_t warp) {
  auto& meetings = meetings_[warp];
  meetings.erase(std::remove_if(meetings.begin(), meetings.end(),
                                [&](Meeting& meeting) { return complete_meeting(warp, meeting); }),
                 meetings.end());
}

LaneMask BlockRunner::converged(const std::source_location& where) {
  const Busy busy(*this);
  check_time();
  Fiber& self = *current_;
  own(self);
  check_strips(&self);
  wait(self, Wait::convergence, "__activemask", where);
  return self.lanes;
}

// Nobody can go on: lanes that have come to the same __activemask() are together there.
bool BlockRunner::release_converged() {
  bool released = false;
  for (uint32_t i = 0; i < total_; ++i) {
    Fiber* fiber = by_thread_[i];
    if (fiber == nullptr || fiber->wait != Wait::convergence) continue;
    const uint32_t first = warp_of(i) * lanes_;
    LaneMask together;
    std::vector<Fiber*> group;
    for (uint32_t j = first; j < std::min(first + lanes_, total_); ++j) {
      Fiber* other = by_thread_[j];
      if (other != nullptr && other->wait == Wait::convergence &&
          same_place(other->where, fiber->where)) {
        together |= LaneMask::lane(lane_of(j));
        group.push_back(other);
      }
    }
    for (Fiber* member : group) {
      member->lanes = together;
      member->wait = Wait::warp;  // released, though not yet running
      ready_.push_back(member);
    }
    released = true;
  }
  return released;
}

// ---- turns
// ---------------------------------------------------------------------------------------

void BlockRunner::take_turns() {
  const Busy busy(*this);
  const uint64_t block = pulse_.blocks.load(std::memory_order_relaxed);
  check_time();
  // A block of many threads that use a few atomic functions each goes on undisturbed.
  const bool again = spinning_block_ == block && spinning_thread_.x == threadIdx.x &&
                     spinning_thread_.y == threadIdx.y && spinning_thread_.z == threadIdx.z;
  spinning_block_ = block;
  spinning_thread_ = threadIdx;
  if (!again) return;
  Fiber& self = *current_;
  own(self);
  if (ready_.empty() && begun_ >= total_) {
    sched_yield();  // the others wait, too; those of another block may run elsewhere
    return;
  }
  ready_.push_back(&self);
  self.wait = Wait::turn;
  self.operation = "an atomic function";
  leave(self, /*new_ones_first=*/true);
  spinning_block_ = block;
  spinning_thread_ = threadIdx;
  if (error_) throw BlockEnded{};
}

// ---- memory
// --------------------------------------------------------------------------------------

void* BlockRunner::variable(const SharedVariable& variable) {
  const Busy busy(*this);
  void* at = shared_.variable(variable);
  if (at == nullptr) {
    fail(musaErrorLaunchOutOfResources,
         std::string("shared variable '") + variable.name + "' needs " +
             std::to_string(variable.bytes) + " bytes beside " +
             std::to_string(shared_.static_bytes()) + " static and " +
             std::to_string(grid_->config.shared_bytes) + " dynamic ones; a block has " +
             std::to_string(shared_limit()));
  }
  size_t known = grid_->facts.static_shared_bytes.load(std::memory_order_relaxed);
  while (known < shared_.static_bytes() &&
         !grid_->facts.static_shared_bytes.compare_exchange_weak(known, shared_.static_bytes())) {
  }
  return at;
}

void BlockRunner::check_strips(const Fiber* self) {
  if (!shared_.has_strips()) return;
  const std::string damage = shared_.damage();
  if (damage.empty()) return;
  if (self != nullptr) fail(musaErrorIllegalAddress, "wrote " + damage);
  throw KernelFault(musaErrorIllegalAddress, prefix() + ": some thread wrote " + damage);
}

// ---- reports
// -------------------------------------------------------------------------------------

uint3 BlockRunner::place(uint32_t index) const {
  const uint32_t x = blockDim.x;
  const uint32_t y = blockDim.y;
  return {index % x, index / x % y, index / x / y};
}

std::string BlockRunner::describe(uint32_t index) const { return "thread " + text(place(index)); }

std::string BlockRunner::prefix() const {
  if (grid_ == nullptr) return "a kernel";
  return std::string("kernel '") + grid_->site.kernel + "' launched at " + grid_->site.file + ":" +
         std::to_string(grid_->site.line) + ", block " + text(blockIdx);
}

void BlockRunner::fail(musaError_t error, const std::string& what) { throw fault(error, what); }

KernelFault BlockRunner::fault(musaError_t error, const std::string& what) const {
  return {error, prefix() + ", thread " + text(threadIdx) + ": " + what};
}

KernelFault BlockRunner::deadlock() const {
  constexpr int kMost = 4;
  std::string waiting;
  const Fiber* shown[kMost];
  int places = 0;
  uint32_t count = 0;
  for (const Fiber* fiber : by_thread_) {
    if (fiber == nullptr) continue;
    ++count;
    // One line a place.
    const bool known = std::any_of(shown, shown + places, [&](const Fiber* other) {
      return same_place(other->where, fiber->where);
    });
    if (known || places == kMost) continue;
    shown[places++] = fiber;
    waiting += "\n  " + describe(fiber->index) + " waits in " + fiber->operation + " at " +
               text(fiber->where);
  }
  if (finished_ != 0) {
    for (uint32_t i = 0; i < total_; ++i) {
      if (returned_[warp_of(i)].has(lane_of(i))) {
        waiting += "\n  " + describe(i) + " has returned";
        break;
      }
    }
  }
  return {musaErrorLaunchFailure, prefix() + ": divergent barrier: " + std::to_string(count) +
                                      " threads wait for others that do not come, " +
                                      std::to_string(finished_) + " have returned" + waiting};
}

// Inside a signal's handler, on the stack of the fibre or on the signal's own: neither is used
// again before the next kernel. Only notes what happened: nothing here may allocate.
bool BlockRunner::abandon(int signal, void* address) {
  if (active_runner != this || current_ == nullptr) return false;
  fault_signal_ = signal;
  fault_address_ = address;
  switch_context(current_->context, thread_context_);
  return true;
}

void BlockRunner::give_up(musaError_t error, const char* what) {
  given_up_ = error;
  given_up_why_ = what;
  switch_context(current_->context, thread_context_);
  std::abort();  // nobody comes back here
}

void BlockRunner::give_up_overdue() {
  if (active_runner != this || current_ == nullptr || !in_kernel_ || !overdue()) return;
  in_kernel_ = false;
  give_up(musaErrorLaunchTimeout, overdue_text());
}

// Back on the thread's own stack, with threadIdx as the fault left it.
void BlockRunner::take_up_fault() {
  in_kernel_ = false;
  Fiber& culprit = *current_;
  std::string what;
  musaError_t error = musaErrorIllegalAddress;
  if (given_up_ != musaSuccess) {
    error = std::exchange(given_up_, musaSuccess);
    what = given_up_why_;
  } else if (fault_signal_ == SIGFPE) {
    error = musaErrorLaunchFailure;
    what = "integer division by zero";
  } else if (shared_.guards(fault_address_)) {
    what = "accessed shared memory out of range";
  } else if (culprit.stack.guards(fault_address_)) {
    error = musaErrorLaunchFailure;
    what = "used more than " + std::to_string(Stack::kBytes >> 10) + " KiB of stack";
  } else {
    char hex[32];
    std::snprintf(hex, sizeof(hex), "%p", fault_address_);
    what = std::string("accessed address ") + hex + ", which no kernel on this device may";
  }
  fault_signal_ = 0;
  error_ = std::make_exception_ptr(fault(error, what));
  // Fibres that wait are left as they are: their frames are lost, as the device's are.
  spare_.clear();
  for (auto& fiber : fibers_) {
    if (fiber.get() == &culprit || (fiber->owned && fiber->wait != Wait::none)) {
      release(fiber->context);
      fiber->context = Context{};
      fiber->begun = false;
    }
    fiber->owned = false;
    fiber->wait = Wait::none;
    spare_.push_back(fiber.get());
  }
  ready_.clear();
}

}  // namespace musa::host
