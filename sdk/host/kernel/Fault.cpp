#include "Fault.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "../runtime/Division.h"
#include "Block.h"

namespace musa::host {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[std::size(kSignals)];

void handle(int signal, siginfo_t* info, void* context) {
  if (signal == SIGFPE && finish_division(*info, context)) return;
  // Codes above zero are the kernel's: this very instruction is at fault.
  if (BlockRunner* runner = BlockRunner::active(); runner != nullptr && info->si_code > 0) {
    runner->abandon(signal, info->si_addr);  // returns only where no kernel runs
  }
  const auto at = std::find(std::begin(kSignals), std::end(kSignals), signal) - kSignals;
  const struct sigaction& before = previous[at];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    // The instruction runs again, and then the process ends as it would have.
    sigaction(signal, &before, nullptr);
  }
}

// A block took too long (Watchdog.h). Comes to the thread that runs it.
void handle_overdue(int) {
  if (BlockRunner* runner = BlockRunner::active(); runner != nullptr) runner->give_up_overdue();
}

void install() {
  overdue_text();  // made now: a handler may not allocate
  struct sigaction overdue{};
  overdue.sa_handler = handle_overdue;
  overdue.sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART;
  sigemptyset(&overdue.sa_mask);
  sigaction(overdue_signal(), &overdue, nullptr);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action{};
    action.sa_sigaction = handle;
    // The handler may never return (see abandon), so its signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, &previous[i]);
  }
}

}  // namespace

void watch_this_thread() {
  static std::once_flag once;
  std::call_once(once, install);
  stack_t existing{};
  if (sigaltstack(nullptr, &existing) == 0 && (existing.ss_flags & SS_DISABLE) == 0) return;
  // The handler builds a message, so it gets more than the least.
  const size_t bytes = static_cast<size_t>(sysconf(_SC_SIGSTKSZ)) + (size_t{64} << 10);
  thread_local std::unique_ptr<char[]> memory;
  memory = std::make_unique<char[]>(bytes);
  stack_t own{};
  own.ss_sp = memory.get();
  own.ss_size = bytes;
  sigaltstack(&own, nullptr);
}

}  // namespace musa::host
