#include "Internal.h"
#include "mudnn_blas.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mm.h>
#include <c10/util/SmallVector.h>

#include <limits>
#include <optional>
#include <utility>

#include "Direct.h"
#include "Target.h"
#include "Tf32.h"

namespace musa::dnn {

using namespace internal;

namespace {

bool is_fp8(Type t) { return t == Type::FP8_E4M3 || t == Type::FP8_E5M2; }

// What the product reads: l and r already transposed, c and bias undefined where absent.
struct Gemm {
  at::Tensor out, l, r, c, bias;
  double alpha, beta, gamma;
  bool tf32;
};

void multiply(const Gemm& g) {
  at::Tensor out = g.out;
  const at::Tensor l = g.tf32 ? to_tf32(g.l) : apart(g.l, out);
  const at::Tensor r = g.tf32 ? to_tf32(g.r) : apart(g.r, out);
  const bool batched = out.dim() == 3;
  const bool reads_c = g.c.defined() && g.beta != 0;
  const bool adds_bias = g.bias.defined() && g.gamma != 0;
  if (adds_bias && !reads_c && !batched) {
    at::addmm_out(out, g.bias, l, r, g.gamma, g.alpha);
    return;
  }
  if (!reads_c && g.alpha == 1) {
    batched ? at::bmm_out(out, l, r) : at::mm_out(out, l, r);
  } else {
    // With beta 0 the addend is not read, so it may be the output.
    const at::Tensor& c = reads_c ? g.c : out;
    const double beta = reads_c ? g.beta : 0;
    batched ? at::baddbmm_out(out, c, l, r, beta, g.alpha)
            : at::addmm_out(out, c, l, r, beta, g.alpha);
  }
  if (adds_bias) out.add_(g.bias, g.gamma);
}

// The operand, its last two dimensions exchanged where told so.
at::Tensor factor(const Call& call, const Tensor& t, bool transposed) {
  if (!transposed) return call.alias(t);
  c10::SmallVector<int64_t, Tensor::kMaxRank> sizes(dims(t)), steps(strides(t));
  std::swap(sizes.end()[-1], sizes.end()[-2]);
  std::swap(steps.end()[-1], steps.end()[-2]);
  return call.alias(t, sizes, steps);
}

// A dense matrix of several rows and columns, or its transpose.
std::optional<DirectMatrix> direct_matrix(const Tensor& t, bool transposed) {
  const int64_t rows = dims(t)[0], columns = dims(t)[1];
  const int64_t between_rows = strides(t)[0], between_columns = strides(t)[1];
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (rows < 2 || columns < 2 || rows > kMost || columns > kMost) return std::nullopt;
  const float* memory = floats(t);
  if (between_columns == 1 && between_rows == columns) {
    return DirectMatrix{memory, static_cast<int>(columns), transposed};
  }
  if (between_rows == 1 && between_columns == rows) {
    return DirectMatrix{memory, static_cast<int>(rows), !transposed};
  }
  return std::nullopt;
}

// out = l @ r of floats and nothing else, by the target itself; false where it does not.
bool multiply_directly(const Call& call, const Tensor& out, const Tensor& l, const Tensor& r,
                       bool transpose_l, bool transpose_r) {
  for (const Tensor* t : {&out, &l, &r}) {
    if (type(*t) != Type::FLOAT || rank(*t) != 2) return false;
  }
  const auto to = direct_matrix(out, false);
  const auto left = direct_matrix(l, transpose_l), right = direct_matrix(r, transpose_r);
  if (!to || to->by_columns || !left || !right) return false;
  const int64_t rows = dims(l)[transpose_l ? 1 : 0], depth = dims(l)[transpose_l ? 0 : 1];
  const int64_t columns = dims(r)[transpose_r ? 0 : 1];
  if (dims(r)[transpose_r ? 1 : 0] != depth || dims(out)[0] != rows || dims(out)[1] != columns ||
      !are_apart(out, numel(out), l, numel(l)) || !are_apart(out, numel(out), r, numel(r))) {
    return false;
  }
  return call.product({static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(depth),
                       floats(out), *left, *right});
}

// Scales of the low-precision product; undefined where absent.
struct Scales {
  at::Tensor a, b, c, d, amax;
};

void multiply_scaled(const Gemm& g, const Scales& s) {
  const auto scaled = [](const at::Tensor& t, const at::Tensor& scale) {
    const at::Tensor wide = t.to(at::kFloat);
    return scale.defined() ? wide * scale : wide;
  };
  at::Tensor result = at::matmul(scaled(g.l, s.a), scaled(g.r, s.b)) * g.alpha;
  if (g.c.defined() && g.beta != 0) result.add_(scaled(g.c, s.c), g.beta);
  if (g.bias.defined() && g.gamma != 0) result.add_(g.bias.to(at::kFloat), g.gamma);
  if (s.amax.defined()) s.amax.copy_(at::max(at::abs(result)).reshape({1}));
  g.out.copy_(scaled(result, s.d));
}

}  // namespace

Status MatMulLtParam::SetScale(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
  scale_a_ = a;
  scale_b_ = b;
  scale_c_ = c;
  scale_d_ = d;
  return Status::SUCCESS;
}

Status MatMulLtParam::SetAmaxD(const Tensor& amax) {
  amax_d_ = amax;
  return Status::SUCCESS;
}

namespace detail {

Status GemmBase::SetComputeMode(ComputeMode mode) {
  if (mode != ComputeMode::SCALAR && mode != ComputeMode::TENSOR) return Status::INVALID_PARAMETER;
  compute_mode_ = mode;
  return Status::SUCCESS;
}

Status GemmBase::SetTranspose(bool left, bool right) {
  transpose_left_ = left;
  transpose_right_ = right;
  return Status::SUCCESS;
}

Status GemmBase::SetAlpha(double alpha) {
  alpha_ = alpha;
  return Status::SUCCESS;
}

Status GemmBase::SetBeta(double beta) {
  beta_ = beta;
  return Status::SUCCESS;
}

Status GemmBase::SetGamma(double gamma) {
  gamma_ = gamma;
  return Status::SUCCESS;
}

Status GemmBase::RunGemm(Handle& h, const char* entry, int rank, Tensor& out, const Tensor& l,
                         const Tensor& r, const Tensor& c, const Tensor& bias,
                         const MatMulLtParam* param) const {
  Call call(h, rank == 2 ? Class::MATMUL : Class::BATCH_MATMUL, entry);
  call.out("out", out).in("l", l).in("r", r).optional_in("c", c).optional_in("bias", bias);
  if (param != nullptr) {
    call.optional_in("scale_a", param->scale_a())
        .optional_in("scale_b", param->scale_b())
        .optional_in("scale_c", param->scale_c())
        .optional_in("scale_d", param->scale_d())
        .optional_out("amax_d", param->amax_d());
  }
  const auto prepare = [&](Call& call) -> Work {
    require(internal::rank(out) == rank && internal::rank(l) == rank && internal::rank(r) == rank,
            "MatMul takes rank 2, BatchMatMul rank 3");
    const bool low_precision = param != nullptr && is_fp8(type(l)) && is_fp8(type(r));
    require(low_precision || (is_floating(type(l)) && type(l) == type(r) && type(l) == type(out)),
            "type combination", Status::NOT_SUPPORTED);

    Gemm g{.out = call.alias(out),
           .l = factor(call, l, transpose_left_),
           .r = factor(call, r, transpose_right_),
           .c = {},
           .bias = {},
           .alpha = number(alpha_, type(out)),
           .beta = number(beta_, type(out)),
           .gamma = number(gamma_, type(out)),
           .tf32 = uses_tf32(h, compute_mode_, type(l))};
    const int64_t rows = g.out.size(-2), columns = g.out.size(-1);
    require(g.l.size(-2) == rows && g.r.size(-1) == columns && g.l.size(-1) == g.r.size(-2) &&
                (rank == 2 || (g.l.size(0) == g.out.size(0) && g.r.size(0) == g.out.size(0))),
            "shapes do not multiply");
    if (!absent(c)) {
      require(same_shape(c, out), "c must have the shape of out");
      require(low_precision || type(c) == type(out), "c has the type of out",
              Status::NOT_SUPPORTED);
      g.c = call.alias(c);
    }
    if (!absent(bias)) {
      require(numel(bias) == columns && contiguous(bias), "bias must hold one value per column");
      require(low_precision ? is_floating(type(bias)) : type(bias) == type(out),
              "bias has the type of out", Status::NOT_SUPPORTED);
      g.bias = call.alias(bias, {columns}, {1});
    }
    if (param == nullptr) return [g = std::move(g)] { multiply(g); };

    const auto scale = [&](const Tensor& t) {
      if (absent(t)) return at::Tensor();
      require(numel(t) == 1 && type(t) == Type::FLOAT, "a scale holds one FLOAT");
      return call.alias(t, {1}, {1});
    };
    const Scales s{.a = scale(param->scale_a()),
                   .b = scale(param->scale_b()),
                   .c = scale(param->scale_c()),
                   .d = scale(param->scale_d()),
                   .amax = scale(param->amax_d())};
    return [g, s] { multiply_scaled(g, s); };
  };
  const bool direct = target::kHasProduct && rank == 2 && param == nullptr && &c == &out &&
                      absent(bias) && alpha_ == 1 && beta_ == 0 &&
                      !uses_tf32(h, compute_mode_, type(l));
  if (!direct) return call.run(prepare);
  return call.run(prepare, [&](Call& call) {
    return multiply_directly(call, out, l, r, transpose_left_, transpose_right_);
  });
}

}  // namespace detail

Status MatMul::Run(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                   const MemoryMaintainer&) const {
  return RunGemm(h, "MatMul::Run", 2, out, l, r, out, {}, nullptr);
}

Status MatMul::RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                              const Tensor& bias, const MemoryMaintainer&) const {
  return RunGemm(h, "MatMul::RunWithBiasAdd", 2, out, l, r, out, bias, nullptr);
}

Status MatMul::RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                              const Tensor& c, const Tensor& bias, const MemoryMaintainer&) const {
  return RunGemm(h, "MatMul::RunWithBiasAdd", 2, out, l, r, c, bias, nullptr);
}

Status MatMul::RunLt(Handle& h, Tensor& out, const Tensor& l, const Tensor& r, const Tensor& c,
                     const Tensor& bias, const MatMulLtParam& param,
                     const MemoryMaintainer&) const {
  return RunGemm(h, "MatMul::RunLt", 2, out, l, r, c, bias, &param);
}

Status BatchMatMul::Run(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                        const MemoryMaintainer&) const {
  return RunGemm(h, "BatchMatMul::Run", 3, out, l, r, out, {}, nullptr);
}

Status BatchMatMul::RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                                   const Tensor& bias, const MemoryMaintainer&) const {
  return RunGemm(h, "BatchMatMul::RunWithBiasAdd", 3, out, l, r, out, bias, nullptr);
}

Status BatchMatMul::RunWithBiasAdd(Handle& h, Tensor& out, const Tensor& l, const Tensor& r,
                                   const Tensor& c, const Tensor& bias,
                                   const MemoryMaintainer&) const {
  return RunGemm(h, "BatchMatMul::RunWithBiasAdd", 3, out, l, r, c, bias, nullptr);
}

Status BatchMatMul::RunLt(Handle& h, Tensor& out, const Tensor& l, const Tensor& r, const Tensor& c,
                          const Tensor& bias, const MatMulLtParam& param,
                          const MemoryMaintainer&) const {
  return RunGemm(h, "BatchMatMul::RunLt", 3, out, l, r, c, bias, &param);
}

}  // namespace musa::dnn
