#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/logsumexp.h>

#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;
using Mode = Softmax::Mode;

const char* name(Mode mode) {
  switch (mode) {
    case Mode::SOFTMAX:
      return "SOFTMAX";
    case Mode::LOGSOFTMAX:
      return "LOGSOFTMAX";
    case Mode::LOGSUMEXP:
      return "LOGSUMEXP";
  }
  return nullptr;
}

// LOGSUMEXP: whether out keeps the dimension as 1; refuses any other shape.
bool keeps_dim(const Tensor& out, const Tensor& in, int64_t dim) {
  c10::SmallVector<int64_t, Tensor::kMaxRank> expected(dims(in).begin(), dims(in).end());
  expected[static_cast<size_t>(dim)] = 1;
  if (dims(out).equals(expected)) return true;
  expected.erase(expected.begin() + dim);
  require(dims(out).equals(expected), "out must have the reduced shape");
  return false;
}

}  // namespace

Status Softmax::SetMode(Mode mode) {
  if (name(mode) == nullptr) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Softmax::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status Softmax::SetAlgorithm(Algorithm algorithm) {
  if (algorithm != Algorithm::FAST && algorithm != Algorithm::ACCURATE) {
    return Status::INVALID_PARAMETER;
  }
  algorithm_ = algorithm;
  return Status::SUCCESS;
}

Status Softmax::Run(Handle& h, Tensor& out, const Tensor& in) const {
  return Call(h, Class::SOFTMAX, "Softmax::Run", mode_ ? name(*mode_) : nullptr)
      .out("out", out)
      .in("in", in)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        require(is_floating(type(in)), "floating point only", Status::NOT_SUPPORTED);
        require(type(out) == type(in), "out must have the type of in");
        require(contiguous(out), "out must be contiguous");
        const int64_t dim = wrap_dim(dim_, rank(in));
        if (*mode_ == Mode::LOGSUMEXP) {
          return [dim, keep = keeps_dim(out, in, dim), o = c.alias(out),
                  i = c.alias(in)]() mutable { at::logsumexp_out(o, apart(i, o), dim, keep); };
        }
        require(same_shape(out, in), "out and in must have one shape");
        return [is_log = *mode_ == Mode::LOGSOFTMAX, dim, o = c.alias(out),
                i = c.alias(in)]() mutable {
          const at::Tensor source = apart(i, o);
          if (is_log) {
            at::_log_softmax_out(o, source, dim, /*half_to_float=*/false);
          } else {
            at::_softmax_out(o, source, dim, /*half_to_float=*/false);
          }
        };
      });
}

Status Softmax::RunBwd(Handle& h, Tensor& grad_in, const Tensor& out,
                       const Tensor& grad_out) const {
  return Call(h, Class::SOFTMAX, "Softmax::RunBwd", mode_ ? name(*mode_) : nullptr)
      .out("grad_in", grad_in)
      .in("out", out)
      .in("grad_out", grad_out)
      .run([&](Call& c) -> Work {
        require(mode_.has_value(), "no mode set");
        require(*mode_ != Mode::LOGSUMEXP, "LOGSUMEXP has no backward", Status::NOT_SUPPORTED);
        require(is_floating(type(out)), "floating point only", Status::NOT_SUPPORTED);
        require(type(grad_in) == type(out) && type(grad_out) == type(out),
                "the operands must have one type");
        require(same_shape(grad_in, out) && same_shape(grad_out, out),
                "the operands must have one shape");
        require(contiguous(grad_in), "grad_in must be contiguous");
        return [is_log = *mode_ == Mode::LOGSOFTMAX, dim = wrap_dim(dim_, rank(out)),
                g = c.alias(grad_in), o = c.alias(out), go = c.alias(grad_out)]() mutable {
          const at::Tensor output = apart(o, g);
          const at::Tensor gradient = apart(go, g);
          if (is_log) {
            at::_log_softmax_backward_data_out(g, gradient, output, dim, output.scalar_type());
          } else {
            at::_softmax_backward_data_out(g, gradient, output, dim, output.scalar_type());
          }
        };
      });
}

}  // namespace musa::dnn
