"""A source text with its tokens, the edits to make in it, and faults that name their place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from lexer import Token, place, tokenize

_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE | re.DOTALL)
OPENING = {"(": ")", "[": "]", "{": "}"}


class SourceError(Exception):
    """A fault of the user's source, printed as a compiler would: `file:line:column: error: message`."""

    def __init__(self, name: str, source: str, offset: int, message: str) -> None:
        line, column = place(source, offset)
        super().__init__(f"{name}:{line}:{column}: error: {message}")


@dataclass(frozen=True)
class Edit:
    """Text that takes the place of source[begin:end]. It holds as many line breaks as what it replaces."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Source:
    """The text of one file and what messages call it."""

    text: str
    name: str

    @cached_property
    def tokens(self) -> list[Token]:
        return tokenize(self.text)

    @cached_property
    def directives(self) -> list[tuple[int, int]]:
        """Offsets of preprocessor directives, with their continuation lines."""
        return [(found.start(), found.end()) for found in _DIRECTIVE.finditer(self.text)]

    def directive_end(self, offset: int) -> int | None:
        """The end of the directive that `offset` lies in; None outside."""
        return next((end for begin, end in self.directives if begin <= offset < end), None)

    def error(self, offset: int, message: str) -> SourceError:
        return SourceError(self.name, self.text, offset, message)

    def between(self, first: Token, last: Token) -> str:
        """The text from one token to another, on one line and without comments' line breaks."""
        return " ".join(self.text[first.start : last.end].split())


def apply(text: str, edits: Iterable[Edit]) -> str:
    """`text` with the edits made; they do not overlap."""
    pieces, done = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.begin, edit.end)):
        pieces += [text[done : edit.begin], edit.text]
        done = edit.end
    return "".join([*pieces, text[done:]])


def closing(tokens: list[Token], opening: int) -> int | None:
    """Index of the bracket that closes the one at `opening`."""
    stack: list[str] = []
    for at in range(opening, len(tokens)):
        text = tokens[at].text
        if text in OPENING:
            stack.append(OPENING[text])
        elif stack and text == stack[-1]:
            stack.pop()
            if not stack:
                return at
    return None


def quoted(text: str) -> str:
    """A C++ string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
