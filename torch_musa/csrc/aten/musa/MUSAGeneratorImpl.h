#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "torch_musa/csrc/aten/musa/PhiloxState.h"

namespace at::musa {

/// Random stream of one device: Philox 4x32-10, counter-based, so its whole state is a seed and an
/// offset.
class MUSAGeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit MUSAGeneratorImpl(DeviceIndex device_index = -1);

  static DeviceType device_type() { return DeviceType::PrivateUse1; }

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  /// Reserves `increment` draws for every thread of a launch and returns where they begin. Hold
  /// `mutex_`. The increment is rounded up to a multiple of four, the number of words one Philox
  /// round yields. While the current stream is captured it is the graph that counts the draws, and
  /// the generator stays where it is until a replay.
  PhiloxState philox_musa_state(uint64_t increment);

  /// The same for a replay, which is no part of any capture.
  PhiloxState reserve(uint64_t increment);

 private:
  MUSAGeneratorImpl* clone_impl() const override;

  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t philox_offset_per_thread_ = 0;
};

namespace detail {

/// The generator that ops use when they are given none (-1: of the current device).
const Generator& getDefaultMUSAGenerator(DeviceIndex device_index = -1);

/// A fresh generator, seeded like the default one of a new process.
Generator createMUSAGenerator(DeviceIndex device_index = -1);

}  // namespace detail
}  // namespace at::musa
