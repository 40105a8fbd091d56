#pragma once

// Where PyTorch's releases give different results, and the kernels here follow the one that they
// run under. Apart from TorchCompat.h, which every source sees: this concerns single kernels.

#include "torch_musa/csrc/core/TorchCompat.h"

/// Whether clamp fills with NaN where its only bound is NaN (from 2.12); clamp_min, clamp_max and
/// clamp with two bounds always do.
inline constexpr bool kClampTakesOneNan = MUSA_TORCH_AT_LEAST(2, 12);
