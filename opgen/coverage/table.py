"""The matrix as CSV, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from opgen.coverage.matrix import VendorOnly
from opgen.coverage.rows import Row, dtypes_of

__all__ = ["as_csv"]

_COLUMNS = ("op", "namespace", "state", "kind", "family", "source", "verdict")


def as_csv(rows: Sequence[Row], vendor_only: Sequence[VendorOnly] = ()) -> str:
    """A line for each overload, with a column for each dtype; vendor-only overloads last, their reason in `reason`.
    RFC 4180, lines end in CRLF."""
    dtypes = dtypes_of(rows)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*_COLUMNS, *dtypes, "reason"])
    for row in rows:
        verdicts = [row.results[d].verdict.value if d in row.results else "" for d in dtypes]
        facts = (row.op, row.namespace, row.state.value, row.kind, row.family, row.source, row.verdict.value)
        writer.writerow([*(fact or "" for fact in facts), *verdicts, row.reason or ""])
    for excluded in vendor_only:
        writer.writerow(
            [excluded.op, "", "vendor_only", "", excluded.library, "", "", *([""] * len(dtypes)), excluded.reason]
        )
    return text.getvalue()
