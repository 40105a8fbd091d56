// Error state: per thread for the calls that failed, per process for what a kernel broke.
#include <pthread.h>

#include <atomic>
#include <mutex>

#include "Api.h"
#include "Stream.h"

namespace musa::host {
namespace {

constinit thread_local musaError_t last_error = musaSuccess;

}  // namespace

std::atomic<musaError_t> sticky_error{musaSuccess};
constinit thread_local bool in_host_function MUSART_FAST_TLS = false;

void forbid_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { set_sticky_error(musaErrorInitializationError); });
  });
}

void set_sticky_error(musaError_t error) {
  musaError_t none = musaSuccess;
  sticky_error.compare_exchange_strong(none, error);  // the first one stays
}

musaError_t set_last_error(musaError_t error) {
  if (error != musaSuccess) last_error = error;
  return error;
}

}  // namespace musa::host

musaError_t musaGetLastError() {
  const musaError_t error = musaPeekAtLastError();
  musa::host::last_error = musaSuccess;
  return error;
}

musaError_t musaPeekAtLastError() {
  const musaError_t sticky = musa::host::sticky_error.load(std::memory_order_relaxed);
  return sticky != musaSuccess ? sticky : musa::host::last_error;
}
