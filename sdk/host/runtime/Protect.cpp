#include "Protect.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "Environment.h"
#include "Pkey.h"
#include "musa_host.h"

namespace musa::host {
namespace {

constexpr unsigned char kRedZone = 0xfb;

Protection choose() {
  switch (
      choice_from_environment("TORCH_MUSA_HOST_PROTECT", {"auto", "pkey", "mprotect", "off"}, 0)) {
    case 1:
      if (pkey::allocate()) return Protection::PKEY;
      std::fprintf(stderr,
                   "musart: TORCH_MUSA_HOST_PROTECT=pkey, but this CPU or kernel has no memory "
                   "protection keys; device memory is not protected\n");
      return Protection::OFF;
    case 2:
      return Protection::MPROTECT;
    case 3:
      return Protection::OFF;
    default:
      return pkey::allocate() ? Protection::PKEY : Protection::OFF;
  }
}

// The mprotect switch: how many threads run work, and which pages follow.
struct Switch {
  std::mutex mutex;
  int running = 0;
  std::map<char*, size_t> pages;

  void set(int permissions) {
    for (const auto& [begin, bytes] : pages) mprotect(begin, bytes, permissions);
  }
};

Switch& page_switch() {
  static Switch* the_switch = new Switch;  // freed memory of static tensors needs it to the last
  return *the_switch;
}

}  // namespace

const Protection protection = choose();
const bool debug_memory =
    protection == Protection::MPROTECT || number_from_environment("TORCH_MUSA_HOST_DEBUG", 0) != 0;

constinit thread_local const char* DeviceAccess::current_work MUSART_FAST_TLS = nullptr;
constinit thread_local int DeviceAccess::depth MUSART_FAST_TLS = 0;

namespace {
constinit thread_local bool has_run_work MUSART_FAST_TLS = false;
std::atomic<int> running_works{0};
}  // namespace

bool is_helper_of_running_work() {
  return !has_run_work && running_works.load(std::memory_order_relaxed) > 0;
}

void unseal(void* pages, size_t bytes) {
  switch (protection) {
    case Protection::PKEY:
      pkey::protect(pages, bytes, PROT_READ | PROT_WRITE);
      return;
    case Protection::MPROTECT: {
      std::lock_guard lock(page_switch().mutex);
      page_switch().pages[static_cast<char*>(pages)] = bytes;
      if (page_switch().running > 0) mprotect(pages, bytes, PROT_READ | PROT_WRITE);
      return;
    }
    case Protection::OFF:
      mprotect(pages, bytes, PROT_READ | PROT_WRITE);
      return;
  }
}

void seal(void* pages, size_t bytes) {
  if (protection == Protection::MPROTECT) {
    std::lock_guard lock(page_switch().mutex);
    page_switch().pages.erase(static_cast<char*>(pages));
  }
  mprotect(pages, bytes, PROT_NONE);
}

void DeviceAccess::open() {
  if (protection == Protection::PKEY) {
    has_run_work = true;
    running_works.fetch_add(1, std::memory_order_relaxed);
    pkey::open();
    return;
  }
  std::lock_guard lock(page_switch().mutex);
  if (page_switch().running++ == 0) page_switch().set(PROT_READ | PROT_WRITE);
}

void DeviceAccess::close() {
  if (protection == Protection::PKEY) {
    pkey::close();
    running_works.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  std::lock_guard lock(page_switch().mutex);
  if (--page_switch().running == 0) page_switch().set(PROT_NONE);
}

HostAccess::HostAccess() : work_(DeviceAccess::current_work), depth_(DeviceAccess::depth) {
  if (depth_ > 0 && protection != Protection::OFF) DeviceAccess::close();
  DeviceAccess::depth = 0;
  DeviceAccess::current_work = nullptr;
}

HostAccess::~HostAccess() {
  DeviceAccess::current_work = work_;
  DeviceAccess::depth = depth_;
  if (depth_ > 0 && protection != Protection::OFF) DeviceAccess::open();
}

void open_device_memory() {
  // The page switch belongs to the thread that runs the work; its helpers find it open.
  if (protection == Protection::PKEY && DeviceAccess::depth == 0) pkey::open();
}

bool device_memory_is_protected() { return protection != Protection::OFF; }

void paint_red_zone(char* begin, size_t bytes) { std::memset(begin, kRedZone, bytes); }

bool red_zone_intact(const char* begin, size_t bytes, size_t* offset) {
  const auto* bytes_of = reinterpret_cast<const unsigned char*>(begin);
  const auto* wrong =
      std::find_if(bytes_of, bytes_of + bytes, [](unsigned char byte) { return byte != kRedZone; });
  *offset = static_cast<size_t>(wrong - bytes_of);
  return wrong == bytes_of + bytes;
}

}  // namespace musa::host
