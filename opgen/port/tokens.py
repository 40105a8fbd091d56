"""A CUDA source as a flat run of the tokens that a port may touch, each with its place.

tree-sitter's CUDA grammar decides what is a name, a string or a comment. A macro the grammar cannot know (GPU_LAMBDA in
front of a parameter list) makes an error node but still yields its tokens, which is all that a port needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser


class Kind(Enum):
    NAME = "name"
    NAMESPACE = "namespace"
    INCLUDE = "include"
    PUNCTUATION = "punctuation"
    LITERAL = "literal"
    COMMENT = "comment"


@dataclass(frozen=True)
class Token:
    """A leaf of the parse. `start` and `end` are byte offsets; line and column count from 1 (columns in bytes)."""

    kind: Kind
    text: str
    start: int
    end: int
    line: int
    column: int


_NAME_NODES = {"identifier", "type_identifier", "field_identifier", "statement_identifier", "preproc_directive"}
_STRING_NODES = {"string_literal", "raw_string_literal", "char_literal", "concatenated_string"}


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


def tokenize(source: bytes) -> tuple[Token, ...]:
    """All tokens of `source` in order. Never fails: what the grammar does not understand is still cut into tokens."""
    return tuple(_tokens(source, 0, 1, 1))


def _tokens(source: bytes, base: int, first_line: int, first_column: int) -> Iterator[Token]:
    """Tokens of a fragment that starts at byte `base`, line `first_line`, column `first_column` of the file."""

    def token(node: Node, kind: Kind, start: int = 0, end: int = 0) -> Token:
        row, column = node.start_point
        begin, stop = node.start_byte + start, node.end_byte - end
        shift = first_column if row == 0 else 1
        text = source[begin:stop].decode("utf-8")
        return Token(kind, text, base + begin, base + stop, first_line + row, column + start + shift)

    def walk(node: Node, in_include: bool) -> Iterator[Token]:
        if node.start_byte == node.end_byte:
            return  # a token the parser had to imagine
        if node.type == "comment":
            yield token(node, Kind.COMMENT)
        elif node.type == "system_lib_string" or (in_include and node.type == "string_literal"):
            yield token(node, Kind.INCLUDE, 1, 1)
        elif node.type in _STRING_NODES:
            yield token(node, Kind.LITERAL)
        elif node.type == "preproc_arg":
            # The grammar keeps a macro's body as one piece of text: cut it up in its turn.
            row, column = node.start_point
            body = source[node.start_byte : node.end_byte]
            # A continuation is a blank to the compiler; as a blank of the same length it leaves every place as it is.
            body = body.replace(b"\\\r\n", b" \r\n").replace(b"\\\n", b" \n")
            shift = first_column if row == 0 else 1
            yield from _tokens(body, base + node.start_byte, first_line + row, column + shift)
        elif node.child_count:
            for child in node.children:
                yield from walk(child, node.type == "preproc_include")
        elif node.type == "namespace_identifier":
            yield token(node, Kind.NAMESPACE)
        elif node.type in _NAME_NODES or node.type == "asm":
            yield token(node, Kind.NAME)
        elif node.is_named and node.type not in {"auto", "primitive_type"}:
            yield token(node, Kind.LITERAL)
        else:
            yield token(node, Kind.PUNCTUATION)

    yield from walk(_parser().parse(source).root_node, False)
