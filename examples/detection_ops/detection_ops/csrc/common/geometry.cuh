// What the kernels share: a loop over all elements, and bilinear interpolation with its gradient.
#ifndef DETECTION_OPS_GEOMETRY_CUH
#define DETECTION_OPS_GEOMETRY_CUH

#include <cuda_runtime.h>

#define DETECTION_CUDA_LOOP(i, n)                                                        \
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < (n); \
       i += static_cast<int64_t>(blockDim.x) * gridDim.x)

constexpr int kThreads = 256;

inline int blocks_for(int64_t n) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 4096 ? blocks : 4096);
}

// Four neighbours of a point and their weights; `inside` is false beyond one pixel outside the
// image.
template <typename T>
struct Corners {
  int y0, x0, y1, x1;
  T w00, w01, w10, w11;
  bool inside;
};

template <typename T>
__host__ __device__ inline Corners<T> corners_of(T y, T x, int height, int width) {
  Corners<T> c;
  c.inside = y > -1 && y < height && x > -1 && x < width;
  if (!c.inside) {
    c.y0 = c.x0 = c.y1 = c.x1 = 0;
    c.w00 = c.w01 = c.w10 = c.w11 = 0;
    return c;
  }
  y = y < 0 ? 0 : y;
  x = x < 0 ? 0 : x;
  c.y0 = static_cast<int>(y);
  c.x0 = static_cast<int>(x);
  if (c.y0 >= height - 1) {
    c.y0 = height - 1;
    y = static_cast<T>(c.y0);
  }
  if (c.x0 >= width - 1) {
    c.x0 = width - 1;
    x = static_cast<T>(c.x0);
  }
  c.y1 = c.y0 < height - 1 ? c.y0 + 1 : c.y0;
  c.x1 = c.x0 < width - 1 ? c.x0 + 1 : c.x0;
  const T ly = y - c.y0, lx = x - c.x0;
  const T one = 1;
  c.w00 = (one - ly) * (one - lx);
  c.w01 = (one - ly) * lx;
  c.w10 = ly * (one - lx);
  c.w11 = ly * lx;
  return c;
}

template <typename T>
__host__ __device__ inline T sample(const T* image, const Corners<T>& c, int width) {
  return c.w00 * image[c.y0 * width + c.x0] + c.w01 * image[c.y0 * width + c.x1] +
         c.w10 * image[c.y1 * width + c.x0] + c.w11 * image[c.y1 * width + c.x1];
}

#endif  // DETECTION_OPS_GEOMETRY_CUH
