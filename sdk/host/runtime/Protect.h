// Device memory is out of bounds for host code: only a thread that runs device work (a kernel, a
// copy, a muDNN call) may touch it.
//
// TORCH_MUSA_HOST_PROTECT chooses how:
//   pkey      memory protection keys. A right of the thread, switched by one instruction.
//   mprotect  page permissions, switched for the whole process while any work runs: slow, and blind
//             while another thread's work runs. For debugging where the CPU has no keys.
//   off       no protection.
//   auto      pkey where CPU and kernel have it, else off. The default.
#pragma once

#include <cstddef>
#include <cstdint>

#include "Api.h"

namespace musa::host {

enum class Protection { OFF, PKEY, MPROTECT };

// Settled when the library is loaded.
extern const Protection protection;

// TORCH_MUSA_HOST_DEBUG=1 (implied by mprotect): every allocation has pages of its own between
// guard pages, a red zone behind its end, and stays inaccessible when freed.
extern const bool debug_memory;

// Gives fresh pages of device memory their permissions: accessible to work alone. `pages` and
// `bytes` are multiples of the page size. With mprotect they follow the switch until sealed.
void unseal(void* pages, size_t bytes);
// Takes them away from everybody.
void seal(void* pages, size_t bytes);

// The calling thread runs device work while one of these lives. `work` is what messages call it.
// Nests.
class DeviceAccess {
 public:
  explicit DeviceAccess(const char* work) : outer_work_(current_work), depth_(depth) {
    current_work = work;
    if (depth++ == 0 && protection != Protection::OFF) open();
  }
  ~DeviceAccess() {
    depth = depth_;
    current_work = outer_work_;
    if (depth_ == 0 && protection != Protection::OFF) close();
  }
  DeviceAccess(const DeviceAccess&) = delete;

  // What the calling thread runs, null outside of work. Plain TLS: a signal handler reads it.
  static constinit thread_local const char* current_work MUSART_FAST_TLS;

 private:
  friend class HostAccess;
  friend void open_device_memory();
  static void open();
  static void close();

  static constinit thread_local int depth MUSART_FAST_TLS;

  const char* outer_work_;
  int depth_;
};

// The calling thread runs host code (musaLaunchHostFunc's) while one of these lives, wherever it is
// called from.
class HostAccess {
 public:
  HostAccess();
  ~HostAccess();
  HostAccess(const HostAccess&) = delete;

 private:
  const char* work_;
  int depth_;
};

// Puts a red zone behind a debug block; true while it is intact. The caller has access.
void paint_red_zone(char* begin, size_t bytes);
bool red_zone_intact(const char* begin, size_t bytes, size_t* offset);

// Whether work runs in some thread, and whether the calling one never did any itself: then it is a
// helper of that work (a thread of OpenMP's pool, say). Only known with keys.
bool is_helper_of_running_work();

}  // namespace musa::host
