"""What running the overloads has shown, as far as it still holds: what the matrix is filled from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opgen.diagnostics import OpgenError
from opgen.truth.digest import chosen_target
from opgen.truth.store import COMMITTED, Store, committed_records

if TYPE_CHECKING:
    from opgen.gen import Analysis, Sources
    from opgen.truth.record import Record

__all__ = ["known_records", "loaded_records"]


def loaded_records(root: Path, sources: Sources) -> dict[str, Record]:
    """The records of operators that came by `opgen truth --load`, whether they hold or not."""
    records = Store.of(root, chosen_target(sources), sources.install.release).load_all()
    return {op: record for op, record in records.items() if record.loaded}


def known_records(root: Path, sources: Sources, analysis: Analysis) -> dict[str, Record]:
    """The records of the project at ``root``, its store's and the committed ones, that hold for these sources."""
    target = chosen_target(sources)
    store = Store.of(root, target, sources.install.release)
    own, committed = store.load_all(), committed_records(root / COMMITTED)
    if not own and not committed:
        return {}  # digests take half a second
    from opgen.truth.digest import load_digests
    from opgen.truth.judged import with_databases
    from opgen.truth.judges import read
    from opgen.truth.store import valid_records

    records = valid_records(own, committed, load_digests(sources, analysis, target))
    try:
        return with_databases(records, read(store.folder))
    except (OSError, ValueError) as error:
        raise OpgenError(f"cannot read what tests/judge has found: {error}") from None
