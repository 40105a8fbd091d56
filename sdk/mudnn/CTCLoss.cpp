#include "Internal.h"
#include "mudnn_loss.h"

#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>

#include <algorithm>
#include <tuple>

namespace musa::dnn {

using namespace internal;

namespace {

void check_operands(const Tensor& in, const Tensor& target, const Tensor& input_lengths,
                    const Tensor& target_lengths, const Tensor& loss, const Tensor& alpha,
                    int64_t blank, int64_t longest) {
  require(longest >= 0, "SetMaxTargetLength comes first");
  require(type(in) == Type::FLOAT || type(in) == Type::DOUBLE, "type", Status::NOT_SUPPORTED);
  require(type(loss) == type(in) && type(alpha) == type(in), "operands must have one type");
  require(type(target) == Type::INT64 || type(target) == Type::INT32, "target is INT64 or INT32",
          Status::NOT_SUPPORTED);
  require(type(input_lengths) == Type::INT64 && type(target_lengths) == Type::INT64,
          "lengths are INT64", Status::NOT_SUPPORTED);
  require(rank(in) == 3, "in is (T, N, C)");
  const int64_t batch = dims(in)[1];
  require(blank >= 0 && blank < dims(in)[2], "blank is no class");
  require(dims(input_lengths).equals({batch}) && dims(target_lengths).equals({batch}),
          "there is one length per sample");
  require(rank(target) == 1 || (rank(target) == 2 && dims(target)[0] == batch),
          "target is (N, S) or (total)");
  require(rank(target) == 1 || dims(target)[1] >= longest, "target is shorter than the longest");
  require(dims(loss).equals({batch}), "loss is (N)");
  require(dims(alpha).equals({batch, dims(in)[0], 2 * longest + 1}),
          "alpha is (N, T, 2 * MaxTargetLength + 1)");
  for (const Tensor* t : {&in, &target, &input_lengths, &target_lengths, &loss, &alpha}) {
    require(contiguous(*t), "operands must be contiguous");
  }
}

// Lengths are read when the work's turn comes, so what is wrong with them is a failed execution.
std::vector<int64_t> read(const at::Tensor& lengths, int64_t limit) {
  const at::Tensor host = lengths.cpu();
  const int64_t* data = host.const_data_ptr<int64_t>();
  std::vector<int64_t> result(data, data + host.numel());
  for (int64_t length : result) {
    require(length >= 0 && length <= limit, "a length is out of range", Status::EXECUTION_FAILED);
  }
  return result;
}

// On the device a label that is no class is a fault.
void check_labels(const at::Tensor& target, int64_t classes) {
  require(target.numel() == 0 ||
              (target.min().item<int64_t>() >= 0 && target.max().item<int64_t>() < classes),
          "a target is no class", Status::EXECUTION_FAILED);
}

}  // namespace

Status CTCLoss::SetBlank(int64_t blank) {
  if (blank < 0) return Status::INVALID_PARAMETER;
  blank_ = blank;
  return Status::SUCCESS;
}

Status CTCLoss::SetZeroInfinity(bool zero_infinity) {
  zero_infinity_ = zero_infinity;
  return Status::SUCCESS;
}

Status CTCLoss::SetMaxTargetLength(int64_t length) {
  if (length < 0) return Status::INVALID_PARAMETER;
  max_target_length_ = length;
  return Status::SUCCESS;
}

Status CTCLoss::Run(Handle& h, Tensor& out, Tensor& alpha, const Tensor& in, const Tensor& target,
                    const Tensor& input_lengths, const Tensor& target_lengths) const {
  return Call(h, Class::CTC_LOSS, "CTCLoss::Run")
      .out("out", out)
      .out("alpha", alpha)
      .in("in", in)
      .in("target", target)
      .in("input_lengths", input_lengths)
      .in("target_lengths", target_lengths)
      .run([&](Call& c) -> Work {
        check_operands(in, target, input_lengths, target_lengths, out, alpha, blank_,
                       max_target_length_);
        return [o = c.alias(out), a = c.alias(alpha), i = c.alias(in), t = c.alias(target),
                il = c.alias(input_lengths), tl = c.alias(target_lengths), blank = blank_,
                zero = zero_infinity_, longest = max_target_length_] {
          check_labels(t, i.size(2));
          const auto [loss, kept] =
              at::_ctc_loss(i, t, read(il, i.size(0)), read(tl, longest), blank, zero);
          o.copy_(loss);
          // ATen's alpha goes as far as the longest target of this batch.
          a.narrow(2, 0, kept.size(2)).copy_(kept);
        };
      });
}

Status CTCLoss::RunBwd(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& in,
                       const Tensor& target, const Tensor& input_lengths,
                       const Tensor& target_lengths, const Tensor& out, const Tensor& alpha,
                       const MemoryMaintainer&) const {
  return Call(h, Class::CTC_LOSS, "CTCLoss::RunBwd")
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .in("in", in)
      .in("target", target)
      .in("input_lengths", input_lengths)
      .in("target_lengths", target_lengths)
      .in("out", out)
      .in("alpha", alpha)
      .run([&](Call& c) -> Work {
        check_operands(in, target, input_lengths, target_lengths, out, alpha, blank_,
                       max_target_length_);
        require(same_shape(grad_in, in) && type(grad_in) == type(in), "grad_in must be like in");
        require(same_shape(grad_out, out) && type(grad_out) == type(out),
                "grad_out must be like out");
        return [gi = c.alias(grad_in), go = c.alias(grad_out), i = c.alias(in), t = c.alias(target),
                il = c.alias(input_lengths), tl = c.alias(target_lengths), o = c.alias(out),
                a = c.alias(alpha), blank = blank_, zero = zero_infinity_,
                longest = max_target_length_] {
          check_labels(t, i.size(2));
          const std::vector<int64_t> targets = read(tl, longest);
          const int64_t used = *std::max_element(targets.begin(), targets.end());
          gi.copy_(at::_ctc_loss_backward(go, i, t, read(il, i.size(0)), targets, o,
                                          a.narrow(2, 0, 2 * used + 1).contiguous(), blank, zero));
        };
      });
}

}  // namespace musa::dnn
