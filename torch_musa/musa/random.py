"""Random numbers: one generator for each device, and their seeds and states."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_musa import _backend
from torch_musa.musa._utils import Device, _get_device_index
from torch_musa.musa.device import current_device, device_count

_C = _backend.extension()


def _generator(device: Device = None) -> torch.Generator:
    return _C._default_generator(_get_device_index(device, optional=True))


def _default_generators() -> tuple[torch.Generator, ...]:
    return tuple(_generator(index) for index in range(device_count()))


def get_rng_state(device: Device = "musa") -> torch.Tensor:
    """State of a device's generator: a CPU tensor of 16 bytes, seed and offset."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """States of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: Device = "musa") -> None:
    """Puts a device's generator into a state that get_rng_state returned."""
    _generator(device).set_state(new_state.clone(memory_format=torch.contiguous_format))


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Puts the generators of all devices into the states that get_rng_state_all returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _generator(current_device()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; torch.manual_seed calls it too."""
    for index in range(device_count()):
        _generator(index).manual_seed(int(seed))


def seed() -> int:
    """Seeds the current device's generator with a fresh random number and returns it."""
    return _generator().seed()


def seed_all() -> None:
    """Seeds the generators of all devices with one fresh random number."""
    manual_seed_all(_generator().seed())


def initial_seed() -> int:
    """Seed of the current device's generator."""
    return _generator().initial_seed()
