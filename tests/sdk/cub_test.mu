// cub's device-wide calls and block collectives, each against the C++ library.
#include <cub/cub.muh>
#include <musa_fp16.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernel_testing.h"

namespace {

std::vector<int> some_ints(int n, int range = 1000) {
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) {
    values[i] = static_cast<int>((i * 2654435761u) >> 8) % range - range / 2;
  }
  return values;
}

// Both calls of the protocol: size first, then work in memory of that size.
template <typename Call>
void in_two_calls(Call call) {
  size_t bytes = 0;
  CHECK_EQ(call(nullptr, bytes), musaSuccess);
  CHECK(bytes > 0);
  const OnDevice<char> storage(bytes);
  CHECK_EQ(call(storage.get(), bytes), musaSuccess);
  CHECK_EQ(musaDeviceSynchronize(), musaSuccess);
}

TEST(scans) {
  const std::vector<int> values = some_ints(5000);
  const OnDevice<int> in(values);
  const OnDevice<int> out(5000);
  std::vector<int> expected(5000);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(temp, bytes, in.get(), out.get(), 5000);
  });
  std::inclusive_scan(values.begin(), values.end(), expected.begin());
  CHECK(out.values() == expected);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(temp, bytes, in.get(), out.get(), 5000);
  });
  std::exclusive_scan(values.begin(), values.end(), expected.begin(), 0);
  CHECK(out.values() == expected);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(temp, bytes, in.get(), out.get(), cub::Max(), -7, 5000);
  });
  std::exclusive_scan(values.begin(), values.end(), expected.begin(), -7,
                      [](int a, int b) { return std::max(a, b); });
  CHECK(out.values() == expected);
  // In place, over a computed input.
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(temp, bytes, cub::CountingInputIterator<int>(1),
                                          out.get(), cub::Sum(), 100);
  });
  CHECK_EQ(out.values()[99], 5050);
}

TEST(reductions) {
  const std::vector<int> values = some_ints(3000);
  const OnDevice<int> in(values);
  const OnDevice<int> out(1);
  const OnDevice<cub::KeyValuePair<int, int>> arg(1);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceReduce::Sum(temp, bytes, in.get(), out.get(), 3000);
  });
  CHECK_EQ(out.value(), std::accumulate(values.begin(), values.end(), 0));
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceReduce::Max(temp, bytes, in.get(), out.get(), 3000);
  });
  CHECK_EQ(out.value(), *std::max_element(values.begin(), values.end()));
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceReduce::ArgMin(temp, bytes, in.get(), arg.get(), 3000);
  });
  CHECK_EQ(arg.value().key, std::min_element(values.begin(), values.end()) - values.begin());
  const auto square = [] __device__(int v) { return v * v; };
  const cub::TransformInputIterator<int, decltype(square), int*> squares(in.get(), square);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceReduce::Reduce(temp, bytes, squares, out.get(), 1000, cub::Sum(), 5);
  });
  CHECK_EQ(out.value(), std::inner_product(values.begin(), values.begin() + 1000, values.begin(), 5));
  // Nothing to add up leaves the start.
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceReduce::Sum(temp, bytes, in.get(), out.get(), 0);
  });
  CHECK_EQ(out.value(), 0);
}

TEST(segmented_reductions) {
  const std::vector<float> values = some_floats(100, 1);
  const std::vector<int> offsets = {0, 10, 10, 55, 100};
  const OnDevice<float> in(values);
  const OnDevice<int> ends(offsets);
  const OnDevice<float> out(4);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(temp, bytes, in.get(), out.get(), 4, ends.get(),
                                           ends.get() + 1);
  });
  for (int s = 0; s < 4; ++s) {
    CHECK_NEAR(out.values()[s],
               std::accumulate(values.begin() + offsets[s], values.begin() + offsets[s + 1], 0.0),
               1e-5);
  }
}

template <typename Key>
void sorts_pairs(std::vector<Key> keys, bool descending) {
  const int n = static_cast<int>(keys.size());
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const OnDevice<Key> in(keys);
  const OnDevice<Key> out(n);
  const OnDevice<int64_t> values(order);
  const OnDevice<int64_t> moved(n);
  in_two_calls([&](void* temp, size_t& bytes) {
    return descending ? cub::DeviceRadixSort::SortPairsDescending(temp, bytes, in.get(), out.get(),
                                                                  values.get(), moved.get(), n)
                      : cub::DeviceRadixSort::SortPairs(temp, bytes, in.get(), out.get(),
                                                        values.get(), moved.get(), n);
  });
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? keys[b] < keys[a] : keys[a] < keys[b];
  });
  CHECK(moved.values() == order);
  const std::vector<Key> got = out.values();
  for (int i = 0; i < n; ++i) CHECK(got[i] == keys[order[i]]);
  CHECK(in.values() == keys);  // the input stays
}

TEST(radix_sort_of_pairs_is_stable_in_both_directions) {
  for (const bool descending : {false, true}) {
    sorts_pairs<int>(some_ints(2000, 100), descending);
    std::vector<float> reals = some_floats(500, 2);
    reals[3] = -INFINITY;
    reals[4] = INFINITY;
    reals[5] = 0.0f;
    reals[6] = -0.0f;  // equal to the other zero: their order stays
    reals[7] = 0.0f;
    sorts_pairs<float>(reals, descending);
    sorts_pairs<double>(std::vector<double>(reals.begin(), reals.end()), descending);
    std::vector<__half> halves;
    for (const float real : reals) halves.push_back(__half(real));
    sorts_pairs<__half>(halves, descending);
    std::vector<int64_t> wide;
    for (const int value : some_ints(300)) wide.push_back(int64_t{value} << 33);
    sorts_pairs<int64_t>(wide, descending);
    std::vector<unsigned char> bytes;
    for (const int value : some_ints(300)) bytes.push_back(static_cast<unsigned char>(value));
    sorts_pairs<unsigned char>(bytes, descending);
  }
}

TEST(radix_sort_by_some_bits_and_through_double_buffers) {
  const std::vector<unsigned int> keys = {0x130, 0x221, 0x310, 0x020, 0x101};
  const OnDevice<unsigned int> a(keys);
  const OnDevice<unsigned int> b(5);
  cub::DoubleBuffer<unsigned int> buffers(a.get(), b.get());
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(temp, bytes, buffers, 5, 4, 8);
  });
  CHECK(buffers.Current() == b.get());
  const std::vector<unsigned int> expected = {0x101, 0x310, 0x221, 0x020, 0x130};
  CHECK(b.values() == expected);
}

TEST(segmented_radix_sort) {
  const std::vector<int> keys = some_ints(60);
  const std::vector<int> offsets = {0, 20, 20, 60};
  const OnDevice<int> in(keys);
  const OnDevice<int> out(60);
  const OnDevice<int> ends(offsets);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceSegmentedRadixSort::SortKeys(temp, bytes, in.get(), out.get(), 60, 3,
                                                   ends.get(), ends.get() + 1);
  });
  std::vector<int> expected = keys;
  std::sort(expected.begin(), expected.begin() + 20);
  std::sort(expected.begin() + 20, expected.end());
  CHECK(out.values() == expected);
}

TEST(selections_and_runs) {
  const std::vector<int> values = {1, 1, 2, 2, 2, 3, 1, 1};
  const std::vector<char> flags = {1, 0, 0, 1, 1, 0, 0, 1};
  const OnDevice<int> in(values);
  const OnDevice<char> flagged(flags);
  const OnDevice<int> out(8);
  const OnDevice<int> lengths(8);
  const OnDevice<int> count(1);
  const auto kept = [&] {
    std::vector<int> result = out.values();
    result.resize(count.value());
    return result;
  };
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceSelect::Flagged(temp, bytes, in.get(), flagged.get(), out.get(), count.get(), 8);
  });
  CHECK((kept() == std::vector<int>{1, 2, 2, 1}));
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceSelect::If(temp, bytes, in.get(), out.get(), count.get(), 8,
                                 [] __device__(int v) { return v > 1; });
  });
  CHECK((kept() == std::vector<int>{2, 2, 2, 3}));
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceSelect::Unique(temp, bytes, in.get(), out.get(), count.get(), 8);
  });
  CHECK((kept() == std::vector<int>{1, 2, 3, 1}));
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(temp, bytes, in.get(), out.get(), lengths.get(),
                                              count.get(), 8);
  });
  CHECK((kept() == std::vector<int>{1, 2, 3, 1}));
  CHECK_EQ(lengths.values()[1], 3);
}

TEST(histograms) {
  const std::vector<float> samples = {0.0f, 0.1f, 0.99f, 1.0f, 2.5f, -1.0f, 3.0f, 2.999f};
  const OnDevice<float> in(samples);
  const OnDevice<int> bins(3);
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(temp, bytes, in.get(), bins.get(), 4, 0.0f, 3.0f, 8);
  });
  CHECK((bins.values() == std::vector<int>{3, 1, 2}));
  const OnDevice<float> levels(std::vector<float>{-2.0f, 0.5f, 1.0f, 10.0f});
  in_two_calls([&](void* temp, size_t& bytes) {
    return cub::DeviceHistogram::HistogramRange(temp, bytes, in.get(), bins.get(), 4, levels.get(), 8);
  });
  CHECK((bins.values() == std::vector<int>{3, 1, 4}));
}

TEST(too_little_temporary_storage_is_an_invalid_value) {
  const OnDevice<int> data(10);
  size_t bytes = 0;
  CHECK_EQ(cub::DeviceRadixSort::SortKeys(nullptr, bytes, data.get(), data.get(), 10), musaSuccess);
  const OnDevice<char> storage(bytes);
  size_t less = bytes - 1;
  CHECK_EQ(cub::DeviceRadixSort::SortKeys(storage.get(), less, data.get(), data.get(), 10),
           musaErrorInvalidValue);
  std::vector<char> host(bytes);
  CHECK_EQ(cub::DeviceRadixSort::SortKeys(host.data(), bytes, data.get(), data.get(), 10),
           musaErrorInvalidValue);
  CHECK_EQ(cub::DeviceScan::InclusiveSum(nullptr, bytes, data.get(), data.get(), -1),
           musaErrorInvalidValue);
  CHECK_EQ(musaGetLastError(), musaErrorInvalidValue);
  CHECK_EQ(cub::DeviceRadixSort::SortKeys(storage.get(), bytes, data.get(), data.get(), 10),
           musaSuccess);
}

__global__ void collectives(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, 96>;
  using Scan = cub::BlockScan<int, 96>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
  } storage;
  const int value = in[threadIdx.x];
  const int sum = Reduce(storage.reduce).Sum(value);
  if (threadIdx.x == 0) out[0] = sum;
  __syncthreads();
  const int most = Reduce(storage.reduce).Reduce(value, cub::Max());
  if (threadIdx.x == 0) out[1] = most;
  __syncthreads();
  int before;
  int all;
  Scan(storage.scan).ExclusiveSum(value, before, all);
  out[2 + threadIdx.x] = before;
  if (threadIdx.x == 5) out[98] = all;
  typename cub::WarpReduce<int, 32>::TempStorage unused;
  const int of_warp = cub::WarpReduce<int, 32>(unused).Sum(value);
  if (threadIdx.x % 32 == 0) out[99 + threadIdx.x / 32] = of_warp;
}

PROFILE_TEST(block_and_warp_collectives) {
  const std::vector<int> values = some_ints(96);
  const OnDevice<int> in(values);
  const OnDevice<int> out(102);
  collectives<<<1, 96>>>(in.get(), out.get());
  const std::vector<int> got = out.values();
  const int sum = std::accumulate(values.begin(), values.end(), 0);
  CHECK_EQ(got[0], sum);
  CHECK_EQ(got[1], *std::max_element(values.begin(), values.end()));
  CHECK_EQ(got[98], sum);
  int before = 0;
  for (int i = 0; i < 96; ++i) {
    CHECK_EQ(got[2 + i], before);
    before += values[i];
  }
  for (int w = 0; w < 3; ++w) {
    CHECK_EQ(got[99 + w], std::accumulate(values.begin() + 32 * w, values.begin() + 32 * w + 32, 0));
  }
}

FAULT_TEST(after_a_sticky_error_no_algorithm_runs) {
  const OnDevice<int> in(some_ints(100));
  const OnDevice<int> out(100);
  size_t bytes = 0;
  CHECK_EQ(cub::DeviceScan::InclusiveSum(nullptr, bytes, in.get(), out.get(), 100), musaSuccess);
  const OnDevice<char> storage(bytes);
  musa::host::set_sticky_error(musaErrorIllegalAddress);
  CHECK_EQ(cub::DeviceScan::InclusiveSum(storage.get(), bytes, in.get(), out.get(), 100),
           musaErrorIllegalAddress);
}

}  // namespace
