// Handles for other processes of the same user: memory and events, by the files that stand behind
// them, which /proc shows to whoever may look at the process that holds them open.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "Device.h"
#include "Event.h"
#include "Memory.h"
#include "Protect.h"

namespace musa::host {
namespace {

constexpr size_t kPage = 4096;

// What is in a handle's 64 bytes.
struct Handle {
  enum : uint32_t { MEMORY = 0x6d757361, EVENT = 0x6d757365 };
  uint32_t kind;
  int32_t process;
  int32_t file;
  int32_t device;  // the machine's number, not the process'
  uint64_t inode;  // of the file: its number alone may name another one by now
  uint64_t offset;
  uint64_t bytes;
  int32_t token;  // a file that is open as long as the block lives
  uint64_t token_inode;
};
static_assert(sizeof(Handle) <= MUSA_IPC_HANDLE_SIZE);

uint64_t inode_of(int file) {
  struct stat status{};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

template <typename Wire>
void pack(const Handle& handle, Wire* wire) {
  std::memset(wire, 0, sizeof(*wire));
  std::memcpy(wire, &handle, sizeof(handle));
}

template <typename Wire>
Handle unpack(const Wire& wire, uint32_t kind) {
  Handle handle{};
  std::memcpy(&handle, &wire, sizeof(handle));
  require(handle.kind == kind);
  require(handle.process != getpid(), musaErrorDeviceUninitialized);
  return handle;
}

// The other process' file, open here; the caller closes it.
int open_file(int process, int number, uint64_t inode) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, number);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  require(file >= 0, musaErrorMapBufferObjectFailed);
  if (inode_of(file) != inode) {
    close(file);
    throw Failure{musaErrorMapBufferObjectFailed};
  }
  return file;
}

// Blocks that were exported, by their beginning, with their tokens.
std::mutex exported_mutex;
std::map<void*, int> exported;

// Blocks that were imported: by what they are, and how often they are open.
using Identity = std::tuple<int, uint64_t, uint64_t>;  // process, inode, offset
struct Import {
  void* pointer;
  int count;
};
std::mutex imports_mutex;
std::map<Identity, Import> imports;

void* map_block(const Handle& handle, int device, void* caller) {
  const int file = open_file(handle.process, handle.file, handle.inode);
  const size_t lead = handle.offset % kPage;
  const size_t length = (lead + handle.bytes + kPage - 1) / kPage * kPage;
  void* pages =
      mmap(nullptr, length, PROT_NONE, MAP_SHARED, file, static_cast<off_t>(handle.offset - lead));
  close(file);
  require(pages != MAP_FAILED, musaErrorMapBufferObjectFailed);
  unseal(pages, length);
  char* begin = static_cast<char*>(pages) + lead;
  add_imported({begin, handle.bytes, Kind::IMPORTED, device, 0, caller});
  return begin;
}

void unmap_block(void* pointer) {
  const Block block = remove_imported(pointer);
  const size_t lead = reinterpret_cast<uintptr_t>(pointer) % kPage;
  const size_t length = (lead + block.bytes + kPage - 1) / kPage * kPage;
  char* pages = static_cast<char*>(pointer) - lead;
  seal(pages, length);
  munmap(pages, length);
}

}  // namespace

void forget_export(void* pointer) {
  std::lock_guard lock(exported_mutex);
  const auto found = exported.find(pointer);
  if (found == exported.end()) return;
  close(found->second);
  exported.erase(found);
}

}  // namespace musa::host

using musa::host::api;
using musa::host::Handle;
using musa::host::inode_of;
using musa::host::require;

musaError_t musaIpcGetMemHandle(musaIpcMemHandle_t* handle, void* pointer) {
  return api([&] {
    require(handle != nullptr);
    const auto block = musa::host::find_block(pointer);
    require(block && block->kind == musa::host::Kind::DEVICE);
    const musa::host::FilePlace place = musa::host::file_place(*block);
    std::lock_guard lock(musa::host::exported_mutex);
    const auto [entry, is_new] = musa::host::exported.try_emplace(block->begin, -1);
    if (is_new) entry->second = memfd_create("musa-ipc-token", MFD_CLOEXEC);
    if (entry->second < 0) {
      musa::host::exported.erase(entry);
      require(false, musaErrorMemoryAllocation);
    }
    pack(Handle{Handle::MEMORY, getpid(), place.file, musa::host::physical_device(block->device),
                inode_of(place.file), place.offset, block->bytes, entry->second,
                inode_of(entry->second)},
         handle);
  });
}

musaError_t musaIpcOpenMemHandle(void** pointer, musaIpcMemHandle_t wire, unsigned int flags) {
  void* caller = __builtin_return_address(0);
  return api([&] {
    require(pointer != nullptr && flags == musaIpcMemLazyEnablePeerAccess);
    *pointer = nullptr;
    const Handle handle = musa::host::unpack(wire, Handle::MEMORY);
    const int device = musa::host::visible_device(handle.device);
    require(device >= 0, musaErrorInvalidDevice);
    close(musa::host::open_file(handle.process, handle.token, handle.token_inode));
    std::lock_guard lock(musa::host::imports_mutex);
    const musa::host::Identity identity{handle.process, handle.inode, handle.offset};
    auto [entry, is_new] = musa::host::imports.try_emplace(identity);
    if (is_new) {
      try {
        entry->second = {musa::host::map_block(handle, device, caller), 0};
      } catch (...) {
        musa::host::imports.erase(entry);
        throw;
      }
    }
    ++entry->second.count;
    *pointer = entry->second.pointer;
  });
}

musaError_t musaIpcCloseMemHandle(void* pointer) {
  return api([&] {
    require(pointer != nullptr);
    if (const auto block = musa::host::find_block(pointer)) {
      musa::host::synchronize_device(block->device);
    }
    std::lock_guard lock(musa::host::imports_mutex);
    for (auto it = musa::host::imports.begin(); it != musa::host::imports.end(); ++it) {
      if (it->second.pointer != pointer) continue;
      if (--it->second.count == 0) {
        musa::host::unmap_block(pointer);
        musa::host::imports.erase(it);
      }
      return;
    }
    require(false);
  });
}

musaError_t musaIpcGetEventHandle(musaIpcEventHandle_t* handle, musaEvent_t event) {
  return api([&] {
    require(handle != nullptr);
    const auto found = musa::host::find_event(event);
    require(found->shared != nullptr);
    const int file = found->shared->file();
    pack(Handle{Handle::EVENT, getpid(), file, musa::host::physical_device(found->device),
                inode_of(file), 0, 0, -1, 0},
         handle);
  });
}

musaError_t musaIpcOpenEventHandle(musaEvent_t* event, musaIpcEventHandle_t wire) {
  return api([&] {
    require(event != nullptr);
    *event = nullptr;
    const Handle handle = musa::host::unpack(wire, Handle::EVENT);
    const int device = musa::host::visible_device(handle.device);
    require(device >= 0, musaErrorInvalidDevice);
    const int file = musa::host::open_file(handle.process, handle.file, handle.inode);
    auto shared = musa::host::SharedMark::open(file);
    if (!shared) {
      close(file);
      require(false, musaErrorMapBufferObjectFailed);
    }
    *event = musa::host::add_event(device, musaEventDisableTiming | musaEventInterprocess,
                                   std::move(shared));
  });
}
