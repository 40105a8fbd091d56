// The operators, registered for the CPU and, where they were built for one, for a device.
#include <Python.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

at::Tensor nms_cpu(const at::Tensor& boxes, const at::Tensor& scores, double threshold);
at::Tensor roi_align_cpu(const at::Tensor& input, const at::Tensor& rois, double scale,
                         int64_t out_height, int64_t out_width, int64_t ratio);
at::Tensor roi_align_backward_cpu(const at::Tensor& grad, const at::Tensor& rois,
                                  at::IntArrayRef input_size, double scale, int64_t ratio);
at::Tensor deform_sample_cpu(const at::Tensor& input, const at::Tensor& offset, int64_t kernel,
                             int64_t padding, int64_t stride);

TORCH_LIBRARY(detection_ops, m) {
  m.def("nms(Tensor boxes, Tensor scores, float threshold) -> Tensor");
  m.def(
      "roi_align(Tensor input, Tensor rois, float scale, int out_height, int out_width, int ratio) "
      "-> Tensor");
  m.def(
      "roi_align_backward(Tensor grad, Tensor rois, int[] input_size, float scale, int ratio) -> "
      "Tensor");
  m.def(
      "deform_sample(Tensor input, Tensor offset, int kernel, int padding, int stride) -> Tensor");
}

TORCH_LIBRARY_IMPL(detection_ops, CPU, m) {
  m.impl("nms", &nms_cpu);
  m.impl("roi_align", &roi_align_cpu);
  m.impl("roi_align_backward", &roi_align_backward_cpu);
  m.impl("deform_sample", &deform_sample_cpu);
}

#ifdef DETECTION_WITH_CUDA
at::Tensor nms_cuda(const at::Tensor& boxes, const at::Tensor& scores, double threshold);
at::Tensor roi_align_cuda(const at::Tensor& input, const at::Tensor& rois, double scale,
                          int64_t out_height, int64_t out_width, int64_t ratio);
at::Tensor roi_align_backward_cuda(const at::Tensor& grad, const at::Tensor& rois,
                                   at::IntArrayRef input_size, double scale, int64_t ratio);
at::Tensor deform_sample_cuda(const at::Tensor& input, const at::Tensor& offset, int64_t kernel,
                              int64_t padding, int64_t stride);

TORCH_LIBRARY_IMPL(detection_ops, CUDA, m) {
  m.impl("nms", &nms_cuda);
  m.impl("roi_align", &roi_align_cuda);
  m.impl("roi_align_backward", &roi_align_backward_cuda);
  m.impl("deform_sample", &deform_sample_cuda);
}
#endif

// Importing the module registers the operators; it has nothing else in it.
#define DETECTION_INIT_OF(name) PyInit_##name
#define DETECTION_INIT(name) DETECTION_INIT_OF(name)
PyMODINIT_FUNC DETECTION_INIT(TORCH_EXTENSION_NAME)() {
  static PyModuleDef module = {
      PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  return PyModule_Create(&module);
}
