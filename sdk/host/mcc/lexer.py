"""C++ tokens with their places; just enough to find kernel launches without being fooled by strings and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

# In this order: what may contain anything comes first. `<<<` and `>>>` are tokens of their own in MUSA's dialect.
_PATTERN = re.compile(
    r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>//[^\n]*(?:\\\n[^\n]*)*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<launch><<<|>>>)
  | (?P<punctuation>::|->|\#\#|&&|\|\||[<>=!+\-*/%&|^]=|\S)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A token that is neither blank nor comment: its kind (a group of the pattern), text and offsets."""

    kind: str
    text: str
    start: int
    end: int


def tokenize(source: str) -> list[Token]:
    """All tokens of `source`; text of `#include` lines and comments cannot be mistaken for code."""
    tokens = []
    for match in _PATTERN.finditer(source):
        kind = match.lastgroup or "punctuation"
        if kind == "delimiter":
            kind = "raw"
        if kind not in {"space", "comment"}:
            tokens.append(Token(kind, match.group(), match.start(), match.end()))
    return tokens


def place(source: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of an offset."""
    return source.count("\n", 0, offset) + 1, offset - source.rfind("\n", 0, offset)
