"""The table of domain knowledge: what an operator asks of its arguments beyond their types.

A line names operators by their overload (``"index_put_.out"``), their base name (``"native_batch_norm"``) or the root
that functional, in-place and out forms share (``"add"`` for ``add_``); the longest match counts. An operator that is
not here gets its arguments from its schema alone.
"""

from __future__ import annotations

from functools import cache

from opgen.testing.build import Domain
from opgen.testing.domains import (
    attention,
    copying,
    factories,
    indexing,
    layouts,
    linear,
    lists,
    networks,
    own,
    pointwise,
    randomness,
    recurrent,
    reductions,
    resampling,
)
from opgen.testing.overload import Overload
from opgen.testing.tensors import Numbers

_SECTIONS = (
    pointwise,
    reductions,
    linear,
    indexing,
    copying,
    factories,
    networks,
    attention,
    resampling,
    randomness,
    recurrent,
    lists,
    layouts,
    own,
)
_DEFAULT = Domain()
_DEFAULT_POINTWISE = Domain(numbers=Numbers(special=True))


def domain_of(op: Overload) -> Domain:
    """What is known about ``op``."""
    table = _table()
    prefix = "" if op.namespace == "aten" else f"{op.namespace}::"
    for key in (f"{op.base}.{op.overload}", f"{op.root}.{op.overload}", op.base, op.root):
        if prefix + key in table:
            return table[prefix + key]
    return _DEFAULT_POINTWISE if op.pointwise else _DEFAULT


@cache
def _table() -> dict[str, Domain]:
    table: dict[str, Domain] = {}
    for section in _SECTIONS:
        for names, domain in section.TABLE.items():
            for name in names.split():
                if name in table:
                    raise ValueError(f"the domain table has two lines for {name}")
                table[name] = domain
    return table
