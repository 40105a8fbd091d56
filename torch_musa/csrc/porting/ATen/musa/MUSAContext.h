// Where a ported source looks for ATen/cuda/CUDAContext.h.
#pragma once

#include <ATen/Context.h>
#include <ATen/DeviceGuard.h>
#include <ATen/musa/Exceptions.h>
#include <ATen/musa/MUSAContextLight.h>
#include <c10/musa/MUSAStream.h>
