"""What is measured: every case, at its full size or, to try the script itself, at sizes that a CPU does in no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch

from side_by_side import measure
from side_by_side.measure import Call, Measured, Pair

Operands = tuple[Any, ...]
Check = Callable[[Pair, Sequence[Call]], None]


class Disagreement(Exception):
    """The two devices did not compute the same: no time of theirs says anything."""


@dataclass(frozen=True)
class Scale:
    """How large the cases are."""

    exponents: tuple[int, ...]
    """Kernels run on two to these elements; all of them on the first, then all on the next: time may end early."""
    side: int
    """Matrices of products, in the largest case."""
    batch: int
    """Images, sequences."""
    image: int
    """Pixels of a side."""
    width: int
    """Features of a transformer's token; a convolution net has 64 in its first layer where this is 512."""
    tokens: int
    """Length of a sequence."""
    vocabulary: int
    stages: tuple[int, ...]
    """Blocks in the stages of the convolution net: (3, 4, 6, 3) are ResNet-50's."""
    layers: int
    """Of the transformer."""
    block_bytes: int
    """The largest block of the allocator's mixture."""


FULL = Scale((24, 28, 20, 26, 22), 8192, 64, 224, 512, 256, 37_000, (3, 4, 6, 3), 6, 16 << 20)
"""From the size that fits into an H200's L2 to 1 GiB a tensor; models at the sizes of their papers."""

TINY = Scale((12, 14), 64, 2, 32, 32, 8, 100, (1, 1, 1, 1), 1, 1 << 16)


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    group: str
    name: str
    unit: str
    call: Callable[[str], Call]
    """device -> one call on it, on a working set of its own."""
    method: Literal["issue", "device", "steps"]
    amount: float = 0.0
    """What one call does in the unit's numerator."""
    elements: int | None = None
    footprint: float = 0.0
    """Bytes of one working set; those of `device` are rotated."""
    count: int = measure.ISSUED
    """Calls in one round of `issue`."""
    check: Check | None = None
    """Raises Disagreement."""

    @property
    def key(self) -> str:
        return f"{self.group}/{self.name}" + (f"/{self.elements}" if self.elements else "")

    def measure(self, pair: Pair, seconds: float) -> Measured:
        """Runs the case on both sides for about so many seconds. Raises what the devices raise, and Disagreement."""
        if self.method == "steps":
            return self._steps(pair, seconds)
        sets = 1
        if self.method == "device" and all(side.behind for side in pair.sides):
            sets = max(1, min(measure._MOST_CALLS, -(-measure.ROTATED_BYTES // max(1, int(self.footprint)))))
        calls = [[self.call(side.device) for _ in range(sets)] for side in pair.sides]
        first = [side[0] for side in calls]
        if self.check is not None:
            self.check(pair, first)
        if self.method == "issue":
            return measure.issue(pair, first, seconds, self.count)
        return measure.device(pair, calls, seconds)

    def _steps(self, pair: Pair, seconds: float) -> Measured:
        device = pair.native.device
        with pair.alone.case(device, self.key):
            call = self.call(pair.musa.device)
            if self.check is not None:
                self.check(pair, (call, partial(pair.alone.first, device)))
            takers = partial(measure.take_steps, pair.musa, call), partial(pair.alone.sample, device)
            return measure.steps(takers, seconds)


def operator(op: Callable[..., object], operands: Callable[[str], Operands]) -> Callable[[str], Call]:
    """`Case.call` of an operator: its operands are made anew on the device."""
    return lambda device: partial(op, *operands(device))


def agree(op: Callable[..., object], operands: Callable[[str], Operands], tolerance: float, results: int = 1) -> Check:
    """Both devices give the same for operands that are made on the CPU, in so many of the first results.

    (Places of equal elements, which sort and others return second, may differ.)
    """

    def check(pair: Pair, _calls: Sequence[Call]) -> None:
        torch.manual_seed(0)
        made = operands("cpu")
        given = []
        for side in pair.sides:
            result: Any = op(*(_moved(item, side.device) for item in made))
            several = (result,) if isinstance(result, torch.Tensor) else tuple(result)[:results]
            given.append([one.cpu() for one in several])
        try:
            torch.testing.assert_close(*given, rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            raise Disagreement(f"the devices disagree: {' '.join(str(error).split())}") from None

    return check


def _moved(item: Any, device: str) -> Any:
    if isinstance(item, torch.Tensor):
        # A copy on the CPU, too: operators that write must not meet their own results.
        return item.clone() if device == "cpu" else item.to(device)
    return item


def all_cases(scale: Scale) -> Iterator[Case]:
    """In the order in which they are measured."""
    from side_by_side import allocator, kernels, models, products

    yield from _small(scale)
    yield from allocator.cases(scale)
    yield from models.cases(scale)
    yield from products.cases(scale)
    yield from kernels.cases(scale)


def _small(_scale: Scale) -> Iterator[Case]:
    def vectors(number: int, device: str) -> Operands:
        return tuple(torch.rand(8, device=device) for _ in range(number))

    def matrices(device: str) -> Operands:
        return torch.rand(64, 64, device=device), torch.rand(64, 64, device=device)

    common = Case("issue", "", "us", operator(torch.add, partial(vectors, 2)), "issue")
    for name, op, number in (
        ("add", torch.add, 2),
        ("mul", torch.mul, 2),
        ("relu", torch.relu, 1),
        ("sum", torch.sum, 1),
    ):
        operands = partial(vectors, number)
        yield replace(common, name=f"{name}, 8 floats", call=operator(op, operands), check=agree(op, operands, 1e-5))
    check = agree(torch.mm, matrices, 1e-4)
    yield replace(common, name="mm, 64 x 64 floats", call=operator(torch.mm, matrices), check=check)
