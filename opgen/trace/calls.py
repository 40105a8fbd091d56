"""What a traced script called, as its process hands it back: plain data, JSON on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

__all__ = ["Calls", "Trace"]


@dataclass(frozen=True)
class Calls:
    """The calls of one overload on device tensors."""

    calls: int
    seconds: float
    """Host time inside the overload, less that inside the counted ones it called."""
    family: str
    """mudnn, ported, upstream, cpu_fallback or composite: where the calls really went."""
    on_cpu: int = 0
    """Calls that ran on the CPU."""
    dtypes: Mapping[str, int] = field(default_factory=dict)
    """Calls by dtype of the first device tensor."""


@dataclass(frozen=True)
class Trace:
    """One run of a script."""

    torch: str
    seconds: float
    """From the script's first line to its end."""
    blocking: bool
    """Whether launches blocked, so that an operator's time is the time its kernels ran."""
    ops: Mapping[str, Calls]
    error: str | None = None
    """The exception that ended the script, `Type: message`; None where it came to its end or exited."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Trace:
        """The inverse of `to_json`. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
        plain = json.loads(text)
        return Trace(**{**plain, "ops": {op: Calls(**calls) for op, calls in plain["ops"].items()}})
