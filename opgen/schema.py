"""The schema of a new operator, read as strictly as PyTorch reads it when the operator is registered.

torchgen takes default values, names and orders of arguments as they come; torch's own parser (and, for types that no
kernel can take, the compiler) refuses some of them later. Here each is told with its place in the schema.

Source of the rules: what `torch._C.parse_schema` accepts (tests/opgen/test_schema.py compares), less the defaults that
it takes without a look at the type, such as `int n="x"`.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from opgen.cpp import KEYWORDS, top_level_spans
from opgen.diagnostics import did_you_mean

__all__ = ["SchemaFault", "is_reserved", "schema_faults"]

Span = tuple[int, int]


@dataclass(frozen=True)
class SchemaFault:
    """What is wrong with `schema[start:end]`."""

    start: int
    end: int
    message: str
    hint: str


def schema_faults(schema: str, base_types: Iterable[str]) -> list[SchemaFault]:
    """All that PyTorch or the compiler would refuse in `schema` (without its namespace), in the order of the text.

    `base_types` are the words for types without `?` and `[]`, as the installed PyTorch knows them.
    """
    reader = _Reader(schema, frozenset(base_types))
    reader.read()
    return sorted(reader.faults, key=lambda fault: (fault.start, fault.end))


def is_reserved(word: str) -> bool:
    """Whether torch's parser reads `word` as a word of its own instead of as a name."""
    return word in _RESERVED


_FORMAT = "the format is `name.overload(Tensor self, int dim=0, *, bool flag=False) -> Tensor`"
_HEAD = re.compile(r"\s*(?P<name>\w+)(?:\.(?P<overload>\w+))?\s*\(")
_ARGUMENT = re.compile(r"(?P<type>.+?)\s+(?P<name>\w+)\s*(?:=\s*(?P<default>.*))?", re.DOTALL)
_RETURN = re.compile(r"(?P<type>\S+?)(?:\s+(?P<name>\w+))?", re.DOTALL)
_TYPE = re.compile(r"(?P<base>\w+)(?P<alias>\([^()]*\))?(?P<suffix>(?:\?|\[\d*\])*)")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_INTEGER = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")

# C++ has a type for one list, one optional, an optional list and a list of optional tensors.
_SUFFIXES = re.compile(r"\??|\[\d*\]\??")
_TENSOR_SUFFIXES = re.compile(r"\??|\[\d*\]\??|\?\[\d*\]")
# What a result may be; registering anything else does not compile, or PyTorch refuses it.
_RESULT_SUFFIXES = {"Scalar": ("",), "bool": ("", "?")}
_ANY = ("", "?", "[]")
# Keywords of Python that torch's parser reads as names all the same; `from` is an argument of upstream's.
_SOFT = frozenset({"async", "await", "except", "finally", "from", "lambda", "nonlocal", "try", "yield"})
_RESERVED = (frozenset(keyword.kwlist) - _SOFT) | {"NoneType"}
# Words of torchgen's that are no types to torch's parser.
_NOT_IN_SCHEMAS = frozenset({"ConstQuantizerPtr", "DimVector", "GraphModule"})

# fmt: off
_DTYPES = (
    "bfloat16", "bool", "complex128", "complex32", "complex64", "double", "float", "float16", "float32", "float64",
    "half", "int", "int16", "int32", "int64", "int8", "long", "short", "uint8",
)
# fmt: on


class _Reader:
    def __init__(self, schema: str, types: frozenset[str]) -> None:
        self.schema = schema
        # Strings may hold brackets and commas; nothing but a default value may hold strings.
        self.masked = _STRING.sub(lambda m: m[0][0] + "x" * (len(m[0]) - 2) + m[0][0], schema)
        self.types = types - _NOT_IN_SCHEMAS
        self.faults: list[SchemaFault] = []

    def fault(self, span: Span, message: str, hint: str) -> None:
        self.faults.append(SchemaFault(*span, message, hint))

    def read(self) -> None:
        head = _HEAD.match(self.masked)
        if head is None:
            self.fault((0, len(self.schema)), "it has no list of arguments in parentheses", _FORMAT)
            return
        closing = _closing(self.masked, head.end() - 1)
        if closing is None:
            self.fault((head.end() - 1, head.end()), "this parenthesis is never closed", _FORMAT)
            return
        self.names(head)
        self.arguments((head.end(), closing))
        arrow = re.compile(r"\s*->\s*").match(self.masked, closing + 1)
        if arrow is None:
            self.fault((closing, closing + 1), "`-> result` must follow the arguments", _FORMAT)
        else:
            self.returns((arrow.end(), len(self.masked.rstrip())))

    def names(self, head: re.Match[str]) -> None:
        for part in ("name", "overload"):
            if head[part] in _RESERVED:
                self.fault(head.span(part), f"PyTorch reserves the word '{head[part]}'", "choose another name")
        overload = head["overload"]
        if overload is not None and (overload == "default" or overload.startswith("__")):
            self.fault(
                head.span("overload"),
                f"PyTorch refuses '{overload}' as the name of an overload",
                "choose another name; an operator's only overload needs none",
            )

    def arguments(self, inside: Span) -> None:
        if not self.masked[slice(*inside)].strip():
            return
        seen: set[str] = set()
        defaulted: str | None = None  # the first positional argument that has a default
        keyword_only = False
        for start, end in top_level_spans(self.masked, *inside, keep_empty=True):
            text = self.masked[start:end]
            if text == "*":
                if keyword_only or end == len(self.masked[: inside[1]].rstrip()):
                    self.fault((start, end), "'*' must stand once, before the keyword arguments", "remove it")
                keyword_only = True
                continue
            match = _ARGUMENT.fullmatch(text)
            if match is None:
                what = (
                    f"'{self.schema[start:end]}' is no argument" if text else "an argument is missing beside this comma"
                )
                where = (start, end) if text else (start - 1, start)
                self.fault(where, what, "write `type name` or `type name=default`")
                continue
            name = self.argument(match, start, seen)
            seen.add(name)
            if keyword_only:
                continue
            if match["default"] is not None:
                defaulted = defaulted or name
            elif defaulted is not None and not match["type"].endswith("]"):
                self.fault(
                    (start, end),
                    f"argument '{name}' has no default, but '{defaulted}' before it has one",
                    "give it a default, too, or move it forward or behind `*`",
                )

    def argument(self, match: re.Match[str], at: int, seen: set[str]) -> str:
        def span(part: str) -> Span:
            return at + match.start(part), at + match.end(part)

        name = match["name"]
        fault = (
            "is there twice"
            if name in seen
            else "is a keyword of C++"
            if name in KEYWORDS
            else "is a word that PyTorch reserves"
            if name in _RESERVED
            else "is no identifier"
            if name[0].isdigit() or not name.isascii()
            else None
        )
        if fault is not None:
            self.fault(span("name"), f"argument '{name}' {fault}", "give the argument another name")
        known = self.type(match["type"], at)
        if known is not None and match["default"] is not None:
            value = self.schema[slice(*span("default"))].strip()
            expected = _refusal(*known, value)
            if expected is not None:
                shown = f"'{value}'" if value else "nothing"
                message = f"argument '{name}' of type {match['type']} cannot have the default {shown}"
                start, end = span("default")
                self.fault((start, max(end, start + 1)), message, expected)
        return name

    def type(self, text: str, at: int) -> tuple[str, str] | None:
        """Base and suffix of a type; None after a fault."""
        match = _TYPE.fullmatch(text)
        if match is None or match["base"] not in self.types:
            word = match["base"] if match is not None else text
            near = did_you_mean(word, self.types) or f"known types: {', '.join(sorted(self.types))}, each with ? or []"
            self.fault((at, at + len(word)), f"unknown type '{word}'", near)
            return None
        base, suffix = match["base"], match["suffix"]
        if match["alias"] is not None and base != "Tensor":
            self.fault((at, at + len(text)), f"only tensors have aliases, not {base}", f"write {base}{suffix}")
            return None
        shapes = _TENSOR_SUFFIXES if base == "Tensor" else _SUFFIXES
        if shapes.fullmatch(suffix) is None or "[0]" in suffix:
            hint = f"write {base}, {base}?, {base}[], {base}[2] or {base}[]?"
            self.fault((at, at + len(text)), f"no kernel can take the type {text}", hint)
            return None
        if base == "bool" and "[]" in suffix:
            self.fault((at, at + len(text)), "a list of bool must state its length", "write bool[2]")
            return None
        return base, suffix

    def returns(self, span: Span) -> None:
        start, end = span
        if not self.masked[start:end]:
            self.fault(
                (max(start - 2, 0), start), "no result follows", "write `-> Tensor`, `-> (Tensor, int)` or `-> ()`"
            )
            return
        tuple_ = self.masked[start] == "(" and _closing(self.masked, start) == end - 1
        inside = (start + 1, end - 1) if tuple_ else (start, end)
        if tuple_ and not self.masked[slice(*inside)].strip():
            return
        results = top_level_spans(self.masked, *inside, keep_empty=True)
        if tuple_ and len(results) == 1:
            self.fault(span, "a single result stands without parentheses", f"write `-> {self.masked[slice(*inside)]}`")
        if not tuple_ and len(results) > 1:
            self.fault(span, "several results stand in parentheses", f"write `-> ({self.masked[start:end]})`")
        for first, last in results:
            match = _RETURN.fullmatch(self.masked[first:last])
            if match is None:
                what = f"'{self.schema[first:last]}' is no result"
                self.fault((first, max(last, first + 1)), what, "write `Tensor`, or `Tensor name`")
                continue
            known = self.type(match["type"], first)
            if known is not None and (known[0] == "Generator" or known[1] not in _RESULT_SUFFIXES.get(known[0], _ANY)):
                where = (first, first + len(match["type"]))
                self.fault(where, f"no kernel can return {match['type']}", "write Tensor, int, Tensor[], Tensor? ...")


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return None


def _refusal(base: str, suffix: str, value: str) -> str | None:
    """What a default of this type must look like, where `value` does not."""
    if suffix.endswith("?"):
        if value == "None":
            return None
        if "[" in suffix:
            return "an optional list can only default to None"
        expected = _refusal(base, "", value)
        return f"{expected}, or None" if expected is not None else None
    if "[" in suffix:
        return _list_refusal(base, suffix, value)
    if value == "None":
        return f"None needs an optional type: {base}?"
    if base == "int" and value == "Mean":  # the reduction's number
        return None
    return _scalar_refusal(base, value)


def _list_refusal(base: str, suffix: str, value: str) -> str | None:
    if base not in ("int", "SymInt", "float", "bool"):
        return f"PyTorch has no defaults for lists of {base}; leave it out, or make the list optional"
    if value.startswith("[") and value.endswith("]"):
        elements = [element.strip() for element in value[1:-1].split(",")] if value[1:-1].strip() else []
        faults = [f for element in elements if (f := _scalar_refusal(base, element)) is not None]
        return f"in a list of {base}, {faults[0]}" if faults else None
    if suffix == "[]":
        return "write a list: [1, 2]"
    fault = _scalar_refusal(base, value)
    return f"write a list, or one value for all; {fault}" if fault is not None else None


def _scalar_refusal(base: str, value: str) -> str | None:
    number = _NUMBER.fullmatch(value) is not None and math.isfinite(float(value))
    integer = _INTEGER.fullmatch(value) is not None and -(2**63) < int(value) < 2**63
    # A number that looks like an integer is read as one.
    fits = integer or (number and _INTEGER.fullmatch(value) is None)
    string = _STRING.fullmatch(value) is not None and value.isascii()
    if base in ("int", "SymInt"):
        return None if integer else "write a decimal integer of 64 bits"
    if base == "float":
        return None if fits else "write a decimal number such as 0.5 or 1e-05"
    if base == "bool":
        return None if value in ("True", "False") else "write True or False"
    if base == "Scalar":
        return None if fits or value in ("True", "False") else "write a number, True or False"
    if base == "str":
        return None if string else 'write a string in quotes: "mean"'
    if base == "ScalarType":
        return None if value in _DTYPES else f"write a dtype: {', '.join(_DTYPES)}"
    if base == "Layout":
        return None if value == "strided" else "the only layout that can be a default is strided"
    if base == "MemoryFormat":
        return None if value == "contiguous_format" else "the only one that can be a default is contiguous_format"
    if base == "Device":
        return None if string and value[1:-1] in ("cpu", "cuda", "meta") else 'write "cpu", or make it optional'
    return f"PyTorch has no defaults for {base}; leave it out, or make the type optional and the default None"
