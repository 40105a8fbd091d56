"""Property tests of operators against the CPU.

Three lines test an operator of one's own:

    from opgen.testing import check_overload

    def test_rope():
        check_overload("musa::rope", reference=rope_in_plain_pytorch)

The rest of opgen never imports torch; this package does, once something in it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from opgen.testing.build import Rule
    from opgen.testing.check import Tally


def check_overload(
    name: str,
    *,
    reference: Callable[..., Any] | None = None,
    device: str = "musa",
    arguments: Mapping[str, Rule] | None = None,
    dtypes: Sequence[torch.dtype | str] | None = None,
    count: int | None = None,
    fallback: bool = False,
    shrink: bool = True,
) -> Tally:
    """Compares an overload on ``device`` with the CPU; see `opgen.testing.check.check_overload`."""
    from opgen.testing.check import check_overload as check

    return check(
        name,
        reference=reference,
        device=device,
        arguments=arguments,
        dtypes=dtypes,
        count=count,
        fallback=fallback,
        shrink=shrink,
    )


__all__ = ["check_overload"]
