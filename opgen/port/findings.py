"""What a port has to say about a source besides the names that it exchanges.

Whatever would mean something else on MUSA, or nothing, is told with its place. Nothing is switched off to make a file
compile: code that silently does not run is worse than code that does not compile.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from opgen.diagnostics import Diagnostic
from opgen.port.lexing import Lexed, Span
from opgen.port.mapping import Mapping
from opgen.port.places import Places
from opgen.port.structure import Structure

ARCH = "__CUDA_ARCH__"
ASSEMBLY = frozenset({"asm", "__asm", "__asm__"})
"""In code for the host these are the host's own affair."""
# `#ifdef X` and `defined(X)` ask whether device code is compiled, and so does a bare `#if X && ...`.
_PRESENCE = re.compile(r"\bdefined[ \t]*\(?[ \t]*$|^[ \t]*#[ \t]*(?:(?:el)?ifn?def|undef)[ \t]+$")
_TRUTH_BEFORE = re.compile(r"^[ \t]*#[ \t]*(?:el)?if\b(?:.*(?:&&|\|\|))?[ \t(!]*$")
_TRUTH_AFTER = re.compile(r"[ \t)]*(?:\r?$|&&|\|\|)", re.MULTILINE)
_CONDITION = re.compile(r"\bdefined[ \t]*\(?[ \t]*$|^[ \t]*#[ \t]*(?:(?:el)?ifn?def|undef)[ \t]+$", re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b", re.MULTILINE)
_SPLICED = re.compile(r"(?<![\w$])([A-Za-z_]\w*)\\\r?\n(\w+)", re.ASCII)
_TO_CUDA = re.compile(r"(?:\.|->)\s*(cuda)\s*\(\s*\)")
PASTED = re.compile(r"\s*##")
"""What follows a name that is only the beginning of one."""
_DEVICE_STRING = re.compile(r'"cuda(?::\d+)?"')
_BRACKET = re.compile(r"[(){}\[\]]")
_CLOSING = {")": "(", "]": "[", "}": "{"}
# The type, CUDA's vectors of it, its conversions and its rounded operations.
_DOUBLE = re.compile(r"\b(?:double[1-4]?|__d(?:add|sub|mul|div|sqrt|rcp)_r[nzud]|__double2\w+|__\w+2double_r[nzud])\b")
# 1.0, 1e-3 and .5 are double precision; 1.0f is not, and a decimal point is not a member's.
_DOUBLE_CONSTANT = re.compile(
    r"(?<![\w.$])(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])"
)
_NO_DOUBLE = "use float, compile with --fp64 where the toolkit has it and say so here (--fp64), or name another --arch"


def suspect(mapping: Mapping, places: Places, word: str, start: int) -> Diagnostic:
    """A name that must not pass: an unportable one, or one that no table knows."""
    end = start + len(word)
    reason = mapping.unportable.get(word)
    if reason is not None:
        return places.error(start, end, f"'{word}' cannot be ported", reason)
    family = mapping.family(word)
    proposal = propose(mapping, word)
    if proposal is None:
        hint = f"it belongs to {family.what}; write the code anew" if family is not None and not family.old else None
        return places.error(
            start, end, f"'{word}' has no known MUSA counterpart", hint or "name one in a rule for --map"
        )
    hint = f"if {proposal} is right, write the rule '{word}<TAB>{proposal}' into a file for --map"
    return places.error(start, end, f"'{word}' has no known MUSA counterpart", hint)


def note(mapping: Mapping, places: Places, word: str, new: str, start: int) -> Diagnostic:
    """A name that is exchanged, but whose counterpart behaves otherwise."""
    return places.warning(start, start + len(word), f"'{new}' is not all that '{word}' is", mapping.notes[word])


def propose(mapping: Mapping, word: str) -> str | None:
    """What a rule for this name might say."""
    key = mapping.qualified.get(f"DispatchKey::{word}")
    return key if key is not None else mapping.proposal(word)


def asks_for_presence(code: str, start: int, end: int) -> bool:
    """Whether the macro at this place is only asked whether it is there: what its number is does not matter."""
    line = code[code.rfind("\n", 0, start) + 1 : start]
    return bool(_PRESENCE.search(line) or (_TRUTH_BEFORE.search(line) and _TRUTH_AFTER.match(code, end)))


def arch_number(places: Places, start: int, end: int) -> Diagnostic:
    hint = (
        "it counts NVIDIA's architectures, __MUSA_ARCH__ counts MUSA's (mp_22 is 220):\n"
        "write a rule for --map, such as '__CUDA_ARCH__ >= 800<TAB>__MUSA_ARCH__ >= 220'"
    )
    return places.error(start, end, f"the number of {ARCH} cannot be ported", hint)


def device_strings(text: str, strings: Iterable[Span], places: Places) -> list[Diagnostic]:
    """Strings that are the name of CUDA's device, which stay as they are."""
    return [
        places.warning(
            span.start,
            span.end,
            f"{text[span.start : span.end]} names CUDA's device and stays",
            "with --strings names in strings are exchanged, too",
        )
        for span in strings
        if _DEVICE_STRING.fullmatch(text, span.start, span.end)
    ]


def broken(lexed: Lexed, places: Places, *, device: bool) -> list[Diagnostic]:
    """Signs of a truncated or broken file that matter to a port: something is opened and not closed."""
    if "\0" in lexed.text:
        at = lexed.text.index("\0")
        return [places.error(at, at + 1, "a NUL byte: this is no text", "is it UTF-16? convert it to UTF-8")]
    if lexed.unclosed is not None:
        start, what = lexed.unclosed
        return [places.error(start, start + 2, f"{what} is never closed", "is the file complete?")]
    conditions = _open_conditions(lexed.code, places)
    return conditions or (unbalanced(lexed.code, places) if device else [])


def _open_conditions(code: str, places: Places) -> list[Diagnostic]:
    stack: list[re.Match[str]] = []
    for match in _DIRECTIVE.finditer(code):
        if match[1].startswith("if"):
            stack.append(match)
        elif not stack:
            return [places.error(match.start(), match.end(), f"#{match[1]} without #if", "is the file complete?")]
        elif match[1] == "endif":
            stack.pop()
    return [
        places.error(match.start(), match.end(), f"#{match[1]} is never closed", "is the file complete?")
        for match in stack[-1:]
    ]


def unbalanced(code: str, places: Places) -> list[Diagnostic]:
    """A bracket without its partner: the sign of a truncated or broken file that matters to a port.

    Error nodes of the grammar do not count, because an unknown macro makes them in correct code. Conditional
    compilation may balance in two halves, so only files without any are judged.
    """
    if _CONDITION.search(code):
        return []
    stack: list[re.Match[str]] = []
    for match in _BRACKET.finditer(code):
        bracket = match[0]
        if bracket not in _CLOSING:
            stack.append(match)
        elif not stack or stack[-1][0] != _CLOSING[bracket]:
            return [places.error(match.start(), match.end(), f"'{bracket}' closes nothing", "is the file complete?")]
        else:
            stack.pop()
    if stack:
        last = stack[-1]
        return [places.error(last.start(), last.end(), f"'{last[0]}' is never closed", "is the file complete?")]
    return []


def pasted(mapping: Mapping, places: Places, word: str, start: int) -> Diagnostic:
    """The beginning of CUDA's names in front of `##`: what is pasted to it is not seen."""
    new = next(family.new for family in mapping.foreign if family.old == word)
    hint = f"write the names whole; or, if all of them begin with {new}, the rule '{word} ##<TAB>{new} ##' for --map"
    return places.error(start, start + len(word), f"names that '{word} ##' makes cannot be ported", hint)


def spliced(mapping: Mapping, code: str, places: Places) -> list[Diagnostic]:
    """CUDA's names that a backslash at the end of a line cuts in two."""
    return [
        places.error(match.start(), match.end(), f"'{word}' goes on in the next line", "write the name in one piece")
        for match in _SPLICED.finditer(code)
        if (word := match[1] + match[2]) in mapping.identifiers or mapping.family(word) is not None
    ]


def included_by_macro(lexed: Lexed, places: Places) -> list[Diagnostic]:
    """`#include NAME` where another file says what that is."""
    hint = "look whether it is a header that got another name"
    return [
        places.warning(
            span.start, span.end, f"what #include {lexed.text[span.start : span.end]} names is not seen", hint
        )
        for span in lexed.by_macro
    ]


def moves_to_cuda(code: str) -> Iterator[tuple[int, int]]:
    """Where `.cuda()` stands. Of a tensor it means the device CUDA, whatever this backend is."""
    return (match.span(1) for match in _TO_CUDA.finditer(code))


def move_to_cuda(places: Places, start: int, end: int) -> Diagnostic:
    hint = "if that is a tensor, write the rule '.cuda()<TAB>.to(at::kPrivateUse1)' into a file for --map"
    return places.error(start, end, "'cuda()' of a tensor cannot be ported", hint)


def device_launches(code: str, structure: Structure, places: Places) -> list[Diagnostic]:
    """Launches from kernels."""
    if "<<<" not in code or ("__global__" not in code and "__device__" not in code):
        return []
    return [
        places.error(
            start, start + 3, "a launch from a kernel cannot be ported", "launch the second kernel from the host"
        )
        for start in structure.device_launches
    ]


def double_precision(code: str, structure: Structure, places: Places) -> list[Diagnostic]:
    """Double precision in code that runs on a device without it. (What a template is instantiated with is not seen.)"""
    found = []
    for pattern, what in (
        (_DOUBLE, "'{}' is double precision"),
        (_DOUBLE_CONSTANT, "the constant {} is double precision"),
    ):
        for match in pattern.finditer(code):
            if inside(match.start(), structure.device_code):
                message = f"{what.format(match[0])}, which this architecture lacks"
                found.append(places.warning(match.start(), match.end(), message, _NO_DOUBLE))
    return found


def inside(offset: int, spans: Sequence[Span]) -> bool:
    """Whether a place lies in one of the spans, which are in order and do not overlap."""
    place = bisect_right(spans, offset, key=lambda span: span.start) - 1
    return place >= 0 and offset < spans[place].end
