#include "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h"

#include <ATen/Utils.h>
#include <ATen/core/TensorBase.h>
#include <ATen/EmptyTensor.h>

#include <cstring>
#include <memory>
#include <vector>

#include "torch_musa/csrc/aten/musa/MUSAGraph.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAStream.h"

namespace at::musa {
namespace {

// Byte layout of a state tensor: the one of torch.cuda's generators, so that tools that store
// states know its size.
constexpr size_t kSeedBytes = sizeof(uint64_t);
constexpr size_t kOffsetBytes = sizeof(int64_t);
constexpr size_t kStateBytes = kSeedBytes + kOffsetBytes;

constexpr uint64_t kWordsPerRound = 4;

uint64_t rounded(uint64_t increment) {
  return (increment + kWordsPerRound - 1) / kWordsPerRound * kWordsPerRound;
}

// Inside a capture the state is not known: replays will each have another one.
void require_no_capture(DeviceIndex device, const char* call) {
  TORCH_CHECK(
      !c10::musa::is_initialized(device) || !c10::musa::getCurrentMUSAStream(device).is_capturing(),
      "Cannot ", call,
      " a musa generator while the current stream is captured: do it before the capture or "
      "between replays");
}

}  // namespace

namespace detail {

Generator createMUSAGenerator(DeviceIndex device_index) {
  const DeviceIndex index = c10::musa::resolve_device_index(device_index);
  auto generator = make_generator<MUSAGeneratorImpl>(index);
  check_generator<MUSAGeneratorImpl>(generator)->set_current_seed(c10::default_rng_seed_val);
  return generator;
}

const Generator& getDefaultMUSAGenerator(DeviceIndex device_index) {
  // One per device, from the start seeded non-deterministically: a process that sets no seed gets
  // fresh numbers.
  static auto* generators = [] {
    auto* all = new std::vector<Generator>();
    for (DeviceIndex device = 0; device < c10::musa::device_count(); ++device) {
      all->push_back(make_generator<MUSAGeneratorImpl>(device));
      all->back().seed();
    }
    return all;
  }();
  return (*generators)[c10::musa::resolve_device_index(device_index)];
}

}  // namespace detail

MUSAGeneratorImpl::MUSAGeneratorImpl(DeviceIndex device_index)
    : c10::GeneratorImpl(Device(DeviceType::PrivateUse1, device_index),
                         DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void MUSAGeneratorImpl::set_current_seed(uint64_t seed) {
  if (seed != seed_ || philox_offset_per_thread_ != 0) {
    require_no_capture(device().index(), "seed");
  }
  seed_ = seed;
  philox_offset_per_thread_ = 0;
}

uint64_t MUSAGeneratorImpl::current_seed() const { return seed_; }

uint64_t MUSAGeneratorImpl::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom(/*is_cuda=*/true);
  set_current_seed(random);
  return random;
}

void MUSAGeneratorImpl::set_offset(uint64_t offset) {
  TORCH_CHECK(offset % kWordsPerRound == 0, "offset must be a multiple of 4, got ", offset);
  require_no_capture(device().index(), "set the offset of");
  philox_offset_per_thread_ = offset;
}

uint64_t MUSAGeneratorImpl::get_offset() const {
  require_no_capture(device().index(), "get the offset of");
  return philox_offset_per_thread_;
}

c10::intrusive_ptr<c10::TensorImpl> MUSAGeneratorImpl::get_state() const {
  require_no_capture(device().index(), "get the state of");
  auto state = at::detail::empty_cpu({static_cast<int64_t>(kStateBytes)}, ScalarType::Byte);
  auto* bytes = state.data_ptr<uint8_t>();
  const auto offset = static_cast<int64_t>(philox_offset_per_thread_);
  std::memcpy(bytes, &seed_, kSeedBytes);
  std::memcpy(bytes + kSeedBytes, &offset, kOffsetBytes);
  return state.getIntrusivePtr();
}

void MUSAGeneratorImpl::set_state(const c10::TensorImpl& new_state) {
  at::detail::check_rng_state(new_state);
  const auto size = static_cast<size_t>(new_state.numel());
  TORCH_CHECK(size == kStateBytes || size == kSeedBytes, "RNG state is wrong size");
  const auto* bytes = new_state.data_dtype_initialized<uint8_t>();
  uint64_t seed = 0;
  std::memcpy(&seed, bytes, kSeedBytes);
  int64_t offset = 0;  // a state of eight bytes is a seed alone
  if (size == kStateBytes) {
    std::memcpy(&offset, bytes + kSeedBytes, kOffsetBytes);
  }
  set_current_seed(seed);
  set_offset(static_cast<uint64_t>(offset));
}

PhiloxState MUSAGeneratorImpl::philox_musa_state(uint64_t increment) {
  if (const auto capture = c10::musa::getCurrentMUSAStream(device().index()).capture_id()) {
    return MUSAGraph::draw(capture, *this, rounded(increment));
  }
  return reserve(increment);
}

PhiloxState MUSAGeneratorImpl::reserve(uint64_t increment) {
  const PhiloxState state{seed_, philox_offset_per_thread_};
  philox_offset_per_thread_ += rounded(increment);
  return state;
}

MUSAGeneratorImpl* MUSAGeneratorImpl::clone_impl() const {
  auto* copy = new MUSAGeneratorImpl(device().index());
  copy->seed_ = seed_;
  copy->philox_offset_per_thread_ = philox_offset_per_thread_;
  return copy;
}

}  // namespace at::musa
