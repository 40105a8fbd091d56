// Fibres: stacks of their own that one thread of the operating system switches between. A fibre
// never moves to another such thread.
#pragma once

#include <cstddef>

namespace musa::host {

// A place to switch to: the machine's stack pointer and what sanitizers want to know of the stack.
struct Context {
  void* stack_pointer = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer
  void* tsan_fiber = nullptr;  // ThreadSanitizer
};

// A mapped stack with an inaccessible page below it.
class Stack {
 public:
  static constexpr size_t kBytes = size_t{256} << 10;

  Stack();  // throws std::bad_alloc
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  char* bottom() const { return bottom_; }
  char* top() const { return bottom_ + kBytes; }
  // Whether the address lies in the page that an overflowing stack runs into.
  bool guards(const void* address) const;

 private:
  char* mapping_;
  char* bottom_;
};

// The context of the calling thread of the operating system.
void enter_thread(Context& context);

// Makes `context` begin with entry(argument) on `stack`; entry must not return.
void prepare(Context& context, const Stack& stack, void (*entry)(void*), void* argument);
void release(Context& context);

// Leaves `from` and goes on in `to`; returns when somebody switches back.
void switch_context(Context& from, Context& to);

// What a new fibre does first.
void arrived(Context& self);

}  // namespace musa::host
