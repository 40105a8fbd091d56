"""What tests and build scripts ask about the device."""

from __future__ import annotations

__all__ = ["get_musa_arch"]


def get_musa_arch() -> int:
    """The architecture of the current device as one number: 21 for mp_21, 22 for mp_22, 31 for mp_31."""
    from torch_musa.musa import get_device_capability

    major, minor = get_device_capability()
    return 10 * major + minor
