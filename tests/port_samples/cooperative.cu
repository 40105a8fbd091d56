// Cooperative groups, over a tile and over the whole grid: reported.
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void whole(int* data) {
  cg::grid_group grid = cg::this_grid();
  data[grid.thread_rank()] = 1;
  grid.sync();
}

int main() {
  int* data = nullptr;
  void* arguments[] = {&data};
  CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(whole), dim3(1), dim3(32),
                                         arguments, 0, nullptr));
  return 0;
}
