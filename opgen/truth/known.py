"""What running the overloads has shown, as far as it still holds: what the matrix is filled from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.truth.store import COMMITTED, Store, committed_records

if TYPE_CHECKING:
    from opgen.gen import Analysis, Sources
    from opgen.truth.record import Record

__all__ = ["known_records"]


def known_records(root: Path, sources: Sources, analysis: Analysis) -> dict[str, Record]:
    """The records of the project at ``root``, its store's and the committed ones, that hold for these sources."""
    target = os.environ.get("TORCH_MUSA_TARGET", "host")
    store = Store.of(root, target, sources.install.release)
    committed = root / COMMITTED
    if not store.load_all() and not committed_records(committed):
        return {}  # digests take a second or two
    from opgen.truth.digest import load_digests
    from opgen.truth.store import valid_records

    return valid_records(store, committed, load_digests(sources, analysis, target))
