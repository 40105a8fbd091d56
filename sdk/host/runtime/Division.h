// Integer division where a card goes on and this CPU stops.
#pragma once

#include <signal.h>

namespace musa::host {

// In a handler of SIGFPE: where the calling thread runs device work, gives the division a result
// and lets the thread go on behind it. A card does not fault on a divisor of zero, it gives some
// number (here one with all bits set, as quotient and as remainder), nor on the lowest number
// divided by -1, which wraps around. False, and nothing done, where the signal is about something
// else.
bool finish_division(const siginfo_t& info, void* context);

// With debug_memory: says once which work divided by zero. Called after any work.
void report_divisions();

}  // namespace musa::host
