"""Device arguments."""

from __future__ import annotations

from typing import TypeAlias

import torch

from torch_musa import _backend

_C = _backend.extension()

Device: TypeAlias = int | str | torch.device | None


def _get_device_index(device: Device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that `device` stands for. PyTorch's serialization calls this by name.

    Args:
        device: an index, "musa", "musa:1", a torch.device, or None.
        optional: None and a device without an index then mean the current device; otherwise they are errors.
        allow_cpu: a CPU device then gives -1.

    Raises:
        ValueError: not a musa device, or no index where one is needed.
    """
    if isinstance(device, bool):
        raise TypeError(f"Expected a musa device, but got: {device}")
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != _backend.DEVICE:
            raise ValueError(f"Expected a musa device, but got: {device}")
        if device.index is not None:
            return device.index
    elif device is not None:
        raise TypeError(f"Expected a musa device, but got: {device!r}")
    if not optional:
        raise ValueError(f"Expected a musa device with a specified index or an integer, but got: {device}")
    return int(_C._current_device())
