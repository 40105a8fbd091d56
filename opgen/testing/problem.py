"""What can be wrong with a call, in kinds that a reader, or a verdict, can count."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Category(str, Enum):
    """The kind of a difference between the device and the reference."""

    VALUE = "wrong value"
    SHAPE = "wrong shape"
    DTYPE = "wrong dtype"
    DEVICE = "wrong device"
    STRIDES = "wrong strides"
    ALIASING = "wrong aliasing"
    INPUT_CHANGED = "input changed"
    STRAY_WRITE = "write outside the tensor"
    REFUSED = "valid call refused"
    ACCEPTED = "invalid call accepted"
    ERROR_TYPE = "wrong type of exception"
    INTERNAL = "internal error"
    WARNING = "wrong warnings"
    VERSION = "wrong version counter"
    NONDETERMINISM = "not deterministic"
    LAW = "wrong distribution"
    GENERATOR = "wrong generator state"
    GRADIENT = "wrong gradient"
    FALLBACK = "silent CPU fallback"

    @property
    def wrong(self) -> bool:
        """True where a program gets wrong numbers or ends; the rest are promises broken beside right numbers."""
        return self in _WRONG


_WRONG = frozenset({
    *(Category.VALUE, Category.SHAPE, Category.DTYPE, Category.DEVICE, Category.INPUT_CHANGED, Category.STRAY_WRITE),
    *(Category.INTERNAL, Category.LAW, Category.GRADIENT),
})  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One difference: its kind, and a sentence whose subject is the overload."""

    category: Category
    text: str

    def __str__(self) -> str:
        return f"{self.category.value}: {self.text}"
