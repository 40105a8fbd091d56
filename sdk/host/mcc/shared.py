"""Declarations of shared memory to C++: references into the block's own memory (sdk/include/musa_kernel/shared.h).

    __shared__ float a[4];           a variable of the block
    extern __shared__ float b[];     the launch's dynamic memory

A `__shared__` that is no declaration by itself (`#define SMEM __shared__`) is left to the header's macro.
"""

from __future__ import annotations

from dataclasses import dataclass

from lexer import Token
from source import OPENING, Edit, Source, closing, quoted

_SPECIFIERS = {"extern", "static", "volatile", "const", "inline"}
_ALIGNMENT = {"alignas", "__align__"}


@dataclass(frozen=True)
class _Declarator:
    name: str
    pointers: str  # what stands before the name: `*`, `* const`
    dimensions: str  # what stands behind: `[4][8]`


def shared_edits(source: Source) -> list[Edit]:
    """The edits that rewrite every declaration of shared memory."""
    in_function = _function_scopes(source.tokens)
    edits = []
    for index, token in enumerate(source.tokens):
        if token.text == "__shared__":
            # A macro's body is expanded in functions.
            inside = in_function[index] or source.directive_end(token.start) is not None
            edit = _declaration(source, index, inside)
            if edit is not None:
                edits.append(edit)
    return edits


def _declaration(source: Source, at: int, in_function: bool) -> Edit | None:
    tokens = source.tokens
    first = _first_token(source, at)
    last = _semicolon(source, at)
    if last is None:
        if source.directive_end(tokens[at].start) is not None:
            return None
        raise source.error(tokens[at].start, "'__shared__' without the ';' that ends its declaration")
    words = [*tokens[first:at], *tokens[at + 1 : last]]
    is_extern = any(word.text == "extern" for word in words[: at - first + 1])
    words = [word for word in words if word.text not in {"extern", "static", "inline"}]
    words, alignment = take_alignment(source, _join_pasted(words))
    type_text, declarators = _parse(source, tokens[at], words)
    lines = "\n" * source.text.count("\n", tokens[first].start, tokens[last].end)
    if source.directive_end(tokens[at].start) is not None:
        lines = lines.replace("\n", "\\\n")
    replacement = ""
    if "{" in type_text:  # a type defined on the spot can be spelt once
        alias = f"{declarators[0].name}_musa_shared_type"
        replacement, type_text = f"using {alias} = {type_text}; ", alias
    for declarator in declarators:
        if is_extern:
            replacement += _dynamic(source, tokens[at], type_text, declarator, in_function)
        else:
            if not in_function:
                raise source.error(
                    tokens[at].start,
                    f"shared variable '{declarator.name}' outside a function: "
                    "the host stand-in needs it inside the kernel (or device function) that uses it",
                )
            replacement += _variable(type_text, declarator, alignment)
    return Edit(tokens[first].start, tokens[last].end, replacement.rstrip() + lines)


def _variable(type_text: str, declarator: _Declarator, alignment: str) -> str:
    name, held = declarator.name, f"{type_text}{declarator.pointers}{declarator.dimensions}"
    description = f"{name}_musa_shared"
    aligned, helper = f"alignof({held})", ""
    if alignment:  # alignas takes a number or a type; a struct of its own can tell which
        helper = f"struct alignas({alignment}) {name}_musa_aligned {{ char byte; }}; "
        own = f"alignof({name}_musa_aligned)"
        aligned = f"({aligned} > {own} ? {aligned} : {own})"
    # Not (&name) for all: compilers warn of parentheses that an array alone needs.
    reference = f"(&{name}){declarator.dimensions}" if declarator.dimensions else f"&{name}"
    facts = f"{quoted(name)}, sizeof({held}), {aligned}"
    return (
        f"{helper}static constexpr ::musa::host::SharedVariable {description}{{{facts}}}; "
        f"{type_text}{declarator.pointers} {reference} = "
        f"::musa::host::shared<{held}>({description}); "
    )


def _dynamic(source: Source, at: Token, type_text: str, declarator: _Declarator, in_function: bool) -> str:
    compact = "".join(declarator.dimensions.split())
    if not compact.startswith("[]"):
        raise source.error(at.start, f"'extern __shared__' declares an array without a size: '{declarator.name}[]'")
    element = f"{type_text}{declarator.pointers}{compact[2:]}"
    if in_function:
        return (
            f"{type_text}{declarator.pointers} (&{declarator.name}){compact} = "
            f"::musa::host::dynamic_shared_array<{element}>(); "
        )
    return f"static constexpr ::musa::host::DynamicShared<{element}> {declarator.name}{{}}; "


def _first_token(source: Source, at: int) -> int:
    """Index of the declaration's first token: specifiers, and the type itself in `float __shared__ x`."""
    tokens = source.tokens
    first = at
    while first and tokens[first - 1].text in _SPECIFIERS:
        first -= 1
    in_directive = source.directive_end(tokens[at].start) is not None
    if not in_directive and first and (tokens[first - 1].kind == "name" or tokens[first - 1].text in {">", "*"}):
        while first and tokens[first - 1].text not in {";", "{", "}", ")", ":"}:
            if source.directive_end(tokens[first - 1].start) is not None:
                break
            first -= 1
    return first


def _semicolon(source: Source, at: int) -> int | None:
    """Index of the `;` that ends the declaration, within the directive that it may stand in."""
    tokens = source.tokens
    limit = source.directive_end(tokens[at].start)
    stack: list[str] = []
    for index in range(at + 1, len(tokens)):
        text = tokens[index].text
        if limit is not None and tokens[index].start >= limit:
            return None
        if text in OPENING:
            stack.append(OPENING[text])
        elif stack and text == stack[-1]:
            stack.pop()
        elif text == ";" and not stack:
            return index
        elif text in {")", "}", "]"}:
            return None
    return None


def _join_pasted(words: list[Token]) -> list[Token]:
    """The words with `a ## b` as the one name that the preprocessor makes of it."""
    joined: list[Token] = []
    for word in words:
        if joined and (word.text == "##" or joined[-1].text.endswith("##")):
            before = joined.pop()
            joined.append(Token("name", before.text + word.text, before.start, word.end))
        else:
            joined.append(word)
    return joined


def take_alignment(source: Source, words: list[Token]) -> tuple[list[Token], str]:
    """The words without `alignas(n)` and `__align__(n)`, and n."""
    kept: list[Token] = []
    alignment = ""
    index = 0
    while index < len(words):
        if words[index].text in _ALIGNMENT and index + 1 < len(words) and words[index + 1].text == "(":
            close = closing(words, index + 1)
            if close is not None:
                if close > index + 2:
                    alignment = source.between(words[index + 2], words[close - 1])
                index = close + 1
                continue
        kept.append(words[index])
        index += 1
    return kept, alignment


def _parse(source: Source, at: Token, words: list[Token]) -> tuple[str, list[_Declarator]]:
    """The type that all declarators share, and the declarators."""
    parts = split(words)
    head = parts[0]
    name = name_index(head)
    if name is None or name == 0:
        raise source.error(at.start, "'__shared__' must stand in the declaration of a variable")
    first = name
    while first and head[first - 1].text in {"*", "&"}:
        first -= 1
    if first == 0:
        raise source.error(at.start, "'__shared__' must stand in the declaration of a variable")
    type_text = " ".join(token.text for token in head[:first])
    declarators = []
    for part in [head[first:], *parts[1:]]:
        index = name_index(part)
        if index is None:
            raise source.error(at.start, "a declaration of shared memory that mcc cannot read: give each its own line")
        behind = part[index + 1 :]
        if behind and behind[0].text != "[":
            message = f"shared variable '{part[index].text}' cannot be initialized: assign to it, then __syncthreads()"
            raise source.error(behind[0].start, message)
        text = "".join(" " + token.text + " " if token.kind == "name" else token.text for token in behind)
        if "=" in [token.text for token in behind]:
            message = f"shared variable '{part[index].text}' cannot be initialized: assign to it, then __syncthreads()"
            raise source.error(behind[0].start, message)
        pointers = "".join(token.text for token in part[:index])
        declarators.append(_Declarator(part[index].text, pointers, text))
    return type_text, declarators


def split(words: list[Token]) -> list[list[Token]]:
    """Parts between commas that stand in no bracket, angle brackets of the type included."""
    parts: list[list[Token]] = [[]]
    depth = angles = 0
    for word in words:
        if word.text in OPENING:
            depth += 1
        elif word.text in OPENING.values():
            depth -= 1
        elif depth == 0 and len(parts) == 1:
            angles += (word.text == "<") - (word.text == ">") - 3 * (word.text == ">>>")
        if word.text == "," and depth == 0 and angles <= 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def name_index(words: list[Token]) -> int | None:
    """Index of the declared name: the last one in front of the first `[`, `=` or `(` outside brackets."""
    depth = angles = 0
    found = None
    for index, word in enumerate(words):
        if depth == 0 and angles <= 0 and found is not None and word.text in {"[", "=", "("}:
            return found
        if word.text in OPENING:
            depth += 1
        elif word.text in OPENING.values():
            depth -= 1
        elif depth == 0:
            angles += (word.text == "<") - (word.text == ">") - 3 * (word.text == ">>>")
            if word.kind == "name" and angles <= 0:
                found = index
    return found


def _function_scopes(tokens: list[Token]) -> list[bool]:
    """For each token, whether it stands inside a function's body."""
    result: list[bool] = []
    stack: list[bool] = []  # per open brace: is it a block (of a function), not a namespace's or a class's
    statement = 0
    for index, token in enumerate(tokens):
        result.append(any(stack))
        if token.text == "{":
            stack.append(_opens_block(tokens[statement:index]))
            statement = index + 1
        elif token.text == "}":
            if stack:
                stack.pop()
            statement = index + 1
        elif token.text == ";":
            statement = index + 1
    return result


def _opens_block(words: list[Token]) -> bool:
    texts = [word.text for word in words]
    if "namespace" in texts and ")" not in texts:
        return False
    if texts and texts[0] == "extern" and len(texts) == 2:
        return False
    is_class = bool({"class", "struct", "union", "enum"} & set(texts))
    return not (is_class and texts[-1] != ")" and "operator" not in texts and not _has_call(texts))


def _has_call(texts: list[str]) -> bool:
    """Whether a parameter list stands in front of the brace: `struct S f() const {`."""
    return ")" in texts and texts[-1] in {"const", "noexcept", "override", "final", "]"} and texts.index(")") > 1
