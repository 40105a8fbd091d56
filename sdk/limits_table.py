"""The limits of muDNN as a table: what sdk/mudnn/limits.def says, and which test shows that op code survives it.

    python sdk/limits_table.py > docs/limits.md

A row's test of the toolkit is the case `limit_<row>` of tests/sdk/mudnn_limits_test.cpp (murand_test.mu for muRAND);
the test of op code is `test_<row>` of tests/ops/test_limits.py. tests/sdk/test_limits_table.py checks that both exist
and that the page is current.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ROOT / "sdk" / "mudnn" / "limits.def"
PAGE = ROOT / "docs" / "limits.md"
OP_TESTS = "tests/ops/test_limits.py"

_HEAD = f"""\
# Limits of muDNN and muRAND

What the libraries refuse or get wrong, as the stand-in models it: one row of `sdk/mudnn/limits.def` each, applied
before any call. A wrong result is modelled as that wrong result, a crash as a refusal. Op code goes round all of them;
the last column names the test in `{OP_TESTS}` that shows it. `MUSA_ARCH` chooses the chip: mp_21, mp_22 or mp_31
(default), `TORCH_MUSA_HOST_FP64=0` one without double precision.

This page is printed by `sdk/limits_table.py`.

| limit | class | chips | where | what happens | source | op code |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Limit:
    """One row of limits.def."""

    name: str
    cls: str
    architectures: str
    """`ALL`, or `BELOW(major, minor)`."""
    condition: str
    """A C++ expression over the call, or in words what the library takes by default."""
    outcome: str
    """`Status::X`, `Effect::X`, `MURAND_STATUS_X`, or empty for a default."""
    source: str

    @property
    def chips(self) -> str:
        """The architectures in words."""
        below = re.fullmatch(r"BELOW\((\d+), (\d+)\)", self.architectures)
        return f"below {below[1]}.{below[2]}" if below else "all"

    @property
    def consequence(self) -> str:
        """The outcome in words."""
        if self.outcome.startswith("MURAND_STATUS_"):
            return self.outcome.removeprefix("MURAND_STATUS_")
        kind, _, what = self.outcome.partition("::")
        if kind == "Status":
            return what
        return f"wrong result: {what.lower().replace('_', ' ')}" if kind == "Effect" else "default"


def read_limits(text: str) -> list[Limit]:
    """The rows in the table's order. Raises ValueError for one that has not the form its comment describes."""
    limits = []
    for start in re.finditer(r"^(MUDNN_LIMIT|MUDNN_DEFAULT|MURAND_LIMIT)\(", text, re.MULTILINE):
        fields = _arguments(text, start.end())
        if start[1] == "MURAND_LIMIT":
            name, what, outcome, source = fields
            limits.append(Limit(name, "muRAND", "ALL", _words(what), outcome, _words(source)))
        elif start[1] == "MUDNN_DEFAULT":
            name, cls, architectures, what, source = fields
            limits.append(Limit(name, cls, architectures, _words(what), "", _words(source)))
        else:
            name, cls, architectures, condition, outcome, source = fields
            limits.append(Limit(name, cls, architectures, condition, outcome, _words(source)))
    return limits


def _arguments(text: str, position: int) -> list[str]:
    """The macro arguments from `position` to the closing parenthesis, split at commas that nothing encloses."""
    arguments, current, depth, quoted = [], "", 0, False
    while True:
        char = text[position]
        position += 1
        quoted ^= char == '"'
        if not quoted and char in "({<" and not (char == "<" and text[position] in " ="):
            depth += 1
        if not quoted and char in ")}>" and not (char == ">" and text[position - 2] == " "):
            if depth == 0:
                break
            depth -= 1
        if char == "," and depth == 0 and not quoted:
            arguments.append(current)
            current = ""
        else:
            current += char
    return [re.sub(r"\s+", " ", argument).strip() for argument in [*arguments, current]]


def _words(literal: str) -> str:
    """A C string literal, possibly in several pieces."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal)).replace('\\"', '"')


def page(limits: list[Limit]) -> str:
    """The whole of docs/limits.md."""
    rows = []
    for limit in limits:
        in_words = not limit.outcome or limit.cls == "muRAND"
        where = limit.condition if in_words else f"`{limit.condition}`".replace("|", "\\|")
        cells = (
            f"`{limit.name}`",
            limit.cls,
            limit.chips,
            where,
            limit.consequence,
            limit.source.replace("|", "\\|"),
            f"`test_{limit.name}`",
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page(read_limits(LIMITS.read_text(encoding="utf-8"))))
