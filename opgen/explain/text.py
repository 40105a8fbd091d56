"""An explanation as text: 80 columns, labels on the left; colours are dropped where the output is no terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

import click

from opgen.cpp import split_top_level
from opgen.explain.facts import Choice, Explanation

__all__ = ["overload_table", "render", "wrap_code"]

_LABEL = 11


def render(explanation: Explanation, width: int = 80) -> str:
    """The whole explanation, without a line longer than `width` where words permit."""
    return "\n".join(_lines(explanation, width)).rstrip() + "\n"


def wrap_code(code: str, width: int) -> list[str]:
    """C++ declarations within `width`: a parameter list that is too long is broken at its commas."""
    lines: list[str] = []
    for line in code.splitlines():
        if len(line) > width and line.endswith(" {") and " : public " in line:
            name, _, base = line.partition(" : public ")
            lines += [name, f"    : public {base}"]
            continue
        head, opening, rest = _parameters(line)
        if len(line) <= width or not opening:
            lines.append(line)
            continue
        inner, closing = rest
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        current = head + opening
        for position, parameter in enumerate(split_top_level(inner)):
            last = position == len(split_top_level(inner)) - 1
            piece = parameter + (closing if last else ",")
            joint = "" if current.endswith("(") else " "
            if len(current) + len(joint) + len(piece) > width:
                lines.append(current)
                current, joint = indent, ""
            current += joint + piece
        lines.append(current)
    return lines


def overload_table(rows: Sequence[tuple[str, str]]) -> str:
    """One line for each overload: its name, and what a call does."""
    wide = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name.ljust(wide)}  {state}" for name, state in rows)


def _parameters(line: str) -> tuple[str, str, tuple[str, str]]:
    """The head of a declaration, its opening parenthesis, and (parameters, what closes them)."""
    text = line.rstrip()
    end = text.rfind(")")
    if end < 0:
        return line, "", ("", "")
    depth = 0
    for position in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(text[position], 0)
        if depth == 0:
            return text[:position], "(", (text[position + 1 : end], text[end:])
    return line, "", ("", "")


def _lines(e: Explanation, width: int) -> Iterator[str]:
    yield from (click.style(line, bold=True) for line in _schema(e.schema, width))
    yield ""
    origin = {"upstream": f"PyTorch {e.torch}", "torchgen": f"PyTorch {e.torch}", "own": "an operator of our own"}
    yield from _section("operator", _wrapped([origin[e.origin] + (", structured" if e.structured else "")], width))
    yield from _section("", _wrapped(e.traits, width))
    yield from _section("group", list(_group(e)) if len(e.group) > 1 else [])
    yield from _section("on device", _wrapped([e.state], width))
    yield from _section("entry", [e.entry] if e.entry else ["none"])
    for choice in e.choices:
        yield from _section("chosen", _choice(choice, width))
    yield from _section("upstream", list(_kernels(e, width)))
    yield from _section("stubs", list(_stubs(e, width)))
    yield from _section("meta class", wrap_code(e.meta_class or "", width - _LABEL))
    yield from _section("impl class", wrap_code(e.impl_class or "", width - _LABEL))
    if e.ways:
        yield ""
        yield click.style("Ways to give it a kernel", bold=True)
    for way in e.ways:
        mark = "" if way.possible else "not possible: "
        yield from _section(way.kind.value, _wrapped([mark + way.why], width, 14), 14)
        for definition in way.write:
            yield from (" " * 14 + line for line in wrap_code(definition, width - 14))
    if e.problems:
        yield ""
        yield click.style("Problems", bold=True, fg="red")
        yield from (f"  {line}" for problem in e.problems for line in problem.splitlines())
    yield ""
    yield click.style("Next", bold=True)
    yield from (f"  {step}" for step in e.next)


def _section(label: str, lines: Iterable[str], width: int = _LABEL) -> Iterator[str]:
    for position, line in enumerate(lines):
        shown = click.style(label, fg="cyan") + " " * (width - len(label)) if position == 0 else " " * width
        yield (shown + line).rstrip()


def _wrapped(texts: Iterable[str], width: int, label: int = _LABEL) -> list[str]:
    return [
        line
        for text in texts
        for line in textwrap.wrap(
            text, width - label, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    ]


def _schema(schema: str, width: int) -> list[str]:
    return textwrap.wrap(schema, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _group(e: Explanation) -> Iterator[str]:
    wide = max(len(member.op) for member in e.group)
    for member in e.group:
        yield f"{member.op.ljust(wide)}  {member.role.ljust(10)}  {member.listed or 'not listed'}"


def _choice(choice: Choice, width: int) -> list[str]:
    what = choice.kind if choice.form is None else f"{choice.kind}, {choice.form}"
    lines = [f"{choice.dispatch_key}: {what}", f"{choice.namespace}::{choice.kernel}"]
    if choice.source is not None:
        lines.append(f"{choice.source} ({choice.family}){', a skeleton' if choice.unwritten else ''}")
    lines += _wrapped([choice.reason], width)
    if choice.signature is not None:
        lines += wrap_code(choice.signature, width - _LABEL)
    return lines


def _kernels(e: Explanation, width: int) -> Iterator[str]:
    for kernel in e.kernels:
        kind = " (structured)" if kernel.structured else ""
        where = "" if kernel.in_wheel else ", not in the CPU wheel"
        yield from _wrapped([f"{kernel.kernel}{kind}: {', '.join(kernel.keys)}{where}"], width)


def _stubs(e: Explanation, width: int) -> Iterator[str]:
    for stub in e.stubs or ():
        yield f"{stub.stub} <{stub.header}>"
        if stub.signature is not None:
            yield from ("  " + line for line in wrap_code(stub.signature, width - _LABEL - 2))
        yield f"  registered at {', '.join(stub.registered)}" if stub.registered else "  registered by no source"
