"""Where the choices of a test case come from.

Builders ask a `Source` for every choice. Under hypothesis the choices are drawn, so a failing case shrinks: the first
option and the smallest number are the simplest, and builders list their options in that order. Outside it (finding out
which dtypes an operator takes, say) they come from a seeded generator, which is a hundred times faster.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Source(Protocol):
    """A stream of choices."""

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""


class HypothesisSource:
    """Choices drawn by hypothesis."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]; shrinks towards low."""
        return int(self._draw(st.integers(low, high))) if low < high else low


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
