// libmusart: devices, their properties and peers.
#include <string>
#include <thread>

#include "runtime_support.h"

TEST(two_devices_by_default) {
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);
  CHECK_EQ(count, 2);
}

TEST_WITH_ENV(device_count_is_settable, "TORCH_MUSA_HOST_DEVICES=5") {
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);
  CHECK_EQ(count, 5);
  CHECK_EQ(musaSetDevice(4), musaSuccess);
}

TEST_WITH_ENV(no_device, "TORCH_MUSA_HOST_DEVICES=0") {
  int count = -1;
  CHECK_EQ(musaGetDeviceCount(&count), musaErrorNoDevice);
  CHECK_EQ(count, 0);
  void* pointer = nullptr;
  CHECK_EQ(musaMalloc(&pointer, 1), musaErrorNoDevice);
  CHECK_EQ(musaSetDevice(0), musaErrorNoDevice);
}

TEST_WITH_ENV(device_count_typo_keeps_the_default, "TORCH_MUSA_HOST_DEVICES=two") {
  int count = 0;
  CHECK_EQ(musaGetDeviceCount(&count), musaSuccess);
  CHECK_EQ(count, 2);
}

TEST(current_device_is_per_thread) {
  CHECK_EQ(musaSetDevice(1), musaSuccess);
  int other = -1;
  std::thread([&] { (void)musaGetDevice(&other); }).join();
  CHECK_EQ(other, 0);
  int mine = -1;
  CHECK_EQ(musaGetDevice(&mine), musaSuccess);
  CHECK_EQ(mine, 1);
  CHECK_EQ(musaSetDevice(0), musaSuccess);
}

TEST(device_out_of_range) {
  for (int device : {-1, 2, 100}) CHECK_EQ(musaSetDevice(device), musaErrorInvalidDevice);
  musaDeviceProp prop;
  CHECK_EQ(musaGetDeviceProperties(&prop, 2), musaErrorInvalidDevice);
  int device = -1;
  CHECK_EQ(musaGetDevice(&device), musaSuccess);
  CHECK_EQ(device, 0);
  (void)musaGetLastError();
}

TEST(properties) {
  musaDeviceProp prop;
  CHECK_EQ(musaGetDeviceProperties(&prop, 1), musaSuccess);
  CHECK_EQ(std::string(prop.name), std::string("MUSA host stand-in (mp_31)"));
  CHECK_EQ(prop.major * 10 + prop.minor, 31);
  CHECK_EQ(prop.warpSize, 32);
  CHECK(prop.totalGlobalMem >= size_t{256} << 20);
  CHECK(prop.maxThreadsPerBlock == 1024 && prop.multiProcessorCount > 0);
}

TEST_WITH_ENV(architecture_profile, "MUSA_ARCH=mp_21") {
  musaDeviceProp prop;
  CHECK_EQ(musaGetDeviceProperties(&prop, 0), musaSuccess);
  CHECK_EQ(prop.major * 10 + prop.minor, 21);
  CHECK_EQ(prop.warpSize, 128);
}

namespace {

int architecture() {
  musaDeviceProp prop;
  CHECK_EQ(musaGetDeviceProperties(&prop, 0), musaSuccess);
  return prop.major * 10 + prop.minor;
}

}  // namespace

// As torch_musa's builds set the variable: a number, or the list of chips that a binary is for.
TEST_WITH_ENV(architecture_as_a_number, "MUSA_ARCH=22") { CHECK_EQ(architecture(), 22); }
TEST_WITH_ENV(architecture_of_a_list_is_its_newest, "MUSA_ARCH=22;21") {
  CHECK_EQ(architecture(), 22);
}
TEST_WITH_ENV(architecture_of_a_list_of_names, "MUSA_ARCH=mp_21,mp_31,mp_22") {
  CHECK_EQ(architecture(), 31);
}
TEST_WITH_ENV(architecture_that_does_not_exist, "MUSA_ARCH=21;20") { CHECK_EQ(architecture(), 31); }
TEST_WITH_ENV(architecture_that_is_nothing, "MUSA_ARCH=;") { CHECK_EQ(architecture(), 31); }

TEST(peers) {
  int can = -1;
  CHECK_EQ(musaDeviceCanAccessPeer(&can, 0, 1), musaSuccess);
  CHECK_EQ(can, 1);
  CHECK_EQ(musaDeviceCanAccessPeer(&can, 0, 0), musaSuccess);
  CHECK_EQ(can, 0);
  Buffer remote(kBytes, 1);
  CHECK(!musa::host::device_accessible(remote.data, kBytes, 0));
  CHECK_EQ(musaDeviceEnablePeerAccess(1, 0), musaSuccess);
  CHECK(musa::host::device_accessible(remote.data, kBytes, 0));
  CHECK_EQ(musaDeviceEnablePeerAccess(1, 0), musaErrorPeerAccessAlreadyEnabled);
  CHECK_EQ(musaDeviceEnablePeerAccess(0, 0), musaErrorInvalidDevice);
  (void)musaGetLastError();
}

TEST(versions) {
  int driver = 0;
  int runtime = 0;
  CHECK_EQ(musaDriverGetVersion(&driver), musaSuccess);
  CHECK_EQ(musaRuntimeGetVersion(&runtime), musaSuccess);
  CHECK(driver >= runtime && runtime > 0);
}
