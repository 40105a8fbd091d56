#include "Pkey.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace musa::host::pkey {
namespace {

int key = -1;
uint32_t key_bits = 0;  // access-disable and write-disable of our key in PKRU

#if defined(__x86_64__)

size_t saved_offset = 0;  // of PKRU in a signal frame's XSAVE area

constexpr uint64_t kPkruFeature = uint64_t{1} << 9;  // in XCR0 and XSTATE_BV
constexpr size_t kXsaveHeader = 512;                 // XSTATE_BV is its first word
constexpr size_t kSoftwareBytes = 464;               // what the kernel says of the area
constexpr uint32_t kXstateMagic = 0x46505853;        // FP_XSTATE_MAGIC1

bool cpu_has_keys() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  // CPUID.7.0:ECX bit 4 (OSPKE): the kernel has switched them on.
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (c & (1u << 4)) == 0) return false;
  if (__get_cpuid_count(0xd, 9, &a, &b, &c, &d) == 0) return false;
  saved_offset = b;
  return true;
}

// The instructions by their bytes: no compiler flag, and so no other code, depends on the CPU.
inline uint32_t read_pkru() {
  uint32_t value = 0;
  uint32_t upper = 0;
  asm volatile(".byte 0x0f,0x01,0xee" : "=a"(value), "=d"(upper) : "c"(0));
  return value;
}

inline void write_pkru(uint32_t value) {
  asm volatile(".byte 0x0f,0x01,0xef" : : "a"(value), "c"(0), "d"(0) : "memory");
}

#else

bool cpu_has_keys() { return false; }
uint32_t read_pkru() { return 0; }
void write_pkru(uint32_t) {}

#endif

}  // namespace

bool allocate() {
  if (key >= 0) return true;
  if (!cpu_has_keys()) return false;
  key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  if (key < 0) return false;  // an old kernel, or all keys are taken
  key_bits = 3u << (2 * key);
  return true;
}

void protect(void* pages, size_t bytes, int permissions) {
  pkey_mprotect(pages, bytes, permissions, key);
}

void open() { write_pkru(read_pkru() & ~key_bits); }

void close() { write_pkru(read_pkru() | key_bits); }

bool open_interrupted(void* context) {
#if defined(__x86_64__)
  auto* area = reinterpret_cast<char*>(static_cast<ucontext_t*>(context)->uc_mcontext.fpregs);
  if (area == nullptr) return false;
  uint32_t magic = 0;
  std::memcpy(&magic, area + kSoftwareBytes, sizeof(magic));
  uint64_t present = 0;
  std::memcpy(&present, area + kXsaveHeader, sizeof(present));
  // Absent from the frame would mean PKRU = 0, everything open, which has not faulted.
  if (magic != kXstateMagic || (present & kPkruFeature) == 0) return false;
  uint32_t value = 0;
  std::memcpy(&value, area + saved_offset, sizeof(value));
  value &= ~key_bits;
  std::memcpy(area + saved_offset, &value, sizeof(value));
  return true;
#else
  (void)context;
  return false;
#endif
}

bool forbade(int si_code) { return key >= 0 && si_code == SEGV_PKUERR; }

}  // namespace musa::host::pkey
