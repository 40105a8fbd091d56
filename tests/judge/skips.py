"""Reads skips.yaml: what is known not to hold, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml
from packaging.specifiers import SpecifierSet

FILE = Path(__file__).parent / "skips.yaml"
_KEYS = {"title", "reason", "error", "torch", "device", "covers"}
_COVER_KEYS = {"judge", "names", "kinds", "dtypes"}


@dataclass(frozen=True)
class Subject:
    """One test: an entry of a database, the question asked of it, the dtype it is asked in."""

    judge: str
    name: str
    kind: str
    dtype: str | None = None


@dataclass(frozen=True)
class Cover:
    """Some tests. An empty tuple stands for all."""

    judge: str
    names: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()

    def has(self, subject: Subject) -> bool:
        """True for a test that this covers. Names may be patterns ("linalg.*")."""
        return (
            subject.judge == self.judge
            and any(fnmatchcase(subject.name, pattern) for pattern in self.names)
            and (not self.kinds or subject.kind in self.kinds)
            and (not self.dtypes or subject.dtype in self.dtypes)
        )


@dataclass(frozen=True)
class Skip:
    """A known fault: a title as of an issue, the reason, and the tests that fail for it."""

    title: str
    reason: str
    covers: tuple[Cover, ...]
    error: str = ""
    """A regular expression that the failure has to match, so that another fault in the same test is not hidden."""
    torch: str = ""
    device: str = ""

    def applies(self, device: str, version: str) -> bool:
        """False on another device, or with a PyTorch that the fault is not in."""
        release = version.partition("+")[0]
        return self.device in ("", device) and (not self.torch or release in SpecifierSet(self.torch))

    def explains(self, failure: str) -> bool:
        """True when the failure is the one that is meant."""
        return re.search(self.error, failure) is not None


def read(text: str) -> list[Skip]:
    """The skips in ``text``; a ValueError says what is wrong with an entry."""
    skips = [_skip(entry) for entry in yaml.safe_load(text) or []]
    titles = [skip.title for skip in skips]
    for title in titles:
        if titles.count(title) > 1:
            raise ValueError(f"two skips have the title {title!r}")
    return skips


@cache
def load() -> tuple[Skip, ...]:
    """Those of skips.yaml that apply to the installed PyTorch, on any device."""
    return tuple(read(FILE.read_text(encoding="utf-8")))


def find(subject: Subject, device: str, skips: Sequence[Skip] | None = None) -> Skip | None:
    """The skip that covers a test; a ValueError when two do, since one of them would never be missed."""
    applying = [skip for skip in (load() if skips is None else skips) if skip.applies(device, torch.__version__)]
    found = [skip for skip in applying if any(cover.has(subject) for cover in skip.covers)]
    if len(found) > 1:
        raise ValueError(f"{subject} is covered twice: {', '.join(repr(skip.title) for skip in found)}")
    return found[0] if found else None


def _skip(entry: Any) -> Skip:
    if not isinstance(entry, dict) or not {"title", "reason", "covers"} <= set(entry) <= _KEYS:
        raise ValueError(f"a skip has title, reason, covers and maybe error, torch, device, and not: {entry!r}")
    if not all(isinstance(entry[key], str) and len(entry[key].split()) >= 3 for key in ("title", "reason")):
        raise ValueError(f"title and reason are for people to read: {entry!r}")
    re.compile(entry.get("error", ""))
    return Skip(
        title=entry["title"],
        reason=" ".join(entry["reason"].split()),
        covers=tuple(_cover(cover, entry["title"]) for cover in entry["covers"]),
        error=entry.get("error", ""),
        torch=entry.get("torch", ""),
        device=entry.get("device", ""),
    )


def _cover(cover: Any, title: str) -> Cover:
    if not isinstance(cover, dict) or not {"names"} <= set(cover) <= _COVER_KEYS:
        raise ValueError(f"{title}: covers have names and maybe judge, kinds, dtypes, and not: {cover!r}")
    lists = {key: tuple(cover[key]) for key in ("names", "kinds", "dtypes") if key in cover}
    return Cover(judge=cover.get("judge", "op_db"), **lists)
