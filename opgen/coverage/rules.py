"""`--fail-under`: what a coverage has to hold for a CI job to pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opgen.diagnostics import did_you_mean

__all__ = ["Rule", "parse_rule"]

_RULE = re.compile(r"\s*(?:(?P<name>[a-z_]+)\s*(?P<sign>>=|<=))?\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<percent>%?)\s*")
_DEFAULT = "registered"


@dataclass(frozen=True)
class Rule:
    """A bound on one of the totals."""

    name: str
    at_least: bool
    number: float
    percent: bool
    """Of the denominator."""

    def broken(self, totals: Mapping[str, int], denominator: int) -> str | None:
        """What is wrong and by how much, None where the rule holds."""
        count = totals[self.name]
        value = 100 * count / denominator if self.percent and denominator else float(count)
        if value >= self.number if self.at_least else value <= self.number:
            return None
        bound = f"{'at least' if self.at_least else 'at most'} {self.number:.12g}{'%' if self.percent else ''}"
        share = f" ({100 * count / denominator:.2f}%)" if denominator else ""
        return f"{self.name} is {count:,} of {denominator:,}{share}, and has to be {bound}"


def parse_rule(text: str, known: Mapping[str, int]) -> Rule:
    """`62.5` or `62.5%` (registered), `strict>=50%`, `failed<=0`. Raises ValueError with what is wrong."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no bound; write 62.5, 'strict>=50%' or 'failed<=0'")
    name = match["name"] or _DEFAULT
    if name not in known:
        raise ValueError(f"there is no total '{name}'; {did_you_mean(name, known) or f'one of {chr(44).join(known)}'}")
    percent = bool(match["percent"]) or match["name"] is None
    number = float(match["number"])
    if percent and number > 100:
        raise ValueError(f"{match['number']}% is more than everything there is, which is 100%")
    return Rule(name, match["sign"] != "<=", number, percent)
