// Memory protection keys (x86): one key for all device memory. Intel SDM vol. 3, 4.6.2; pkeys(7).
#pragma once

#include <cstddef>

namespace musa::host::pkey {

// Takes a key; false where the CPU or the kernel has none. Once per process.
bool allocate();

// Permissions of pages, under the key.
void protect(void* pages, size_t bytes, int permissions);

// Gives the calling thread the right to the key's memory, and takes it again.
void open();
void close();

// Within a signal handler: gives the right to the interrupted thread for as long as it lives
// (`context` is the handler's ucontext_t). False where the saved state does not hold it.
bool open_interrupted(void* context);

// Whether a fault's si_code says that the key forbade the access.
bool forbade(int si_code);

}  // namespace musa::host::pkey
