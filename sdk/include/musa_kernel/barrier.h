// Barriers and fences.
#pragma once

#include <atomic>
#include <source_location>

#include "engine.h"

// Every thread of the block has to come to the same barrier; where some return, or wait elsewhere,
// the kernel ends with a report and the device with musaErrorLaunchFailure.
inline void __syncthreads(std::source_location where = std::source_location::current()) {
  ::musa::host::block_barrier(::musa::host::Vote::none, false, where);
}
// The light form of mp_31; kernels choose it by macro.
inline void __syncthreads_lm(std::source_location where = std::source_location::current()) {
  ::musa::host::block_barrier(::musa::host::Vote::none, false, where);
}
inline int __syncthreads_count(int predicate,
                               std::source_location where = std::source_location::current()) {
  return ::musa::host::block_barrier(::musa::host::Vote::count, predicate != 0, where);
}
inline int __syncthreads_and(int predicate,
                             std::source_location where = std::source_location::current()) {
  return ::musa::host::block_barrier(::musa::host::Vote::conjunction, predicate != 0, where);
}
inline int __syncthreads_or(int predicate,
                            std::source_location where = std::source_location::current()) {
  return ::musa::host::block_barrier(::musa::host::Vote::disjunction, predicate != 0, where);
}

// In a loop that waits for a flag these give other threads their turn, as atomic functions do.
inline void __threadfence() {
  ::musa::host::count_atomic();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void __threadfence_block() {
  ::musa::host::count_atomic();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void __threadfence_system() {
  ::musa::host::count_atomic();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
