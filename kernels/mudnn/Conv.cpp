#include <torch_musa/ops/convolution_backward_overrideable_native.h>
#include <torch_musa/ops/convolution_overrideable_native.h>

#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/mudnn/Layout.h"
#include "torch_musa/csrc/aten/utils/Utils.h"
#include "torch_musa/csrc/core/MUSAGuard.h"

// Names: a "correlation" maps images to outputs, its two gradients map outputs back. A transposed
// convolution is the data gradient of the correlation with the same weight, so every direction of
// every convolution is one of three calls.

namespace at::musa {
namespace {

using Dnn = ::musa::dnn::Convolution;

struct Geometry {
  DimVector stride, padding, dilation;
  int64_t groups;

  int64_t spatial_dims() const { return static_cast<int64_t>(stride.size()); }
};

int64_t OutputSize(int64_t size, int64_t kernel, const Geometry& g, int64_t d) {
  return (size + 2 * g.padding[d] - g.dilation[d] * (kernel - 1) - 1) / g.stride[d] + 1;
}

DimVector OutputSizes(IntArrayRef image, IntArrayRef weight, const Geometry& g) {
  DimVector sizes{image[0], weight[0]};
  for (int64_t d = 0; d < g.spatial_dims(); ++d) {
    sizes.push_back(OutputSize(image[2 + d], weight[2 + d], g, d));
  }
  return sizes;
}

// ---- two spatial dimensions: muDNN ----------------------------------------------------------

Dnn Describe(const Geometry& g, ScalarType dtype) {
  const std::array<int, 2> pad{ToInt(g.padding[0]), ToInt(g.padding[1])};
  const std::array<int, 2> stride{ToInt(g.stride[0]), ToInt(g.stride[1])};
  const std::array<int, 2> dilation{ToInt(g.dilation[0]), ToInt(g.dilation[1])};
  Dnn conv;
  CHECK_MUDNN_STATUS(conv.SetNdInfo(2, pad.data(), stride.data(), dilation.data()), "SetNdInfo");
  CHECK_MUDNN_STATUS(conv.SetGroups(ToInt(g.groups)), "SetGroups");
  CHECK_MUDNN_STATUS(conv.SetComputeMode(ComputeModeOf(dtype)), "SetComputeMode");
  return conv;
}

// What decides whether an algorithm runs.
std::vector<int64_t> ProblemKey(const Tensor& image, const Tensor& weight, const Geometry& g,
                                MemoryFormat format) {
  std::vector<int64_t> key{image.get_device(), static_cast<int64_t>(image.scalar_type()),
                           static_cast<int64_t>(format), g.groups};
  for (IntArrayRef part : {image.sizes(), weight.sizes(), IntArrayRef(g.stride),
                           IntArrayRef(g.padding), IntArrayRef(g.dilation)}) {
    key.insert(key.end(), part.begin(), part.end());
  }
  return key;
}

// The recommended algorithm may be one that the call then refuses, so the others are tried in turn.
// What worked instead is remembered for the problem.
template <class Algorithm, class Run>
void RunSomeAlgorithm(std::vector<int64_t> problem, Algorithm recommended, const char* what,
                      Run run) {
  using ::musa::dnn::Status;
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, Algorithm> remembered;

  Algorithm first = recommended;
  {
    const std::lock_guard lock(mutex);
    const auto found = remembered.find(problem);
    if (found != remembered.end()) first = found->second;
  }
  Status status = run(first);
  for (const Algorithm other : {Algorithm::IMPLICIT_GEMM, Algorithm::GEMM, Algorithm::DIRECT,
                                Algorithm::WINOGRAD_NONFUSED}) {
    if (status != Status::NOT_SUPPORTED && status != Status::INVALID_PARAMETER) break;
    if (other == first) continue;
    const Status retried = run(other);
    if (retried == Status::SUCCESS) {
      const std::lock_guard lock(mutex);
      remembered.insert_or_assign(std::move(problem), other);
      return;
    }
  }
  CHECK_MUDNN_STATUS(status, what);
}

bool CanFuseBias(const Geometry& g) { return g.groups == 1; }

Tensor AddBias(Tensor out, const Tensor& bias) {
  if (!bias.defined()) return out;
  DimVector per_channel(out.dim(), 1);
  per_channel[1] = bias.numel();
  return out.add_(bias.reshape(per_channel));
}

Tensor Correlate2d(const Tensor& image_in, const Tensor& weight_in, const Tensor& bias_in,
                   const Geometry& g) {
  const MemoryFormat format = ImageFormat(image_in, weight_in);
  const Tensor image = image_in.contiguous(format), weight = weight_in.contiguous(format);
  Tensor out = at::empty(OutputSizes(image.sizes(), weight.sizes(), g), image.options(), format);
  const Tensor bias = bias_in.defined() && CanFuseBias(g) ? bias_in.contiguous() : Tensor();

  muHandle& handle = GetMudnnHandle();
  const Dnn conv = Describe(g, image.scalar_type());
  muTensor mt_out = DescribeDense(out, format);
  const muTensor mt_image = DescribeDense(image, format);
  const muTensor mt_weight = DescribeDense(weight, format);
  const muTensor mt_bias = DescribeDense(bias);
  auto algorithm = Dnn::Algorithm::IMPLICIT_GEMM;
  CHECK_MUDNN_STATUS(
      conv.GetRecommendForwardAlgorithm(handle, algorithm, mt_out, mt_image, mt_weight),
      "GetRecommendForwardAlgorithm");
  RunSomeAlgorithm(
      ProblemKey(image, weight, g, format), algorithm, "Convolution", [&](Dnn::Algorithm algo) {
        return bias.defined()
                   ? conv.RunFusion(handle, mt_out, mt_image, mt_weight, mt_bias, muTensor(), {},
                                    algo, InternalMemAlloc)
                   : conv.Run(handle, mt_out, mt_image, mt_weight, algo, InternalMemAlloc);
      });
  return bias.defined() ? out : AddBias(out, bias_in);
}

Tensor DataGradient2d(const Tensor& grad_in, const Tensor& weight_in, IntArrayRef image_sizes,
                      const Geometry& g) {
  const MemoryFormat format = ImageFormat(grad_in, weight_in);
  const Tensor grad = grad_in.contiguous(format), weight = weight_in.contiguous(format);
  Tensor result = at::empty(image_sizes, grad.options(), format);

  muHandle& handle = GetMudnnHandle();
  const Dnn conv = Describe(g, grad.scalar_type());
  muTensor mt_result = DescribeDense(result, format);
  const muTensor mt_grad = DescribeDense(grad, format);
  const muTensor mt_weight = DescribeDense(weight, format);
  auto algorithm = Dnn::AlgorithmBwdData::IMPLICIT_GEMM;
  CHECK_MUDNN_STATUS(
      conv.GetRecommendBackwardDataAlgorithm(handle, algorithm, mt_result, mt_grad, mt_weight),
      "GetRecommendBackwardDataAlgorithm");
  RunSomeAlgorithm(ProblemKey(result, weight, g, format), algorithm,
                   "Convolution, gradient of the image", [&](Dnn::AlgorithmBwdData algo) {
                     return conv.RunBwdData(handle, mt_result, mt_grad, mt_weight, algo,
                                            InternalMemAlloc);
                   });
  return result;
}

Tensor WeightGradient2d(const Tensor& image_in, const Tensor& grad_in, IntArrayRef weight_sizes,
                        const Geometry& g) {
  const MemoryFormat format = ImageFormat(image_in, grad_in);
  const Tensor image = image_in.contiguous(format), grad = grad_in.contiguous(format);
  Tensor result = at::empty(weight_sizes, grad.options(), format);

  muHandle& handle = GetMudnnHandle();
  const Dnn conv = Describe(g, grad.scalar_type());
  muTensor mt_result = DescribeDense(result, format);
  const muTensor mt_image = DescribeDense(image, format);
  const muTensor mt_grad = DescribeDense(grad, format);
  auto algorithm = Dnn::AlgorithmBwdFilter::IMPLICIT_GEMM;
  CHECK_MUDNN_STATUS(
      conv.GetRecommendBackwardFilterAlgorithm(handle, algorithm, mt_result, mt_image, mt_grad),
      "GetRecommendBackwardFilterAlgorithm");
  RunSomeAlgorithm(ProblemKey(image, result, g, format), algorithm,
                   "Convolution, gradient of the weight", [&](Dnn::AlgorithmBwdFilter algo) {
                     return conv.RunBwdFilter(handle, mt_result, mt_image, mt_grad, algo,
                                              InternalMemAlloc);
                   });
  return result;
}

// ---- integers: muDNN convolves floating types only ------------------------------------------

// One matrix product per group over a view of the padded image that shows every window.
Tensor CorrelateIntegers2d(const Tensor& image, const Tensor& weight, const Tensor& bias,
                           const Geometry& g) {
  const DimVector out_sizes = OutputSizes(image.sizes(), weight.sizes(), g);
  const Tensor padded =
      at::constant_pad_nd(image, {g.padding[1], g.padding[1], g.padding[0], g.padding[0]}, 0)
          .contiguous();
  const int64_t batch = image.size(0), channels = image.size(1),
                windows = out_sizes[2] * out_sizes[3];
  const int64_t row = padded.size(3), plane = padded.size(2) * row;
  const Tensor patches = padded.as_strided(
      {batch, channels, weight.size(2), weight.size(3), out_sizes[2], out_sizes[3]},
      {channels * plane, plane, g.dilation[0] * row, g.dilation[1], g.stride[0] * row,
       g.stride[1]});

  const int64_t reduced = weight[0].numel();
  const Tensor columns = patches.reshape({batch * g.groups, reduced, windows});
  const Tensor filters = weight.reshape({1, g.groups, weight.size(0) / g.groups, reduced})
                             .expand({batch, -1, -1, -1})
                             .reshape({batch * g.groups, -1, reduced});
  return AddBias(at::bmm(filters, columns).view(out_sizes), bias);
}

// ---- one and three spatial dimensions -------------------------------------------------------

// The same problem with a leading spatial dimension of size 1.
Geometry Lift(const Geometry& g) {
  Geometry lifted = g;
  lifted.stride.insert(lifted.stride.begin(), 1);
  lifted.padding.insert(lifted.padding.begin(), 0);
  lifted.dilation.insert(lifted.dilation.begin(), 1);
  return lifted;
}

DimVector LiftSizes(IntArrayRef sizes) {
  DimVector lifted(sizes.begin(), sizes.end());
  lifted.insert(lifted.begin() + 2, 1);
  return lifted;
}

Geometry DropDepth(const Geometry& g) {
  Geometry flat = g;
  flat.stride.erase(flat.stride.begin());
  flat.padding.erase(flat.padding.begin());
  flat.dilation.erase(flat.dilation.begin());
  return flat;
}

// A convolution in depth is a sum over the depth of the kernel: slice k of the weight meets, in
// output frame o, image frame o * stride + k * dilation - padding, wherever there is one.
struct DepthSlice {
  int64_t out_begin, out_end;      // the output frames
  int64_t image_begin, image_end;  // the first image frame and one past the last
};

DepthSlice SliceOf(int64_t k, int64_t image_depth, int64_t out_depth, const Geometry& g) {
  const int64_t stride = g.stride[0], shift = k * g.dilation[0] - g.padding[0];
  const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = image_depth - 1 - shift;  // in units of one frame
  const int64_t end = last < 0 ? 0 : std::min(out_depth, last / stride + 1);
  return {begin, end, begin * stride + shift, (end - 1) * stride + shift + 1};
}

// (N, C, D, H, W) to (N * D, C, H, W) and back.
Tensor FramesToBatch(const Tensor& volume) { return volume.transpose(1, 2).flatten(0, 1); }

Tensor BatchToFrames(const Tensor& images, int64_t batch) {
  return images.unflatten(0, {batch, -1}).transpose(1, 2).contiguous();
}

// That sum becomes part of the sum over channels, so that one call of muDNN does it all, in its own
// accumulators: channel c * KD + k of the result shows, in every frame of the other side, the frame
// of channel c that slice k of the weight meets there, or zeros. KD is the depth of the kernel; the
// result is (N * frames, C * KD, H, W).
Tensor StackFrames(const Tensor& from, int64_t kernel_depth, int64_t frames, bool from_image,
                   const Geometry& g) {
  const Tensor stacked =
      at::zeros({from.size(0), from.size(1), kernel_depth, frames, from.size(3), from.size(4)},
                from.options());
  for (int64_t k = 0; k < kernel_depth; ++k) {
    const DepthSlice s =
        from_image ? SliceOf(k, from.size(2), frames, g) : SliceOf(k, frames, from.size(2), g);
    if (s.out_begin >= s.out_end) continue;
    const Tensor layer = stacked.select(2, k);
    const auto image_part = [&](const Tensor& t) {
      return t.slice(2, s.image_begin, s.image_end, g.stride[0]);
    };
    const auto out_part = [&](const Tensor& t) { return t.slice(2, s.out_begin, s.out_end); };
    from_image ? out_part(layer).copy_(image_part(from)) : image_part(layer).copy_(out_part(from));
  }
  return FramesToBatch(stacked.flatten(1, 2));
}

// ---- any number of spatial dimensions -------------------------------------------------------

Tensor Correlate(const Tensor& image, const Tensor& weight, const Tensor& bias, const Geometry& g) {
  if (g.spatial_dims() == 1) {
    return Correlate(image.unsqueeze(2), weight.unsqueeze(2), bias, Lift(g)).squeeze(2);
  }
  const DimVector sizes = OutputSizes(image.sizes(), weight.sizes(), g);
  if (c10::multiply_integers(sizes) == 0) return at::empty(sizes, image.options());
  if (image.numel() == 0 || weight.numel() == 0) {
    return AddBias(at::zeros(sizes, image.options()), bias);
  }
  if (g.spatial_dims() == 2) {
    return isFloatingType(image.scalar_type()) ? Correlate2d(image, weight, bias, g)
                                               : CorrelateIntegers2d(image, weight, bias, g);
  }
  const Tensor stacked = StackFrames(image, weight.size(2), sizes[2], /*from_image=*/true, g);
  return BatchToFrames(Correlate(stacked, weight.flatten(1, 2), bias, DropDepth(g)), image.size(0));
}

Tensor DataGradient(const Tensor& grad, const Tensor& weight, IntArrayRef image_sizes,
                    const Geometry& g) {
  if (g.spatial_dims() == 1) {
    return DataGradient(grad.unsqueeze(2), weight.unsqueeze(2), LiftSizes(image_sizes), Lift(g))
        .squeeze(2);
  }
  if (c10::multiply_integers(image_sizes) == 0 || grad.numel() == 0 || weight.numel() == 0) {
    return at::zeros(image_sizes, grad.options());
  }
  if (g.spatial_dims() == 2) return DataGradient2d(grad, weight, image_sizes, g);

  const Tensor stacked = StackFrames(grad, weight.size(2), image_sizes[2], /*from_image=*/false, g);
  const Tensor filters = weight.transpose(1, 2).flatten(0, 1);
  const DimVector frame_sizes{stacked.size(0), image_sizes[1], image_sizes[3], image_sizes[4]};
  return BatchToFrames(DataGradient(stacked, filters, frame_sizes, DropDepth(g)), image_sizes[0]);
}

Tensor WeightGradient(const Tensor& image, const Tensor& grad, IntArrayRef weight_sizes,
                      const Geometry& g) {
  if (g.spatial_dims() == 1) {
    return WeightGradient(image.unsqueeze(2), grad.unsqueeze(2), LiftSizes(weight_sizes), Lift(g))
        .squeeze(2);
  }
  if (c10::multiply_integers(weight_sizes) == 0 || grad.numel() == 0 || image.numel() == 0) {
    return at::zeros(weight_sizes, grad.options());
  }
  if (g.spatial_dims() == 2) return WeightGradient2d(image, grad, weight_sizes, g);

  const Tensor stacked = StackFrames(image, weight_sizes[2], grad.size(2), /*from_image=*/true, g);
  const DimVector filter_sizes{weight_sizes[0], weight_sizes[1] * weight_sizes[2], weight_sizes[3],
                               weight_sizes[4]};
  return WeightGradient(stacked, FramesToBatch(grad), filter_sizes, DropDepth(g))
      .contiguous()
      .view(weight_sizes);
}

// ---- transposed convolution -----------------------------------------------------------------

// An output_padding of a stride or more, which a large dilation allows, leaves room for windows
// that the input has no element for. muDNN wants an element for every window, so zeros stand in for
// them.
Tensor FillWindows(const Tensor& image, const Geometry& g, IntArrayRef output_padding) {
  DimVector pads;
  for (int64_t d = g.spatial_dims() - 1; d >= 0; --d) {
    pads.append({0, output_padding[d] / g.stride[d]});
  }
  return c10::multiply_integers(image.sizes()) == 0 ||
                 std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; })
             ? image
             : at::constant_pad_nd(image, pads, 0);
}

DimVector SizesOfTransposed(IntArrayRef image, IntArrayRef weight, const Geometry& g,
                            IntArrayRef output_padding) {
  DimVector sizes{image[0], weight[1] * g.groups};
  for (int64_t d = 0; d < g.spatial_dims(); ++d) {
    const int64_t window = g.dilation[d] * (weight[2 + d] - 1) + 1;
    sizes.push_back((image[2 + d] - 1) * g.stride[d] - 2 * g.padding[d] + window +
                    output_padding[d]);
  }
  return sizes;
}

// The leading part of `volume` of these sizes.
Tensor Leading(Tensor volume, IntArrayRef sizes) {
  for (int64_t d = 2; d < volume.dim(); ++d) {
    if (volume.size(d) != sizes[d]) volume = volume.narrow(d, 0, sizes[d]);
  }
  return volume;
}

Tensor ConvolveTransposed(const Tensor& image, const Tensor& weight, const Tensor& bias,
                          const Geometry& g, IntArrayRef output_padding) {
  const DimVector sizes = SizesOfTransposed(image.sizes(), weight.sizes(), g, output_padding);
  return AddBias(DataGradient(FillWindows(image, g, output_padding), weight, sizes, g), bias);
}

// ---- checks ---------------------------------------------------------------------------------

Geometry MakeGeometry(const Tensor& weight, IntArrayRef stride, IntArrayRef padding,
                      IntArrayRef dilation, int64_t groups) {
  const int64_t dims = weight.dim() - 2;
  TORCH_CHECK(dims >= 1 && dims <= 3, "convolution: expected a weight with 3 to 5 dimensions, got ",
              weight.sizes());
  const auto expand = [dims](IntArrayRef values) {
    return values.size() == 1 ? DimVector(dims, values[0]) : DimVector(values);
  };
  Geometry g{expand(stride), expand(padding), expand(dilation), groups};
  TORCH_CHECK(g.spatial_dims() == dims && static_cast<int64_t>(g.padding.size()) == dims &&
                  static_cast<int64_t>(g.dilation.size()) == dims,
              "convolution: stride, padding and dilation need one value per spatial dimension");
  return g;
}

void CheckConvolvable(const Tensor& image, const Tensor& weight, bool integers) {
  TORCH_CHECK(image.dim() == weight.dim(), "convolution: input has ", image.dim(),
              " dimensions and weight ", weight.dim());
  TORCH_CHECK(image.scalar_type() == weight.scalar_type(), "Input type (", image.scalar_type(),
              ") and weight type (", weight.scalar_type(), ") should be the same");
  if (integers && isIntegralType(image.scalar_type(), /*includeBool=*/false)) return;
  CheckFloatingType(image.scalar_type(), "convolution");
}

// A larger one would be an ambiguous size of the input.
void CheckOutputPadding(IntArrayRef output_padding, const Geometry& g) {
  TORCH_CHECK(static_cast<int64_t>(output_padding.size()) == g.spatial_dims(),
              "convolution: output_padding needs one value per spatial dimension");
  for (int64_t d = 0; d < g.spatial_dims(); ++d) {
    TORCH_CHECK(output_padding[d] < g.stride[d] || output_padding[d] < g.dilation[d],
                "output padding must be smaller than either stride or dilation, but got "
                "output_padding ",
                output_padding, ", stride ", IntArrayRef(g.stride), " and dilation ",
                IntArrayRef(g.dilation));
  }
}

}  // namespace

Tensor ConvolutionOverrideable(const Tensor& input, const Tensor& weight,
                               const std::optional<Tensor>& bias_opt, IntArrayRef stride,
                               IntArrayRef padding, IntArrayRef dilation, bool transposed,
                               IntArrayRef output_padding, int64_t groups) {
  CheckConvolvable(input, weight, /*integers=*/!transposed);
  const Geometry g = MakeGeometry(weight, stride, padding, dilation, groups);
  const Tensor bias = bias_opt.value_or(Tensor());
  TORCH_CHECK(!bias.defined() || bias.scalar_type() == input.scalar_type(), "Input type (",
              input.scalar_type(), ") and bias type (", bias.scalar_type(), ") should be the same");
  if (transposed) CheckOutputPadding(output_padding, g);
  const c10::musa::MUSAGuard guard(input.device());
  return transposed ? ConvolveTransposed(input, weight, bias, g, output_padding)
                    : Correlate(input, weight, bias, g);
}

std::tuple<Tensor, Tensor, Tensor> ConvolutionBackwardOverrideable(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight, IntArrayRef stride,
    IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> output_mask) {
  CheckConvolvable(input, weight, /*integers=*/false);
  CheckConvolvable(grad_output, weight, /*integers=*/false);
  const Geometry g = MakeGeometry(weight, stride, padding, dilation, groups);
  const c10::musa::MUSAGuard guard(input.device());

  Tensor grad_input, grad_weight, grad_bias;
  if (transposed) {
    // The roles of input and output are swapped.
    if (output_mask[0]) {
      grad_input = Leading(Correlate(grad_output, weight, Tensor(), g), input.sizes());
    }
    if (output_mask[1]) {
      grad_weight =
          WeightGradient(grad_output, FillWindows(input, g, output_padding), weight.sizes(), g);
    }
  } else {
    if (output_mask[0]) grad_input = DataGradient(grad_output, weight, input.sizes(), g);
    if (output_mask[1]) grad_weight = WeightGradient(input, grad_output, weight.sizes(), g);
  }
  if (output_mask[2]) {
    DimVector all_but_channels{0};
    for (int64_t d = 2; d < grad_output.dim(); ++d) all_but_channels.push_back(d);
    grad_bias = grad_output.sum(all_but_channels);
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace at::musa
