// libmusart: what it knows of kernels.
#include <climits>

#include "runtime_support.h"

namespace {

// Stand-ins for __global__ functions: addresses to register.
void plain_kernel() {}
void bounded_kernel() {}
void unknown_kernel() {}

int launched_with = 0;

void register_kernels() {
  musa::host::register_kernel(
      reinterpret_cast<const void*>(&plain_kernel),
      {.name = "plain_kernel", .launch = [](dim3, dim3, void** arguments, size_t, musaStream_t s) {
         const int value = *static_cast<int*>(arguments[0]);
         musa::host::enqueue(s, [value] { launched_with = value; });
       }});
  musa::host::register_kernel(
      reinterpret_cast<const void*>(&bounded_kernel),
      {.name = "bounded_kernel", .static_shared = 16 << 10, .max_threads_per_block = 256});
}

int occupancy(void (*kernel)(), int block, size_t shared) {
  int blocks = -1;
  CHECK_OK(musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, shared));
  return blocks;
}

}  // namespace

TEST(attributes_of_a_kernel) {
  register_kernels();
  musaFuncAttributes attributes;
  CHECK_OK(musaFuncGetAttributes(&attributes, bounded_kernel));
  CHECK_EQ(attributes.maxThreadsPerBlock, 256);
  CHECK_EQ(attributes.sharedSizeBytes, size_t{16 << 10});
  CHECK_EQ(attributes.maxDynamicSharedSizeBytes, 32 << 10);
  CHECK_EQ(attributes.binaryVersion, 31);
  CHECK_EQ(musaFuncGetAttributes(&attributes, unknown_kernel), musaErrorInvalidDeviceFunction);
  (void)musaGetLastError();
}

TEST(dynamic_shared_memory_can_be_raised_within_the_limit) {
  register_kernels();
  CHECK_OK(musaFuncSetAttribute(bounded_kernel, musaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  CHECK_EQ(musa::host::max_dynamic_shared(reinterpret_cast<const void*>(&bounded_kernel)),
           size_t{1024});
  for (int bytes : {-1, (32 << 10) + 1, INT_MAX}) {
    CHECK_EQ(
        musaFuncSetAttribute(bounded_kernel, musaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        musaErrorInvalidValue);
  }
  CHECK_EQ(musaFuncSetAttribute(bounded_kernel, static_cast<musaFuncAttribute>(99), 1),
           musaErrorInvalidValue);
  CHECK_OK(
      musaFuncSetAttribute(bounded_kernel, musaFuncAttributeMaxDynamicSharedMemorySize, 32 << 10));
  (void)musaGetLastError();
}

TEST(occupancy_follows_the_scarcest_resource) {
  register_kernels();
  CHECK_EQ(occupancy(plain_kernel, 1024, 0), 2);        // threads: 2048
  CHECK_EQ(occupancy(plain_kernel, 32, 0), 16);         // blocks: 16
  CHECK_EQ(occupancy(plain_kernel, 33, 0), 16);         // two warps
  CHECK_EQ(occupancy(plain_kernel, 128, 40 << 10), 2);  // shared memory: 96 KiB
  CHECK_EQ(occupancy(plain_kernel, 128, 49 << 10), 0);  // more than a block may have
  CHECK_EQ(occupancy(bounded_kernel, 257, 0), 0);       // more than it was compiled for
  int blocks = -1;
  CHECK_EQ(musaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain_kernel, 0, 0),
           musaErrorInvalidValue);
  (void)musaGetLastError();
}

TEST(a_kernel_is_launched_by_its_address) {
  register_kernels();
  int value = 5;
  void* arguments[] = {&value};
  CHECK_OK(musaLaunchKernel(plain_kernel, dim3(1), dim3(32), arguments));
  CHECK_OK(musaDeviceSynchronize());
  CHECK_EQ(launched_with, 5);
  CHECK_EQ(musaLaunchKernel(plain_kernel, dim3(0), dim3(32), arguments),
           musaErrorInvalidConfiguration);
  CHECK_EQ(musaLaunchKernel(plain_kernel, dim3(1), dim3(1025), arguments),
           musaErrorInvalidConfiguration);
  CHECK_EQ(musaLaunchKernel(unknown_kernel, dim3(1), dim3(1), arguments),
           musaErrorInvalidDeviceFunction);
  CHECK_EQ(musaLaunchKernel(bounded_kernel, dim3(1), dim3(1), arguments),
           musaErrorInvalidDeviceFunction);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidDeviceFunction);
}
