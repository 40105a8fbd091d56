// libmusart: memory and events between processes. Each case forks before it uses a device, as the
// children of a spawning program would be.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "runtime_support.h"

// Any variable will do: the case needs a process in which no device was used.
#define IPC_TEST(name) TEST_WITH_ENV(name, "MUSA_ARCH=mp_31")

namespace {

// A second process with a pipe each way.
class Peer {
 public:
  // Runs `body` in a child; what it throws is the child's failure.
  explicit Peer(const std::function<void(Peer&)>& body) {
    int down[2];
    int up[2];
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    child_ = fork();
    CHECK(child_ >= 0);
    read_ = child_ == 0 ? down[0] : up[0];
    write_ = child_ == 0 ? up[1] : down[1];
    close(child_ == 0 ? down[1] : down[0]);
    close(child_ == 0 ? up[0] : up[1]);
    if (child_ != 0) return;
    int status = 0;
    try {
      body(*this);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
    _exit(status);
  }
  ~Peer() {
    if (child_ > 0) (void)join();
  }

  template <typename T>
  void send(const T& value) {
    CHECK(write(write_, &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value)));
  }
  template <typename T>
  T receive() {
    T value;
    CHECK(read(read_, &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value)));
    return value;
  }
  bool join() {
    int status = -1;
    const bool ended = waitpid(std::exchange(child_, -1), &status, 0) > 0;
    return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  pid_t id() const { return child_; }

 private:
  pid_t child_ = -1;
  int read_ = -1;
  int write_ = -1;
};

}  // namespace

IPC_TEST(two_processes_share_an_allocation) {
  Peer peer([](Peer& parent) {
    const auto handle = parent.receive<musaIpcMemHandle_t>();
    void* pointer = nullptr;
    CHECK_OK(musaIpcOpenMemHandle(&pointer, handle, musaIpcMemLazyEnablePeerAccess));
    void* again = nullptr;
    CHECK_OK(musaIpcOpenMemHandle(&again, handle, musaIpcMemLazyEnablePeerAccess));
    CHECK(pointer == again);
    musaPointerAttributes attributes;
    CHECK_OK(musaPointerGetAttributes(&attributes, pointer));
    CHECK_EQ(attributes.type, musaMemoryTypeDevice);
    CHECK(musa::host::device_accessible(pointer, kBytes, 0));
    std::vector<char> data(kBytes);
    CHECK_OK(musaMemcpy(data.data(), pointer, kBytes, musaMemcpyDeviceToHost));
    CHECK(data == pattern(kBytes));
    CHECK_OK(musaMemset(pointer, 9, 10));
    CHECK_EQ(musaFree(pointer), musaErrorInvalidValue);
    CHECK_OK(musaIpcCloseMemHandle(pointer));
    CHECK_OK(musaIpcCloseMemHandle(pointer));
    CHECK_EQ(musaIpcCloseMemHandle(pointer), musaErrorInvalidValue);
    parent.send(true);
  });
  Buffer first(300);  // so that the block does not begin a page
  Buffer buffer(kBytes);
  const auto source = pattern(kBytes);
  CHECK_OK(musaMemcpy(buffer.data, source.data(), kBytes, musaMemcpyHostToDevice));
  musaIpcMemHandle_t handle;
  CHECK_OK(musaIpcGetMemHandle(&handle, static_cast<char*>(buffer.data) + 100));
  peer.send(handle);
  CHECK(peer.receive<bool>());
  CHECK(peer.join());
  std::vector<char> back(kBytes);
  CHECK_OK(musaMemcpy(back.data(), buffer.data, kBytes, musaMemcpyDeviceToHost));
  CHECK_EQ(static_cast<int>(back[9]), 9);
  CHECK_EQ(back[10], source[10]);
}

IPC_TEST(a_handle_dies_with_its_memory) {
  Peer peer([](Peer& parent) {
    const auto handle = parent.receive<musaIpcMemHandle_t>();
    void* pointer = &pointer;
    CHECK_EQ(musaIpcOpenMemHandle(&pointer, handle, musaIpcMemLazyEnablePeerAccess),
             musaErrorMapBufferObjectFailed);
    CHECK(pointer == nullptr);
    CHECK_OK(musaMalloc(&pointer, kBytes));  // and the next call works
  });
  void* pointer = nullptr;
  CHECK_OK(musaMalloc(&pointer, kBytes));
  musaIpcMemHandle_t handle;
  CHECK_OK(musaIpcGetMemHandle(&handle, pointer));
  CHECK_OK(musaFree(pointer));
  peer.send(handle);
  CHECK(peer.join());
}

IPC_TEST(a_process_cannot_open_its_own_handle) {
  Buffer buffer(kBytes);
  musaIpcMemHandle_t handle;
  CHECK_OK(musaIpcGetMemHandle(&handle, buffer.data));
  void* pointer = nullptr;
  CHECK_EQ(musaIpcOpenMemHandle(&pointer, handle, musaIpcMemLazyEnablePeerAccess),
           musaErrorDeviceUninitialized);
  std::memset(&handle, 0x55, sizeof(handle));
  CHECK_EQ(musaIpcOpenMemHandle(&pointer, handle, musaIpcMemLazyEnablePeerAccess),
           musaErrorInvalidValue);
  int local = 0;
  CHECK_EQ(musaIpcGetMemHandle(&handle, &local), musaErrorInvalidValue);
  void* pinned = nullptr;
  CHECK_OK(musaMallocHost(&pinned, 64));
  CHECK_EQ(musaIpcGetMemHandle(&handle, pinned), musaErrorInvalidValue);
  CHECK_OK(musaFreeHost(pinned));
  (void)musaGetLastError();
}

IPC_TEST(an_event_crosses_processes) {
  Peer peer([](Peer& parent) {
    const auto handle = parent.receive<musaIpcEventHandle_t>();
    musaEvent_t event = nullptr;
    CHECK_OK(musaIpcOpenEventHandle(&event, handle));
    CHECK_EQ(musaEventQuery(event), musaErrorNotReady);
    parent.send(true);
    CHECK_OK(musaEventSynchronize(event));
    CHECK_OK(musaStreamWaitEvent(nullptr, event, 0));
    CHECK_OK(musaEventDestroy(event));
  });
  Event event(musaEventDisableTiming | musaEventInterprocess);
  musaIpcEventHandle_t handle;
  CHECK_OK(musaIpcGetEventHandle(&handle, event));
  std::thread worker([&] { musa::host::enqueue(nullptr, [&] { (void)peer.receive<bool>(); }); });
  if (musa::host::asynchronous()) {
    worker.join();
    CHECK_OK(musaEventRecord(event, nullptr));
    peer.send(handle);
  } else {
    // A record returns when it is reached, so it comes from a second thread here.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread recorder([&] { CHECK_OK(musaEventRecord(event, nullptr)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    peer.send(handle);
    worker.join();
    recorder.join();
  }
  CHECK(peer.join());
  CHECK_OK(musaEventSynchronize(event));
}

IPC_TEST(an_event_of_a_dead_process_does_not_hang_who_waits) {
  Peer peer([](Peer& parent) {
    Event event(musaEventDisableTiming | musaEventInterprocess);
    musaIpcEventHandle_t handle;
    CHECK_OK(musaIpcGetEventHandle(&handle, event));
    std::thread([] {
      musa::host::enqueue(nullptr, [] { std::this_thread::sleep_for(std::chrono::hours(1)); });
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread([&] { (void)musaEventRecord(event, nullptr); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    parent.send(handle);
    pause();
  });
  const auto handle = peer.receive<musaIpcEventHandle_t>();
  musaEvent_t event = nullptr;
  CHECK_OK(musaIpcOpenEventHandle(&event, handle));
  CHECK_EQ(musaEventQuery(event), musaErrorNotReady);
  CHECK_EQ(kill(peer.id(), SIGKILL), 0);
  CHECK(!peer.join());
  CHECK_EQ(musaEventSynchronize(event), musaErrorLaunchFailure);
  CHECK_OK(musaEventDestroy(event));
  CHECK_OK(musaDeviceSynchronize());
  (void)musaGetLastError();
}

IPC_TEST(only_events_made_for_it_cross_processes) {
  Event event;
  musaIpcEventHandle_t handle;
  CHECK_EQ(musaIpcGetEventHandle(&handle, event), musaErrorInvalidValue);
  std::memset(&handle, 0, sizeof(handle));
  musaEvent_t opened = nullptr;
  CHECK_EQ(musaIpcOpenEventHandle(&opened, handle), musaErrorInvalidValue);
  (void)musaGetLastError();
}

IPC_TEST(a_forked_child_of_a_process_that_used_a_device_is_refused) {
  Buffer buffer(kBytes);
  const pid_t child = fork();
  if (child == 0) {
    void* pointer = nullptr;
    _exit(musaMalloc(&pointer, 8) == musaErrorInitializationError ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
