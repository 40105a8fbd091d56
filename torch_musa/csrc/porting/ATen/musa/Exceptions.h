// Where a ported source looks for ATen/cuda/Exceptions.h.
#pragma once

#include <ATen/Context.h>
#include <c10/musa/MUSAException.h>

#define AT_MUSA_CHECK(EXPR) C10_MUSA_CHECK(EXPR)
