// Kernel side of the host stand-in: what mcc puts in front of a `.mu` source, and nobody else
// includes. How kernels run, what is modelled and what is not: docs/kernels.md.
#pragma once

#include "musa_kernel/assertion.h"
#include "musa_kernel/atomic.h"
#include "musa_kernel/barrier.h"
#include "musa_kernel/constant.h"
#include "musa_kernel/index.h"
#include "musa_kernel/launch.h"
#include "musa_kernel/math.h"
#include "musa_kernel/qualifiers.h"
#include "musa_kernel/shared.h"
#include "musa_kernel/symbol.h"
#include "musa_kernel/warp.h"
