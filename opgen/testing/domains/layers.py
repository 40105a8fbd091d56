"""What the layers of neural networks have in common."""

from __future__ import annotations

from typing import Any

from opgen.testing.build import Domain
from opgen.testing.tensors import FLOATING, Numbers

SMALL = Numbers(-2, 2)
"""Values whose sums of products stay small."""


def layer(prepare: Any, **rest: Any) -> Domain:
    """A layer on small floating values, which adds up many products; ``rest`` are further fields of its domain."""
    return Domain(prepare=prepare, numbers=SMALL, accumulates=True, dtypes=FLOATING, **rest)
