// muDNN's classes that move and order data against ATen.
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

#include "blocking.h"
#include "device_tensor.h"
#include "reference_values.h"

using namespace musa::dnn;
using namespace check;

TEST(fill) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kLong, at::kByte, at::kBool}) {
    Fill op;
    DeviceTensor out(at::zeros({3, 4}, type).t());
    CHECK_STATUS(op.Run(h, out), INVALID_PARAMETER);  // no value
    if (at::isFloatingType(type)) {
      CHECK_OK(op.SetValue(1.0));
    } else {
      CHECK_OK(op.SetValue(2.5));
      CHECK_STATUS(op.Run(h, out), INVALID_PARAMETER);
      CHECK_OK(op.SetValue(int64_t{1}));
    }
    CHECK_OK(op.Run(h, out));
    CHECK(at::equal(out.read(), at::ones({4, 3}, type)));
  }
}

TEST(fill_masked) {
  Handle h(0);
  const at::Tensor x = ramp({3, 4});
  const at::Tensor m = ramp({4}).gt(0);
  DeviceTensor out(x);
  DeviceTensor mask(m);
  Fill op;
  CHECK_OK(op.SetValue(9.0));
  CHECK_OK(op.Run(h, out, mask));
  CHECK(at::equal(out.read(), x.masked_fill(m, 9)));
  DeviceTensor numbers(ramp({4}));
  CHECK_STATUS(op.Run(h, out, numbers), INVALID_PARAMETER);
}

TEST(concat) {
  Handle h(0);
  const at::Tensor a = ramp({2, 3});
  const at::Tensor b = ramp({5, 2}).t();
  const at::Tensor c = ramp({2, 1});
  DeviceTensor x(a);
  DeviceTensor y(b);
  DeviceTensor z(c);
  const Tensor inputs[] = {x.desc, y.desc, z.desc};
  DeviceTensor out(at::zeros({9, 2}).t());
  Concat op;
  CHECK_OK(op.SetAxis(-1));
  CHECK_OK(op.Run(h, out, 3, inputs));
  CHECK(at::equal(out.read(), at::cat({a, b, c}, 1)));
  CHECK_STATUS(op.Run(h, out, 2, inputs), INVALID_PARAMETER);
  CHECK_STATUS(op.Run(h, out, 0, nullptr), INVALID_PARAMETER);
  CHECK_OK(op.SetAxis(0));
  CHECK_STATUS(op.Run(h, out, 3, inputs), INVALID_PARAMETER);
}

TEST(permute) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kBool, at::kLong}) {
    const at::Tensor x = ramp({2, 3, 4}).to(type).permute({2, 0, 1});
    DeviceTensor in(x);
    DeviceTensor out(at::zeros({3, 4, 2}, type).permute({1, 2, 0}));
    Permute op;
    CHECK_OK(op.Run(h, out, in));
    CHECK(at::equal(out.read(), x));
  }
}

TEST(pad) {
  Handle h(0);
  const at::Tensor x = ramp({2, 3, 4, 5});
  DeviceTensor in(x.transpose(2, 3));
  const std::vector<int> sides = {1, 2, 3, 0};  // pairs, from the last dimension on
  const std::vector<int64_t> wide(sides.begin(), sides.end());
  const std::vector<std::pair<Pad::Mode, const char*>> modes = {
      {Pad::Mode::CONSTANT, "constant"},
      {Pad::Mode::REFLECT, "reflect"},
      {Pad::Mode::REPLICATE, "replicate"}};
  for (const auto& [mode, name] : modes) {
    Pad op;
    CHECK_OK(op.SetMode(mode));
    CHECK_OK(op.SetValue(mode == Pad::Mode::CONSTANT ? 2.5 : 0.0));
    CHECK_OK(op.SetPaddingInfo(4, sides.data()));
    DeviceTensor out(at::zeros({2, 3, 8, 7}));
    CHECK_OK(op.Run(h, out, in));
    const auto value =
        mode == Pad::Mode::CONSTANT ? std::optional<double>(2.5) : std::optional<double>();
    CHECK(at::equal(out.read(), at::pad(x.transpose(2, 3), wide, name, value)));
    DeviceTensor wrong(at::zeros({2, 3, 8, 8}));
    CHECK_STATUS(op.Run(h, wrong, in), INVALID_PARAMETER);
  }
  Pad op;
  DeviceTensor out(at::zeros({2, 3, 8, 7}));
  CHECK_STATUS(op.Run(h, out, in), INVALID_PARAMETER);  // no mode
  CHECK_STATUS(op.SetPaddingInfo({1, 2, 3}), INVALID_PARAMETER);
  CHECK_OK(op.SetMode(Pad::Mode::REFLECT));
  CHECK_OK(op.SetPaddingInfo({5, 0}));
  DeviceTensor long_out(at::zeros({2, 3, 5, 9}));
  CHECK_STATUS(op.Run(h, long_out, in), INVALID_PARAMETER);  // reflects more than there is
}

TEST(glu) {
  Handle h(0);
  const at::Tensor x = ramp({4, 6});
  for (int axis : {0, -1}) {
    const auto halves = x.chunk(2, axis);
    DeviceTensor in(x);
    DeviceTensor out(at::zeros_like(halves[0]).contiguous());
    Glu op;
    CHECK_OK(op.SetAxis(axis));
    CHECK_OK(op.Run(h, out, in));
    CHECK_CLOSE(out.read(), halves[0] * halves[1].sigmoid(), 1e-6);
    CHECK_STATUS(op.Run(h, in, in), INVALID_PARAMETER);
  }
  DeviceTensor odd(ramp({3}));
  DeviceTensor out(at::zeros({1}));
  Glu op;
  CHECK_STATUS(op.Run(h, out, odd), INVALID_PARAMETER);
}

TEST(nonzero) {
  Handle h(0);
  for (at::ScalarType type : {at::kFloat, at::kBool, at::kLong, at::kHalf}) {
    const at::Tensor x = at::tensor({0, 1, 0, 2, 0, 0, 3, 4}).reshape({2, 4}).to(type);
    DeviceTensor in(x);
    DeviceTensor out(at::full({8, 2}, -1, at::kLong));
    Nonzero op;
    CHECK_OK(op.Run(h, out, in, no_memory));
    std::vector<int64_t> dims;
    CHECK_OK(out.desc.GetNdInfo(dims));
    CHECK((dims == std::vector<int64_t>{4, 2}));
    CHECK(at::equal(out.read().narrow(0, 0, 4), x.nonzero()));
    CHECK(out.read().narrow(0, 4, 4).eq(-1).all().item<bool>());
  }
}

TEST(nonzero_of_zeros_and_too_small_an_output) {
  Handle h(0);
  Nonzero op;
  DeviceTensor zeros(at::zeros({5}));
  DeviceTensor out(at::zeros({5, 1}, at::kLong));
  CHECK_OK(op.Run(h, out, zeros, no_memory));
  std::vector<int64_t> dims;
  CHECK_OK(out.desc.GetNdInfo(dims));
  CHECK((dims == std::vector<int64_t>{0, 1}));
  DeviceTensor ones(at::ones({5}));
  DeviceTensor small(at::zeros({2, 1}, at::kLong));
  CHECK_STATUS(op.Run(h, small, ones, no_memory), INVALID_PARAMETER);
  DeviceTensor wrong(at::zeros({5, 2}, at::kLong));
  CHECK_STATUS(op.Run(h, wrong, ones, no_memory), INVALID_PARAMETER);
}

TEST(masked_select) {
  Handle h(0);
  const at::Tensor x = ramp({3, 4}).t();
  const at::Tensor m = x.gt(0);
  DeviceTensor in(x);
  DeviceTensor mask(m);
  DeviceTensor out(at::zeros({12}));
  MaskedSelect op;
  CHECK_OK(op.Run(h, out, in, mask, no_memory));
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  CHECK_OK(out.desc.GetNdInfo(dims, strides));
  CHECK((dims == std::vector<int64_t>{m.sum().item<int64_t>()}));
  CHECK((strides == std::vector<int64_t>{1}));
  CHECK(at::equal(out.read().narrow(0, 0, dims[0]), x.masked_select(m)));
}

TEST(masked_scatter) {
  Handle h(0);
  const at::Tensor x = ramp({3, 4});
  const at::Tensor m = x.gt(0);
  const at::Tensor s = ramp({12}) + 100;
  DeviceTensor inout(x);
  DeviceTensor mask(m);
  DeviceTensor src(s);
  MaskedScatter op;
  CHECK_OK(op.Run(h, inout, mask, src, no_memory));
  CHECK(at::equal(inout.read(), x.masked_scatter(m, s)));
}

TEST_WITH_ENV(gather, BLOCKING) {
  Handle h(0);
  const at::Tensor x = ramp({4, 5});
  for (at::ScalarType type : {at::kLong, at::kInt}) {
    Gather op;
    CHECK_OK(op.SetAxis(1));
    CHECK_OK(op.SetMode(Gather::Mode::GATHER_ELEMENTS));
    const at::Tensor elements = at::tensor({0, 4, 2, 2, 1, 1}).reshape({3, 2}).to(type);
    DeviceTensor in(x);
    DeviceTensor index(elements);
    DeviceTensor out(at::zeros({3, 2}));
    CHECK_OK(op.Run(h, out, index, in, no_memory));
    CHECK(at::equal(out.read(), x.gather(1, elements.to(at::kLong))));
    CHECK_OK(op.SetMode(Gather::Mode::GATHER));
    const at::Tensor rows = at::tensor({3, 0, 3}).to(type);
    CHECK_OK(op.SetAxis(0));
    DeviceTensor row_index(rows);
    DeviceTensor taken(at::zeros({3, 5}));
    CHECK_OK(op.Run(h, taken, row_index, in));
    CHECK(at::equal(taken.read(), x.index_select(0, rows.to(at::kLong))));
    DeviceTensor outside(at::tensor({3, 0, 4}).to(type));
    CHECK_STATUS(op.Run(h, taken, outside, in), EXECUTION_FAILED);
  }
  Gather op;
  CHECK_OK(op.SetMode(Gather::Mode::GATHER));
  DeviceTensor in(x);
  DeviceTensor wrong(at::zeros({4, 4}));
  DeviceTensor index(at::tensor({0, 1}));
  CHECK_STATUS(op.Run(h, wrong, index, in), INVALID_PARAMETER);
}

TEST_WITH_ENV(scatter, BLOCKING) {
  Handle h(0);
  const at::Tensor x = ramp({4, 5});
  const at::Tensor index = at::tensor({0, 1, 2, 0, 0, 3}).reshape({2, 3});
  const at::Tensor src = ramp({3, 4}) + 50;
  for (bool add : {false, true}) {
    Scatter op;
    CHECK_OK(op.SetMode(add ? Scatter::Mode::ADD : Scatter::Mode::UPDATE_ONLY));
    DeviceTensor out(x);
    DeviceTensor i(index);
    DeviceTensor s(src);
    CHECK_OK(op.Run(h, out, i, s, 0, no_memory));
    CHECK_CLOSE(out.read(), add ? x.scatter_add(0, index, src) : x.scatter(0, index, src), 1e-6);
    DeviceTensor outside(index + 2);
    CHECK_STATUS(op.Run(h, out, outside, s, 0, no_memory), EXECUTION_FAILED);
    CHECK_STATUS(op.Run(h, out, i, s, 2, no_memory), INVALID_PARAMETER);
  }
}

TEST(sort) {
  Handle h(0);
  const at::Tensor x = ramp({3, 7}).t();
  for (bool descending : {false, true}) {
    for (int dim : {0, 1}) {
      Sort op;
      CHECK_OK(op.SetDim(dim));
      CHECK_OK(op.SetDescending(descending));
      CHECK_OK(op.SetStable(true));
      DeviceTensor in(x);
      DeviceTensor values(at::zeros(x.sizes()));
      DeviceTensor indices(at::zeros(x.sizes(), at::kLong));
      CHECK_OK(op.Run(h, values, indices, in, no_memory));
      auto [v, i] = x.sort(/*stable=*/true, dim, descending);
      CHECK(at::equal(values.read(), v));
      CHECK(at::equal(indices.read(), i));
    }
  }
}

TEST(sort_by_key) {
  Handle h(0);
  const at::Tensor keys = at::tensor({3, 1, 2, 5, 4}).to(at::kInt);
  const at::Tensor data = ramp({5});
  DeviceTensor key_in(keys);
  DeviceTensor value_in(data);
  DeviceTensor key_out(at::zeros({5}, at::kInt));
  DeviceTensor value_out(at::zeros({5}));
  SortByKey op;
  CHECK_OK(op.SetDescending(true));
  CHECK_OK(op.Run(h, key_out, value_out, key_in, value_in, no_memory));
  CHECK(at::equal(key_out.read(), at::tensor({5, 4, 3, 2, 1}).to(at::kInt)));
  CHECK(at::equal(value_out.read(), data.index_select(0, at::tensor({3, 4, 0, 2, 1}))));
}

TEST(top_k) {
  Handle h(0);
  const at::Tensor x = at::tensor({5, 1, 4, 2, 3, 9, 7, 8, 6, 0}).to(at::kFloat).reshape({2, 5});
  DeviceTensor in(x);
  DeviceTensor values(at::zeros({2, 2}));
  DeviceTensor indices(at::zeros({2, 2}, at::kLong));
  TopK op;
  CHECK_STATUS(op.SetK(0), INVALID_PARAMETER);
  CHECK_OK(op.SetK(2));
  CHECK_OK(op.SetDim(1));
  CHECK_OK(op.SetLargest(false));
  CHECK_OK(op.SetSorted(true));
  CHECK_OK(op.Run(h, values, indices, in, no_memory));
  CHECK(at::equal(values.read(), at::tensor({1, 2, 0, 6}).to(at::kFloat).reshape({2, 2})));
  CHECK(at::equal(indices.read(), at::tensor({1, 3, 4, 3}).reshape({2, 2})));
  CHECK_OK(op.SetK(6));
  CHECK_STATUS(op.Run(h, values, indices, in, no_memory), INVALID_PARAMETER);
}
