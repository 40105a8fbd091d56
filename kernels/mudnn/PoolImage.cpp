#include "kernels/mudnn/PoolImage.h"

#include <optional>

namespace at::musa {
namespace {

Tensor Batched(const Tensor& image) {
  return image.defined() && image.dim() == 3 ? image.unsqueeze(0) : image;
}

}  // namespace

void PoolImage(const ::musa::dnn::Pooling& pool, const Tensor& input, const Tensor& out,
               const Tensor& indices) {
  if (out.numel() == 0) return;
  const MemoryFormat format = ImageFormat(Batched(input));
  const Tensor image = Batched(input).contiguous(format);
  const DenseOutput pooled(Batched(out), format);
  std::optional<DenseOutput> positions;
  if (indices.defined()) positions.emplace(Batched(indices), format);

  muTensor mt_pooled = pooled.describe();
  muTensor mt_positions = positions ? positions->describe() : muTensor();
  CHECK_MUDNN_STATUS(
      pool.Run(GetMudnnHandle(), mt_pooled, DescribeDense(image, format), mt_positions), "Pooling");
  pooled.finish();
  if (positions) positions->finish();
}

void PoolImageBackward(const ::musa::dnn::Pooling& pool, const Tensor& grad_output,
                       const Tensor& indices, const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  const MemoryFormat format = ImageFormat(Batched(grad_input));
  const Tensor grad = Batched(grad_output).contiguous(format);
  const Tensor positions = indices.defined() ? Batched(indices).contiguous(format) : Tensor();
  const DenseOutput result(Batched(grad_input), format);

  muTensor mt_result = result.describe();
  CHECK_MUDNN_STATUS(pool.RunBwd(GetMudnnHandle(), mt_result, DescribeDense(grad, format),
                                 DescribeDense(positions, format)),
                     "Pooling, gradient");
  result.finish();
}

}  // namespace at::musa
