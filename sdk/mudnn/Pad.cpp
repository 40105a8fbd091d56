#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;
using Mode = Pad::Mode;

const char* name(Mode mode) {
  switch (mode) {
    case Mode::CONSTANT:
      return "CONSTANT";
    case Mode::REFLECT:
      return "REFLECT";
    case Mode::REPLICATE:
      return "REPLICATE";
  }
  return nullptr;
}

void check(Mode mode, const Tensor& out, const Tensor& in, const std::vector<int>& padding) {
  require(type(out) == type(in), "out must have the type of in");
  require(rank(out) == rank(in), "out and in must have one rank");
  const auto padded = static_cast<int64_t>(padding.size() / 2);
  require(padded <= rank(in), "more padding than dimensions");
  for (int64_t d = 0; d < rank(in); ++d) {
    const int64_t pair = rank(in) - 1 - d;
    const int64_t before = pair < padded ? padding[2 * pair] : 0;
    const int64_t after = pair < padded ? padding[2 * pair + 1] : 0;
    const int64_t size = dims(in)[d];
    require(dims(out)[d] == size + before + after, "out must have the padded shape");
    require(mode == Mode::CONSTANT || (before >= 0 && after >= 0), "negative padding",
            Status::NOT_SUPPORTED);
    require(mode != Mode::REFLECT || (before < size && after < size),
            "reflection needs more elements than it adds");
  }
}

// Where each element along a dimension comes from.
int64_t source(Mode mode, int64_t position, int64_t size) {
  if (mode == Mode::REPLICATE || size == 1) return std::clamp<int64_t>(position, 0, size - 1);
  if (position < 0) return -position;
  return position < size ? position : 2 * (size - 1) - position;
}

at::Tensor extend(const at::Tensor& in, Mode mode, int64_t dim, int64_t before, int64_t after) {
  const int64_t size = in.size(dim);
  std::vector<int64_t> index;
  index.reserve(static_cast<size_t>(before + size + after));
  for (int64_t i = -before; i < size + after; ++i) index.push_back(source(mode, i, size));
  return at::index_select(in, dim, at::tensor(index, in.options().dtype(at::kLong)));
}

}  // namespace

Status Pad::SetMode(Mode mode) {
  if (name(mode) == nullptr) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Pad::SetPaddingInfo(int n, const int* padding) {
  if (n < 0 || n % 2 != 0 || (n > 0 && padding == nullptr)) return Status::INVALID_PARAMETER;
  padding_.assign(padding, padding + n);
  return Status::SUCCESS;
}

Status Pad::SetPaddingInfo(std::initializer_list<int> padding) {
  return SetPaddingInfo(static_cast<int>(padding.size()), padding.begin());
}

Status Pad::SetValue(double value) {
  value_.set(value);
  return Status::SUCCESS;
}

Status Pad::SetValue(int64_t value) {
  value_.set(value);
  return Status::SUCCESS;
}

Status Pad::Run(Handle& h, Tensor& out, const Tensor& in) const {
  return Call(h, Class::PAD, "Pad::Run", mode_ ? name(*mode_) : nullptr)
      .out("out", out)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        check(*mode_, out, in, padding_);
        return [mode = *mode_, padding = std::vector<int64_t>(padding_.begin(), padding_.end()),
                o = c.alias(out), i = c.alias(in), value = number(value_, type(in))]() mutable {
          if (mode == Mode::CONSTANT) {
            o.copy_(at::constant_pad_nd(i, padding, value));
            return;
          }
          at::Tensor result = i;
          for (size_t pair = 0; pair < padding.size() / 2; ++pair) {
            const int64_t dim = i.dim() - 1 - static_cast<int64_t>(pair);
            result = extend(result, mode, dim, padding[2 * pair], padding[2 * pair + 1]);
          }
          o.copy_(result);
        };
      });
}

}  // namespace musa::dnn
