// Every algorithm under the `musa` policies: the sequential backend's, run as device work.
#pragma once

#include <thrust/detail/config.h>
#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/system/musa/detail/policy.h>

#include <new>

#include "musa_runtime_api.h"

THRUST_NAMESPACE_BEGIN
namespace system::musa::detail {

template <typename T>
concept NotAPolicy = !requires { typename std::remove_cvref_t<T>::tag_type; };

// The name inside the lambda is looked up where the algorithm is used, by the sequential policy's
// namespaces.
#define MUSA_THRUST_ALGORITHM(NAME)                                         \
  template <typename Derived, NotAPolicy First, typename... Rest>           \
  auto NAME(execution_policy<Derived>& policy, First first, Rest... rest) { \
    return run(policy, [&] {                                                \
      thrust::system::cpp::detail::tag sequential;                          \
      return NAME(sequential, first, rest...);                              \
    });                                                                     \
  }

MUSA_THRUST_ALGORITHM(adjacent_difference)
MUSA_THRUST_ALGORITHM(all_of)
MUSA_THRUST_ALGORITHM(any_of)
MUSA_THRUST_ALGORITHM(binary_search)
MUSA_THRUST_ALGORITHM(copy)
MUSA_THRUST_ALGORITHM(copy_if)
MUSA_THRUST_ALGORITHM(copy_n)
MUSA_THRUST_ALGORITHM(count)
MUSA_THRUST_ALGORITHM(count_if)
MUSA_THRUST_ALGORITHM(equal)
MUSA_THRUST_ALGORITHM(equal_range)
MUSA_THRUST_ALGORITHM(exclusive_scan)
MUSA_THRUST_ALGORITHM(exclusive_scan_by_key)
MUSA_THRUST_ALGORITHM(fill)
MUSA_THRUST_ALGORITHM(fill_n)
MUSA_THRUST_ALGORITHM(find)
MUSA_THRUST_ALGORITHM(find_if)
MUSA_THRUST_ALGORITHM(find_if_not)
MUSA_THRUST_ALGORITHM(for_each)
MUSA_THRUST_ALGORITHM(for_each_n)
MUSA_THRUST_ALGORITHM(gather)
MUSA_THRUST_ALGORITHM(gather_if)
MUSA_THRUST_ALGORITHM(generate)
MUSA_THRUST_ALGORITHM(generate_n)
MUSA_THRUST_ALGORITHM(inclusive_scan)
MUSA_THRUST_ALGORITHM(inclusive_scan_by_key)
MUSA_THRUST_ALGORITHM(inner_product)
MUSA_THRUST_ALGORITHM(is_partitioned)
MUSA_THRUST_ALGORITHM(is_sorted)
MUSA_THRUST_ALGORITHM(is_sorted_until)
MUSA_THRUST_ALGORITHM(lower_bound)
MUSA_THRUST_ALGORITHM(max_element)
MUSA_THRUST_ALGORITHM(merge)
MUSA_THRUST_ALGORITHM(merge_by_key)
MUSA_THRUST_ALGORITHM(min_element)
MUSA_THRUST_ALGORITHM(minmax_element)
MUSA_THRUST_ALGORITHM(mismatch)
MUSA_THRUST_ALGORITHM(none_of)
MUSA_THRUST_ALGORITHM(partition)
MUSA_THRUST_ALGORITHM(partition_copy)
MUSA_THRUST_ALGORITHM(partition_point)
MUSA_THRUST_ALGORITHM(reduce)
MUSA_THRUST_ALGORITHM(reduce_by_key)
MUSA_THRUST_ALGORITHM(remove)
MUSA_THRUST_ALGORITHM(remove_copy)
MUSA_THRUST_ALGORITHM(remove_copy_if)
MUSA_THRUST_ALGORITHM(remove_if)
MUSA_THRUST_ALGORITHM(replace)
MUSA_THRUST_ALGORITHM(replace_copy)
MUSA_THRUST_ALGORITHM(replace_copy_if)
MUSA_THRUST_ALGORITHM(replace_if)
MUSA_THRUST_ALGORITHM(reverse)
MUSA_THRUST_ALGORITHM(reverse_copy)
MUSA_THRUST_ALGORITHM(scatter)
MUSA_THRUST_ALGORITHM(scatter_if)
MUSA_THRUST_ALGORITHM(sequence)
MUSA_THRUST_ALGORITHM(set_difference)
MUSA_THRUST_ALGORITHM(set_difference_by_key)
MUSA_THRUST_ALGORITHM(set_intersection)
MUSA_THRUST_ALGORITHM(set_intersection_by_key)
MUSA_THRUST_ALGORITHM(set_symmetric_difference)
MUSA_THRUST_ALGORITHM(set_symmetric_difference_by_key)
MUSA_THRUST_ALGORITHM(set_union)
MUSA_THRUST_ALGORITHM(set_union_by_key)
MUSA_THRUST_ALGORITHM(shuffle)
MUSA_THRUST_ALGORITHM(shuffle_copy)
MUSA_THRUST_ALGORITHM(sort)
MUSA_THRUST_ALGORITHM(sort_by_key)
MUSA_THRUST_ALGORITHM(stable_partition)
MUSA_THRUST_ALGORITHM(stable_partition_copy)
MUSA_THRUST_ALGORITHM(stable_sort)
MUSA_THRUST_ALGORITHM(stable_sort_by_key)
MUSA_THRUST_ALGORITHM(swap_ranges)
MUSA_THRUST_ALGORITHM(tabulate)
MUSA_THRUST_ALGORITHM(transform)
MUSA_THRUST_ALGORITHM(transform_exclusive_scan)
MUSA_THRUST_ALGORITHM(transform_if)
MUSA_THRUST_ALGORITHM(transform_inclusive_scan)
MUSA_THRUST_ALGORITHM(transform_reduce)
MUSA_THRUST_ALGORITHM(uninitialized_copy)
MUSA_THRUST_ALGORITHM(uninitialized_copy_n)
MUSA_THRUST_ALGORITHM(uninitialized_fill)
MUSA_THRUST_ALGORITHM(uninitialized_fill_n)
MUSA_THRUST_ALGORITHM(unique)
MUSA_THRUST_ALGORITHM(unique_by_key)
MUSA_THRUST_ALGORITHM(unique_by_key_copy)
MUSA_THRUST_ALGORITHM(unique_copy)
MUSA_THRUST_ALGORITHM(unique_count)
MUSA_THRUST_ALGORITHM(upper_bound)
#undef MUSA_THRUST_ALGORITHM

// ---- single elements: what `*device_pointer` on the host means -------------------------------

template <typename Derived, typename Pointer>
auto get_value(execution_policy<Derived>& policy, Pointer pointer) {
  using Value = std::remove_cvref_t<decltype(*thrust::raw_pointer_cast(pointer))>;
  return run(policy, [&]() -> Value { return *thrust::raw_pointer_cast(pointer); });
}

template <typename Derived, typename To, typename From>
void assign_value(execution_policy<Derived>& policy, To to, From from) {
  run(policy, [&] { *thrust::raw_pointer_cast(to) = *thrust::raw_pointer_cast(from); });
}

template <typename Derived, typename A, typename B>
void iter_swap(execution_policy<Derived>& policy, A a, B b) {
  run(policy, [&] { std::swap(*thrust::raw_pointer_cast(a), *thrust::raw_pointer_cast(b)); });
}

// ---- memory
// --------------------------------------------------------------------------------------

template <typename Derived>
void* malloc(execution_policy<Derived>&, std::size_t bytes) {
  void* memory = nullptr;
  if (musaMalloc(&memory, bytes) != musaSuccess) {
    (void)musaGetLastError();
    throw std::bad_alloc();
  }
  return memory;
}

template <typename Derived, typename Pointer>
void free(execution_policy<Derived>&, Pointer memory) {
  (void)musaFree(thrust::raw_pointer_cast(memory));
}

}  // namespace system::musa::detail
THRUST_NAMESPACE_END
