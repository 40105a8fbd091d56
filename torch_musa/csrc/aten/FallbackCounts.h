#pragma once

#include <string>

namespace at::musa {

/// Adds a call of `op` ("linalg_qr.out") to the fallback counts. For kernels/cpu_fallback, whose
/// kernels go to the CPU themselves instead of through the boxed fallback.
void count_cpu_fallback(const std::string& op);

}  // namespace at::musa
