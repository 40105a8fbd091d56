#include "Fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

// The switch itself: the registers that a call preserves go onto the stack that is left, those of
// the other come from its stack. glibc's swapcontext does the same and two system calls (the signal
// mask, which fibres share here), which would be twenty times the cost of a barrier.
#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.globl musa_host_switch
.hidden musa_host_switch
.type musa_host_switch, @function
musa_host_switch:
  .cfi_startproc
  endbr64
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  pushq %r12
  .cfi_adjust_cfa_offset 8
  pushq %r13
  .cfi_adjust_cfa_offset 8
  pushq %r14
  .cfi_adjust_cfa_offset 8
  pushq %r15
  .cfi_adjust_cfa_offset 8
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  .cfi_adjust_cfa_offset -8
  popq %r14
  .cfi_adjust_cfa_offset -8
  popq %r13
  .cfi_adjust_cfa_offset -8
  popq %r12
  .cfi_adjust_cfa_offset -8
  popq %rbx
  .cfi_adjust_cfa_offset -8
  popq %rbp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
.size musa_host_switch, .-musa_host_switch

.p2align 4
.globl musa_host_fiber_entry
.hidden musa_host_fiber_entry
.type musa_host_fiber_entry, @function
musa_host_fiber_entry:
  .cfi_startproc
  .cfi_undefined rip
  endbr64
  movq %r12, %rdi
  callq *%r13
  ud2
  .cfi_endproc
.size musa_host_fiber_entry, .-musa_host_fiber_entry
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.globl musa_host_switch
.hidden musa_host_switch
.type musa_host_switch, @function
musa_host_switch:
  .cfi_startproc
  sub sp, sp, #160
  .cfi_adjust_cfa_offset 160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  .cfi_adjust_cfa_offset -160
  ret
  .cfi_endproc
.size musa_host_switch, .-musa_host_switch

.p2align 4
.globl musa_host_fiber_entry
.hidden musa_host_fiber_entry
.type musa_host_fiber_entry, @function
musa_host_fiber_entry:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x19
  blr x20
  brk #0
  .cfi_endproc
.size musa_host_fiber_entry, .-musa_host_fiber_entry
)");
#endif

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" {
void musa_host_switch(void** save, void* load);
void musa_host_fiber_entry();
}
#endif

namespace musa::host {
namespace {

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Stack::Stack() {
  void* mapping = mmap(nullptr, kBytes + page_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<char*>(mapping);
  bottom_ = mapping_ + page_bytes();
  // Where the process has used up its mappings, a stack without a guard still works.
  mprotect(mapping_, page_bytes(), PROT_NONE);
}

Stack::~Stack() { munmap(mapping_, kBytes + page_bytes()); }

bool Stack::guards(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  return at >= mapping_ && at < bottom_;
}

void enter_thread([[maybe_unused]] Context& context) {
#if defined(__SANITIZE_THREAD__)
  context.tsan_fiber = __tsan_get_current_fiber();
#endif
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void* bottom = nullptr;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &bottom, &context.stack_bytes);
    pthread_attr_destroy(&attributes);
  }
  context.stack_bottom = bottom;
#endif
}

#if defined(__x86_64__)
void prepare(Context& context, const Stack& stack, void (*entry)(void*), void* argument) {
  // As musa_host_switch leaves a stack: six registers (r15 lowest) and the address to return to.
  // After the return the stack pointer is a multiple of 16, which the call of `entry` expects.
  void** sp = reinterpret_cast<void**>(stack.top()) - 9;
  sp[0] = nullptr;                         // r15
  sp[1] = nullptr;                         // r14
  sp[2] = reinterpret_cast<void*>(entry);  // r13
  sp[3] = argument;                        // r12
  sp[4] = nullptr;                         // rbx
  sp[5] = nullptr;                         // rbp: the end of the chain of frames
  sp[6] = reinterpret_cast<void*>(&musa_host_fiber_entry);
  context.stack_pointer = sp;
#elif defined(__aarch64__)
void prepare(Context& context, const Stack& stack, void (*entry)(void*), void* argument) {
  auto* sp = reinterpret_cast<void**>(stack.top() - 160);
  for (int i = 0; i < 20; ++i) sp[i] = nullptr;
  sp[0] = argument;                                          // x19
  sp[1] = reinterpret_cast<void*>(entry);                    // x20
  sp[11] = reinterpret_cast<void*>(&musa_host_fiber_entry);  // x30
  context.stack_pointer = sp;
#else
namespace {
void start(unsigned int entry_high, unsigned int entry_low, unsigned int high, unsigned int low) {
  const auto join = [](unsigned int h, unsigned int l) {
    return static_cast<uintptr_t>((static_cast<uint64_t>(h) << 32) | l);
  };
  reinterpret_cast<void (*)(void*)>(join(entry_high, entry_low))(
      reinterpret_cast<void*>(join(high, low)));
}
}  // namespace
void prepare(Context& context, const Stack& stack, void (*entry)(void*), void* argument) {
  auto* state = new ucontext_t;
  getcontext(state);
  state->uc_stack.ss_sp = stack.bottom();
  state->uc_stack.ss_size = Stack::kBytes;
  state->uc_link = nullptr;
  const auto e = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(entry));
  const auto a = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(argument));
  makecontext(state, reinterpret_cast<void (*)()>(&start), 4, static_cast<unsigned int>(e >> 32),
              static_cast<unsigned int>(e), static_cast<unsigned int>(a >> 32),
              static_cast<unsigned int>(a));
  context.stack_pointer = state;
#endif
  context.stack_bottom = stack.bottom();
  context.stack_bytes = Stack::kBytes;
#if defined(__SANITIZE_THREAD__)
  if (context.tsan_fiber == nullptr) context.tsan_fiber = __tsan_create_fiber(0);
#endif
}

void release([[maybe_unused]] Context& context) {
#if defined(__SANITIZE_THREAD__)
  if (context.tsan_fiber != nullptr) __tsan_destroy_fiber(context.tsan_fiber);
#endif
#if !defined(__x86_64__) && !defined(__aarch64__)
  delete static_cast<ucontext_t*>(context.stack_pointer);
#endif
}

void switch_context(Context& from, Context& to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack_bottom, to.stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  musa_host_switch(&from.stack_pointer, to.stack_pointer);
#else
  if (from.stack_pointer == nullptr) from.stack_pointer = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(from.stack_pointer),
              static_cast<ucontext_t*>(to.stack_pointer));
#endif
  arrived(from);
}

void arrived([[maybe_unused]] Context& self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(self.fake_stack, nullptr, nullptr);
#endif
}

}  // namespace musa::host
