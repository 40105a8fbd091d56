// Flash attention by the kernel that PyTorch ships for CUDA. Its dropout asks CUDA's default
// generator and nobody else, and its gradient a tensor of seed and offset: both are given what the
// caller said. (Facts: ATen/native/transformers/cuda/flash_attn/flash_api.cpp.)
#include "FlashKernel.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <cuda_runtime_api.h>

#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "Results.h"

namespace musa::dnn::internal::target {
namespace {

constexpr int64_t kWidthStep = 8;  // elements: 16 bytes, which the kernel loads at once
constexpr int64_t kMostWidth = 256;
constexpr uintptr_t kAlignment = 16;

// A release whose generators can be told where a capture's seed and offset are.
template <class State>
concept TakesAddresses = requires(State& s) {
  s.capturing_;
  s.seed_extragraph_;
  s.offset_extragraph_;
};

bool in_memory(const Word& word) { return word.device.defined(); }

bool takes_draws(const Flash& f) {
  if (!f.seeded) return !f.attention.kept.defined();
  if (in_memory(f.seed) != in_memory(f.offset)) return false;
  return TakesAddresses<at::CUDAGeneratorState> || !in_memory(f.seed);
}

bool is_ampere(const at::Device& device) {
  int major = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index()));
  return major >= 8;
}

// Rows of 16 bytes that begin at multiples of them.
at::Tensor aligned(const at::Tensor& t) {
  bool fits = reinterpret_cast<uintptr_t>(t.const_data_ptr()) % kAlignment == 0;
  for (int64_t d = 0; d + 1 < t.dim(); ++d) fits = fits && t.stride(d) % kWidthStep == 0;
  return fits ? t : t.clone(at::MemoryFormat::Contiguous);
}

// The layout that the gradient's kernel reads these two in: (N, L, H, E) without gaps.
at::Tensor in_order(const at::Tensor& t) { return t.transpose(1, 2).contiguous().transpose(1, 2); }

uint64_t read(const Word& word) {
  return in_memory(word) ? static_cast<uint64_t>(word.device.item<int64_t>()) : 0;
}

template <class State>
void set_draws(State& state, const Flash& f) {
  const bool captured =
      c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
  if (in_memory(f.seed) && captured) {
    if constexpr (TakesAddresses<State>) {
      state.capturing_ = true;
      state.seed_extragraph_ = f.seed.device;
      state.offset_extragraph_ = f.offset.device;
      state.offset_intragraph_ = f.offset.value;
    }
    return;
  }
  state.seed_ = in_memory(f.seed) ? read(f.seed) : f.seed.value;
  state.philox_offset_per_thread_ = f.offset.value + read(f.offset);
}

// While it lives, CUDA's default generator stands where the call's seed and offset say.
class Draws {
 public:
  explicit Draws(const Flash& f)
      : turn_(mutex()),
        generator_(at::cuda::detail::getDefaultCUDAGenerator(f.attention.q.device().index())) {
    auto state = c10::make_intrusive<at::CUDAGeneratorState>();
    set_draws(*state, f);
    before_ = generator_.unsafeGetGeneratorImpl()->graphsafe_get_state();
    swap(c10::make_intrusive<at::CUDAGeneratorImpl>(generator_.device().index(), std::move(state)));
  }
  ~Draws() { swap(before_); }
  Draws(const Draws&) = delete;
  Draws& operator=(const Draws&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one_at_a_time;
    return one_at_a_time;
  }

  void swap(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
    const std::lock_guard lock(generator_.mutex());
    generator_.unsafeGetGeneratorImpl()->graphsafe_set_state(state);
  }

  std::lock_guard<std::mutex> turn_;
  at::Generator generator_;
  c10::intrusive_ptr<c10::GeneratorImpl> before_;
};

// What the forward kernel leaves for its gradient. Filled by kernels: a copy from the host would
// wait for the stream.
at::Tensor draws_of(const Flash& f) {
  const at::Tensor state = at::empty({2}, f.attention.q.options().dtype(at::kLong));
  if (f.seeded) {
    const at::Tensor seed = state.select(0, 0), offset = state.select(0, 1);
    if (in_memory(f.seed)) {
      seed.copy_(f.seed.device.select(0, 0));
      offset.copy_(f.offset.device.select(0, 0));
      if (f.offset.value != 0) offset.add_(static_cast<int64_t>(f.offset.value));
    } else {
      seed.fill_(static_cast<int64_t>(f.seed.value));
      offset.fill_(static_cast<int64_t>(f.offset.value));
    }
  }
  return state.view(at::kUInt64);
}

}  // namespace

bool has_flash_kernel(const Flash& f) {
  const at::Tensor& q = f.attention.q;
  const int64_t width = q.size(3);
  return q.is_cuda() && (q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16) &&
         f.attention.v.size(3) == width && width % kWidthStep == 0 && width <= kMostWidth &&
         !f.mask.defined() && takes_draws(f) && is_ampere(q.device());
}

void flash_kernel(const Flash& f, const at::Tensor& out, const at::Tensor& lse) {
  const Attention& a = f.attention;
  const at::Tensor q = aligned(a.q), k = aligned(a.k), v = aligned(a.v);
  std::optional<Draws> draws;
  if (f.seeded) draws.emplace(f);
  produce({out, lse}, {q, k, v}, [&] {
    auto results = at::_scaled_dot_product_flash_attention(
        q, k, v, f.seeded ? a.dropout_p : 0.0, f.causal, /*return_debug_mask=*/false, a.scale);
    return std::tuple(std::move(std::get<0>(results)), std::move(std::get<1>(results)));
  });
}

void flash_kernel_backward(const Flash& f, const at::Tensor& out, const at::Tensor& lse,
                           const at::Tensor& grad_out, const AttentionGradients& grads) {
  const Attention& a = f.attention;
  const at::Tensor q = aligned(a.q), k = aligned(a.k), v = aligned(a.v);
  // As large as the gradients: copies that the operator makes would take the memory lent for those.
  const at::Tensor o = in_order(out), go = in_order(grad_out);
  const at::Tensor none, state = draws_of(f), unused = at::empty({}, a.q.options());
  produce({grads.q, grads.k, grads.v}, {q, k, v, o, go, lse}, [&] {
    return at::_scaled_dot_product_flash_attention_backward(
        go, q, k, v, o, lse, /*cum_seq_q=*/none, /*cum_seq_k=*/none, a.q.size(2), a.k.size(2),
        f.seeded ? a.dropout_p : 0.0, f.causal, state, unused, a.scale);
  });
}

}  // namespace musa::dnn::internal::target
