"""What the grammar knows of a source: namespaces, the code that runs on the device, the names that it defines itself.

tree-sitter's CUDA grammar is asked, through queries that it runs itself. A macro that it cannot know (GPU_LAMBDA in
front of a parameter list) leaves an error node and costs at most the answers about that stretch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from functools import cached_property, lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from opgen.port.lexing import Span

_SCOPES = "(namespace_identifier) @found"
_DEVICE = "[(function_definition) (lambda_expression)] @found"
_LAUNCHES = "(kernel_call_syntax) @found"
_OWN = """
(preproc_def name: (identifier) @found)
(preproc_function_def name: (identifier) @found)
(function_definition declarator: (_) @found)
(struct_specifier name: (type_identifier) @found body: (_))
(class_specifier name: (type_identifier) @found body: (_))
(enum_specifier name: (type_identifier) @found body: (_))
(enumerator name: (identifier) @found)
(alias_declaration name: (type_identifier) @found)
(type_definition declarator: (type_identifier) @found)
(namespace_definition name: (_) @found)
(init_declarator declarator: (identifier) @found)
(declaration declarator: (_) @found)
(parameter_declaration declarator: (identifier) @found)
(field_declaration declarator: (_) @found)
(type_parameter_declaration (type_identifier) @found)
"""
# A parse of sense takes half a second a megabyte. One of nonsense grows with the square of its size: it is cut short.
# (By the time that the thread has computed: on a busy machine a file of sense may take minutes.)
_SECONDS = 3.0
_SECONDS_PER_MEGABYTE = 1.0
_CHUNK = 1 << 14
# Levels of the tree that are looked at: tree-sitter counts them in 16 bits, and takes minutes where these overflow.
_DEEPEST = 20_000
# A kernel's or device function's text before its body; GPU_LAMBDA is how PyTorch spells a device lambda.
_ON_DEVICE = re.compile(rb"\b(?:__global__|__device__|GPU_LAMBDA|C10_DEVICE)\b")
_QUALIFIERS_REACH = 200  # bytes in front of a definition that may hold its qualifiers, where the parse lost them
# `class MY_API Name {`: the grammar takes the macro for the name.
_CLASS_BEHIND_A_MACRO = re.compile(
    rb"\b(?:class|struct)\s+(?:[A-Z_][A-Z0-9_]*(?:\([^()]*\))?\s+){1,3}(\w+)\s*(?:final\s*)?[:{]"
)
# What a definition cannot begin behind of.
_BOUNDARY = re.compile(rb"[;{}]")


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


@lru_cache(maxsize=8)
def _query(text: str) -> Query:
    query: Query = Query(Language(tree_sitter_cuda.language()), text)
    return query


class Structure:
    """Answers about one source (a text of `as_bytes`), each found out when it is first asked for."""

    def __init__(self, text: str) -> None:
        self._source = text.encode("latin-1")
        self.given_up = False
        """Whether the parse took so long that its rest was left out."""

    @cached_property
    def _root(self) -> Node:
        deadline = time.thread_time() + _SECONDS + _SECONDS_PER_MEGABYTE * len(self._source) / 1e6

        def read(offset: int, point: object) -> bytes:
            if time.thread_time() > deadline:
                self.given_up = True
                return b""  # the end, to the parser
            return self._source[offset : offset + _CHUNK]

        return _parser().parse(read).root_node

    def _find(self, query: str) -> list[Node]:
        cursor = QueryCursor(_query(query))
        cursor.set_max_start_depth(_DEEPEST)
        return cursor.captures(self._root).get("found", [])

    @cached_property
    def scopes(self) -> frozenset[int]:
        """Where names of namespaces begin. (The grammar calls every scope a namespace, classes too.)"""
        return frozenset(node.start_byte for node in self._find(_SCOPES))

    @cached_property
    def device_code(self) -> tuple[Span, ...]:
        """Functions and lambdas that run on the device; in order, one inside another counted once."""
        merged: list[Span] = []
        nodes = [node for node in self._find(_DEVICE) if self._on_device(node)]
        for node in sorted(nodes, key=lambda node: node.start_byte):
            if not merged or node.end_byte > merged[-1].end:
                merged.append(Span(node.start_byte, node.end_byte))
        return tuple(merged)

    def _on_device(self, node: Node) -> bool:
        body = node.child_by_field_name("body")
        end = body.start_byte if body is not None else node.end_byte
        before = self._source[max(0, node.start_byte - _QUALIFIERS_REACH) : node.start_byte]
        if node.type == "function_definition":
            start = max((match.end() for match in _BOUNDARY.finditer(before)), default=0)
            if _ON_DEVICE.search(before[start:]):
                return True
        return _ON_DEVICE.search(self._source, node.start_byte, end) is not None

    @cached_property
    def device_launches(self) -> tuple[int, ...]:
        """Where kernel launches begin that run on the device.

        The innermost function around one decides: where the grammar took an unknown macro amiss, a function of the
        device may seem to reach over those behind it.
        """
        launches = sorted(self._find(_LAUNCHES), key=lambda node: node.start_byte)
        around: list[Node] = []  # definitions that are open where the sweep stands, innermost last
        definitions = sorted(self._find(_DEVICE), key=lambda node: (node.start_byte, -node.end_byte), reverse=True)
        on_device: dict[int, bool] = {}
        found = []
        for launch in launches:
            while definitions and definitions[-1].start_byte <= launch.start_byte:
                around.append(definitions.pop())
            while around and around[-1].end_byte <= launch.start_byte:
                around.pop()
            if self._any_on_device(around, on_device):
                found.append(launch.start_byte)
        return tuple(found)

    def _any_on_device(self, around: list[Node], known: dict[int, bool]) -> bool:
        """Whether the innermost function of these runs on the device, or a lambda in it does."""
        for node in reversed(around):
            if node.id not in known:
                known[node.id] = self._on_device(node)
            if known[node.id]:
                return True
            if node.type == "function_definition":
                return False
        return False

    def own(self, names: Collection[str]) -> frozenset[str]:
        """Those of `names` that this source defines."""
        if not names:
            return frozenset()
        found = set()
        for node in self._find(_OWN):
            name = _declared(node) if node.type.endswith("declarator") else node
            if name is not None:
                found.add(self._source[name.start_byte : name.end_byte].decode("latin-1"))
        found |= {match[1].decode("latin-1") for match in _CLASS_BEHIND_A_MACRO.finditer(self._source)}
        return frozenset(found.intersection(names))


def _declared(node: Node) -> Node | None:
    """The name in a declarator: `f` in `*f(int a)` and in `A::f(int a)`."""
    current: Node | None = node
    while current is not None and current.child_count:
        inner = current.child_by_field_name("declarator") or current.child_by_field_name("name")
        if inner is None and current.type == "reference_declarator":  # the one without a field
            inner = current.named_children[0] if current.named_children else None
        current = inner
    return current
