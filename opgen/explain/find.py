"""Which operator a word means: an overload, the name that several overloads share, or a misspelling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Found", "find_operator", "normalized"]

_PREFIXES = ("torch.ops.", "torch.nn.functional.", "torch.Tensor.", "torch.", "Tensor.", "at::native::", "at::")


@dataclass(frozen=True)
class Found:
    """What a word was found to mean. At most one of the three is set."""

    op: str | None = None
    overloads: tuple[str, ...] = ()
    """There is no overload without a name, but these."""
    nearest: tuple[str, ...] = ()
    """Nothing is called so; these come closest."""


def find_operator(word: str, known: Iterable[str]) -> Found:
    """What `word` means among the overloads `known` (`add.Tensor`, `musa::swiglu`).

    An operator may be written as error messages, profilers and Python have it: `aten::tril.out`,
    `torch.ops.aten.nonzero.default`.
    """
    names = set(known)
    word = normalized(word)
    if word in names:
        return Found(op=word)
    if any(_base(name) == word for name in names):
        # `add` is asked about: its in-place twin belongs to the answer.
        return Found(overloads=tuple(sorted(name for name in names if _base(name) in (word, f"{word}_"))))
    return Found(nearest=_nearest(word, names))


def normalized(word: str) -> str:
    """The word as operator lists write it."""
    word = word.strip()
    for prefix in _PREFIXES:
        word = word.removeprefix(prefix)
    for prefix in ("aten::", "aten."):
        word = word.removeprefix(prefix)
    return word.removesuffix(".default")


def _base(name: str) -> str:
    return name.partition(".")[0]


def _nearest(word: str, names: set[str]) -> tuple[str, ...]:
    """A few spellings; a wrong overload of a right name is answered with the overloads there are."""
    siblings = sorted(name for name in names if _base(name) == _base(word))
    if siblings:
        close = difflib.get_close_matches(word, siblings, n=5, cutoff=0.5)
        return tuple(close) or tuple(siblings[:5])
    own = sorted(name for name in names if name.rpartition("::")[2] == word)
    bases = {_base(name) for name in names}
    close = difflib.get_close_matches(word, sorted(names | bases), n=8, cutoff=0.6)
    found = dict.fromkeys([*own, *close])
    # `trill` is near to `tril` and to all its overloads: one of them will do.
    shown: dict[str, str] = {}
    for name in found:
        shown.setdefault(_base(name), _base(name) if _base(name) in names else name)
    return tuple(shown.values())[:3]
