// libmusart: error state.
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
