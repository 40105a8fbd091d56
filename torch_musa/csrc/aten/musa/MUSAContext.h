#pragma once

#include <musa_runtime.h>

#include "torch_musa/csrc/core/MUSAFunctions.h"
#include "torch_musa/csrc/core/MUSAStream.h"

namespace at::musa {

using MUSAStream = c10::musa::MUSAStream;
using c10::musa::getCurrentMUSAStream;
using c10::musa::getDefaultMUSAStream;
using c10::musa::getStreamFromPool;
using c10::musa::setCurrentMUSAStream;

/// Properties of `device` (-1: the current one), read once. (Not const, as in PyTorch's own
/// contexts: its headers say so.)
musaDeviceProp* getDeviceProperties(c10::DeviceIndex device = -1);
musaDeviceProp* getCurrentDeviceProperties();

/// 10 * major + minor of the current device: 21 for mp_21, 22 for mp_22, 31 for mp_31.
int getMUSAArch();

/// C10_WARP_SIZE for the host: what PyTorch sizes launches by. The chip's is properties' warpSize.
int warp_size();

}  // namespace at::musa
