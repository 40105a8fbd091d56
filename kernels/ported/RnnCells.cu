// The elementwise halves of LSTM and GRU cells, forward and backward. The products of inputs and
// states with their weights are the caller's: what comes in is `gates` values for every element of
// the state, side by side in rows of gates * hidden.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch_musa/ops/_thnn_fused_gru_cell_backward_native.h>
#include <torch_musa/ops/_thnn_fused_gru_cell_native.h>
#include <torch_musa/ops/_thnn_fused_lstm_cell_backward_impl_native.h>
#include <torch_musa/ops/_thnn_fused_lstm_cell_native.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "kernels/ported/EachElement.cuh"

namespace at::musa {
namespace {

constexpr int64_t kLstmGates = 4;  // input, forget, cell, output
constexpr int64_t kGruGates = 3;   // reset, update, new
// What GRU's backward needs: reset, update, new, the old state, the new gate's hidden part.
constexpr int64_t kGruSaved = 5;

template <typename acc_t>
__host__ __device__ inline acc_t sigmoid(acc_t x) {
  return acc_t(1) / (acc_t(1) + std::exp(-x));
}

// One gate of one element: the sum of both products and their biases.
template <typename scalar_t, typename acc_t>
struct Gates {
  const scalar_t *input, *hidden, *input_bias, *hidden_bias;  // both biases, or none

  __host__ __device__ acc_t from_input(int64_t at, int64_t column) const {
    const acc_t bias = input_bias == nullptr ? acc_t(0) : static_cast<acc_t>(input_bias[column]);
    return static_cast<acc_t>(input[at]) + bias;
  }
  __host__ __device__ acc_t from_hidden(int64_t at, int64_t column) const {
    const acc_t bias = hidden_bias == nullptr ? acc_t(0) : static_cast<acc_t>(hidden_bias[column]);
    return static_cast<acc_t>(hidden[at]) + bias;
  }
  __host__ __device__ acc_t sum(int64_t at, int64_t column) const {
    return from_input(at, column) + from_hidden(at, column);
  }
};

// The operands of a cell, checked and dense.
struct Cell {
  Tensor input_gates, hidden_gates, state, input_bias, hidden_bias;
  int64_t hidden;

  template <typename scalar_t, typename acc_t>
  Gates<scalar_t, acc_t> gates() const {
    const auto data = [](const Tensor& t) {
      return t.defined() ? t.const_data_ptr<scalar_t>() : nullptr;
    };
    return {data(input_gates), data(hidden_gates), data(input_bias), data(hidden_bias)};
  }
};

Tensor dense(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

Cell check_cell(const char* op, int64_t gates, const Tensor& input_gates,
                const Tensor& hidden_gates, const Tensor& state,
                const std::optional<Tensor>& input_bias, const std::optional<Tensor>& hidden_bias) {
  const Tensor bias_i = input_bias.value_or(Tensor()), bias_h = hidden_bias.value_or(Tensor());
  TORCH_CHECK(state.dim() == 2, op, ": the state must have 2 dimensions, (batch, hidden), got ",
              state.sizes());
  const int64_t batch = state.size(0), hidden = state.size(1), width = gates * hidden;
  for (const Tensor& gate : {input_gates, hidden_gates}) {
    TORCH_CHECK(gate.dim() == 2 && gate.size(0) == batch && gate.size(1) == width, op,
                ": gates must have sizes ", IntArrayRef({batch, width}), " for a state of sizes ",
                state.sizes(), ", got ", gate.sizes());
  }
  TORCH_CHECK(bias_i.defined() == bias_h.defined(), op, ": needs both biases or none");
  for (const Tensor& bias : {bias_i, bias_h}) {
    TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.numel() == width), op,
                ": a bias must have ", width, " elements in one dimension, got ", bias.sizes());
  }
  for (const Tensor& other : {hidden_gates, state, bias_i, bias_h}) {
    TORCH_CHECK(!other.defined() || (other.scalar_type() == input_gates.scalar_type() &&
                                     other.device() == input_gates.device()),
                op, ": expected every tensor to be ", input_gates.scalar_type(), " on ",
                input_gates.device(), ", got ", other.scalar_type(), " on ", other.device());
  }
  return {dense(input_gates), dense(hidden_gates), dense(state),
          dense(bias_i),      dense(bias_h),       hidden};
}

// A gradient or saved tensor of a backward pass, checked and dense; an undefined one stays so.
Tensor check_saved(const char* op, const char* name, const Tensor& tensor, IntArrayRef sizes,
                   const Tensor& like) {
  TORCH_CHECK(!tensor.defined() || tensor.sizes() == sizes, op, ": expected ", name,
              " to have sizes ", sizes, ", got ", tensor.sizes());
  TORCH_CHECK(!tensor.defined() ||
                  (tensor.scalar_type() == like.scalar_type() && tensor.device() == like.device()),
              op, ": expected ", name, " to be ", like.scalar_type(), " on ", like.device(),
              ", got ", tensor.scalar_type(), " on ", tensor.device());
  return dense(tensor);
}

}  // namespace

// Returns the new hidden state, the new cell state, and the activated gates for the backward pass.
std::tuple<Tensor, Tensor, Tensor> ThnnFusedLstmCell(const Tensor& input_gates,
                                                     const Tensor& hidden_gates, const Tensor& cx,
                                                     const std::optional<Tensor>& input_bias,
                                                     const std::optional<Tensor>& hidden_bias) {
  const Cell cell = check_cell("_thnn_fused_lstm_cell", kLstmGates, input_gates, hidden_gates, cx,
                               input_bias, hidden_bias);
  const c10::cuda::OptionalCUDAGuard guard(device_of(cx));
  Tensor hy = at::empty_like(cell.state), cy = at::empty_like(cell.state);
  Tensor workspace = at::empty_like(cell.input_gates);
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, cx.scalar_type(), "_thnn_fused_lstm_cell", [&] {
    using acc_t = at::opmath_type<scalar_t>;
    const auto gates = cell.gates<scalar_t, acc_t>();
    const auto* old_cell = cell.state.const_data_ptr<scalar_t>();
    auto* new_hidden = hy.mutable_data_ptr<scalar_t>();
    auto* new_cell = cy.mutable_data_ptr<scalar_t>();
    auto* saved = workspace.mutable_data_ptr<scalar_t>();
    const int64_t hidden = cell.hidden;
    native::for_each_index(cx.device(), cx.numel(), [=] GPU_LAMBDA(int64_t i) {
      const int64_t column = i % hidden, row = (i / hidden) * kLstmGates * hidden;
      acc_t value[kLstmGates];
      for (int64_t gate = 0; gate < kLstmGates; ++gate) {
        const int64_t at = gate * hidden + column;
        const acc_t sum = gates.sum(row + at, at);
        value[gate] = gate == 2 ? std::tanh(sum) : sigmoid(sum);
        saved[row + at] = static_cast<scalar_t>(value[gate]);
      }
      const acc_t state = value[1] * static_cast<acc_t>(old_cell[i]) + value[0] * value[2];
      new_cell[i] = static_cast<scalar_t>(state);
      new_hidden[i] = static_cast<scalar_t>(value[3] * std::tanh(state));
    });
  });
  return {hy, cy, workspace};
}

// Returns the gradients of the gates, of the old cell state, and of the biases.
std::tuple<Tensor, Tensor, Tensor> ThnnFusedLstmCellBackwardImpl(
    const std::optional<Tensor>& grad_hy, const std::optional<Tensor>& grad_cy, const Tensor& cx,
    const Tensor& cy, const Tensor& workspace, bool has_bias) {
  constexpr const char* kOp = "_thnn_fused_lstm_cell_backward";
  const Tensor grad_h = grad_hy.value_or(Tensor()), grad_c = grad_cy.value_or(Tensor());
  if (!grad_h.defined() && !grad_c.defined()) {
    return {};
  }
  TORCH_CHECK(cx.dim() == 2, kOp, ": the state must have 2 dimensions, got ", cx.sizes());
  const int64_t batch = cx.size(0), hidden = cx.size(1);
  const Tensor grad_hidden = check_saved(kOp, "grad_hy", grad_h, cx.sizes(), cx);
  const Tensor grad_cell = check_saved(kOp, "grad_cy", grad_c, cx.sizes(), cx);
  const Tensor new_state = check_saved(kOp, "cy", cy, cx.sizes(), cx), old_state = dense(cx);
  const Tensor gates = check_saved(kOp, "workspace", workspace, {batch, kLstmGates * hidden}, cx);
  const c10::cuda::OptionalCUDAGuard guard(device_of(cx));
  Tensor grad_gates = at::empty_like(gates), grad_cx = at::empty_like(old_state);
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, cx.scalar_type(), kOp, [&] {
    using acc_t = at::opmath_type<scalar_t>;
    const auto data = [](const Tensor& t) {
      return t.defined() ? t.const_data_ptr<scalar_t>() : nullptr;
    };
    const auto *of_hidden = data(grad_hidden), *of_cell = data(grad_cell), *saved = data(gates),
               *old_cell = data(old_state), *new_cell = data(new_state);
    auto* to_gates = grad_gates.mutable_data_ptr<scalar_t>();
    auto* to_cell = grad_cx.mutable_data_ptr<scalar_t>();
    native::for_each_index(cx.device(), cx.numel(), [=] GPU_LAMBDA(int64_t i) {
      const int64_t first = (i / hidden) * kLstmGates * hidden + i % hidden;
      const auto gate = [&](int64_t n) { return static_cast<acc_t>(saved[first + n * hidden]); };
      const acc_t in = gate(0), forget = gate(1), candidate = gate(2), out = gate(3);
      const acc_t grad_h = of_hidden == nullptr ? acc_t(0) : static_cast<acc_t>(of_hidden[i]);
      const acc_t grad_c = of_cell == nullptr ? acc_t(0) : static_cast<acc_t>(of_cell[i]);
      const acc_t squashed = std::tanh(static_cast<acc_t>(new_cell[i]));
      const acc_t state = grad_h * out * (acc_t(1) - squashed * squashed) + grad_c;
      const acc_t grads[kLstmGates] = {
          state * candidate * in * (acc_t(1) - in),
          state * static_cast<acc_t>(old_cell[i]) * forget * (acc_t(1) - forget),
          state * in * (acc_t(1) - candidate * candidate),
          grad_h * squashed * out * (acc_t(1) - out)};
      for (int64_t n = 0; n < kLstmGates; ++n) {
        to_gates[first + n * hidden] = static_cast<scalar_t>(grads[n]);
      }
      to_cell[i] = static_cast<scalar_t>(state * forget);
    });
  });
  return {grad_gates, grad_cx, has_bias ? grad_gates.sum(0) : Tensor()};
}

// Returns the new hidden state and what the backward pass needs.
std::tuple<Tensor, Tensor> ThnnFusedGruCell(const Tensor& input_gates, const Tensor& hidden_gates,
                                            const Tensor& hx,
                                            const std::optional<Tensor>& input_bias,
                                            const std::optional<Tensor>& hidden_bias) {
  const Cell cell = check_cell("_thnn_fused_gru_cell", kGruGates, input_gates, hidden_gates, hx,
                               input_bias, hidden_bias);
  const c10::cuda::OptionalCUDAGuard guard(device_of(hx));
  Tensor hy = at::empty_like(cell.state);
  Tensor workspace = at::empty({hx.size(0), kGruSaved * cell.hidden}, cell.state.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, hx.scalar_type(), "_thnn_fused_gru_cell", [&] {
    using acc_t = at::opmath_type<scalar_t>;
    const auto gates = cell.gates<scalar_t, acc_t>();
    const auto* old_state = cell.state.const_data_ptr<scalar_t>();
    auto* new_state = hy.mutable_data_ptr<scalar_t>();
    auto* saved = workspace.mutable_data_ptr<scalar_t>();
    const int64_t hidden = cell.hidden;
    native::for_each_index(hx.device(), hx.numel(), [=] GPU_LAMBDA(int64_t i) {
      const int64_t column = i % hidden, batch = i / hidden;
      const int64_t row = batch * kGruGates * hidden;
      const acc_t reset = sigmoid(gates.sum(row + column, column));
      const acc_t update = sigmoid(gates.sum(row + hidden + column, hidden + column));
      const int64_t at = 2 * hidden + column;
      const acc_t from_hidden = gates.from_hidden(row + at, at);
      const acc_t candidate = std::tanh(gates.from_input(row + at, at) + reset * from_hidden);
      const acc_t state = static_cast<acc_t>(old_state[i]);
      new_state[i] = static_cast<scalar_t>(candidate + update * (state - candidate));
      const acc_t values[kGruSaved] = {reset, update, candidate, state, from_hidden};
      for (int64_t n = 0; n < kGruSaved; ++n) {
        saved[(batch * kGruSaved + n) * hidden + column] = static_cast<scalar_t>(values[n]);
      }
    });
  });
  return {hy, workspace};
}

// Returns the gradients of both kinds of gates, of the old state, and of both biases.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> ThnnFusedGruCellBackward(const Tensor& grad_hy,
                                                                            const Tensor& workspace,
                                                                            bool has_bias) {
  constexpr const char* kOp = "_thnn_fused_gru_cell_backward";
  TORCH_CHECK(grad_hy.dim() == 2, kOp, ": the gradient must have 2 dimensions, got ",
              grad_hy.sizes());
  const int64_t batch = grad_hy.size(0), hidden = grad_hy.size(1);
  const Tensor gates =
      check_saved(kOp, "workspace", workspace, {batch, kGruSaved * hidden}, grad_hy);
  const Tensor grad = dense(grad_hy);
  const c10::cuda::OptionalCUDAGuard guard(device_of(grad_hy));
  Tensor grad_input = at::empty({batch, kGruGates * hidden}, grad.options());
  Tensor grad_hidden = at::empty_like(grad_input), grad_hx = at::empty_like(grad);
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, grad.scalar_type(), kOp, [&] {
    using acc_t = at::opmath_type<scalar_t>;
    const auto* of_state = grad.const_data_ptr<scalar_t>();
    const auto* saved = gates.const_data_ptr<scalar_t>();
    auto* to_input = grad_input.mutable_data_ptr<scalar_t>();
    auto* to_hidden = grad_hidden.mutable_data_ptr<scalar_t>();
    auto* to_state = grad_hx.mutable_data_ptr<scalar_t>();
    native::for_each_index(grad.device(), grad.numel(), [=] GPU_LAMBDA(int64_t i) {
      const int64_t column = i % hidden, batch = i / hidden;
      const auto value = [&](int64_t n) {
        return static_cast<acc_t>(saved[(batch * kGruSaved + n) * hidden + column]);
      };
      const acc_t reset = value(0), update = value(1), candidate = value(2);
      const acc_t state = value(3), from_hidden = value(4);
      const acc_t grad = static_cast<acc_t>(of_state[i]);
      const acc_t grad_candidate = grad * (acc_t(1) - update) * (acc_t(1) - candidate * candidate);
      const acc_t grad_update = grad * (state - candidate) * update * (acc_t(1) - update);
      const acc_t grad_reset = grad_candidate * from_hidden * reset * (acc_t(1) - reset);
      const int64_t first = batch * kGruGates * hidden + column;
      to_input[first] = to_hidden[first] = static_cast<scalar_t>(grad_reset);
      to_input[first + hidden] = to_hidden[first + hidden] = static_cast<scalar_t>(grad_update);
      to_input[first + 2 * hidden] = static_cast<scalar_t>(grad_candidate);
      to_hidden[first + 2 * hidden] = static_cast<scalar_t>(grad_candidate * reset);
      to_state[i] = static_cast<scalar_t>(grad * update);
    });
  });
  return {grad_input, grad_hidden, grad_hx, has_bias ? grad_input.sum(0) : Tensor(),
          has_bias ? grad_hidden.sum(0) : Tensor()};
}

}  // namespace at::musa
