#include "Fault.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "Device.h"
#include "Division.h"
#include "Memory.h"
#include "Pkey.h"
#include "Protect.h"

namespace musa::host {
namespace {

struct sigaction previous_segv;
struct sigaction previous_bus;
struct sigaction previous_fpe;

// A message that is put together without allocating and leaves in one piece.
class Message {
 public:
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(text_ + used_, sizeof(text_) - used_, format, arguments);
    va_end(arguments);
    if (written > 0) used_ += static_cast<size_t>(written);
    if (used_ >= sizeof(text_)) used_ = sizeof(text_) - 1;
  }
  ~Message() { (void)!write(STDERR_FILENO, text_, used_); }

 private:
  char text_[8192];
  size_t used_ = 0;
};

// "function (library.so)". Only for processes that are about to end, or outside of a handler:
// demangling allocates.
void add_code_address(Message& message, void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) {
    message.add("%p", address);
    return;
  }
  int status = -1;
  char* name = info.dli_sname != nullptr
                   ? abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status)
                   : nullptr;
  const char* symbol = name != nullptr ? name : info.dli_sname;
  if (symbol != nullptr) {
    message.add("%s (%s)", symbol, info.dli_fname);
  } else {
    message.add(
        "%s+0x%zx", info.dli_fname,
        static_cast<size_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase)));
  }
  std::free(name);
}

// Work that nobody named is called by its C++ type, which knows the function it was made in.
void add_work(Message& message, const char* work) {
  int status = -1;
  char* name = abi::__cxa_demangle(work, nullptr, nullptr, &status);
  message.add("%s", name != nullptr ? name : work);
  std::free(name);
}

void add_block(Message& message, const Block& block, const Trace& trace) {
  message.add("the %zu-byte block at %p of musa:%d, allocated by ", block.bytes,
              static_cast<void*>(block.begin), block.device);
  if (trace.frames[0] == nullptr) {
    add_code_address(message, block.caller);
    return;
  }
  // Ours come first; what called musaMalloc is what the reader wants.
  bool shown = false;
  bool past_caller = false;
  for (void* frame : trace.frames) {
    if (frame == nullptr) break;
    past_caller |= frame == block.caller;
    if (!past_caller) continue;
    message.add("%s", shown ? "\n    called by " : "");
    add_code_address(message, frame);
    shown = true;
  }
  if (!shown) add_code_address(message, block.caller);
}

void report_fault(const void* address, bool writes, const FaultPlace& place) {
  Message message;
  const char* work = DeviceAccess::current_work;
  if (work != nullptr) {
    message.add("musart: device code (");
    add_work(message, work);
    message.add(")");
  } else {
    message.add("musart: host code");
  }
  message.add(" %s device memory%s at %p", writes ? "wrote" : "read",
              work != nullptr ? " that it does not have" : " outside of any kernel or copy",
              address);
  if (!place.known) {
    message.add(", where nothing is allocated.\n");
    return;
  }
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - place.block.begin);
  if (offset < place.block.bytes) {
    message.add(": byte %zu of ", offset);
  } else {
    message.add(": %zu bytes behind the end of ", offset - place.block.bytes);
  }
  add_block(message, place.block, place.trace);
  if (place.freed) message.add(", and freed since");
  message.add(".\n");
  if (work == nullptr) {
    message.add(
        "  On a card this address means nothing to the host: copy the data first (musaMemcpy, or "
        "Tensor::cpu()).\n");
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  // A positive code: a fault of this very thread, not a signal somebody sent.
  if (info->si_code > 0) {
    if (pkey::forbade(info->si_code) && is_helper_of_running_work() &&
        pkey::open_interrupted(context)) {
      return;  // and access again
    }
    FaultPlace place{};
    if (describe_fault(info->si_addr, &place) && place.device_memory) {
      bool writes = false;
#if defined(__x86_64__)
      writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
      report_fault(info->si_addr, writes, place);
    }
  }
  // The access faults again, before whoever came first, or ends the process.
  sigaction(signal, signal == SIGBUS ? &previous_bus : &previous_segv, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void handle_division(int signal, siginfo_t* info, void* context) {
  if (finish_division(*info, context)) return;
  sigaction(signal, &previous_fpe, nullptr);
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

Trace Trace::here() {
  Trace trace{};
  const int depth = backtrace(trace.frames, kDepth);
  for (int i = depth; i < kDepth; ++i) trace.frames[i] = nullptr;
  return trace;
}

void install_fault_handler() {
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigaction(SIGBUS, &action, &previous_bus);
  action.sa_sigaction = handle_division;
  sigaction(SIGFPE, &action, &previous_fpe);
  if (debug_memory) (void)Trace::here();  // loads what it needs now, not in the middle of something
}

void print_failed_work(const char* work, const char* reason) {
  Message message;
  message.add("musart: work on a stream (");
  add_work(message, work);
  message.add(") failed: %.4000s\n", reason);
}

void print_division_by_zero(const char* work) {
  Message message;
  message.add("musart: ");
  add_work(message, work);
  message.add(
      " divided an integer by zero. A card gives some number and goes on; here it has all bits "
      "set.\n");
}

void report_overrun(const Block& block, size_t offset, const char* work, const Trace& trace) {
  Message message;
  message.add("musart: ");
  add_work(message, work != nullptr ? work : "device code");
  message.add(" wrote behind an allocation, %zu bytes after the end of ", offset);
  add_block(message, block, trace);
  message.add(".\n");
}

}  // namespace musa::host
