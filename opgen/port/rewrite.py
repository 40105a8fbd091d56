"""The port of one source text, as a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.diagnostics import Diagnostic, Location, Severity
from opgen.port.mapping import Mapping
from opgen.port.tokens import Kind, Token, tokenize

_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True)
class Ported:
    """The new text and what could not be carried over; the text is usable only where `problems` is empty."""

    text: str
    problems: tuple[Diagnostic, ...]


def port_text(text: str, mapping: Mapping, path: str = "<text>") -> Ported:
    """`text` with every mapped name exchanged; the number of lines stays, strings and comments stay.

    Porting the result again changes nothing.
    """
    source = text.encode("utf-8")
    tokens = tokenize(source)
    problems = _unbalanced(tokens, path)
    pieces: list[bytes] = []
    done = 0
    code = [token for token in tokens if token.kind is not Kind.COMMENT]
    for index, token in enumerate(code):
        reason = mapping.unportable.get(token.text) if token.kind is Kind.NAME else None
        if reason is not None:
            problems.append(_error(path, token, f"'{token.text}' cannot be ported", reason))
            continue
        new = _replacement(code, index, mapping)
        if new is None:
            if token.kind is Kind.NAME and mapping.foreign.fullmatch(token.text):
                problems.append(
                    _error(path, token, f"'{token.text}' has no MUSA counterpart", "add it to opgen/port/mappings/")
                )
        elif new != token.text:
            pieces += [source[done : token.start], new.encode("utf-8")]
            done = token.end
    pieces.append(source[done:])
    return Ported(b"".join(pieces).decode("utf-8"), tuple(sorted(problems, key=lambda p: p.location)))


def _replacement(code: list[Token], index: int, mapping: Mapping) -> str | None:
    """What stands for token `index` on the MUSA side; None where no rule speaks of it."""
    token = code[index]
    if token.kind is Kind.INCLUDE:
        return mapping.include(token.text)
    if token.kind is Kind.NAMESPACE:
        # The grammar calls any scope a namespace, `DeviceType` in `DeviceType::CUDA` and class names too.
        return mapping.namespaces.get(token.text, mapping.identifiers.get(token.text))
    if token.kind is not Kind.NAME:
        return None
    if index >= 2 and code[index - 1].text == "::":
        scoped = mapping.qualified.get(f"{code[index - 2].text}::{token.text}")
        if scoped is not None:
            return scoped
    return mapping.identifiers.get(token.text)


def _unbalanced(tokens: tuple[Token, ...], path: str) -> list[Diagnostic]:
    """A bracket without its partner: the sign of a truncated or broken file that matters to a port.

    Error nodes of the grammar do not count, because an unknown macro makes them in correct code. Conditional
    compilation may balance in two halves, so only files without any are judged.
    """
    if any(token.text in {"#if", "#ifdef", "#ifndef"} for token in tokens):
        return []
    stack: list[Token] = []
    for token in tokens:
        if token.kind is not Kind.PUNCTUATION:
            continue
        if token.text in _CLOSING.values():
            stack.append(token)
        elif token.text in _CLOSING:
            if not stack or stack[-1].text != _CLOSING[token.text]:
                return [_error(path, token, f"'{token.text}' closes nothing", "is the file complete?")]
            stack.pop()
    if stack:
        return [_error(path, stack[-1], f"'{stack[-1].text}' is never closed", "is the file complete?")]
    return []


def _error(path: str, token: Token, message: str, hint: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, Location(path, token.line, token.column), message, hint)
