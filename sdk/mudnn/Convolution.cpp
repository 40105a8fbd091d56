#include "Internal.h"
#include "mudnn_nn.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/_conv_depthwise2d.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/cudnn_convolution.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include <tuple>

#include "Results.h"
#include "Tf32.h"

namespace musa::dnn {

using namespace internal;

namespace {

const char* const kAlgorithmNames[] = {"IMPLICIT_GEMM", "DIRECT", "WINOGRAD_NONFUSED", "GEMM"};

// The three enumerations have the same members in the same order.
template <class A>
const char* algorithm_name(A algo) {
  const auto index = static_cast<size_t>(algo);
  return index < std::size(kAlgorithmNames) ? kAlgorithmNames[index] : "unknown";
}

struct Geometry {
  at::IntArrayRef pad, stride, dilation;
  int64_t groups;
};

// The operand as (N, C, H, W) or (out, in / groups, kh, kw), whichever order its memory has.
at::Tensor image(const Call& c, const Tensor& t) {
  const at::Tensor alias = c.alias(t);
  return format(t) == Tensor::Format::NHWC ? alias.permute({0, 3, 1, 2}) : alias;
}

template <class A>
void check_algorithm(A algo, const at::Tensor& w, const Geometry& g) {
  // The transform that gives the algorithm its name exists for this kernel only.
  const auto all_one = [](at::IntArrayRef v) { return v.equals({1, 1}); };
  require(algo != A::WINOGRAD_NONFUSED || (w.size(2) == 3 && w.size(3) == 3 && all_one(g.stride) &&
                                           all_one(g.dilation) && g.groups == 1),
          "WINOGRAD needs a dense 3x3 kernel and unit stride", Status::NOT_SUPPORTED);
  require(algo >= A::IMPLICIT_GEMM && algo <= A::GEMM, "unknown algorithm");
}

void check_types_and_layout(const Tensor& a, const Tensor& b, const Tensor& c) {
  require(is_floating(type(a)), "type", Status::NOT_SUPPORTED);
  require(type(a) == type(b) && type(a) == type(c), "operands must have one type");
  require(contiguous(a) && contiguous(b) && contiguous(c), "operands must be contiguous");
  require(format(a) == format(b) && format(a) == format(c), "operands must have one format");
  require(format(a) == Tensor::Format::NCHW || format(a) == Tensor::Format::NHWC, "format");
}

void check_geometry(const at::Tensor& out, const at::Tensor& in, const at::Tensor& w,
                    const Geometry& g) {
  require(g.pad.size() == 2 && g.stride.size() == 2 && g.dilation.size() == 2,
          "SetNdInfo with two spatial dimensions comes first");
  require(in.size(0) == out.size(0) && out.size(1) == w.size(0) &&
              in.size(1) == w.size(1) * g.groups && w.size(0) % g.groups == 0,
          "channels or batch do not agree");
  for (int d = 0; d < 2; ++d) {
    const int64_t window = g.dilation[d] * (w.size(2 + d) - 1) + 1;
    require(g.stride[d] > 0 && g.dilation[d] > 0 && g.pad[d] >= 0, "pad, stride or dilation");
    // The image of a transposed convolution may be larger than the windows reach.
    const int64_t reach = in.size(2 + d) + 2 * g.pad[d] - window;
    require(reach >= 0 && out.size(2 + d) == reach / g.stride[d] + 1, "sizes do not agree");
  }
}

// Straight into `out`, where ATen would choose one of the kernels that can; false, and nothing
// done, where not. `out` shares no memory with the operands.
bool convolve_into(at::Tensor out, const at::Tensor& in, const at::Tensor& w,
                   const at::Tensor& bias, const Geometry& g, bool tf32) {
  using at::native::ConvBackend;
  if (!in.is_cuda()) return false;
  const c10::SymDimVector stride(g.stride.begin(), g.stride.end());
  const c10::SymDimVector pad(g.pad.begin(), g.pad.end());
  const c10::SymDimVector dilation(g.dilation.begin(), g.dilation.end());
  const c10::SymDimVector none(2, 0);
  switch (at::native::select_conv_backend(in, w, bias, stride, pad, dilation, /*transposed=*/false,
                                          none, g.groups, std::nullopt)) {
    case ConvBackend::Cudnn: {
      if (at::native::cudnn_conv_suggest_memory_format(in, w) != out.suggest_memory_format()) {
        return false;
      }
      const at::Context& context = at::globalContext();
      at::cudnn_convolution_out(
          out, in, w, g.pad, g.stride, g.dilation, g.groups, context.benchmarkCuDNN(),
          context.deterministicCuDNN() || context.deterministicAlgorithms(), tf32);
      if (bias.defined()) out.add_(bias.view({1, -1, 1, 1}));
      return true;
    }
    case ConvBackend::CudaDepthwise2d:
      if (!out.is_contiguous()) return false;
      at::_conv_depthwise2d_out(out, in, w, w.sizes().slice(2), bias, g.stride, g.pad, g.dilation);
      return true;
    default:
      return false;
  }
}

std::vector<int64_t> widen(int n, const int* values) { return {values, values + n}; }

}  // namespace

Status Convolution::FusedActivationDesc::SetMode(Mode mode) {
  if (mode < Mode::IDENTITY || mode > Mode::SILU) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Convolution::SetNdInfo(int n, const int* pad, const int* stride, const int* dilation) {
  if (n < 1 || n > 3 || pad == nullptr || stride == nullptr || dilation == nullptr) {
    return Status::INVALID_PARAMETER;
  }
  pad_ = widen(n, pad);
  stride_ = widen(n, stride);
  dilation_ = widen(n, dilation);
  return Status::SUCCESS;
}

Status Convolution::SetNdInfo(std::initializer_list<int> pad, std::initializer_list<int> stride,
                              std::initializer_list<int> dilation) {
  if (pad.size() != stride.size() || pad.size() != dilation.size()) {
    return Status::INVALID_PARAMETER;
  }
  return SetNdInfo(static_cast<int>(pad.size()), pad.begin(), stride.begin(), dilation.begin());
}

Status Convolution::SetGroups(int groups) {
  if (groups < 1) return Status::INVALID_PARAMETER;
  groups_ = groups;
  return Status::SUCCESS;
}

Status Convolution::SetComputeMode(ComputeMode mode) {
  if (mode != ComputeMode::SCALAR && mode != ComputeMode::TENSOR) return Status::INVALID_PARAMETER;
  compute_mode_ = mode;
  return Status::SUCCESS;
}

Status Convolution::GetRecommendForwardAlgorithm(Handle&, Algorithm& algo, const Tensor&,
                                                 const Tensor&, const Tensor&) const {
  algo = groups_ > 1 ? Algorithm::DIRECT : Algorithm::IMPLICIT_GEMM;
  return Status::SUCCESS;
}

Status Convolution::GetRecommendBackwardDataAlgorithm(Handle&, AlgorithmBwdData& algo,
                                                      const Tensor&, const Tensor&,
                                                      const Tensor&) const {
  algo = AlgorithmBwdData::IMPLICIT_GEMM;
  return Status::SUCCESS;
}

Status Convolution::GetRecommendBackwardFilterAlgorithm(Handle&, AlgorithmBwdFilter& algo,
                                                        const Tensor&, const Tensor&,
                                                        const Tensor&) const {
  algo = AlgorithmBwdFilter::IMPLICIT_GEMM;
  return Status::SUCCESS;
}

Status Convolution::Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& w, Algorithm algo,
                        const MemoryMaintainer& maintainer) const {
  return RunForward(h, "Convolution::Run", out, in, w, {}, {}, {}, algo);
}

Status Convolution::RunFusion(Handle& h, Tensor& out, const Tensor& in, const Tensor& w,
                              const Tensor& bias, const Tensor& add, const FusedActivationDesc& act,
                              Algorithm algo, const MemoryMaintainer& maintainer) const {
  return RunForward(h, "Convolution::RunFusion", out, in, w, bias, add, act, algo);
}

Status Convolution::RunForward(Handle& h, const char* entry, Tensor& out, const Tensor& in,
                               const Tensor& w, const Tensor& bias, const Tensor& add,
                               const FusedActivationDesc& act, Algorithm algo) const {
  return Call(h, Class::CONVOLUTION, entry, algorithm_name(algo))
      .out("out", out)
      .in("in", in)
      .in("w", w)
      .optional_in("bias", bias)
      .optional_in("add", add)
      .with(Fact::GROUPS, static_cast<size_t>(groups_))
      .run([&](Call& c) -> Work {
        check_types_and_layout(out, in, w);
        const Geometry g{pad_, stride_, dilation_, groups_};
        const at::Tensor o = image(c, out), i = image(c, in), k = image(c, w);
        check_geometry(o, i, k, g);
        check_algorithm(algo, k, g);
        at::Tensor b, a;
        if (!absent(bias)) {
          require(numel(bias) == k.size(0) && contiguous(bias) && type(bias) == type(w),
                  "bias must hold one value per output channel");
          b = c.alias(bias, {k.size(0)}, {1});
        }
        if (!absent(add)) {
          require(same_shape(add, out) && type(add) == type(out) && format(add) == format(out),
                  "add must be like out");
          a = image(c, add);
        }
        return [=, pad = pad_, stride = stride_, dilation = dilation_, groups = groups_,
                mode = act.mode(), tf32 = uses_tf32(h, compute_mode_, type(in))] {
          const at::Tensor read = tf32 ? to_tf32(i) : apart(i, o);
          const at::Tensor filter = tf32 ? to_tf32(k) : apart(k, o);
          if (!a.defined() &&
              convolve_into(o, read, filter, b, {pad, stride, dilation, groups}, tf32)) {
            at::Tensor written = o;
            if (mode == FusedActivationDesc::Mode::RELU) at::relu_(written);
            if (mode == FusedActivationDesc::Mode::SILU) at::silu_(written);
            return;
          }
          produce({o}, {read, filter, b, a}, [&] {
            at::Tensor result = at::convolution(read, filter, b, stride, pad, dilation,
                                                /*transposed=*/false, {0, 0}, groups);
            if (a.defined()) result.add_(a);
            if (mode == FusedActivationDesc::Mode::RELU) at::relu_(result);
            if (mode == FusedActivationDesc::Mode::SILU) at::silu_(result);
            return result;
          });
        };
      });
}

Status Convolution::RunBwdData(Handle& h, Tensor& grad_in, const Tensor& grad_out, const Tensor& w,
                               AlgorithmBwdData algo, const MemoryMaintainer&) const {
  return Call(h, Class::CONVOLUTION, "Convolution::RunBwdData", algorithm_name(algo))
      .out("grad_in", grad_in)
      .in("grad_out", grad_out)
      .in("w", w)
      .with(Fact::GROUPS, static_cast<size_t>(groups_))
      .run([&](Call& c) -> Work {
        check_types_and_layout(grad_in, grad_out, w);
        const Geometry g{pad_, stride_, dilation_, groups_};
        const at::Tensor gi = image(c, grad_in), go = image(c, grad_out), k = image(c, w);
        check_geometry(go, gi, k, g);
        check_algorithm(algo, k, g);
        return [=, pad = pad_, stride = stride_, dilation = dilation_, groups = groups_,
                tf32 = uses_tf32(h, compute_mode_, type(w))] {
          // Of the forward input only shape, type and layout are read, so the result stands in for
          // it.
          const at::Tensor g = tf32 ? to_tf32(go) : go, w = tf32 ? to_tf32(k) : k;
          produce({gi}, {g, w}, [&] {
            return std::get<0>(at::convolution_backward(g, /*input=*/gi, w, std::nullopt, stride,
                                                        pad, dilation, /*transposed=*/false, {0, 0},
                                                        groups, {true, false, false}));
          });
        };
      });
}

Status Convolution::RunBwdFilter(Handle& h, Tensor& grad_w, const Tensor& in,
                                 const Tensor& grad_out, AlgorithmBwdFilter algo,
                                 const MemoryMaintainer&) const {
  return Call(h, Class::CONVOLUTION, "Convolution::RunBwdFilter", algorithm_name(algo))
      .out("grad_w", grad_w)
      .in("in", in)
      .in("grad_out", grad_out)
      .with(Fact::GROUPS, static_cast<size_t>(groups_))
      .run([&](Call& c) -> Work {
        check_types_and_layout(grad_w, in, grad_out);
        const Geometry g{pad_, stride_, dilation_, groups_};
        const at::Tensor gk = image(c, grad_w), i = image(c, in), go = image(c, grad_out);
        check_geometry(go, i, gk, g);
        check_algorithm(algo, gk, g);
        return [=, pad = pad_, stride = stride_, dilation = dilation_, groups = groups_,
                tf32 = uses_tf32(h, compute_mode_, type(in))] {
          // As above: of the filter only shape, type and layout are read.
          const at::Tensor g = tf32 ? to_tf32(go) : go, x = tf32 ? to_tf32(i) : i;
          produce({gk}, {g, x}, [&] {
            return std::get<1>(at::convolution_backward(g, x, /*weight=*/gk, std::nullopt, stride,
                                                        pad, dilation, /*transposed=*/false, {0, 0},
                                                        groups, {false, true, false}));
          });
        };
      });
}

}  // namespace musa::dnn
