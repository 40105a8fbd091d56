// thrust on the `musa` system: algorithms in a stream's order, vectors in device memory.
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

#include "kernel_testing.h"

namespace {

std::vector<int> some_ints(int n) {
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<int>((i * 2654435761u) >> 22);
  return values;
}

__global__ void add_one(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
}

TEST(algorithms_on_raw_device_pointers_follow_their_stream) {
  musaStream_t stream;
  CHECK_EQ(musaStreamCreate(&stream), musaSuccess);
  std::vector<int> values = some_ints(5000);
  const OnDevice<int> data(values);
  auto policy = thrust::musa::par.on(stream);
  thrust::device_ptr<int> first(data.get());
  add_one<<<20, 256, 0, stream>>>(data.get(), 5000);
  thrust::sort(policy, first, first + 5000);
  add_one<<<20, 256, 0, stream>>>(data.get(), 5000);
  const int total = thrust::reduce(policy, data.get(), data.get() + 5000, 0, thrust::plus<int>());
  std::sort(values.begin(), values.end());
  for (int& value : values) value += 2;
  CHECK_EQ(total, std::accumulate(values.begin(), values.end(), 0));
  CHECK(data.values() == values);
  CHECK_EQ(musaStreamDestroy(stream), musaSuccess);
}

struct Allocator {
  using value_type = char;
  char* allocate(std::ptrdiff_t) { return nullptr; }
  void deallocate(char*, size_t) {}
};

TEST(the_policy_with_an_allocator_as_torch_writes_it) {
  const std::vector<int> keys = some_ints(3000);
  std::vector<int> order(3000);
  std::iota(order.begin(), order.end(), 0);
  const OnDevice<int> k(keys);
  const OnDevice<int64_t> index(3000);
  Allocator allocator;
  auto policy = thrust::musa::par(allocator).on(nullptr);
  thrust::sequence(policy, index.get(), index.get() + 3000);
  thrust::stable_sort_by_key(policy, k.get(), k.get() + 3000, index.get());
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  const std::vector<int64_t> got = index.values();
  CHECK(std::equal(order.begin(), order.end(), got.begin()));
  // What embedding's backward does next: the distinct keys and where each begins.
  const OnDevice<int> unique(3000);
  const OnDevice<int64_t> begins(3000);
  const auto counting = thrust::make_counting_iterator<int64_t>(0);
  const auto ends = thrust::unique_by_key_copy(policy, k.get(), k.get() + 3000, counting,
                                               unique.get(), begins.get());
  std::vector<int> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  const auto distinct = std::unique(sorted.begin(), sorted.end()) - sorted.begin();
  CHECK_EQ(ends.first - unique.get(), distinct);
  CHECK_EQ(begins.values()[0], 0);
}

TEST(device_vectors_live_in_device_memory) {
  const std::vector<int> values = some_ints(1000);
  thrust::device_vector<int> vector(values.begin(), values.end());
  musaPointerAttributes attributes;
  CHECK_EQ(musaPointerGetAttributes(&attributes, thrust::raw_pointer_cast(vector.data())),
           musaSuccess);
  CHECK_EQ(attributes.type, musaMemoryTypeDevice);
  CHECK_EQ(static_cast<int>(vector[17]), values[17]);
  vector[17] = 5;
  vector.push_back(-1);
  CHECK_EQ(static_cast<int>(vector.back()), -1);
  add_one<<<4, 256>>>(thrust::raw_pointer_cast(vector.data()), 1001);
  thrust::host_vector<int> back = vector;
  CHECK_EQ(back[17], 6);
  CHECK_EQ(back[1000], 0);
  std::vector<int> copied(1001);
  thrust::copy(vector.begin(), vector.end(), copied.begin());
  CHECK(std::equal(copied.begin(), copied.end(), back.begin()));
  thrust::device_vector<int> other(1001);
  thrust::transform(vector.begin(), vector.end(), other.begin(), thrust::negate<int>());
  CHECK_EQ(static_cast<int>(other[17]), -6);
  CHECK_EQ(thrust::reduce(other.begin(), other.end()), -std::accumulate(copied.begin(), copied.end(), 0));
}

TEST(scans_bounds_and_extrema) {
  const std::vector<int> values = some_ints(777);
  const OnDevice<int> in(values);
  const OnDevice<int> out(777);
  thrust::inclusive_scan(thrust::musa::par, in.get(), in.get() + 777, out.get());
  std::vector<int> expected(777);
  std::inclusive_scan(values.begin(), values.end(), expected.begin());
  CHECK(out.values() == expected);
  thrust::exclusive_scan(thrust::device, in.get(), in.get() + 777, out.get(), 5);
  std::exclusive_scan(values.begin(), values.end(), expected.begin(), 5);
  CHECK(out.values() == expected);
  const auto most = thrust::max_element(thrust::musa::par, in.get(), in.get() + 777);
  CHECK_EQ(most - in.get(), std::max_element(values.begin(), values.end()) - values.begin());
  const auto at = thrust::lower_bound(thrust::musa::par, out.get(), out.get() + 777, 2000);
  CHECK_EQ(at - out.get(), std::lower_bound(expected.begin(), expected.end(), 2000) - expected.begin());
  const auto squares = thrust::make_transform_iterator(thrust::make_counting_iterator(0),
                                                       [] __device__(int i) { return i * i; });
  CHECK_EQ(thrust::reduce(thrust::musa::par, squares, squares + 10), 285);
  const int odd = thrust::count_if(thrust::musa::par, in.get(), in.get() + 777,
                                   [] __device__(int v) { return v % 2 == 1; });
  CHECK_EQ(odd, std::count_if(values.begin(), values.end(), [](int v) { return v % 2 == 1; }));
}

FAULT_TEST(after_a_sticky_error_no_algorithm_runs) {
  const OnDevice<int> in(some_ints(100));
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  std::string refusal;
  try {
    (void)thrust::reduce(thrust::musa::par, in.get(), in.get() + 100);
  } catch (const std::runtime_error& error) {
    refusal = error.what();
  }
  CHECK_CONTAINS(refusal, "thrust: the device does not run algorithms: ");
  CHECK_CONTAINS(refusal, musaGetErrorString(musaErrorIllegalAddress));
}

}  // namespace
