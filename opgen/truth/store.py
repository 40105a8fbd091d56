"""Records on disk: one file for each overload, replaced as a whole, so that a run which is killed loses nothing.

They lie in build/truth/<target>-torch<VERSION>/. What was measured on another machine and committed, in
coverage_report/coverage.json, is read as well.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opgen.diagnostics import Location, OpgenError
from opgen.truth.digest import Digests, holds
from opgen.truth.record import Record

__all__ = ["Store", "committed_records", "valid_records"]

COMMITTED = Path("coverage_report") / "coverage.json"


@dataclass(frozen=True)
class Store:
    """The records of one target and one release of PyTorch."""

    folder: Path

    @staticmethod
    def of(root: Path, target: str, torch: str) -> Store:
        """The project's own; the folder need not exist."""
        return Store(root / "build" / "truth" / f"{target}-torch{torch}")

    def load(self, op: str) -> Record | None:
        """The record of an overload; None where there is none that can be read."""
        try:
            return Record.from_json(json.loads(self._file(op).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def load_all(self) -> dict[str, Record]:
        """Every record, by overload."""
        names = sorted(path.stem for path in self.folder.glob("*.json")) if self.folder.is_dir() else []
        records = (self.load(name.replace("--", "::")) for name in names)
        return {record.op: record for record in records if record is not None}

    def save(self, record: Record) -> None:
        """Keep a record in place of the one before: a reader finds either, never half. Raises OpgenError."""
        path = self._file(record.op)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".tmp")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(json.dumps(record.to_json(), indent=1) + "\n")
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise OpgenError(f"cannot keep the record: {error.strerror}", Location(str(path))) from None

    def _file(self, op: str) -> Path:
        return self.folder / f"{op.replace('::', '--')}.json"


def committed_records(path: Path) -> dict[str, Record]:
    """The records in a coverage.json, by overload; none where there is no such file, or another one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        rows, torch = document["overloads"], document["torch"]
        return {record.op: record for record in (_from_row(row, torch) for row in rows) if record is not None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _from_row(row: Mapping[str, object], torch: str) -> Record | None:
    """The record of a row; None for an overload that had not been run."""
    if not row.get("digest"):
        return None
    reason = None if row["verdicts"] else row["reason"]
    fields = ("op", "target", "commit", "seed", "reference", "digest", "seconds", "asked", "complete", "calls")
    return Record.from_json({
        **{name: row[name] for name in fields},
        "torch": torch,
        "dtypes": row["verdicts"],
        "reason": reason,
    })  # fmt: skip


def valid_records(
    own: Mapping[str, Record], committed: Mapping[str, Record], digests: Digests, ops: Iterable[str] | None = None
) -> dict[str, Record]:
    """What is known and still holds, by overload: this machine's ``own`` records first, then the ``committed`` ones."""
    wanted = sorted(own.keys() | committed.keys()) if ops is None else ops
    found: dict[str, Record] = {}
    for op in wanted:
        candidates = (records[op] for records in (own, committed) if op in records)
        record = next((record for record in candidates if holds(record, digests)), None)
        if record is not None:
            found[op] = record
    return found
