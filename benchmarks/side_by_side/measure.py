"""The two devices, and how time is taken on both alike.

Both take turns in short rounds, so that what slows the machine (clocks, heat, neighbours) slows both. A device that
runs behind its host is timed in one of three ways: what the host spends on issuing (`issue`), what the device spends on
work that waits for it in its queue (`device`), or what a user waits for (`steps`; the native side of it in a process of
its own, alone.py says why).
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from side_by_side.alone import Alone

Call = Callable[[], object]

ISSUED = 200
"""Calls of one round of `issue`: a GPU's queue takes about 1,000 launches before its host has to wait."""

ROTATED_BYTES = 256 << 20
"""Working sets of a case together: several times an H200's L2 (50 MiB), so that no call finds what an earlier left."""

_BATCH_S = 3e-3
_MOST_CALLS = 64
_PLUG_MOST_S = 50e-3


@dataclass(frozen=True)
class Side:
    """One of the two devices, and its module of streams, events and memory (`torch.musa`, `torch.cuda`)."""

    device: str

    @property
    def module(self) -> Any:
        return torch.get_device_module(self.device)

    @property
    def behind(self) -> bool:
        """Whether work runs behind the host, as on a GPU."""
        return self.device == "cuda" or (self.device == "musa" and torch.musa.target() != "host")

    def synchronize(self) -> None:
        self.module.synchronize()

    def release(self) -> None:
        """Gives unused memory back: each device's allocator keeps what it had, and there is one memory."""
        if hasattr(self.module, "empty_cache"):
            self.module.empty_cache()

    def hold_back(self, seconds: float) -> None:
        """Lets the device wait, so that what is enqueued next begins after the host has enqueued all of it."""
        if not self.behind or not hasattr(torch.cuda, "_sleep"):
            return
        hertz = getattr(torch.cuda.get_device_properties(0), "clock_rate", 2_000_000) * 1e3
        # musa's streams are CUDA's own on this target; the default one is the same for both.
        handle = torch.musa.current_stream().musa_stream if self.device == "musa" else 0
        where = torch.cuda.stream(torch.cuda.ExternalStream(handle)) if handle else contextlib.nullcontext()
        with where:
            torch.cuda._sleep(int(seconds * hertz))


@dataclass(frozen=True)
class Pair:
    musa: Side
    native: Side
    alone: Alone = field(default_factory=Alone, compare=False)
    """The native device in a process of its own."""

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.musa, self.native

    def release(self) -> None:
        gc.collect()
        for side in self.sides:
            side.synchronize()
            side.release()


def pair_of(names: tuple[str, str]) -> Pair:
    """The two devices, ready. Raises SystemExit with what is missing."""
    try:
        import torch_musa  # noqa: F401
    except ImportError as error:  # it says what to do where nothing is built
        raise SystemExit(str(error)) from None
    musa, native = (Side(name) for name in names)
    target = torch.musa.target()
    if native.device == "cuda" and (target != "cuda" or not torch.cuda.is_available()):
        raise SystemExit(
            f"musa runs on target {target} here: build with `opgen build --target cuda` on a machine with an NVIDIA "
            "GPU, or try the script with --host"
        )
    if native.device == "cpu" and target != "host":
        raise SystemExit(f"--host compares the target host with the CPU, and this is target {target}")
    exact()
    return Pair(musa, native)


def exact() -> None:
    """The same arithmetic on both: without TF32, which either side would use unasked in some of its operators."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if hasattr(torch.backends, "mudnn"):  # not in the process that runs the native side alone
        torch.backends.mudnn.allow_tf32 = False


@dataclass(frozen=True)
class Measured:
    """Seconds of one call."""

    musa: float
    native: float
    rounds: int


def issue(pair: Pair, calls: Sequence[Call], seconds: float, count: int = ISSUED) -> Measured:
    """Host time of a call, one for each side: `count` in a row, not synchronized among them, minimum of the rounds."""

    def sample(index: int) -> float:
        side, call = pair.sides[index], calls[index]
        side.synchronize()
        started = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - started
        side.synchronize()
        return taken / count

    for index in (0, 1):
        sample(index)
    samples = _in_turns(sample, seconds, least=10, most=200)
    return Measured(min(samples[0]), min(samples[1]), len(samples[0]))


def device(pair: Pair, sets: Sequence[Sequence[Call]], seconds: float) -> Measured:
    """Device time of a call. For each side, `sets` holds the same call on working sets of its own, taken in turns.

    Between two events in the stream, with the device held back until all calls are enqueued; on a side that does not
    run behind its host, wall time. The middle of the better half of the rounds.
    """
    batches = [_Batch(side, calls) for side, calls in zip(pair.sides, sets, strict=True)]
    samples = _in_turns(lambda index: batches[index].sample(), seconds, least=5, most=60)
    return Measured(_typical(samples[0]), _typical(samples[1]), len(samples[0]))


def take_steps(side: Side, call: Call, count: int) -> float:
    """Wall time of a step with all of its work, of `count` in a row."""
    side.synchronize()
    started = time.perf_counter()
    for _ in range(count):
        call()
    side.synchronize()
    return (time.perf_counter() - started) / count


def steps(takers: Sequence[Callable[[int], float]], seconds: float, warm_up: int = 3, count: int = 3) -> Measured:
    """Wall time of a step. For each side, what takes so many steps in a row and returns the seconds of one, whichever
    process it is in: neither computes while the other's turn lasts. The middle of the better half of the rounds.
    """
    for take in takers:
        take(warm_up)
    samples = _in_turns(lambda index: takers[index](count), seconds, least=4, most=60)
    return Measured(_typical(samples[0]), _typical(samples[1]), len(samples[0]))


class _Batch:
    """A number of calls on one side that take some milliseconds together."""

    def __init__(self, side: Side, calls: Sequence[Call]) -> None:
        self.side, self.calls = side, calls
        # Results live until their working set comes round again: else all of them would lie in one block of memory.
        self.held: list[object] = [None] * len(calls)
        self.next = 0
        self.count = 1
        self.run()  # loads kernels, chooses algorithms, fills the allocator
        side.synchronize()
        self.count = len(calls)
        self.run()
        side.synchronize()
        self.count = min(2, len(calls))
        started = time.perf_counter()
        self.run()
        side.synchronize()
        taken = (time.perf_counter() - started) / self.count
        self.count = max(1, min(_MOST_CALLS, round(_BATCH_S / taken)))
        started = time.perf_counter()
        self.run()
        self.plug = min(_PLUG_MOST_S, 1.5 * (time.perf_counter() - started) + 100e-6)
        side.synchronize()

    def run(self) -> None:
        place, calls, held = self.next, self.calls, self.held
        for _ in range(self.count):
            held[place] = calls[place]()
            place = place + 1 if place + 1 < len(calls) else 0
        self.next = place

    def sample(self) -> float:
        side = self.side
        side.synchronize()
        if not side.behind:
            started = time.perf_counter()
            self.run()
            return (time.perf_counter() - started) / self.count
        begin, end = (side.module.Event(enable_timing=True) for _ in range(2))
        side.hold_back(self.plug)
        begin.record()
        self.run()
        end.record()
        side.synchronize()
        return begin.elapsed_time(end) * 1e-3 / self.count


def _in_turns(
    sample: Callable[[int], float], seconds: float, *, least: int, most: int
) -> tuple[list[float], list[float]]:
    """Samples of both sides, in changing order, for so many seconds; at least and at most so many rounds."""
    samples: tuple[list[float], list[float]] = ([], [])
    started = time.perf_counter()
    with _no_collection():
        while len(samples[0]) < most:
            for index in (0, 1) if len(samples[0]) % 2 == 0 else (1, 0):
                samples[index].append(sample(index))
            if len(samples[0]) >= least and time.perf_counter() - started > seconds:
                break
            if time.perf_counter() - started > 10 * seconds + 5:  # so slow that few rounds have to do
                break
    return samples


def _typical(samples: Sequence[float]) -> float:
    return statistics.median(sorted(samples)[: (len(samples) + 1) // 2])


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector would take its time from whoever's turn it is."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
