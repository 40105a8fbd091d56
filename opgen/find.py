"""Which operator a word means: an overload, the name that several overloads share, or a misspelling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Found", "find_operator", "normalized"]

_PREFIXES = ("torch.ops.", "torch.nn.functional.", "torch.Tensor.", "torch.", "Tensor.", "at::native::", "at::")
# Nobody misspells a word that is longer than any operator's name.
_LONGEST = 80


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
    `torch.ops.aten.nonzero.default`, or with its whole schema.
    """
    names = set(known)
    word = normalized(word.partition("(")[0])
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
    """A few spellings, upper and lower case alike; a wrong overload of a right name is answered with the overloads
    there are."""
    if not _base(word) or len(word) > _LONGEST:
        return ()
    word = word.lower()
    siblings = {name for name in names if _base(name).lower() == word.partition(".")[0]}
    if siblings:
        return tuple(_close(word, siblings, 5, 0.5)) or tuple(sorted(siblings)[:5])
    own = sorted(name for name in names if name.rpartition("::")[2].lower() == word)
    bases = {_base(name) for name in names}
    found = dict.fromkeys([*own, *_close(word, names | bases, 8, 0.6)])
    # `trill` is near to `tril` and to all its overloads: one of them will do.
    shown: dict[str, str] = {}
    for name in found:
        shown.setdefault(_base(name), _base(name) if _base(name) in names else name)
    return tuple(shown.values())[:3]


def _close(word: str, names: Iterable[str], count: int, cutoff: float) -> list[str]:
    """The `count` names closest to `word`, which is in lower case."""
    spellings: dict[str, list[str]] = {}
    for name in sorted(names):
        spellings.setdefault(name.lower(), []).append(name)
    close = difflib.get_close_matches(word, spellings, n=count, cutoff=cutoff)
    return [name for folded in close for name in spellings[folded]][:count]
