"""Device memory: what the caching allocator holds and how to make it let go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_musa import _backend
from torch_musa.musa._utils import Device, _get_device_index

_C = _backend.extension()


def empty_cache() -> None:
    """Gives memory that is cached but unused back to the driver. Does nothing before the first use of a device."""
    _C._empty_cache()


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """`memory_stats`, nested by statistic, pool and metric."""
    return dict(_C._memory_stats(_get_device_index(device, optional=True)))


def memory_stats(device: Device = None) -> OrderedDict[str, int]:
    """Statistics of the allocator, named as torch.cuda.memory_stats names them.

    "<what>.<pool>.<metric>" with what = allocation, segment, active, inactive_split (counts) or allocated_bytes,
    reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes (bytes); pool = all, small_pool, large_pool;
    metric = current, peak, allocated, freed. Beside these num_alloc_retries, num_ooms, num_sync_all_streams,
    num_device_alloc and num_device_free.
    """
    flat: list[tuple[str, int]] = []

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else key, inner)
        else:
            flat.append((prefix, value))

    walk("", memory_stats_as_nested_dict(device))
    return OrderedDict(sorted(flat))


def memory_allocated(device: Device = None) -> int:
    """Bytes in tensors that are alive."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes that were in tensors at one time, since the start or the last reset_peak_memory_stats."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device = None) -> int:
    """Bytes taken from the driver, used or cached."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes that were taken from the driver, since the start or the last reset_peak_memory_stats."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device = None) -> None:
    """Lets every peak start again from the present value."""
    _C._reset_peak_memory_stats(_get_device_index(device, optional=True))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Lets every total ("allocated", "freed") and event count start again from zero."""
    _C._reset_accumulated_memory_stats(_get_device_index(device, optional=True))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) bytes of a device as the driver sees it."""
    free, total = _C._mem_get_info(_get_device_index(device, optional=True))
    return free, total


def memory_summary(device: Device = None) -> str:
    """A short table of `memory_stats` for people."""
    index = _get_device_index(device, optional=True)
    stats = memory_stats(index)

    def mib(name: str) -> str:
        return " ".join(f"{stats[f'{name}.all.{metric}'] / 2**20:12.2f}" for metric in ("current", "peak"))

    def count(name: str) -> str:
        return " ".join(f"{stats[f'{name}.all.{metric}']:12d}" for metric in ("current", "peak"))

    free, total = mem_get_info(index)
    return "\n".join(
        [
            f"Memory of musa:{index}                 current         peak",
            f"allocated (MiB)         {mib('allocated_bytes')}",
            f"reserved (MiB)          {mib('reserved_bytes')}",
            f"allocations             {count('allocation')}",
            f"segments                {count('segment')}",
            f"device: {free / 2**20:.2f} MiB free of {total / 2**20:.2f} MiB; "
            f"{stats['num_alloc_retries']} retries, {stats['num_ooms']} out of memory",
        ]
    )


def _host_empty_cache() -> None:
    """Gives page-locked host memory that is cached but unused back."""
    _C._host_empty_cache()


class MemPool(_C._MemPool):  # type: ignore[name-defined, misc]
    """A pool of device memory apart from all other: what `use_mem_pool` allocates in, and graphs may share.

    When the object goes, what is free of the pool goes back to the device; tensors in it stay valid.

    Args:
        allocator: not supported: musa memory always comes from the runtime.
        use_on_oom: whether allocations outside the pool may be served from it when the device is full.
        no_split: a segment goes as a whole to one allocation.
    """

    def __init__(self, allocator: None = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        if allocator is not None:
            raise NotImplementedError(
                "torch.musa.MemPool takes no allocator of your own: musa memory always comes from the runtime"
            )
        super().__init__(use_on_oom, no_split)

    @property
    def id(self) -> tuple[int, int]:
        """The pool's token, which `torch.musa.graph` takes as well."""
        return super().id  # type: ignore[no-any-return]

    def use_count(self) -> int:
        """1, and one more for each graph and each `use_mem_pool` that uses the pool now."""
        return int(super().use_count())


@contextmanager
def use_mem_pool(pool: MemPool, device: Device = None) -> Iterator[None]:
    """Allocations of the calling thread on `device` (default: the current one) go to `pool` inside the block.

    Other threads, those of a backward pass among them, allocate where they did.
    """
    index = _get_device_index(device, optional=True)
    _C._begin_allocate_current_thread_to_pool(index, pool.id)
    try:
        yield
    finally:
        _C._end_allocate_to_pool(index, pool.id)
