"""An operator list's bytes -> YAML nodes with their places, and every way in which bytes fail to be YAML.

The file is composed to nodes, never constructed to Python objects: positions survive that way, and an alias bomb
stays as small as its text, because only the shapes named here are ever walked.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from opgen.diagnostics import Diagnostics, Location

__all__ = ["MAX_BYTES", "ScalarText", "compose", "is_none", "kind", "location", "report_empty"]

# The C parser is about ten times as fast; PyYAML may have been built without it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# An entry with its whole schema for each of PyTorch's operators takes about 600 kilobytes.
MAX_BYTES = 2 * 1024 * 1024
# ... and some 30,000 scalars and collections.
_MAX_NODES = 200_000
# libyaml recurses on nested collections; an operator list needs four levels.
_MAX_DEPTH = 64


def compose(raw: bytes, path: str, diagnostics: Diagnostics) -> tuple[yaml.Node, str] | None:
    """The root node and the text it was read from; None after an error."""
    if len(raw) > MAX_BYTES:
        diagnostics.error(
            Location(path),
            f"the operator list is larger than {MAX_BYTES // 2**20} MiB",
            "name an operator list; they have some hundred kilobytes",
        )
        return None
    try:
        text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        before, byte = error.object[: error.start], error.object[error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        location = Location(path, before.count(b"\n") + 1, column)
        diagnostics.error(location, f"not UTF-8: byte 0x{byte:02x} cannot be decoded", "save the file as UTF-8")
        return None
    try:
        fault = _structure_fault(text, path)
        if fault is None:
            node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        else:
            diagnostics.error(*fault)
            return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Location(path, mark.line + 1, mark.column + 1) if mark is not None else Location(path)
        hint = "an entry is `- func: name`, with its other keys below `func` and indented alike"
        if _has_tab(text, where.line):
            hint = "indent with spaces: YAML takes no tabs there"
        diagnostics.error(where, f"not valid YAML: {' '.join(filter(None, [error.context, error.problem]))}", hint)
        return None
    except yaml.YAMLError as error:
        # The C parser does not say where it met a character that YAML has no place for.
        control: re.Match[str] | None = yaml.reader.Reader.NON_PRINTABLE.search(text)
        position = control.start() if control is not None else 0
        where = Location(path, text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))
        what = f"control character U+{ord(control[0]):04X}" if control is not None else " ".join(str(error).split())
        diagnostics.error(where, f"not valid YAML: {what}", "remove it; an operator list is plain text")
        return None
    if node is None:
        report_empty(Location(path, 1, 1), diagnostics)
        return None
    return node, text


def _has_tab(text: str, line: int) -> bool:
    lines = text.splitlines()
    return 0 < line <= len(lines) and "\t" in lines[line - 1]


def report_empty(location: Location, diagnostics: Diagnostics) -> None:
    diagnostics.error(location, "the operator list is empty", "add an entry such as `- func: tril.out`")


def _structure_fault(text: str, path: str) -> tuple[Location, str, str] | None:
    """Nesting so deep that composing it could exhaust the stack, or aliases, which an operator list has no use for."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            return (
                location(event, path),
                f"YAML alias '*{event.anchor}' in an operator list",
                "write the value out; aliases are refused because they can blow up without bound",
            )
        if number > _MAX_NODES:
            return (
                location(event, path),
                f"more than {_MAX_NODES} values",
                "name an operator list; a large one has some ten thousand",
            )
        if depth > _MAX_DEPTH:
            return (
                location(event, path),
                f"more than {_MAX_DEPTH} nested collections",
                "an entry is a mapping whose values are scalars, a list or one mapping",
            )
    return None


def location(item: Any, path: str) -> Location:
    """Where a node or an event begins and, for a scalar, ends; a collection ends only where the next thing begins."""
    start, end = item.start_mark, item.end_mark
    if isinstance(item, yaml.ScalarNode) and end.index > start.index:
        return Location(path, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
    return Location(path, start.line + 1, start.column + 1)


@dataclass(frozen=True)
class ScalarText:
    """A scalar as it stands in the file, to tell where in it something is."""

    value: str
    """The scalar with each run of white space, line breaks included, as one blank."""
    written: str
    """From its first character (quote, `|`, `>`) to its last."""
    location: Location

    def place(self, start: int, end: int) -> Location:
        """Where `value[start:end]` stands; the whole scalar where escapes hide that."""
        before = len("".join(self.value[:start].split()))
        wanted = "".join(self.value[start:end].split())
        found = self._places[before : before + max(len(wanted), 1)]
        if not found or "".join(self.written[i] for i in found if wanted) != wanted:
            return self.location
        (line, column), (last_line, last_column) = self._line(found[0]), self._line(found[-1])
        return Location(self.location.path, line, column, last_line, last_column + 1)

    @cached_property
    def _places(self) -> list[int]:
        """Where in `written` the characters of `value` are, blanks left out."""
        lines = self.written.splitlines(keepends=True)
        skip = len(lines[0]) if self.written[:1] in ("|", ">") and lines else int(self.written[:1] in ("'", '"'))
        return [i for i in range(skip, len(self.written)) if not self.written[i].isspace()]

    def _line(self, index: int) -> tuple[int, int]:
        line_start = self.written.rfind("\n", 0, index) + 1
        first = self.location.column if line_start == 0 else 1
        return self.location.line + self.written.count("\n", 0, index), index - line_start + first


def kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    tag = node.tag.rpartition(":")[2]
    return {"str": "a string", "bool": "a boolean", "int": "an integer", "float": "a number", "null": "nothing"}.get(
        tag, f"a {tag}"
    )


def is_none(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and (
        node.tag == "tag:yaml.org,2002:null" or node.value.strip().lower() == "none"
    )
