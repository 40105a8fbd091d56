"""torch.musa: the device module that PyTorch knows the MUSA device by. The names follow torch.cuda's."""

from __future__ import annotations

from typing import Any

from torch_musa.musa import _utils, amp, graphs, memory, random
from torch_musa.musa.device import (
    _exchange_device,
    _is_in_bad_fork,
    _lazy_init,
    _maybe_exchange_device,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
    target,
)
from torch_musa.musa.graphed_callables import make_graphed_callables
from torch_musa.musa.graphs import MUSAGraph, graph, graph_pool_handle, is_current_stream_capturing
from torch_musa.musa.memory import (
    MemPool,
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    use_mem_pool,
)
from torch_musa.musa.ops import count_ops, fallback_counts, op_table, reset_fallback_counts
from torch_musa.musa.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_musa.musa.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "Event",
    "ExternalStream",
    "MUSAGraph",
    "MemPool",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "count_ops",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "fallback_counts",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "graphs",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "op_table",
    "random",
    "reset_accumulated_memory_stats",
    "reset_fallback_counts",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "target",
    "use_mem_pool",
]

# PyTorch reaches for these by name: serialization, torch.manual_seed, lazy initialization, device guards.
_PROTOCOL = (_exchange_device, _is_in_bad_fork, _lazy_init, _maybe_exchange_device, _utils)


def __getattr__(name: str) -> Any:
    # Made when asked for: the generators come into being, seeded, with their devices.
    if name == "default_generators":
        return random._default_generators()
    raise AttributeError(f"module 'torch.musa' has no attribute {name!r}")
