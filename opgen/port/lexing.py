"""Where a source holds code, and where strings and comments.

This is decided by the language's rules for tokens alone, not by the parse: a parse of a file that the grammar does not
understand in full may take the inside of a string for code, and strings and comments must stay as they are.

All of opgen.port works on a text in which one character is one byte (`as_bytes`), so that places agree with the
parser's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPAQUE = re.compile(
    r"""
      (?P<comment>  //(?:[^\n\\]|\\(?:\r?\n|.|\Z))*  |  /\*.*?(?:\*/|\Z) )
    | (?P<raw>      (?<!\w)(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z) )
    | (?P<string>   "(?:[^"\\\n]|\\(?:\r?\n|.))*(?:"|(?=\n)|\Z) )
    | (?P<char>     (?<!\w)(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+' )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:<([^>\n"]*)>|"([^"\n]*)")', re.MULTILINE)
# Words of a message, not of the program.
_MESSAGE = re.compile(r"^[ \t]*#[ \t]*(?:error|warning)\b((?:[^\n\\]|\\(?:\r?\n|.))*)", re.MULTILINE)
WORD = re.compile(r"(?<![\w$])[A-Za-z_]\w*", re.ASCII)
"""A name in code; `1e5f` and `0xCUDA` hold none."""


@dataclass(frozen=True)
class Span:
    """A stretch of the text."""

    start: int
    end: int


@dataclass(frozen=True)
class Lexed:
    """A source cut up. `code` has the text's length and lines; strings, comments, include paths and the messages of
    `#error` are blanks in it."""

    text: str
    code: str
    strings: tuple[Span, ...]
    """Insides and quotes of string literals that are no include paths."""
    comments: tuple[Span, ...]
    includes: tuple[Span, ...]
    """Paths, without what encloses them."""


def as_bytes(text: str) -> str:
    """The text with one character for each byte of its UTF-8 form."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def as_text(text: str) -> str:
    """The inverse of `as_bytes`."""
    return text.encode("latin-1").decode("utf-8", "surrogatepass")


def lex(text: str) -> Lexed:
    """Cuts up a text of `as_bytes`. Never fails: what is not closed ends with its line, or with the text."""
    strings: list[Span] = []
    comments: list[Span] = []
    for match in _OPAQUE.finditer(text):
        kind = comments if match.lastgroup == "comment" or match["comment"] is not None else strings
        kind.append(Span(match.start(), match.end()))
    code = blank(text, [*strings, *comments])
    includes = []
    paths = set()
    for match in _INCLUDE.finditer(text):
        group = 1 if match[1] is not None else 2
        hash_sign = text.index("#", match.start())
        if code[hash_sign] != "#":
            continue
        includes.append(Span(match.start(group), match.end(group)))
        paths.add(match.start(group) - 1)
    messages = [Span(match.start(1), match.end(1)) for match in _MESSAGE.finditer(code)]
    return Lexed(
        text,
        blank(code, [*includes, *messages]),
        tuple(span for span in strings if span.start not in paths),
        tuple(comments),
        tuple(includes),
    )


def blank(text: str, spans: list[Span]) -> str:
    """The text with blanks in place of the spans; line ends stay."""
    pieces = []
    done = 0
    for span in sorted(spans, key=lambda span: span.start):
        if span.start < done:
            continue
        inside = text[span.start : span.end]
        if "\n" in inside or "\r" in inside:
            filled = re.sub(r"[^\r\n]", " ", inside)
        else:
            filled = " " * len(inside)
        pieces += [text[done : span.start], filled]
        done = span.end
    pieces.append(text[done:])
    return "".join(pieces)
