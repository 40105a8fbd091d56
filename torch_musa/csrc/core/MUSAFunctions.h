#pragma once

#include <c10/core/Device.h>

namespace c10::musa {

/// Number of visible devices; 0 (and never an exception) when the driver reports a problem.
DeviceIndex device_count() noexcept;

/// Device of the calling thread.
DeviceIndex current_device();

/// Makes `device` the calling thread's device. Throws for an index that does not exist.
void set_device(DeviceIndex device);

/// set_device, returning the device that was current before.
DeviceIndex exchange_device(DeviceIndex device);

/// exchange_device that does nothing for a negative index.
DeviceIndex maybe_exchange_device(DeviceIndex device);

/// Waits for everything enqueued on the current device.
void device_synchronize();

/// Throws with a message that names the valid range unless `device` exists.
void check_device_index(DeviceIndex device);

/// -1 stands for the current device; anything else is checked.
DeviceIndex resolve_device_index(DeviceIndex device);

/// Whether kernels and copies on `device` may address the memory of `peer` directly. Enables the
/// access on first use.
bool can_access_peer(DeviceIndex device, DeviceIndex peer);

// ---- life cycle ----

/// Notes that this process has started to use `device`. Throws in a child that was forked after its
/// parent did.
void ensure_initialized(DeviceIndex device);

/// Whether any (device < 0) or this device has been used in this process.
bool is_initialized(DeviceIndex device = -1) noexcept;

/// True in a child forked after its parent had used a device: the runtime's state does not survive
/// a fork.
bool in_bad_fork() noexcept;

}  // namespace c10::musa
