"""C++ types in one spelling, so that a signature in a source file can be compared with the one torchgen prints.

Only what does not change a declaration is normalised away: white space, the place of ``const``, ``at::`` / ``c10::``
/ ``std::`` qualification, parameter names, default arguments, a top-level ``const`` on a parameter taken by value,
and the aliases that PyTorch itself uses interchangeably (``TensorList`` for ``ArrayRef<Tensor>``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["KEYWORDS", "Signature", "canonical_signature", "canonical_type", "split_top_level", "top_level_spans"]

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|&&|[^\s\w]")

# Words that may stand before a return type without being part of it.
_SPECIFIERS = frozenset({"TORCH_API", "TORCH_MUSA_API", "C10_EXPORT", "C10_API", "extern", "virtual"})

_QUALIFIERS = frozenset({"at", "c10", "std", "torch", "native"})

_ALIASES = {
    "TensorList": "ArrayRef<Tensor>",
    "IntArrayRef": "ArrayRef<int64_t>",
    "SymIntArrayRef": "ArrayRef<SymInt>",
    "ITensorListRef": "IListRef<Tensor>",
    "IOptTensorListRef": "IListRef<OptionalTensorRef>",
    "OptionalIntArrayRef": "OptionalArrayRef<int64_t>",
    "OptionalSymIntArrayRef": "OptionalArrayRef<SymInt>",
}

# C++23's, with the alternative spellings of operators: no kernel and no parameter can be called so.
# fmt: off
KEYWORDS = frozenset({
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "const", "consteval", "constexpr", "constinit",
    "const_cast", "continue", "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return", "short",
    "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual",
    "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
})
# fmt: on

_BUILTIN_WORDS = frozenset({"unsigned", "signed", "long", "short", "int", "char", "double", "float", "bool", "void"})

# Templates nest a few levels in a signature; what is deeper is compared as it is written.
_MAX_DEPTH = 40

_OPENERS = {"(": ")", "[": "]", "{": "}", "<": ">"}


@dataclass(frozen=True)
class Signature:
    """A function's type: ``returns`` and ``params`` are canonical, ``name`` is as written (qualified if it was)."""

    name: str
    returns: str
    params: tuple[str, ...]


def top_level_spans(
    text: str, start: int = 0, end: int | None = None, separator: str = ",", *, keep_empty: bool = False
) -> list[tuple[int, int]]:
    """The pieces between separators that stand outside every bracket, as slices of `text` without surrounding blanks;
    empty pieces are left out unless they are asked for."""
    end = len(text) if end is None else end
    bounds: list[int] = [start - 1]
    depth = 0
    for position in range(start, end):
        char = text[position]
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[position - 1 : position] != "-"):
            depth -= 1
        elif char == separator and depth == 0:
            bounds.append(position)
    spans = []
    for left, right in zip(bounds, [*bounds[1:], end], strict=True):
        piece = text[left + 1 : right]
        first = left + 1 + (len(piece) - len(piece.lstrip()) if piece.strip() else 0)
        if piece.strip() or keep_empty:
            spans.append((first, first + len(piece.strip())))
    return spans


def split_top_level(text: str, separator: str = ",") -> list[str]:
    """Split at separators that stand outside every bracket; empty pieces are dropped."""
    return [text[start:end] for start, end in top_level_spans(text, separator=separator)]


def canonical_type(text: str) -> str:
    """One spelling for a type: ``Scalar const &`` and ``const at::Scalar&`` both give ``const Scalar&``."""
    return _Parser(_TOKEN.findall(text)).type_only()


def canonical_parameter(text: str) -> str:
    """Like :func:`canonical_type` for a parameter declaration: its name and default argument are left out."""
    declaration = split_top_level(text, "=")[0]
    canonical = _Parser(_TOKEN.findall(declaration)).parameter()
    by_value = not canonical.endswith(("&", "*"))
    return canonical.removeprefix("const ") if by_value else canonical


def canonical_signature(text: str) -> Signature:
    """Parse ``Ret name(params)`` as torchgen's ``NativeSignature.decl()`` prints it (attributes and ``;`` are
    ignored)."""
    head, params = _split_declaration(text)
    match = re.match(r"(?P<returns>.*?)(?P<name>(?:[A-Za-z_]\w*\s*::\s*)*[A-Za-z_]\w*)\s*$", head, re.DOTALL)
    if match is None:
        raise ValueError(f"not a function declaration: {text!r}")
    name = re.sub(r"\s+", "", match["name"])
    return Signature(name, canonical_type(match["returns"]), tuple(map(canonical_parameter, split_top_level(params))))


def _split_declaration(text: str) -> tuple[str, str]:
    """``Ret name`` and the text between the parameter list's parentheses."""
    text = text.strip().rstrip(";").rstrip()
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        if text[position] == ")":
            depth += 1
        elif text[position] == "(":
            depth -= 1
            if depth == 0:
                return text[:position], text[position + 1 : text.rindex(")")]
    raise ValueError(f"not a function declaration: {text!r}")


class _Parser:
    """Reads one type from tokens. It never fails: text it does not know is kept, spaces normalised."""

    def __init__(self, tokens: list[str], depth: int = 0) -> None:
        self.depth = depth
        self.tokens = [token for token in tokens if token not in _SPECIFIERS]
        self.position = 0

    def type_only(self) -> str:
        base = self._base(keep_name=True)
        return base + self._declarator_marks()

    def parameter(self) -> str:
        base = self._base(keep_name=False)
        marks = self._declarator_marks()
        rest = self.tokens[self.position :]
        if rest and re.match(r"[A-Za-z_]", rest[0]):  # the parameter's name
            rest = rest[1:]
        if rest[:1] == ["["]:  # int x[] is int* x
            marks += "*"
        return base + marks

    def _peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _declarator_marks(self) -> str:
        """``&``, ``&&`` and ``*``; a const pointer is the same parameter type as a plain one."""
        marks = ""
        while self._peek() in ("&", "&&", "*", "const"):
            marks += self._peek().replace("const", "")
            self.position += 1
        return marks

    def _base(self, *, keep_name: bool) -> str:
        const = False
        words: list[str] = []
        while self.position < len(self.tokens):
            token = self._peek()
            if token == "const":
                const = True
            elif token in ("volatile", "struct", "class", "enum", "typename"):
                pass
            elif token == "[":  # an attribute
                self._skip_brackets()
                continue
            elif token == "::":
                pass
            elif re.match(r"[A-Za-z_\d]", token):
                if words and not (token in _BUILTIN_WORDS and words[-1] in _BUILTIN_WORDS) and not keep_name:
                    break  # the parameter's name
                following = self.tokens[self.position + 1 : self.position + 2]
                if following == ["::"]:
                    if token not in _QUALIFIERS:
                        words.append(token + "::")
                        self.position += 2
                        token = self._peek()
                        words[-1] += token
                        self.position += 1
                        continue
                    self.position += 2
                    continue
                words.append(_ALIASES.get(token, token))
            elif token == "<" and words:
                words[-1] += self._template_arguments()
                continue
            else:
                break
            self.position += 1
        return ("const " if const else "") + " ".join(words)

    def _skip_brackets(self) -> list[str]:
        """Step over the bracketed group that starts here; its inner tokens."""
        opener = self._peek()
        closer = _OPENERS[opener]
        depth = 0
        start = self.position
        while self.position < len(self.tokens):
            token = self._peek()
            self.position += 1
            if token == opener:
                depth += 1
            elif token == closer:
                depth -= 1
                if depth == 0:
                    break
        return self.tokens[start + 1 : self.position - 1]

    def _template_arguments(self) -> str:
        inner = " ".join(self._skip_brackets())
        if self.depth > _MAX_DEPTH:
            return f"<{inner}>"
        arguments = (_Parser(_TOKEN.findall(piece), self.depth + 1).type_only() for piece in split_top_level(inner))
        return f"<{', '.join(arguments)}>"
