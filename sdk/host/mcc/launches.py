"""Kernel launches to C++: `k<T><<<grid, block, shmem, stream>>>(a, b)` becomes a call of `::musa::host::launch`.

The kernel goes in as a lambda, so that template arguments may still be deduced from the arguments of the launch:

    ::musa::host::launch(::musa::host::LaunchSite{"k<T>", __FILE__, __LINE__},
                         ::musa::host::LaunchConfig(grid, block, shmem, stream),
                         [=](const auto&... mcc_args) { k<T>(mcc_args...); }, a, b)

Arguments are evaluated once, by the launching thread, and stored with the launch; each thread of the grid gets its own
copy, as the dialect says, unless the parameter is a `__grid_constant__`.

`musaLaunchKernel((void*)k<T>, ...)` loses the cast, because k's type says what its arguments are, and gains the site.
"""

from __future__ import annotations

from lexer import Token
from source import OPENING, Edit, Source, closing, quoted

_CLOSERS = {">": 1, ">>>": 3}  # k<A<B<int>>><<<...>>> closes three lists of template arguments at once
_VOID_POINTER = (["(", "void", "*", ")"], ["(", "const", "void", "*", ")"], ["(", "void", "const", "*", ")"])
_KERNEL_CALLS = {"musaLaunchKernel"}


def launch_edits(source: Source) -> list[Edit]:
    """The edits that rewrite every launch in place."""
    text, tokens = source.text, source.tokens
    edits: list[Edit] = []
    for index, token in enumerate(tokens):
        if token.text in _KERNEL_CALLS:
            edits += _call_edits(source, index)
        if token.text != "<<<":
            continue
        first = _kernel_start(tokens, index)
        if first == index:
            raise source.error(token.start, "'<<<' must follow the name of a kernel")
        close = _launch_end(tokens, index)
        if close is None:
            raise source.error(token.start, "'<<<' without its '>>>'")
        if close + 1 >= len(tokens) or tokens[close + 1].text != "(":
            raise source.error(tokens[close].end, "the arguments of the kernel must follow '>>>'")
        kernel = text[tokens[first].start : token.start]
        begin, end = tokens[first].start, tokens[close + 1].end
        has_arguments = close + 2 < len(tokens) and tokens[close + 2].text != ")"
        # The configuration stays where it is, the kernel's text moves behind it; line breaks keep their places, and in
        # a macro their backslashes.
        line_end = "\\\n" if source.directive_end(token.start) is not None else "\n"
        flat = " ".join(kernel.replace("\\\n", " ").split())
        opening = f"::musa::host::launch({_site(flat)}, ::musa::host::LaunchConfig(" + line_end * kernel.count("\n")
        edits.append(Edit(begin, token.end, opening))
        gap = line_end * text.count("\n", tokens[close].start, end)
        comma = ", " if has_arguments else ""
        call = f"), [=](const auto&... mcc_args) {{ {flat}(mcc_args...); }}"
        edits.append(Edit(tokens[close].start, end, f"{call}{comma}{gap}"))
    return edits


def _site(kernel: str) -> str:
    return f"::musa::host::LaunchSite{{{quoted(kernel)}, __FILE__, __LINE__}}"


def _call_edits(source: Source, call: int) -> list[Edit]:
    """musaLaunchKernel(kernel, ...): the cast of the kernel goes, the site comes."""
    tokens = source.tokens
    if call + 2 >= len(tokens) or tokens[call + 1].text != "(":
        return []
    first = call + 2
    edits = []
    texts = [token.text for token in tokens[first : first + 8]]
    cast = next((form for form in _VOID_POINTER if texts[: len(form)] == form), None)
    if cast is not None:
        edits.append(Edit(tokens[first].start, tokens[first + len(cast) - 1].end, ""))
        first += len(cast)
    elif texts[:2] == ["reinterpret_cast", "<"] and "(" in texts:
        opening = first + texts.index("(")
        last = closing(tokens, opening)
        if last is not None:
            edits.append(Edit(tokens[first].start, tokens[opening].end, ""))
            edits.append(Edit(tokens[last].start, tokens[last].end, ""))
            first = opening + 1
    name = first
    while name < len(tokens) and tokens[name].text not in {",", ")"}:
        name += 1
    kernel = source.between(tokens[first], tokens[name - 1]).lstrip("&")
    # Directly behind the parenthesis, so that it stays in front of the other edits.
    edits.append(Edit(tokens[call + 1].end, tokens[call + 1].end, _site(kernel) + ", "))
    return edits


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
        if text in OPENING.values():
            brackets += 1
        elif text in OPENING:
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
        if text in OPENING:
            stack.append(OPENING[text])
        elif stack and text == stack[-1]:
            stack.pop()
        elif not stack:
            if text == ">>>":
                return at
            if text in {")", "]", "}", ";", "<<<"}:
                return None
    return None
