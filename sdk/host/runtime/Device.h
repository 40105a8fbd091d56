// Devices of the stand-in: how many, which is current, what they claim to be.
#pragma once

#include "Api.h"

namespace musa::host {

int device_count();
int current_device();
void require_device(int device);   // musaErrorInvalidDevice unless it exists
size_t device_memory(int device);  // bytes the device has
bool peer_enabled(int device, int peer);

// MUSA_VISIBLE_DEVICES renumbers the devices of the machine: this process' number to the machine's
// and back (-1: not visible).
int physical_device(int device);
int visible_device(int physical);

}  // namespace musa::host
