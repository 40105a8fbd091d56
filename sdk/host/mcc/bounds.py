"""`__launch_bounds__(threads, ...)` of a kernel's definition to a check in front of its first statement."""

from __future__ import annotations

from lexer import Token
from source import OPENING, Edit, Source, closing


def bounds_edits(source: Source) -> list[Edit]:
    """One check for every definition; declarations, and what a macro's body says, are left alone."""
    tokens = source.tokens
    edits = []
    for index, token in enumerate(tokens):
        if token.text != "__launch_bounds__" or source.directive_end(token.start) is not None:
            continue
        if index + 1 >= len(tokens) or tokens[index + 1].text != "(":
            continue
        close = closing(tokens, index + 1)
        if close is None or close == index + 2:
            continue
        body = _body(tokens, close + 1)
        if body is not None:
            bound = source.between(tokens[index + 2], tokens[_argument_end(tokens, index + 2, close)])
            check = f" ::musa::host::check_launch_bounds({bound});"
            edits.append(Edit(tokens[body].end, tokens[body].end, check))
    return edits


def _argument_end(tokens: list[Token], first: int, close: int) -> int:
    """Index of the last token of the argument that begins at `first`."""
    depth = 0
    for at in range(first, close):
        text = tokens[at].text
        depth += (text in OPENING) - (text in OPENING.values())
        if text == "," and depth == 0:
            return at - 1
    return close - 1


def _body(tokens: list[Token], at: int) -> int | None:
    """Index of the `{` of the function whose declaration goes on at `at`; None where it has no body."""
    parameters = next((i for i in range(at, len(tokens)) if tokens[i].text in {"(", ";", "{", "}"}), None)
    if parameters is None or tokens[parameters].text != "(":
        return None
    close = closing(tokens, parameters)
    if close is None or close + 1 >= len(tokens) or tokens[close + 1].text != "{":
        return None
    return close + 1
