// muDNN's Reduce, Cum and Softmax against ATen in double.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "device_tensor.h"
#include "reference_values.h"

using namespace musa::dnn;
using namespace check;

namespace {

using Reference = at::Tensor (*)(const at::Tensor&, at::IntArrayRef, bool);

void check_reduce(Reduce::Mode mode, std::vector<std::pair<at::ScalarType, at::ScalarType>> types,
                  Reference reference) {
  Handle h(0);
  const std::vector<std::vector<int>> dims = {{0}, {1}, {-1}, {0, 2}, {0, 1, 2}, {}};
  for (auto [in_type, out_type] : types) {
    for (bool transposed : {false, true}) {
      at::Tensor x = ramp({3, 4, 5}).to(in_type);
      if (transposed) x = x.transpose(0, 2);
      for (const std::vector<int>& d : dims) {
        const std::vector<int64_t> wide(d.begin(), d.end());
        for (bool keep : {false, true}) {
          at::Tensor expected =
              reference(x.to(out_type == at::kBool ? at::kBool : at::kDouble),
                        wide.empty() ? std::vector<int64_t>{0, 1, 2} : wide, keep);
          if (expected.dim() == 0) expected = expected.reshape({1});
          DeviceTensor in(x);
          DeviceTensor out(at::zeros(expected.sizes(), out_type));
          Reduce op;
          CHECK_OK(op.SetMode(mode));
          CHECK_OK(op.SetDim(static_cast<int>(d.size()), d.data()));
          CHECK_OK(op.Run(h, out, in, no_memory));
          CHECK_CLOSE(out.read(), expected, tolerance(in_type) * 10);
        }
      }
    }
  }
}

}  // namespace

TEST(reduce_add) {
  check_reduce(Reduce::Mode::ADD,
               {{at::kFloat, at::kFloat},
                {at::kHalf, at::kHalf},
                {at::kHalf, at::kFloat},
                {at::kInt, at::kLong},
                {at::kLong, at::kLong},
                {at::kChar, at::kLong},
                {at::kBool, at::kLong},
                {at::kDouble, at::kDouble}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.sum(d, keep); });
}

TEST(reduce_mean) {
  check_reduce(Reduce::Mode::MEAN, {{at::kFloat, at::kFloat}, {at::kBFloat16, at::kFloat}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.mean(d, keep); });
}

TEST(reduce_max_min) {
  check_reduce(Reduce::Mode::MAX, {{at::kFloat, at::kFloat}, {at::kInt, at::kInt}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.amax(d, keep); });
  check_reduce(Reduce::Mode::MIN, {{at::kHalf, at::kHalf}, {at::kLong, at::kLong}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.amin(d, keep); });
}

TEST(reduce_prod) {
  check_reduce(Reduce::Mode::PROD, {{at::kDouble, at::kDouble}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) {
                 at::Tensor result = x;
                 std::vector<int64_t> sorted(d.begin(), d.end());
                 for (int64_t& dim : sorted) dim = dim < 0 ? dim + x.dim() : dim;
                 std::sort(sorted.rbegin(), sorted.rend());
                 for (int64_t dim : sorted) result = result.prod(dim, keep);
                 return result;
               });
}

TEST(reduce_and_or) {
  check_reduce(Reduce::Mode::AND, {{at::kBool, at::kBool}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.all(d, keep); });
  check_reduce(Reduce::Mode::OR, {{at::kBool, at::kBool}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) { return x.any(d, keep); });
}

TEST(reduce_variance_std) {
  check_reduce(Reduce::Mode::VARIANCE, {{at::kFloat, at::kFloat}, {at::kHalf, at::kFloat}},
               [](const at::Tensor& x, at::IntArrayRef d, bool keep) {
                 return x.var(at::OptionalIntArrayRef(d), std::optional<at::Scalar>(1), keep);
               });
  Handle h(0);
  const at::Tensor x = ramp({4, 6});
  const at::Tensor squares = (x - x.mean(1, true)).square().sum(1);
  DeviceTensor in(x);
  for (double correction : {0.0, 0.5, 1.0, 2.0}) {
    DeviceTensor out(at::zeros({4}));
    Reduce op;
    CHECK_OK(op.SetDim({1}));
    CHECK_OK(op.SetCorrection(correction));
    CHECK_OK(op.SetMode(Reduce::Mode::VARIANCE));
    CHECK_OK(op.Run(h, out, in, no_memory));
    CHECK_CLOSE(out.read(), squares / (6 - correction), 1e-5);
    CHECK_OK(op.SetMode(Reduce::Mode::STD));
    CHECK_OK(op.Run(h, out, in, no_memory));
    CHECK_CLOSE(out.read(), (squares / (6 - correction)).sqrt(), 1e-5);
  }
}

TEST(reduce_norm) {
  Handle h(0);
  const at::Tensor x = ramp({4, 6});
  DeviceTensor in(x);
  for (double order : {0.0, 1.0, 2.0, 3.5, kInfinity}) {
    DeviceTensor out(at::zeros({4, 1}));
    Reduce op;
    CHECK_OK(op.SetMode(Reduce::Mode::NORM));
    CHECK_OK(op.SetDim({1}));
    CHECK_OK(op.SetNormOrd(order));
    CHECK_OK(op.Run(h, out, in, no_memory));
    const at::Tensor expected = order == 0 ? x.ne(0).sum(1, true).to(at::kFloat)
                                : std::isinf(order)
                                    ? x.abs().amax(1, true)
                                    : x.abs().pow(order).sum(1, true).pow(1 / order);
    CHECK_CLOSE(out.read(), expected, 1e-5);
  }
}

TEST(reduce_indices) {
  Handle h(0);
  const at::Tensor x = ramp({4, 6}).t();
  DeviceTensor in(x);
  for (bool max : {true, false}) {
    Reduce op;
    CHECK_OK(op.SetMode(max ? Reduce::Mode::MAX : Reduce::Mode::MIN));
    CHECK_OK(op.SetDim({1}));
    auto [values, positions] = max ? x.max(1) : x.min(1);
    DeviceTensor out(at::zeros({6}));
    DeviceTensor indices(at::zeros({6}, at::kLong));
    CHECK_OK(op.RunWithIndices(h, out, indices, in, no_memory));
    CHECK(at::equal(out.read(), values));
    CHECK(at::equal(indices.read(), positions));
    DeviceTensor only(at::zeros({6, 1}, at::kLong));
    CHECK_OK(op.RunIndices(h, only, in, no_memory));
    CHECK(at::equal(only.read(), positions.unsqueeze(1)));
    CHECK_OK(op.SetDim({}));
    DeviceTensor flat(at::zeros({1}, at::kLong));
    CHECK_OK(op.RunIndices(h, flat, in, no_memory));
    CHECK(at::equal(flat.read(), (max ? x.argmax() : x.argmin()).reshape({1})));
  }
}

TEST(reduce_refuses) {
  Handle h(0);
  DeviceTensor in(ramp({4, 6}));
  DeviceTensor row(at::zeros({6}));
  DeviceTensor ints(ramp({4, 6}, at::kInt));
  DeviceTensor int_row(ramp({6}, at::kInt));
  DeviceTensor flags(at::zeros({6}, at::kBool));
  Reduce op;
  CHECK_OK(op.SetDim({0}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);  // no mode
  CHECK_OK(op.SetMode(Reduce::Mode::MEAN));
  CHECK_STATUS(op.Run(h, int_row, ints, no_memory), NOT_SUPPORTED);
  CHECK_STATUS(op.RunIndices(h, row, in, no_memory), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Reduce::Mode::OR));
  CHECK_STATUS(op.Run(h, flags, in, no_memory), NOT_SUPPORTED);  // out must have in's type
  CHECK_OK(op.SetMode(Reduce::Mode::ADD));
  CHECK_OK(op.SetDim({1}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);  // shape
  CHECK_OK(op.SetDim({5}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);
  CHECK_OK(op.SetDim({0, -2}));
  CHECK_STATUS(op.Run(h, row, in, no_memory), INVALID_PARAMETER);  // the same twice
  CHECK_OK(op.SetDim({0}));
  CHECK_OK(op.Run(h, row, in, no_memory));
}

TEST(cum) {
  Handle h(0);
  for (auto [in_type, out_type] :
       std::vector<std::pair<at::ScalarType, at::ScalarType>>{{at::kFloat, at::kFloat},
                                                              {at::kHalf, at::kHalf},
                                                              {at::kInt, at::kInt},
                                                              {at::kInt, at::kLong},
                                                              {at::kLong, at::kLong}}) {
    for (int dim : {0, 1, -1}) {
      const at::Tensor x = ramp({3, 4, 2}).transpose(0, 1).to(in_type);
      DeviceTensor in(x);
      DeviceTensor out(at::zeros(x.sizes(), out_type));
      Cum op;
      CHECK_OK(op.SetMode(Cum::Mode::ADD));
      CHECK_OK(op.SetDim(dim));
      CHECK_OK(op.Run(h, out, in, no_memory));
      CHECK_CLOSE(out.read(), x.to(at::kDouble).cumsum(dim), tolerance(in_type) * 10);
      CHECK_OK(op.SetMode(Cum::Mode::MUL));
      CHECK_OK(op.Run(h, out, in, no_memory));
      CHECK_CLOSE(out.read(), x.to(at::kDouble).cumprod(dim), tolerance(in_type) * 10);
    }
  }
  const at::Tensor x = ramp({5});
  DeviceTensor t(x);
  Cum op;
  CHECK_OK(op.SetMode(Cum::Mode::ADD));
  CHECK_OK(op.Run(h, t, t, no_memory));
  CHECK_CLOSE(t.read(), x.cumsum(0), 1e-6);
  DeviceTensor bytes(ramp({5}, at::kByte));
  CHECK_STATUS(op.Run(h, bytes, bytes, no_memory), NOT_SUPPORTED);
}

TEST(softmax) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (int dim : {0, 1, -1}) {
      const at::Tensor x = ramp({3, 4, 5}).to(type);
      const at::Tensor e = (x.to(at::kDouble) - x.to(at::kDouble).amax(dim, true)).exp();
      const at::Tensor expected = e / e.sum(dim, true);
      Softmax op;
      CHECK_OK(op.SetDim(dim));
      CHECK_OK(op.SetAlgorithm(Softmax::Algorithm::ACCURATE));
      CHECK_OK(op.SetMode(Softmax::Mode::SOFTMAX));
      DeviceTensor in(x);
      DeviceTensor out(at::zeros_like(x));
      CHECK_OK(op.Run(h, out, in));
      CHECK_CLOSE(out.read(), expected, tolerance(type));
      CHECK_OK(op.SetMode(Softmax::Mode::LOGSOFTMAX));
      CHECK_OK(op.Run(h, out, in));
      CHECK_CLOSE(out.read(), expected.log(), tolerance(type));
      CHECK_OK(op.SetMode(Softmax::Mode::LOGSUMEXP));
      const at::Tensor total = x.to(at::kDouble).exp().sum(dim).log();
      DeviceTensor sums(at::zeros(total.sizes(), type));
      CHECK_OK(op.Run(h, sums, in));
      CHECK_CLOSE(sums.read(), total, tolerance(type));
      CHECK_OK(op.SetMode(Softmax::Mode::SOFTMAX));
      CHECK_OK(op.Run(h, in, in));  // in place
      CHECK_CLOSE(in.read(), expected, tolerance(type));
    }
  }
}

TEST(softmax_backward) {
  Handle h(0);
  const at::Tensor x = ramp({3, 5}).to(at::kDouble);
  const at::Tensor g = ramp({3, 5}).flip(1).to(at::kDouble).contiguous();
  const at::Tensor s = x.softmax(1);
  Softmax op;
  CHECK_OK(op.SetDim(1));
  CHECK_OK(op.SetMode(Softmax::Mode::SOFTMAX));
  DeviceTensor grad_in(at::zeros_like(x));
  DeviceTensor grad_out(g);
  DeviceTensor out(s);
  CHECK_OK(op.RunBwd(h, grad_in, out, grad_out));
  CHECK_CLOSE(grad_in.read(), s * (g - (g * s).sum(1, true)), 1e-9);
  CHECK_OK(op.SetMode(Softmax::Mode::LOGSOFTMAX));
  DeviceTensor log_out(s.log());
  CHECK_OK(op.RunBwd(h, grad_in, log_out, grad_out));
  CHECK_CLOSE(grad_in.read(), g - s * g.sum(1, true), 1e-9);
  CHECK_OK(op.SetMode(Softmax::Mode::LOGSUMEXP));
  CHECK_STATUS(op.RunBwd(h, grad_in, out, grad_out), NOT_SUPPORTED);
}
