"""Kernel launches to C++: `k<T><<<grid, block, shmem, stream>>>(a, b)` becomes a call of `::musa::host::launch`.

The kernel goes in as a lambda, so that template arguments may still be deduced from the arguments of the launch:

    ::musa::host::launch(::musa::host::LaunchConfig(grid, block, shmem, stream),
                         [=](const auto&... mcc_args) { k<T>(mcc_args...); }, a, b)

Arguments are evaluated once, by the launching thread, and stored with the launch; each thread of the grid gets its own
copy, as the dialect says, unless the parameter is a `__grid_constant__`.
"""

from __future__ import annotations

from lexer import Token, place, tokenize

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = {">": 1, ">>>": 3}  # k<A<B<int>>><<<...>>> closes three lists of template arguments at once
_UNSUPPORTED = {
    "__syncthreads": "threads of a block run one after the other on the host, so a barrier cannot be honoured",
    "__syncwarp": "threads of a block run one after the other on the host, so a barrier cannot be honoured",
    "__shared__": "shared memory is of use only with a barrier, which the host stand-in does not have",
}


class SourceError(Exception):
    """A fault of the user's source, printed as a compiler would: `file:line:column: error: message`."""

    def __init__(self, name: str, source: str, offset: int, message: str) -> None:
        line, column = place(source, offset)
        super().__init__(f"{name}:{line}:{column}: error: {message}")


def rewrite_launches(source: str, name: str) -> str:
    """`source` with every launch rewritten in place; lines keep their numbers."""
    tokens = tokenize(source)
    for token in tokens:
        if token.text in _UNSUPPORTED:
            raise SourceError(name, source, token.start, f"'{token.text}': {_UNSUPPORTED[token.text]}")
    edits: list[tuple[int, int, str]] = []
    for index, token in enumerate(tokens):
        if token.text != "<<<":
            continue
        first = _kernel_start(tokens, index)
        if first == index:
            raise SourceError(name, source, token.start, "'<<<' must follow the name of a kernel")
        close = _launch_end(tokens, index)
        if close is None:
            raise SourceError(name, source, token.start, "'<<<' without its '>>>'")
        if close + 1 >= len(tokens) or tokens[close + 1].text != "(":
            raise SourceError(name, source, tokens[close].end, "the arguments of the kernel must follow '>>>'")
        kernel = source[tokens[first].start : token.start]
        begin, end = tokens[first].start, tokens[close + 1].end
        has_arguments = close + 2 < len(tokens) and tokens[close + 2].text != ")"
        # The configuration stays where it is, the kernel's text moves behind it; line breaks keep their places.
        edits.append((begin, token.end, "::musa::host::launch(::musa::host::LaunchConfig(" + "\n" * kernel.count("\n")))
        flat = " ".join(kernel.split())
        gap = "\n" * source.count("\n", tokens[close].start, end)
        comma = ", " if has_arguments else ""
        call = f"), [=](const auto&... mcc_args) {{ {flat}(mcc_args...); }}"
        edits.append((tokens[close].start, end, f"{call}{comma}{gap}"))
    pieces, done = [], 0
    for begin, end, text in sorted(edits):
        pieces += [source[done:begin], text]
        done = end
    return "".join([*pieces, source[done:]])


def _kernel_start(tokens: list[Token], launch: int) -> int:
    """Index of the first token of the kernel's name (`ns::kernel<args>`, `(*pointer)`) in front of `<<<`."""
    at = launch
    if at and tokens[at - 1].text in _CLOSERS:
        at = _template_start(tokens, at - 1)
    if not at or tokens[at - 1].kind != "name":
        return launch
    at -= 1
    while at and tokens[at - 1].text == "::":
        at -= 1
        if at and tokens[at - 1].kind == "name" and tokens[at - 1].text not in {"return", "else", "do"}:
            at -= 1
    return at


def _template_start(tokens: list[Token], last: int) -> int:
    """Index of the `<` that opens the template arguments ending at `last`; `last + 1`, where none is found."""
    depth = 0
    brackets = 0
    for at in range(last, -1, -1):
        text = tokens[at].text
        if text in _OPENING.values():
            brackets += 1
        elif text in _OPENING:
            brackets -= 1
        elif brackets == 0:
            depth += _CLOSERS.get(text, 0) - (text == "<")
            if depth == 0:
                return at
        if brackets < 0 or text in {";", "<<<"}:
            break
    return last + 1


def _launch_end(tokens: list[Token], launch: int) -> int | None:
    """Index of the `>>>` that belongs to the `<<<` at `launch`."""
    stack: list[str] = []
    for at in range(launch + 1, len(tokens)):
        text = tokens[at].text
        if text in _OPENING:
            stack.append(_OPENING[text])
        elif stack and text == stack[-1]:
            stack.pop()
        elif not stack:
            if text == ">>>":
                return at
            if text in {")", "]", "}", ";", "<<<"}:
                return None
    return None
