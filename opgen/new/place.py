"""Where in an operator list new entries go, and the list with them in it.

The list is edited as text, at offsets taken from its parsed nodes: nothing else keeps every other byte (comments, line
ends, blank lines, quoting) as it was. A round trip through a YAML writer, ruamel.yaml's included, re-indents and
re-folds what its author laid out by hand.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from opgen.diagnostics import Diagnostics, Location, OpgenError
from opgen.yaml_nodes import compose

__all__ = ["Entry", "Spot", "find_spot", "insert"]

Value = str | Mapping[str, str] | Sequence[str]

_BREAK = re.compile("\r\n|\n|\r|\x85|\u2028|\u2029")
_VARIANT = re.compile(r"_?(?:backward|forward|helper|native|fused|cudnn|out|aa)(?=_|$)|(?<=[a-z])[123]d")


@dataclass(frozen=True)
class Entry:
    """One entry to add."""

    func: str
    settings: Mapping[str, Value]
    """Its other keys, in order."""

    def block(self, newline: str, indent: str) -> str:
        lines = [f"- func: {_scalar(self.func)}"]
        for key, value in self.settings.items():
            if isinstance(value, str):
                lines.append(f"  {key}: {_scalar(value)}")
                continue
            lines.append(f"  {key}:")
            if isinstance(value, Mapping):
                lines += [f"    {name}: {_scalar(item)}" for name, item in value.items()]
            else:
                lines += [f"    - {_scalar(item)}" for item in value]
        return newline.join(indent + line for line in lines)

    def flow(self) -> str:
        parts = [f"func: {_scalar(self.func, flow=True)}"]
        for key, value in self.settings.items():
            if isinstance(value, str):
                parts.append(f"{key}: {_scalar(value, flow=True)}")
            elif isinstance(value, Mapping):
                inner = ", ".join(f"{name}: {_scalar(item, flow=True)}" for name, item in value.items())
                parts.append(f"{key}: {{{inner}}}")
            else:
                parts.append(f"{key}: [{', '.join(_scalar(item, flow=True) for item in value)}]")
        return f"{{{', '.join(parts)}}}"


@dataclass(frozen=True)
class Spot:
    """After which entry of the list the new ones go."""

    after: int | None
    """Position of that entry; None for before the first."""
    why: str
    together: bool = False
    """The new entries belong to that entry's operator: no blank line is put between them."""


def find_spot(func: str, names: Sequence[str], families: Mapping[str, str | None], family: str) -> Spot:
    """Next to the operator's relatives; in an alphabetical list in its order; else after the last of its family.

    `names` are the list's entries in its order, `families` says where each has its kernel from.
    """
    if not names:
        return Spot(None, "the list is empty")
    same = [i for i, name in enumerate(names) if _root(name) == _root(func)]
    if same:
        return Spot(same[-1], f"beside '{names[same[-1]]}'", together=True)
    keys = [_sort_key(name) for name in names]
    if len(names) > 2 and keys == sorted(keys):
        before = [i for i, key in enumerate(keys) if key <= _sort_key(func)]
        return Spot(before[-1] if before else None, "in alphabetical order")
    stem = _stem(func)
    relatives = [i for i, name in enumerate(names) if _stem(name) == stem]
    if not relatives:
        first, *others = stem.split("_")
        for length in range(len(others), -1, -1):
            words = "_".join([first, *others[:length]])
            if length == 0 and len(words) < 4:
                break
            # Far relatives are looked for at home only: a ported kernel does not belong among those of the CPU.
            home = [i for i, name in enumerate(names) if families.get(name, family) == family]
            relatives = [i for i in home if f"{_stem(names[i])}_".startswith(f"{words}_")]
            if relatives:
                break
    if relatives:
        return Spot(relatives[-1], f"after '{names[relatives[-1]]}', its relative")
    own = "::" in func
    kin = [i for i, name in enumerate(names) if families.get(name) == family and ("::" in name) == own]
    if kin:
        where = "PyTorch's own functions" if family == "upstream" else f"kernels/{family}"
        return Spot(kin[-1], f"after '{names[kin[-1]]}', the last of {where}")
    return Spot(len(names) - 1, "at the end")


def insert(raw: bytes, path: str, entries: Sequence[Entry], spot: Spot) -> bytes:
    """The list with `entries` in it, all other bytes as they were. Raises OpgenError where it is no list."""
    bom = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    diagnostics = Diagnostics()
    composed = compose(raw, path, diagnostics)
    if composed is None:
        text = _empty(raw, diagnostics)
        root: yaml.Node | None = None
    else:
        root, text = composed
        if isinstance(root, yaml.ScalarNode) and not root.value:
            root = None  # nothing but `---`
    if root is None:
        position, added = _at_the_end(text, entries)
    elif not isinstance(root, yaml.SequenceNode):
        raise OpgenError("the operator list is not a YAML list", Location(path))
    elif root.flow_style:
        position, added = _into_flow(root, entries, spot)
    else:
        position, added = _into_block(text, root, entries, spot)
    return bom + (text[:position] + added + text[position:]).encode("utf-8")


def _empty(raw: bytes, diagnostics: Diagnostics) -> str:
    """The text of a list without entries; anything else that cannot be composed is an error."""
    try:
        text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
        if yaml.compose(text, Loader=yaml.SafeLoader) is None:
            return text
    except (UnicodeDecodeError, yaml.YAMLError):
        pass
    fault = diagnostics.errors[0]
    raise OpgenError(fault.message, fault.location, fault.hint)


def _at_the_end(text: str, entries: Sequence[Entry]) -> tuple[int, str]:
    newline = _newline(text, 0)
    added = newline.join(entry.block(newline, "") for entry in entries)
    ended = not text or _BREAK.search(text[-2:]) is not None
    return len(text), f"{'' if ended else newline}{added}{newline if ended else ''}"


def _into_flow(root: yaml.SequenceNode, entries: Sequence[Entry], spot: Spot) -> tuple[int, str]:
    added = ", ".join(entry.flow() for entry in entries)
    if not root.value:
        return root.start_mark.index + 1, added
    if spot.after is None:
        return root.value[0].start_mark.index, f"{added}, "
    return _end(root.value[spot.after]), f", {added}"


def _into_block(text: str, root: yaml.SequenceNode, entries: Sequence[Entry], spot: Spot) -> tuple[int, str]:
    indent = " " * root.start_mark.column
    if spot.after is None:
        start = root.start_mark.index - root.start_mark.column
        newline = _newline(text, start)
        return start, "".join(f"{entry.block(newline, indent)}{newline}" for entry in entries)
    end = _end(root.value[spot.after])
    newline = _newline(text, end)
    block = newline.join(entry.block(newline, indent) for entry in entries)
    if _BREAK.match(text[end - 1 : end]) is not None:
        position = end  # a block scalar, which ends with its line
    else:
        line_end = _BREAK.search(text, end)
        position = line_end.end() if line_end is not None else len(text)
    # Comments that are indented deeper than the list's dashes speak of the entry above them.
    own = re.compile(f"[ ]{{{root.start_mark.column + 1},}}#[^\r\n]*(?:\r\n|\n|\r|\\Z)")
    while (comment := own.match(text, position)) is not None:
        position = comment.end()
    if position == len(text) and _BREAK.match(text[-1:]) is None:
        # The file ends without a line break, and goes on doing so.
        return position, (newline * 2 if _spaced(text, root, spot) else newline) + block
    rest = text[position:].lstrip(" \t")
    apart = _spaced(text, root, spot) if not rest else _BREAK.match(rest) is not None or rest[0] == "#"
    gap = newline if apart and not spot.together else ""
    # A comment that follows closely speaks of what comes after it.
    after = newline if gap and rest.startswith("#") else ""
    return position, f"{gap}{block}{newline}{after}"


def _spaced(text: str, root: yaml.SequenceNode, spot: Spot) -> bool:
    """Whether the list sets its operators apart with blank lines, judged by the ones before the last."""
    if spot.together:
        return False
    return len(_BREAK.split(text)) > 1 and any(not line.strip() for line in _BREAK.split(text.rstrip()))


def _end(node: yaml.Node) -> int:
    """The offset behind a node's last character; a block collection's own mark lies behind what follows it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return max(max(_end(key), _end(value)) for key, value in node.value)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return max(map(_end, node.value))
    return int(node.end_mark.index)


def _newline(text: str, near: int) -> str:
    """The line break that is in use at an offset, else anywhere in the text."""
    found = _BREAK.search(text, near) or _BREAK.search(text)
    return found.group() if found is not None and found.group() in ("\r\n", "\n", "\r") else "\n"


def _scalar(text: str, *, flow: bool = False) -> str:
    """The text as a YAML scalar: plain where that reads back as the same string, else in single quotes.

    `none`, `true` and `false` are meant as what YAML takes them for.
    """
    probe = f"[{text}]" if flow else f"a: {text}"
    try:
        read = yaml.safe_load(probe)
        value = read[0] if flow and len(read) == 1 else read.get("a") if isinstance(read, dict) else None
        plain = value == text or (text in ("true", "false") and isinstance(value, bool))
    except (yaml.YAMLError, AttributeError, IndexError):
        plain = False
    return text if plain else "'" + text.replace("'", "''") + "'"


def _root(name: str) -> str:
    """`add` for `add_.Tensor` and `add.out`; `rope` for a schema of our own."""
    base = name.partition("(")[0].rpartition("::")[2].partition(".")[0]
    return base[:-1] if base.endswith("_") and not base.endswith("__") else base


def _stem(name: str) -> str:
    """What relatives share: `upsample_nearest` for `_upsample_nearest2d_backward`."""
    return _VARIANT.sub("", _root(name).lstrip("_")).strip("_") or _root(name)


def _sort_key(name: str) -> tuple[str, str]:
    return _root(name).lstrip("_"), name
