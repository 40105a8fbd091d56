"""musa_functions.yaml -> `OpSpec`s, each knowing its file, line and column.

This module checks what can be checked without PyTorch: YAML syntax, keys, types of values. Whether an operator exists
and what an entry means for it is `opgen.classify`'s business.

The file is composed to nodes, never constructed to Python objects: positions survive that way, and an alias bomb
stays as small as its text, because only the shapes named here are ever walked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from opgen.backend import MUSA, Backend
from opgen.cpp import KEYWORDS
from opgen.diagnostics import Diagnostics, Location, OpgenError, did_you_mean

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

# The C parser is about ten times as fast; PyYAML may have been built without it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_FUNC = re.compile(rf"(?:(?P<namespace>{_NAME})::)?(?P<name>{_NAME}(?:\.{_NAME})?)\s*(?P<arguments>\(.*)?", re.DOTALL)
_KERNEL = re.compile(_NAME)
_BASE_CLASS = re.compile(rf"(?:::)?{_NAME}(?:::{_NAME})*")

# A hand-written operator list is some hundred kilobytes; anything far above is not one.
MAX_BYTES = 8 * 1024 * 1024
# libyaml recurses on nested collections; an operator list needs four levels.
_MAX_DEPTH = 64


class Inherit(Enum):
    """The value of a key that an entry does not mention: as upstream has it."""

    UPSTREAM = "upstream"


@dataclass(frozen=True)
class OpSpec:
    """One entry of the operator list. `None` for an overridable key means "explicitly none"."""

    func: str
    """The operator as diagnostics and reports name it: `add.Tensor`, `musa::rope`."""
    namespace: str
    """Operator namespace, `aten` unless the entry says otherwise."""
    name: str
    """Name with overload, without namespace: `add.Tensor`."""
    schema: str | None
    """The full schema without namespace, where the entry gives one."""
    dispatch: Mapping[str, str]
    """Dispatch key -> kernel name, combined keys ("A, B: name") taken apart."""
    location: Location
    """Where the entry's `func` value stands."""
    key_locations: Mapping[str, Location] = field(default_factory=dict)
    """Where each key's value stands: `structured`, ..., and `dispatch.PrivateUse1` for each dispatch key."""
    structured: bool | Inherit = Inherit.UPSTREAM
    structured_delegate: str | Inherit | None = Inherit.UPSTREAM
    structured_inherits: str | Inherit | None = Inherit.UPSTREAM
    precomputed: tuple[str, ...] | Inherit | None = Inherit.UPSTREAM
    device_check: str | None = None
    """`NoCheck`, `ExactSame`, or None for the default of the entry's kind."""
    device_guard: bool | None = None
    autogen: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    torch: SpecifierSet | None = None
    """The PyTorch releases in which the entry exists; None for all of them."""
    valid: bool = True
    """False when a diagnostic about this entry has been reported: it still counts as listed, but nothing follows."""

    def at(self, key: str) -> Location:
        """Where `key`'s value stands, or the entry itself where it has no such key."""
        return self.key_locations.get(key, self.location)


def load_specs(path: Path | str, diagnostics: Diagnostics, backend: Backend = MUSA) -> tuple[OpSpec, ...]:
    """All entries of the operator list at `path`; faults go to `diagnostics`.

    Raises OpgenError when the file cannot be read at all.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)  # so that /dev/zero or a core file does not fill the memory
    except FileNotFoundError:
        raise OpgenError("no such operator list", Location(str(path)), "name another one with --yaml FILE") from None
    except OSError as error:
        raise OpgenError(
            f"cannot read the operator list: {error.strerror}",
            Location(str(path)),
            "name a file that can be read with --yaml FILE",
        ) from None
    return parse_specs(raw, str(path), diagnostics, backend)


def parse_specs(raw: bytes, path: str, diagnostics: Diagnostics, backend: Backend = MUSA) -> tuple[OpSpec, ...]:
    """`load_specs` on the bytes of a file; `path` is only what diagnostics call it."""
    root = _compose(raw, path, diagnostics)
    if root is None:
        return ()
    if not isinstance(root, yaml.SequenceNode):
        diagnostics.error(
            _location(root, path),
            f"the operator list must be a YAML list, not {_kind(root)}",
            "write one entry per operator: `- func: tril.out`",
        )
        return ()
    if not root.value:
        _report_empty(_location(root, path), diagnostics)
    specs = (_Entry(node, path, diagnostics, backend).read() for node in root.value)
    return tuple(spec for spec in specs if spec is not None)


def select_specs(specs: Iterable[OpSpec], torch_version: str, diagnostics: Diagnostics) -> tuple[OpSpec, ...]:
    """The entries that exist in `torch_version`; two of them for one operator are an error."""
    from packaging.version import Version

    # A nightly of 2.14 has 2.14's operators, so its pre-release mark must not exclude it from ">=2.14".
    release = Version(Version(torch_version).base_version)
    first: dict[str, OpSpec] = {}
    for spec in specs:
        if spec.torch is not None and not spec.torch.contains(release, prereleases=True):
            continue
        if spec.func in first:
            diagnostics.error(
                spec.location,
                f"duplicate entry for '{spec.func}'",
                f"the first one is at {first[spec.func].location}; merge the two",
            )
            continue
        first[spec.func] = spec
    return tuple(first.values())


def _compose(raw: bytes, path: str, diagnostics: Diagnostics) -> yaml.Node | None:
    if len(raw) > MAX_BYTES:
        diagnostics.error(
            Location(path),
            f"the operator list is larger than {MAX_BYTES // 2**20} MiB",
            "name an operator list; they have some hundred kilobytes",
        )
        return None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        location = Location(path, before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        diagnostics.error(
            location, f"not UTF-8: byte 0x{raw[error.start]:02x} cannot be decoded", "save the file as UTF-8"
        )
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
        _report_empty(Location(path, 1, 1), diagnostics)
    return node


def _has_tab(text: str, line: int) -> bool:
    lines = text.splitlines()
    return 0 < line <= len(lines) and "\t" in lines[line - 1]


def _report_empty(location: Location, diagnostics: Diagnostics) -> None:
    diagnostics.error(location, "the operator list is empty", "add an entry such as `- func: tril.out`")


def _structure_fault(text: str, path: str) -> tuple[Location, str, str] | None:
    """Nesting so deep that composing it could exhaust the stack, or aliases, which an operator list has no use for."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            return (
                _location(event, path),
                f"YAML alias '*{event.anchor}' in an operator list",
                "write the value out; aliases are refused because they can blow up without bound",
            )
        if depth > _MAX_DEPTH:
            return (
                _location(event, path),
                f"more than {_MAX_DEPTH} nested collections",
                "an entry is a mapping whose values are scalars, a list or one mapping",
            )
    return None


def _location(item: Any, path: str) -> Location:
    """Where a node or an event begins."""
    return Location(path, item.start_mark.line + 1, item.start_mark.column + 1)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    tag = node.tag.rpartition(":")[2]
    return {"str": "a string", "bool": "a boolean", "int": "an integer", "float": "a number", "null": "nothing"}.get(
        tag, f"a {tag}"
    )


def _is_none(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and (
        node.tag == "tag:yaml.org,2002:null" or node.value.strip().lower() == "none"
    )


class _Entry:
    """Reads one entry; one reader method per key, so that a fault in one key leaves the others checked."""

    def __init__(self, node: yaml.Node, path: str, diagnostics: Diagnostics, backend: Backend) -> None:
        self._node = node
        self._path = path
        self._diagnostics = diagnostics
        self._backend = backend
        self._valid = True
        self._locations: dict[str, Location] = {}
        self._values: dict[str, Any] = {}
        self._readers: dict[str, Callable[[str, yaml.Node], Any]] = {
            "func": self._func,
            "dispatch": self._dispatch,
            "structured": self._bool,
            "structured_delegate": self._optional_string,
            "structured_inherits": self._base_class,
            "precomputed": self._precomputed,
            "device_check": self._device_check,
            "device_guard": self._bool,
            "autogen": self._names,
            "tags": self._names,
            "torch": self._torch,
        }

    def read(self) -> OpSpec | None:
        """The entry, or None when it has no usable `func` to go by."""
        if not isinstance(self._node, yaml.MappingNode):
            self._error(self._node, f"an entry must be a mapping, not {_kind(self._node)}", "write `- func: tril.out`")
            return None
        for key_node, value in self._node.value:
            self._read_key(key_node, value)
        if "func" not in self._locations:
            self._error(self._node, "entry without 'func'", "name the operator: `- func: tril.out`")
            return None
        if "func" not in self._values:
            return None
        namespace, name, schema = self._values.pop("func")
        return OpSpec(
            func=name if namespace == "aten" else f"{namespace}::{name}",
            namespace=namespace,
            name=name,
            schema=schema,
            dispatch=self._values.pop("dispatch", {}),
            location=self._locations["func"],
            key_locations=self._locations,
            valid=self._valid,
            **self._values,
        )

    def _read_key(self, key_node: yaml.Node, value: yaml.Node) -> None:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None or key not in self._readers:
            shown = f"'{key}'" if key is not None else _kind(key_node)
            hint = did_you_mean(key, self._readers) if key is not None else None
            self._error(key_node, f"unknown key {shown}", hint or f"known keys: {', '.join(self._readers)}")
            return
        if key in self._locations:
            self._error(key_node, f"key '{key}' given twice in one entry", "keep one of them")
            return
        self._locations[key] = _location(value, self._path)
        result = self._readers[key](key, value)
        if result is not _FAULT:
            self._values[key] = result

    def _error(self, node: yaml.Node, message: str, hint: str | None = None) -> Any:
        self._valid = False
        self._diagnostics.error(_location(node, self._path), message, hint)
        return _FAULT

    def _wrong_type(self, key: str, node: yaml.Node, expected: str) -> Any:
        return self._error(node, f"'{key}' must be {expected}, not {_kind(node)}")

    def _func(self, key: str, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            return self._wrong_type(key, node, "an operator name")
        match = _FUNC.fullmatch(node.value.strip())
        if match is None:
            return self._error(
                node,
                f"'{node.value}' is not an operator name",
                "write `name`, `name.overload` or the whole schema, `name.overload(Tensor self) -> Tensor`",
            )
        schema = None
        if match["arguments"] is not None:
            # YAML may have folded the schema over several lines; schemas have single spaces.
            schema = match["name"] + " ".join(match["arguments"].split())
        return match["namespace"] or "aten", match["name"], schema

    def _dispatch(self, key: str, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.MappingNode):
            return self._wrong_type(
                key, node, f"a mapping from dispatch keys to kernel names ({self._backend.dispatch_key}: Kernel)"
            )
        known = (*self._backend.dispatch_keys, *self._backend.new_op_dispatch_keys)
        kernels: dict[str, str] = {}
        for key_node, value in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._error(key_node, f"a dispatch key must be a string, not {_kind(key_node)}")
                continue
            if isinstance(value, yaml.ScalarNode) and value.value in KEYWORDS:
                self._error(value, f"'{value.value}' is a keyword of C++", "name the kernel's function")
                continue
            if not isinstance(value, yaml.ScalarNode) or _KERNEL.fullmatch(value.value) is None:
                shown = f"'{value.value}'" if isinstance(value, yaml.ScalarNode) else _kind(value)
                self._error(value, f"{shown} is not a kernel name", "a kernel name is a C++ identifier")
                continue
            for dispatch_key in (part.strip() for part in key_node.value.split(",")):
                if dispatch_key not in known:
                    hint = did_you_mean(dispatch_key, known) or f"known keys: {', '.join(known)}"
                    self._error(key_node, f"unknown dispatch key '{dispatch_key}'", hint)
                elif dispatch_key in kernels:
                    self._error(key_node, f"dispatch key '{dispatch_key}' given twice", "keep one of them")
                else:
                    kernels[dispatch_key] = value.value
                    self._locations[f"dispatch.{dispatch_key}"] = _location(value, self._path)
        return kernels

    def _bool(self, key: str, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:bool":
            return self._wrong_type(key, node, "true or false")
        return node.value.lower() in ("true", "yes", "on")

    def _optional_string(self, key: str, node: yaml.Node) -> Any:
        if _is_none(node):
            return None
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            return self._wrong_type(key, node, "a name, or none")
        return node.value

    def _base_class(self, key: str, node: yaml.Node) -> Any:
        value = self._optional_string(key, node)
        if isinstance(value, str) and _BASE_CLASS.fullmatch(value) is None:
            return self._error(node, f"'{value}' is not a C++ class name")
        return value

    def _precomputed(self, key: str, node: yaml.Node) -> Any:
        if _is_none(node):
            return None
        expected = "a list such as `- diagonal -> int var`, or none"
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            return self._wrong_type(key, node, expected)
        elements = []
        for item in node.value:
            if not isinstance(item, yaml.ScalarNode):
                return self._wrong_type(key, item, expected)
            elements.append(item.value)
        return tuple(elements)

    def _device_check(self, key: str, node: yaml.Node) -> Any:
        choices = ("NoCheck", "ExactSame")
        if not isinstance(node, yaml.ScalarNode):
            return self._wrong_type(key, node, " or ".join(choices))
        if node.value not in choices:
            return self._error(
                node, f"unknown device_check '{node.value}'", did_you_mean(node.value, choices) or " or ".join(choices)
            )
        return node.value

    def _names(self, key: str, node: yaml.Node) -> Any:
        """A comma-separated string, as native_functions.yaml has it, or a list of strings."""
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        names: list[str] = []
        for item in items:
            if not isinstance(item, yaml.ScalarNode) or item.tag != "tag:yaml.org,2002:str":
                return self._wrong_type(key, item, "a list of names")
            names.extend(part.strip() for part in item.value.split(",") if part.strip())
        return tuple(names)

    def _torch(self, key: str, node: yaml.Node) -> Any:
        # Imported here: most operator lists have no such entry, and this import alone takes 20 ms.
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        hint = 'quote a version specifier: torch: ">=2.11,<2.13"'
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            return self._error(node, f"'torch' must be a version specifier, not {_kind(node)}", hint)
        if not node.value.strip():
            return self._error(node, "'torch' is empty", f"{hint}, or leave the key out")
        try:
            return SpecifierSet(node.value)
        except InvalidSpecifier:
            return self._error(node, f"'{node.value}' is not a version specifier", hint)


class _Fault:
    """Marks a value that was refused, which None cannot do: none is a legal value."""


_FAULT = _Fault()
