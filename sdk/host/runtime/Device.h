// Devices of the stand-in: how many, which is current, what they claim to be.
#pragma once

#include "Api.h"

namespace musa::host {

int device_count();
int current_device();
void require_device(int device);  // musaErrorInvalidDevice unless it exists
size_t device_memory();           // bytes each device has
bool peer_enabled(int device, int peer);

}  // namespace musa::host
