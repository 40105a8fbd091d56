// Products of floats as ATen's mm makes them, without describing the operands to ATen: the same
// call of cuBLAS on ATen's handle, which brings its stream, workspace and precision along. (Facts:
// ATen/native/cuda/cuBlasCommonArgs.h; gemm<float> in ATen/cuda/CUDABlas.cpp.)
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Exceptions.h>
#include <ATen/cuda/tunable/Tunable.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include "DirectCalls.h"
#include "Target.h"
#include "torch_musa/csrc/core/TorchCompat.h"

namespace musa::dnn::internal::target {
namespace {

using Sgemm = decltype(&cublasSgemm_v2);

// libtorch_cuda brings the library along; a machine that only builds need not have it to link with.
Sgemm find_sgemm() {
  void* torch = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  return torch == nullptr ? nullptr : reinterpret_cast<Sgemm>(dlsym(torch, "cublasSgemm_v2"));
}

// Whether ATen, too, would come to that call.
bool is_plain() {
  at::Context& context = at::globalContext();
  const at::BlasBackend backend = context.blasPreferredBackend();
  return (backend == at::BlasBackend::Default || backend == at::BlasBackend::Cublas) &&
         !context.deterministicAlgorithms() && !context._SMCarveout_EXPERIMENTAL().has_value() &&
         !at::cuda::tunable::getTuningContext()->IsTunableOpEnabled();
}

cublasOperation_t operation(const DirectMatrix& m) {
  return m.by_columns ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

bool product(int device, musaStream_t stream, const DirectProduct& p) {
  static const Sgemm sgemm = find_sgemm();
  if (sgemm == nullptr || !is_plain()) return false;
  [[maybe_unused]] const OnStream on_stream(device, stream);
  constexpr float kOne = 1, kZero = 0;
  const auto& handle = MUSA_CUBLAS_HANDLE_OF_ATEN();
  // To cuBLAS, which reads by columns, what lies in memory by rows is a transpose: out^T = r^T l^T.
  TORCH_CUDABLAS_CHECK(sgemm(handle, operation(p.r), operation(p.l), p.columns, p.rows, p.depth,
                             &kOne, p.r.memory, p.r.leading, p.l.memory, p.l.leading, &kZero, p.out,
                             p.columns));
  return true;
}

}  // namespace musa::dnn::internal::target
