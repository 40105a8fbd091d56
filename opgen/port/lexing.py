"""Where a source holds code, and where strings and comments.

This is decided by the language's rules for tokens alone, not by the parse: a parse of a file that the grammar does not
understand in full may take the inside of a string for code, and strings and comments must stay as they are.

All of opgen.port works on a text in which one character is one byte (`as_bytes`), so that places agree with the
parser's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLANK = r"(?:[ \t]|\\\r?\n|/\*(?:[^*\n]|\*(?!/))*\*/)*"
_PATH = r'(?:<(?P<{0}>[^>\n"]*)>|"(?P<{1}>[^"\n]*)")'
# A mark of UTF-8 may stand in front of the first line.
_HASH = rf"^(?:\xef\xbb\xbf)?{_BLANK}\#{_BLANK}"
_OPAQUE = re.compile(
    rf"""
      (?P<include>  (?: {_HASH}(?:include(?:_next)?|import)\b{_BLANK}
                      | \b__has_include(?:_next)?{_BLANK}\({_BLANK} ) {_PATH.format("angled", "quoted")} )
    | (?P<define>   {_HASH}define\b{_BLANK}(?P<macro>\w+)[ \t]+{_PATH.format("angled_body", "quoted_body")}
                      (?=[ \t\r]*(?:$|\Z|//|/\*)) )
    | (?P<comment>  //(?:[^\n\\]|\\(?:\r?\n|.|\Z))*  |  /\*.*?(?:\*/|\Z) )
    | (?P<raw>      (?<!\w)(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{{0,16}})\(.*?(?:\)(?P=delimiter)"|\Z) )
    | (?P<string>   "(?:[^"\\\n]|\\(?:\r?\n|.))*(?:"|(?=\n)|\Z) )
    | (?P<char>     (?<!\w)(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+' )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII | re.MULTILINE,
)
# What a macro for an #include holds.
_HEADER = re.compile(r"[\w./+-]+\.\w+", re.ASCII)
# `#include NAME`, where a macro says what.
_BY_MACRO = re.compile(rf"{_HASH}(?:include(?:_next)?|import)\b{_BLANK}(\w+)", re.MULTILINE | re.ASCII)
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
    """Paths, without what encloses them: of #include, of __has_include, and of macros that stand in an #include."""
    by_macro: tuple[Span, ...]
    """Names in `#include NAME` that this text does not define."""
    unclosed: tuple[int, str] | None
    """Where something begins that reaches to the end of the text though it should not, and what."""


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
    includes: list[Span] = []
    defined: set[str] = set()
    unclosed = None
    macros = {match[1] for match in _BY_MACRO.finditer(text)}
    for match in _OPAQUE.finditer(text):
        span = Span(match.start(), match.end())
        if match["include"] is not None:
            includes.append(_inside(match, "angled", "quoted"))
        elif match["define"] is not None:
            path = _inside(match, "angled_body", "quoted_body")
            if match["macro"] in macros or (match["angled_body"] and _HEADER.fullmatch(match["angled_body"])):
                includes.append(path)
                defined.add(match["macro"])
            elif match["quoted_body"] is not None:
                strings.append(Span(path.start - 1, path.end + 1))
        elif match["comment"] is not None:
            comments.append(span)
            if match[0].startswith("/*") and not (match[0].endswith("*/") and len(match[0]) > 3):
                unclosed = (span.start, "a comment")
        else:
            strings.append(span)
            if match["raw"] is not None and not match[0].endswith(f'){match["delimiter"]}"'):
                unclosed = (span.start, "a raw string")
    code = blank(text, [*strings, *comments, *includes])
    messages = [Span(match.start(1), match.end(1)) for match in _MESSAGE.finditer(code)]
    code = blank(code, messages)
    by_macro = [Span(m.start(1), m.end(1)) for m in _BY_MACRO.finditer(code) if m[1] not in defined]
    return Lexed(text, code, tuple(strings), tuple(comments), tuple(includes), tuple(by_macro), unclosed)


def _inside(match: re.Match[str], *groups: str) -> Span:
    group = next(group for group in groups if match[group] is not None)
    return Span(match.start(group), match.end(group))


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
