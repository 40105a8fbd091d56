"""Where the choices of a test case come from.

Builders ask a `Source` for every choice. Under hypothesis the choices are read from bytes that it draws, so a failing
case shrinks: the first option and the smallest number are the simplest, and builders list their options in that order.
Outside it (finding out which dtypes an operator takes, say) they come from a seed.

Why one draw of bytes and not a draw for every choice: after each example hypothesis tries variants that repeat a value
drawn in one place in other places. That finds faults in programs that compare their inputs; here it made a third of the
cases copies of each other (127 different ones out of 200, against 200 with bytes), at twice the cost.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Source(Protocol):
    """A stream of choices."""

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""


class ByteSource:
    """Choices read from a string of bytes, two for each; past its end every choice is the simplest."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]; low where the bytes are zero."""
        if low >= high:
            return low
        word = int.from_bytes(self._content[self._position : self._position + 2], "big")
        self._position += 2
        return low + word % (high - low + 1)


# enough for the longest cases, lists of tensors with a layout each
CONTENT = st.binary(min_size=300, max_size=300)


class SeededSource:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return self._random.randint(low, high)


def choose(source: Source, options: Sequence[T]) -> T:
    """One of the options; the first is the simplest."""
    return options[source.integer(0, len(options) - 1)]


def one_in(source: Source, n: int) -> bool:
    """True in one case of ``n``; False is the simpler."""
    return source.integer(0, n - 1) == n - 1


def subset(source: Source, options: Sequence[T], least: int = 0) -> list[T]:
    """At least ``least`` of the options, in an order of their own."""
    left = list(options)
    count = source.integer(min(least, len(left)), len(left))
    return [left.pop(source.integer(0, len(left) - 1)) for _ in range(count)]


def permutation(source: Source, n: int) -> list[int]:
    """The numbers 0 .. n - 1 in some order; the identity is the simplest."""
    left = list(range(n))
    return [left.pop(source.integer(0, len(left) - 1)) for _ in range(n)]
