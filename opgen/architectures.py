"""The chips that MUSA_ARCH names. The toolkit's stand-in reads the variable by the same rules (sdk/runtime)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

__all__ = ["ARCHITECTURES", "DEFAULT_ARCHITECTURE", "architecture", "architectures"]

ARCHITECTURES = ("mp_21", "mp_22", "mp_31")
"""Oldest first."""
DEFAULT_ARCHITECTURE = "mp_31"


def architectures(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What MUSA_ARCH names, oldest first: `mp_22`, `22` as build scripts write it, or a list of chips that a binary is
    made for, `21;22;31`. The default alone where it names nothing or what is no chip.
    """
    named = re.findall(r"[^;, ]+", environment.get("MUSA_ARCH", ""))
    words = {word if word.startswith("mp_") else f"mp_{word}" for word in named}
    if not words or not words.issubset(ARCHITECTURES):
        return (DEFAULT_ARCHITECTURE,)
    return tuple(name for name in ARCHITECTURES if name in words)


def architecture(environment: Mapping[str, str] = os.environ) -> str:
    """The chip that the process runs on: of several the newest, which a binary for all of them runs on."""
    return architectures(environment)[-1]
