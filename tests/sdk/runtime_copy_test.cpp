// libmusart: copies and fills.
#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime_support.h"

TEST(copies_in_all_directions) {
  const std::vector<char> source = pattern(kBytes);
  std::vector<char> back(kBytes);
  Buffer a(kBytes);
  Buffer b(kBytes);
  Buffer remote(kBytes, 1);
  CHECK_EQ(musaMemcpy(a.data, source.data(), kBytes, musaMemcpyHostToDevice), musaSuccess);
  CHECK_EQ(musaMemcpy(b.data, a.data, kBytes, musaMemcpyDeviceToDevice), musaSuccess);
  CHECK_EQ(musaMemcpyPeerAsync(remote.data, 1, b.data, 0, kBytes, nullptr), musaSuccess);
  CHECK_EQ(musaMemcpy(back.data(), remote.data, kBytes, musaMemcpyDeviceToHost), musaSuccess);
  CHECK(back == source);
  std::vector<char> host(kBytes);
  CHECK_EQ(musaMemcpy(host.data(), source.data(), kBytes, musaMemcpyHostToHost), musaSuccess);
  CHECK(host == source);
  std::fill(back.begin(), back.end(), 0);
  CHECK_EQ(musaMemcpyAsync(back.data(), remote.data, kBytes, musaMemcpyDefault, nullptr),
           musaSuccess);
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
  CHECK(back == source);
}

TEST(copy_in_the_wrong_direction) {
  std::vector<char> host(kBytes);
  Buffer device(kBytes);
  for (auto kind : {musaMemcpyHostToHost, musaMemcpyDeviceToHost, musaMemcpyDeviceToDevice}) {
    CHECK_EQ(musaMemcpy(device.data, host.data(), kBytes, kind), musaErrorInvalidValue);
  }
  for (auto kind : {musaMemcpyHostToHost, musaMemcpyHostToDevice, musaMemcpyDeviceToDevice}) {
    CHECK_EQ(musaMemcpy(host.data(), device.data, kBytes, kind), musaErrorInvalidValue);
  }
  CHECK_EQ(musaMemcpy(host.data(), device.data, kBytes, static_cast<musaMemcpyKind>(7)),
           musaErrorInvalidMemcpyDirection);
  CHECK_EQ(musaMemcpy(host.data(), device.data, kBytes, musaMemcpyDeviceToHost), musaSuccess);
  (void)musaGetLastError();
}

TEST(copy_past_the_end) {
  std::vector<char> host(2048);
  Buffer device(512);
  CHECK_EQ(musaMemcpy(device.data, host.data(), 513, musaMemcpyHostToDevice),
           musaErrorInvalidValue);
  CHECK_EQ(musaMemset(static_cast<char*>(device.data) + 500, 0, 13), musaErrorInvalidValue);
  CHECK_EQ(musaMemcpy(nullptr, device.data, 8, musaMemcpyDeviceToHost), musaErrorInvalidValue);
  CHECK_EQ(musaMemcpy(nullptr, nullptr, 0, musaMemcpyHostToDevice), musaSuccess);
  (void)musaGetLastError();
}

// Device addresses that nobody has are not taken for the host's.
TEST(copy_from_and_to_device_memory_that_is_not_allocated) {
  std::vector<char> host(kBytes);
  Buffer device(kBytes);
  void* freed = nullptr;
  CHECK_EQ(musaMalloc(&freed, kBytes), musaSuccess);
  CHECK_EQ(musaFree(freed), musaSuccess);
  void* const past = static_cast<char*>(device.data) + (size_t{1} << 30);
  for (void* bad : {freed, past}) {
    for (auto kind : {musaMemcpyDefault, musaMemcpyHostToDevice, musaMemcpyHostToHost}) {
      CHECK_EQ(musaMemcpy(device.data, bad, 8, kind), musaErrorInvalidValue);
    }
    for (auto kind : {musaMemcpyDefault, musaMemcpyDeviceToHost, musaMemcpyHostToHost}) {
      CHECK_EQ(musaMemcpy(bad, device.data, 8, kind), musaErrorInvalidValue);
    }
    CHECK_EQ(musaHostRegister(bad, 8, musaHostRegisterDefault), musaErrorInvalidValue);
  }
  CHECK_EQ(musaMemcpy(host.data(), device.data, kBytes, musaMemcpyDefault), musaSuccess);
  (void)musaGetLastError();
}

TEST(copy_between_peers_checks_the_devices) {
  Buffer here(kBytes, 0);
  Buffer there(kBytes, 1);
  CHECK_EQ(musaMemcpyPeer(there.data, 0, here.data, 0, kBytes), musaErrorInvalidValue);
  CHECK_EQ(musaMemcpyPeer(there.data, 7, here.data, 0, kBytes), musaErrorInvalidDevice);
  CHECK_EQ(musaMemcpyPeer(there.data, 1, here.data, 0, kBytes), musaSuccess);
  (void)musaGetLastError();
}

TEST(memset) {
  Buffer device(kBytes);
  CHECK_EQ(musaMemset(device.data, 0x5a, kBytes), musaSuccess);
  CHECK_EQ(musaMemsetAsync(device.data, 0, 10, nullptr), musaSuccess);
  std::vector<unsigned char> back(kBytes);
  CHECK_EQ(musaMemcpy(back.data(), device.data, kBytes, musaMemcpyDeviceToHost), musaSuccess);
  CHECK(back[0] == 0 && back[9] == 0 && back[10] == 0x5a && back[kBytes - 1] == 0x5a);
  char local[8];
  CHECK_EQ(musaMemset(local, 0, sizeof(local)), musaErrorInvalidValue);
  (void)musaGetLastError();
}
