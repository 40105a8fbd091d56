"""`__constant__` variables are counted: behind each declaration stands a note of its size (musa_kernel/constant.h)."""

from __future__ import annotations

from lexer import Token
from shared import name_index, split, take_alignment
from source import OPENING, Edit, Source, quoted

_NO_VARIABLE = {"extern", "template", "using", "typedef", "friend"}


def constant_edits(source: Source) -> list[Edit]:
    """One note for every declaration at namespace scope; a template's, or one without a size, cannot be counted."""
    # What a directive says is no part of the declaration behind it.
    tokens = [token for token in source.tokens if source.directive_end(token.start) is None]
    edits = []
    open_namespaces: list[bool] = []  # per open brace: is it a namespace's
    statement = 0
    for index, token in enumerate(tokens):
        if token.text == "{":
            open_namespaces.append(_opens_namespace(tokens[statement:index]))
        elif token.text == "}" and open_namespaces:
            open_namespaces.pop()
        elif token.text == "__constant__" and all(open_namespaces):
            end = _semicolon(tokens, index)
            if end is not None:
                words = [word for word in tokens[statement:end] if word.text != "__constant__"]
                notes = "".join(_note(name) for name in _names(source, words))
                edits.append(Edit(tokens[end].end, tokens[end].end, notes))
        if token.text in {"{", "}", ";"}:
            statement = index + 1
    return edits


def _opens_namespace(words: list[Token]) -> bool:
    texts = [word.text for word in words]
    return "namespace" in texts or (len(texts) == 2 and texts[0] == "extern")


def _semicolon(tokens: list[Token], at: int) -> int | None:
    depth = 0
    for index in range(at, len(tokens)):
        text = tokens[index].text
        depth += (text in OPENING) - (text in OPENING.values())
        if text == ";" and depth == 0:
            return index
        if depth < 0:
            return None
    return None


def _names(source: Source, words: list[Token]) -> list[str]:
    words, _ = take_alignment(source, words)
    if _NO_VARIABLE & {word.text for word in words}:
        return []
    found = []
    for part in split(words):
        index = name_index(part)
        if index is not None:
            found.append(part[index].text)
    return found


def _note(name: str) -> str:
    arguments = f"::musa::host::constant_bytes_here, {quoted(name)}, __FILE__, __LINE__"
    return f" [[maybe_unused]] static const ::musa::host::Constant<decltype({name})> {name}_musa_constant({arguments});"
