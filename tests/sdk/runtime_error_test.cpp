// libmusart: error state.
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime_support.h"

TEST(last_error) {
  (void)musaGetLastError();
  CHECK_EQ(musaSetDevice(50), musaErrorInvalidDevice);
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);  // a success does not clear it
  CHECK_EQ(musaPeekAtLastError(), musaErrorInvalidDevice);
  musaError_t elsewhere = musaErrorUnknown;
  std::thread([&] { elsewhere = musaGetLastError(); }).join();
  CHECK_EQ(elsewhere, musaSuccess);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidDevice);
  CHECK_EQ(musaGetLastError(), musaSuccess);
}

TEST_WITH_ENV(sticky_error, "TORCH_MUSA_HOST_DEVICES=2") {
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  musa::host::set_sticky_error(musaErrorAssert);  // the first one stays
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, 8), musaErrorIllegalAddress);
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
  CHECK_EQ(musaGetLastError(), musaErrorIllegalAddress);
  CHECK_EQ(musaDeviceSynchronize(), musaErrorIllegalAddress);
  CHECK_EQ(musaSetDevice(0), musaErrorIllegalAddress);
  int device = -1;
  CHECK_EQ(musaGetDevice(&device), musaSuccess);  // asks the thread alone
  CHECK_EQ(device, 0);
}

// The doors of the toolkit's own libraries (muDNN, muRAND, kernels) are calls, too.
TEST_WITH_ENV(no_work_runs_after_a_sticky_error, "TORCH_MUSA_HOST_DEVICES=2") {
  const Stream stream;
  bool ran = false;
  const auto work = [&ran] { ran = true; };
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  const auto refused = [](auto&& call) {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return std::string(error.what()) == musaGetErrorString(musaErrorIllegalAddress);
    }
    return false;
  };
  for (const musaStream_t where : {musaStream_t{nullptr}, stream.handle, musaStreamPerThread}) {
    CHECK(refused([&] { musa::host::enqueue(where, work); }));
    CHECK(refused([&] { musa::host::enqueue(1, where, work, "work"); }));
    CHECK(refused([&] { musa::host::synchronize(0, where); }));
    CHECK(refused([&] {
      (void)musa::host::run_now(0, where, [](void* r) { *static_cast<bool*>(r) = true; }, &ran);
    }));
    CHECK_EQ(musa::host::try_enqueue(where, work), musaErrorIllegalAddress);
    CHECK_EQ(musa::host::try_enqueue(1, where, work), musaErrorIllegalAddress);
  }
  CHECK_EQ(musaDeviceSynchronize(), musaErrorIllegalAddress);
  CHECK(!ran);
}

// An error that the stream's work leaves is the answer of who waits for it.
TEST_WITH_ENV(who_waits_for_work_that_fails_is_told, "MUSA_LAUNCH_BLOCKING=0") {
  musa::host::enqueue(nullptr, [] { throw std::runtime_error("out of luck"); });
  try {
    musa::host::synchronize(0, nullptr);
  } catch (const std::runtime_error& error) {
    CHECK_EQ(std::string(error.what()), musaGetErrorString(musaErrorLaunchFailure));
    return;
  }
  CHECK(false);
}

TEST(what_cannot_be_enqueued_is_the_last_error) {
  musaStream_t gone = nullptr;
  CHECK_OK(musaStreamCreate(&gone));
  CHECK_OK(musaStreamDestroy(gone));
  CHECK_EQ(musa::host::try_enqueue(gone, [] {}), musaErrorInvalidResourceHandle);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidResourceHandle);
  CHECK_OK(musa::host::try_enqueue(nullptr, [] {}));
  CHECK_OK(musaDeviceSynchronize());
}

TEST(error_names) {
  CHECK_EQ(std::string(musaGetErrorName(musaErrorMemoryAllocation)),
           std::string("musaErrorMemoryAllocation"));
  CHECK_EQ(std::string(musaGetErrorString(musaErrorMemoryAllocation)),
           std::string("out of memory"));
  CHECK_EQ(std::string(musaGetErrorString(static_cast<musaError_t>(12345))),
           std::string("unrecognized error code"));
}

TEST(null_arguments) {
  CHECK_EQ(musaGetDeviceCount(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaGetDevice(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaMalloc(nullptr, 8), musaErrorInvalidValue);
  CHECK_EQ(musaStreamCreate(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaEventCreate(nullptr), musaErrorInvalidValue);
  CHECK_EQ(musaMemGetInfo(nullptr, nullptr), musaErrorInvalidValue);
  (void)musaGetLastError();
}
