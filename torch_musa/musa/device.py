"""Devices: how many, which is current, what they can do."""

from __future__ import annotations

from typing import Any

import torch

from torch_musa import _backend, _build
from torch_musa.musa._utils import Device, _get_device_index

_C = _backend.extension()


def is_available() -> bool:
    """Whether there is at least one musa device."""
    return device_count() > 0


def device_count() -> int:
    """Number of visible musa devices."""
    return int(_C._device_count())


def current_device() -> int:
    """Index of the calling thread's device."""
    return int(_C._current_device())


def set_device(device: Device) -> None:
    """Makes `device` the calling thread's device. Raises RuntimeError for an index that does not exist."""
    index = _get_device_index(device)
    if index >= 0:
        _C._set_device(index)


def synchronize(device: Device = None) -> None:
    """Waits for all work on all streams of `device` (default: the current one)."""
    _C._synchronize(_get_device_index(device, optional=True))


class device:
    """Context manager that makes a device current. A negative index changes nothing."""

    def __init__(self, device: Device) -> None:
        self.idx = _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _C._maybe_exchange_device(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self.idx >= 0:
            self.idx = _C._maybe_exchange_device(self.prev_idx)


class device_of(device):
    """Context manager that makes the device of a tensor or storage current, if it is a musa one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == _backend.DEVICE else -1)


def _exchange_device(device: int) -> int:
    return int(_C._maybe_exchange_device(device))


_maybe_exchange_device = _exchange_device


def get_device_properties(device: Device = None) -> Any:
    """Name, capability (major, minor), total_memory in bytes, multi_processor_count, warp_size ... of a device."""
    return _C._device_properties(_get_device_index(device, optional=True))


def get_device_name(device: Device = None) -> str:
    """Name of a device."""
    return str(get_device_properties(device).name)


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """(major, minor) of a device's architecture: (2, 1) is mp_21."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether kernels on `device` can read and write the memory of `peer_device`."""
    return bool(
        _C._can_access_peer(_get_device_index(device, optional=True), _get_device_index(peer_device, optional=True))
    )


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes in bfloat16: from architecture 2.2 on, and never emulated."""
    del including_emulation  # the argument of torch.cuda's function, for code that passes it
    return is_available() and get_device_capability() >= (2, 2)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Dtypes for torch.autocast("musa")."""
    return [torch.float16, torch.bfloat16] if is_bf16_supported() else [torch.float16]


def target() -> str:
    """The toolkit that this build runs on: "host" is the stand-in that computes on the CPU, "cuda" the one on an NVIDIA
    GPU, "musa" Moore Threads' own."""
    return _build.target()


# ---- life cycle ----


def init() -> None:
    """Starts the runtime. Any use of a device does it too.

    Raises RuntimeError in a process forked from one that had used a device: the runtime does not survive a fork.
    """
    _C._init()


def is_initialized() -> bool:
    """Whether this process has used a device."""
    return bool(_C._is_initialized()) and not _is_in_bad_fork()


def _lazy_init() -> None:  # PyTorch calls it before the first tensor on the device
    init()


def _is_in_bad_fork() -> bool:
    return bool(_C._in_bad_fork())
