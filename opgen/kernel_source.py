"""What one C++ / CUDA-dialect source file defines, as far as the generator cares: functions, impl and meta methods,
stubs.

Two steps. :func:`skeleton` blanks everything whose content cannot matter (comments, literals, preprocessor lines,
function bodies, class bodies, dead ``#if 0`` branches) while keeping every offset, so that nothing inside a body,
however exotic its macros, can mislead the parser. tree-sitter then reads the declarations that are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from opgen.cpp import canonical_parameter, canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["Found", "parse_source", "skeleton"]

Kind = Literal["function", "impl", "meta", "stub"]


@dataclass(frozen=True)
class Found:
    """One definition. ``line`` and ``column`` count from 1; ``returns`` and ``params`` are canonical types (empty for
    stubs).

    ``name`` is the YAML kernel name for ``function`` and ``impl``, the meta class's name without ``structured_`` for
    ``meta`` (``add_Tensor`` for ``TORCH_META_FUNC2(add, Tensor)``) and the DispatchStub's name for ``stub``.
    """

    kind: Kind
    name: str
    namespace: str
    line: int
    column: int
    returns: str
    params: tuple[str, ...]
    text: str
    unwritten: bool = False
    """The source says of it, `NotWritten("<name>", ...)`, that its computation is still to be written."""


# ---- skeleton

_LEXEME = re.compile(
    rb"""
      (?P<comment> //(?:[^\\\n]|\\\r?\n|\\.)* | /\*.*?(?:\*/|\Z) )
    | (?P<raw> \b(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z) )
    | (?P<string> "(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z) )
    | (?P<number> \.?\d(?:'?[\w.])* )
    | (?P<char> '(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z) )
    | (?P<word> [A-Za-z_]\w* )
    | (?P<directive> ^[ \t]*\#[ \t]*include\b[^\n]*
                   | ^[ \t]*\#(?:[^\\\n/"]|\\\r?\n|\\.|/(?![/*])|"(?:[^"\\\n]|\\.)*"?|/\*.*?\*/)* )
    | (?P<punctuation> [{};] )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

_CONDITIONAL = re.compile(rb"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b[ \t]*(.*)", re.DOTALL)

# What makes a brace at namespace scope transparent: `namespace a::b {`, `inline namespace v1 {`, `extern "C" {`.
_TRANSPARENT = re.compile(rb"\b(?:namespace\b[^()=]*|extern\s*\"C(?:\+\+)?\"\s*)\Z")


# How far before a brace or a string the word that decides about it may stand; bounded, so that reading stays linear.
_LOOK_BACK = 1000


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", text)


@dataclass
class _Branch:
    """An open #if: the body depth it began at, and whether its current branch is known to be dead."""

    depth: int
    dead: bool
    constant: bool  # `#if 0` or `#if 1`: the #else branch has the opposite fate


def skeleton(source: bytes) -> bytes:
    """The source with only its declarations left; same length, same lines.

    Brace counting follows the first branch of every conditional, as if each branch closed what the first one closes.
    """
    out = bytearray()
    depth = 0  # inside how many braces of a body
    start = 0  # of the current declaration, in `out`
    branches: list[_Branch] = []
    position = 0

    def dead() -> bool:
        return any(branch.dead for branch in branches)

    def emit(text: bytes, *, keep: bool) -> None:
        out.extend(text if keep and depth == 0 and not dead() else _blank(text))

    for match in _LEXEME.finditer(source):
        emit(source[position : match.start()], keep=True)
        position = match.end()
        text = match.group()
        kind = match.lastgroup if match.lastgroup != "delimiter" else "raw"
        if kind == "directive":
            depth = _follow_conditional(text, branches, depth)
            emit(text, keep=False)
        elif kind == "string" and out[-_LOOK_BACK:].rstrip().endswith(b"extern"):
            emit(text, keep=True)
        elif kind in ("comment", "raw", "string", "char") or dead():
            emit(text, keep=False)
        elif text == b"{":
            if depth == 0 and _TRANSPARENT.search(bytes(out[max(start, len(out) - _LOOK_BACK) :])):
                emit(text, keep=True)
                start = len(out)
            else:
                emit(text, keep=True)
                depth += 1
        elif text == b"}":
            depth = max(depth - 1, 0)
            emit(text, keep=True)
            if depth == 0:
                start = len(out)
        else:
            emit(text, keep=True)
            if text == b";" and depth == 0:
                start = len(out)
    emit(source[position:], keep=True)
    return bytes(out)


def _follow_conditional(directive: bytes, branches: list[_Branch], depth: int) -> int:
    """Push, flip or pop ``branches`` for a directive; the body depth that holds after it."""
    match = _CONDITIONAL.match(directive)
    if match is None:
        return depth
    word, condition = match.group(1), match.group(2).split(b"//")[0].strip()
    if word in (b"if", b"ifdef", b"ifndef"):
        constant = word == b"if" and condition in (b"0", b"1", b"false", b"true")
        branches.append(_Branch(depth, dead=constant and condition in (b"0", b"false"), constant=constant))
    elif branches and word == b"endif":
        branches.pop()
    elif branches:
        branch = branches[-1]
        branch.dead = not branch.dead if branch.constant else False
        depth = branch.depth
    return depth


# ---- parse

# A stub's kernel may be an expression with parentheses and template arguments, so the macro ends where its line does.
_STUB = re.compile(
    rb"^[ \t]*REGISTER_(?:MUSA_|PRIVATEUSE1_)?DISPATCH\s*\(\s*(?:::)?(?:\w+::)*(\w+)\s*,[^;{}]*?\)[ \t]*(?:;|$)",
    re.MULTILINE,
)
_UNWRITTEN_WORD = b"NotWritten"
_UNWRITTEN = re.compile(rb"\bNotWritten\s*\(\s*\"([\w, ]+)\"")
_EXPORTS = re.compile(rb"\b(?:TORCH_API|C10_API|C10_EXPORT|TORCH_CUDA_CPP_API|TORCH_CUDA_CU_API|TORCH_MUSA_API)\b")
_METHOD = re.compile(r"TORCH_(?:PRECOMPUTE_)?(IMPL|META)_FUNC2?\s*\(([^()]*)\)\s*\Z")
_NOT_KERNELS = frozenset({"static", "inline", "constexpr", "consteval", "__global__", "__device__", "friend"})
_KERNEL_NAMESPACES = ("at::musa", "at::native")

_parser: Parser | None = None


def _tree_sitter() -> Parser:
    """The CUDA parser, imported only when some file has to be read: loading it costs more than a cached scan."""
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_cuda

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))
    return _parser


def parse_source(source: bytes) -> tuple[Found, ...]:
    """Everything the file defines, in the order it is written; alternatives of one ``#if`` count once."""
    text = skeleton(source)
    found = list(_stubs(text))
    # Without its semicolon a registration macro would be read as the beginning of what follows it, an export macro as
    # a type.
    declarations = _EXPORTS.sub(
        lambda match: _blank(match.group()), _STUB.sub(lambda match: _blank(match.group()), text)
    )
    found.extend(_definitions(_tree_sitter().parse(declarations).root_node))
    unwritten = _unwritten(source)
    found = [replace(item, unwritten=item.name in unwritten) for item in found]
    found.sort(key=lambda item: (item.line, item.column))
    unique: dict[tuple[object, ...], Found] = {}
    for item in found:
        unique.setdefault((item.kind, item.namespace, item.name, item.returns, item.params), item)
    return tuple(unique.values())


def _unwritten(source: bytes) -> set[str]:
    """The kernels, meta functions and stubs that a skeleton of `opgen new` has still to be filled for."""
    if _UNWRITTEN_WORD not in source:
        return set()
    text = bytearray()
    position = 0
    for match in _LEXEME.finditer(source):
        text += source[position : match.start()]
        text += _blank(match.group()) if match.lastgroup == "comment" else match.group()
        position = match.end()
    text += source[position:]
    named = (match.group(1).decode() for match in _UNWRITTEN.finditer(bytes(text)))
    return {name.strip() for names in named for name in names.split(",")}


def _stubs(text: bytes) -> Iterator[Found]:
    for match in _STUB.finditer(text):
        at = match.start() + len(match.group()) - len(match.group().lstrip())
        line_start = text.rfind(b"\n", 0, at) + 1
        yield Found(
            kind="stub",
            name=match.group(1).decode(),
            namespace="",
            line=text.count(b"\n", 0, at) + 1,
            column=at - line_start + 1,
            returns="",
            params=(),
            text=_one_line(match.group()),
        )


def _definitions(root: Node) -> Iterator[Found]:
    """Function definitions below ``root``, in no particular order; without recursion, however deep namespaces nest."""
    # A namespace of None is one inside an anonymous one.
    open_nodes: list[tuple[Node, str | None]] = [(root, "")]
    while open_nodes:
        node, namespace = open_nodes.pop()
        for child in node.named_children:
            if child.type == "namespace_definition":
                name = child.child_by_field_name("name")
                inner = None if name is None or namespace is None else _join(namespace, _text(name))
                body = child.child_by_field_name("body")
                if body is not None:
                    open_nodes.append((body, inner))
            elif child.type in ("linkage_specification", "declaration_list", "ERROR"):
                open_nodes.append((child, namespace))
            elif child.type == "function_definition" and namespace is not None:
                found = _definition(child, namespace)
                if found is not None:
                    yield found


def _definition(node: Node, namespace: str) -> Found | None:
    declarator = node.child_by_field_name("declarator")
    returns_until = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
    if declarator is None or returns_until is None or declarator.type != "function_declarator":
        return None
    parameters = declarator.child_by_field_name("parameters")
    named = declarator.child_by_field_name("declarator")
    if parameters is None or named is None:
        return None
    params = tuple(
        canonical_parameter(_text(child))
        for child in parameters.named_children
        if child.type in ("parameter_declaration", "optional_parameter_declaration") and _text(child) != "void"
    )
    source = node.text or b""  # bytes, as offsets count them; the text need not be UTF-8
    body = node.child_by_field_name("body")
    text = _one_line(source[: body.start_byte - node.start_byte] if body else source)
    line, column = node.start_point[0] + 1, node.start_point[1] + 1

    method = _METHOD.match(_text(named))
    if method is not None:
        name = "_".join(part.strip() for part in method[2].split(","))
        kind: Kind = "impl" if method[1] == "IMPL" else "meta"
        return Found(kind, name, namespace, line, column, "", params, text)

    full_name = _join(namespace, re.sub(r"\s+", "", _text(named)).removeprefix("::"))
    scope, _, name = full_name.rpartition("::")
    scope = scope.removeprefix("::")
    before = source[: declarator.start_byte - node.start_byte].decode("utf-8", "replace")
    if scope not in _KERNEL_NAMESPACES or not name.isidentifier() or _NOT_KERNELS & set(re.findall(r"\w+", before)):
        return None
    trailing = next((child for child in declarator.named_children if child.type == "trailing_return_type"), None)
    returns = canonical_type(_text(trailing).removeprefix("->") if trailing is not None else before)
    return Found("function", name, scope, line, column, returns, params, text)


def _join(namespace: str, name: str) -> str:
    """A qualified name written inside a namespace; one that starts at `at::` again is taken as absolute."""
    if not namespace or name.startswith("at::"):
        return name
    return f"{namespace}::{name}"


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _one_line(text: bytes) -> str:
    return " ".join(text.decode("utf-8", "replace").split())
