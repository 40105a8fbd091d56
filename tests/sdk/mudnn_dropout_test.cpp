// muDNN's dropout: its numbers, which a seed and an offset give on every target, and what becomes
// of the elements.
#include <ATen/TensorOperators.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "device_tensor.h"

namespace {

using namespace musa::dnn;
using check::DeviceTensor;

constexpr double kTolerance = 1e-5;
constexpr at::ScalarType kTypes[] = {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble};

Handle& handle() {
  static Handle h(0);
  return h;
}

Dropout dropout(double p, uint64_t seed, uint64_t offset) {
  Dropout op;
  CHECK_OK(op.SetP(p));
  CHECK_OK(op.SetSeed(seed));
  CHECK_OK(op.SetOffset(offset));
  return op;
}

// Element i by word i % 4 of subsequence i / 4, made by PyTorch's generator.
at::Tensor expected_mask(int64_t n, double p, uint64_t seed, uint64_t offset) {
  const at::Tensor kept = at::empty({n}, at::kBool);
  for (int64_t i = 0; i < n; i += 4) {
    at::Philox4_32 engine(seed, i / 4, offset / 4);
    for (int64_t j = i; j < std::min(i + 4, n); ++j) {
      kept.data_ptr<bool>()[j] = engine() * 0x1p-32 >= p;
    }
  }
  return kept;
}

TEST(dropout_is_a_function_of_seed_and_offset) {
  const at::Tensor x = at::randn({10000});
  DeviceTensor in(x), out(at::zeros_like(x)), mask(at::zeros({10000}, at::kBool));
  Dropout op;
  CHECK_STATUS(op.SetP(1), INVALID_PARAMETER);
  op.SetP(0.25);
  op.SetSeed(7);
  const auto draw = [&](uint64_t offset) {
    op.SetOffset(offset);
    CHECK_OK(op.RunDropout(handle(), out, in, mask));
    return mask.read().clone();
  };
  const at::Tensor first = draw(0);
  const double kept = first.to(at::kDouble).mean().item<double>();
  CHECK(kept > 0.73 && kept < 0.77);
  CHECK_CLOSE(out.read(), x * first / 0.75, kTolerance);
  CHECK(!draw(4).equal(first));
  CHECK(draw(0).equal(first));

  DeviceTensor grad_in(at::zeros_like(x));
  op.SetScale(2);
  CHECK_OK(op.RunDropoutBwd(handle(), grad_in, in, mask));
  CHECK_CLOSE(grad_in.read(), x * first * 2, kTolerance);
}

TEST(dropout_reads_seed_and_offset_from_device_memory) {
  const at::Tensor x = at::ones({1000});
  DeviceTensor in(x), out(at::zeros_like(x)), mask(at::zeros({1000}, at::kBool));
  DeviceTensor seed(at::full({1}, 7, at::kLong)), offset(at::full({1}, 8, at::kLong));
  Dropout by_value;
  by_value.SetSeed(uint64_t{7});
  by_value.SetOffset(uint64_t{12});
  CHECK_OK(by_value.RunDropout(handle(), out, in, mask));
  const at::Tensor expected = mask.read();
  Dropout by_pointer;
  CHECK_OK(by_pointer.SetSeed(static_cast<const uint64_t*>(seed.address())));
  CHECK_OK(by_pointer.SetOffset(static_cast<const uint64_t*>(offset.address()), 4));
  CHECK_OK(by_pointer.RunDropout(handle(), out, in, mask));
  CHECK(mask.read().equal(expected));
  const uint64_t on_the_host = 7;
  CHECK_OK(by_pointer.SetSeed(&on_the_host));
  CHECK_STATUS(by_pointer.RunDropout(handle(), out, in, mask), EXECUTION_FAILED);
  CHECK_STATUS(by_pointer.SetSeed(nullptr), INVALID_PARAMETER);
}

TEST(dropout_keeps_by_four_words_of_a_philox_block) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, ~uint64_t{0} - 5}) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{4}, uint64_t{1} << 40}) {
      for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 1023, 70001}) {
        const at::Tensor x = at::ones({n});
        DeviceTensor in(x), out(at::zeros_like(x)), mask(at::zeros({n}, at::kBool));
        CHECK_OK(dropout(0.3, seed, offset).RunDropout(handle(), out, in, mask));
        CHECK(mask.read().equal(expected_mask(n, 0.3, seed, offset)));
      }
    }
  }
}

TEST(dropout_and_its_gradient_round_once_in_every_type) {
  for (const at::ScalarType type : kTypes) {
    for (const int64_t n : {1, 5, 8, 1000, 40003}) {
      const at::Tensor x = at::randn({n}).to(type);
      DeviceTensor in(x), out(at::zeros_like(x)), mask(at::zeros({n}, at::kBool));
      Dropout op = dropout(0.3, 5, 16);
      CHECK_OK(op.RunDropout(handle(), out, in, mask));
      const at::Tensor kept = expected_mask(n, 0.3, 5, 16);
      CHECK(mask.read().equal(kept));
      CHECK(out.read().equal(x * kept * (1 / (1 - 0.3))));

      DeviceTensor grad_in(at::zeros_like(x));
      op.SetScale(-1.7);
      CHECK_OK(op.RunDropoutBwd(handle(), grad_in, in, mask));
      CHECK(grad_in.read().equal(x * kept * -1.7));
    }
  }
}

TEST(dropout_takes_memory_that_begins_anywhere) {
  for (const at::ScalarType type : kTypes) {
    const at::Tensor x = at::randn({38}).to(type);
    const at::Tensor kept = expected_mask(37, 0.5, 3, 0);
    // Each operand in turn begins one element into its memory.
    for (int shifted = 0; shifted < 8; ++shifted) {
      const auto view = [&](int operand, const at::Tensor& t) {
        return t.slice(0, shifted >> operand & 1).slice(0, 0, 37);
      };
      const at::Tensor from = view(0, x);
      DeviceTensor in(from), out(view(1, at::zeros_like(x)));
      DeviceTensor mask(view(2, at::zeros({38}, at::kBool)));
      Dropout op = dropout(0.5, 3, 0);
      CHECK_OK(op.RunDropout(handle(), out, in, mask));
      CHECK(mask.read().equal(kept));
      CHECK(out.read().equal(from * kept * 2));
      op.SetScale(3);
      CHECK_OK(op.RunDropoutBwd(handle(), out, in, mask));
      CHECK(out.read().equal(from * kept * 3));
    }
  }
}

TEST(dropout_may_write_where_it_reads) {
  const at::Tensor x = at::randn({41}), kept = expected_mask(40, 0.5, 3, 0);
  for (const int64_t by : {0, 1}) {  // the same elements; or shifted ones, as if read before
    DeviceTensor memory(x.clone()), mask(at::zeros({40}, at::kBool));
    Tensor out = memory.desc;
    (void)memory.desc.SetNdInfo({40});
    (void)out.SetNdInfo({40});
    (void)out.SetAddr(static_cast<float*>(memory.address()) + by);
    Dropout op = dropout(0.5, 3, 0);
    CHECK_OK(op.RunDropout(handle(), out, memory, mask));
    const at::Tensor once = memory.read();
    CHECK(once.slice(0, by, by + 40).equal(x.slice(0, 0, 40) * kept * 2));
    op.SetScale(0.25);
    CHECK_OK(op.RunDropoutBwd(handle(), out, memory, mask));
    CHECK(memory.read().slice(0, by, by + 40).equal(once.slice(0, 0, 40) * kept * 0.25));
  }
}

TEST(dropout_multiplies_what_it_drops_by_zero) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float value : {inf, std::nanf(""), -1.0f}) {
    const at::Tensor x = at::full({64}, value);
    DeviceTensor in(x), out(at::zeros_like(x)), mask(at::zeros({64}, at::kBool));
    CHECK_OK(dropout(0.5, 1, 0).RunDropout(handle(), out, in, mask));
    const at::Tensor expected = x * expected_mask(64, 0.5, 1, 0) * 2;
    CHECK(out.read().allclose(expected, 0, 0, /*equal_nan=*/true));
    CHECK(out.read().signbit().equal(expected.signbit()));
  }
}

TEST(dropout_reads_any_byte_of_a_mask_as_kept_but_zero) {
  const at::Tensor bytes = at::arange(256, at::kByte), x = at::ones({256});
  DeviceTensor in(x), mask(bytes), out(at::zeros_like(x));
  (void)mask.desc.SetType(Tensor::Type::BOOL);
  CHECK_OK(Dropout().RunDropoutBwd(handle(), out, in, mask));
  CHECK(out.read().equal(bytes.ne(0).to(at::kFloat)));
}

TEST(dropout_with_the_least_and_the_largest_probability) {
  const at::Tensor x = at::randn({10000});
  DeviceTensor in(x), out(at::zeros_like(x)), mask(at::zeros({10000}, at::kBool));
  CHECK_OK(dropout(0, 1, 0).RunDropout(handle(), out, in, mask));
  CHECK(mask.read().all().item<bool>());
  CHECK(out.read().equal(x));
  CHECK_OK(dropout(std::nextafter(1.0, 0.0), 1, 0).RunDropout(handle(), out, in, mask));
  CHECK(!mask.read().any().item<bool>());
  CHECK(out.read().eq(0).all().item<bool>());
}

}  // namespace
