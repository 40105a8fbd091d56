"""The caching allocator: blocks that it has, a mixture of sizes and orders, and memory it must ask the driver for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import torch

from side_by_side.cases import Case, Scale
from side_by_side.measure import Call

_BLOCKS = 1000
_SEGMENTS = 32


def cases(scale: Scale) -> Iterator[Case]:
    largest = scale.block_bytes
    for title, size in (("512 B", 512), (_mib(largest // 4), largest // 4), (_mib(largest * 16), largest * 16)):
        yield Case("allocator", f"a block of {title}, taken and freed", "us", partial(_one, size=size), "issue")
    name = f"{_BLOCKS:,} blocks of 512 B to {_mib(largest)}, freed in another order"
    yield Case("allocator", name, "us", partial(_mixture, largest=largest), "issue", count=1)
    # 20 MiB is more than a segment that small blocks share: each block is asked of the driver, and given back.
    name = f"{_SEGMENTS} blocks of {_mib(largest * 5 // 4)} from the driver, and back"
    yield Case("allocator", name, "us", partial(_fresh, size=largest * 5 // 4), "issue", count=1)


def _mib(size: int) -> str:
    return f"{size >> 20:,} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _one(device: str, size: int) -> Call:
    return lambda: torch.empty(size, dtype=torch.uint8, device=device)


def _mixture(device: str, largest: int) -> Call:
    drawn = random.Random(0)
    # Evenly in the logarithm, as sizes in a network are: most are small, most of the memory is in the large ones.
    sizes = [int(512 * (largest / 512) ** drawn.random()) for _ in range(_BLOCKS)]
    order = drawn.sample(range(_BLOCKS), _BLOCKS)

    def call() -> None:
        blocks: list[torch.Tensor | None] = [torch.empty(n, dtype=torch.uint8, device=device) for n in sizes]
        for place in order:
            blocks[place] = None

    return call


def _fresh(device: str, size: int) -> Call:
    module = torch.get_device_module(device)
    release = getattr(module, "empty_cache", lambda: None)

    def call() -> None:
        blocks = [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(_SEGMENTS)]
        del blocks
        release()

    return call
