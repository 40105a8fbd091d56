"""One entry of the operator list: a YAML mapping -> `OpSpec`, every key and value checked as far as that takes no
PyTorch."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import yaml

from opgen.backend import Backend
from opgen.cpp import KEYWORDS
from opgen.diagnostics import Diagnostics, Location, did_you_mean
from opgen.yaml_nodes import ScalarText, is_none, kind, location

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

__all__ = ["EntryReader", "Inherit", "OpSpec"]

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_FUNC = re.compile(rf"(?:(?P<namespace>{_NAME})::)?(?P<name>{_NAME}(?:\.{_NAME})?)\s*(?P<arguments>\(.*)?", re.DOTALL)
_KERNEL = re.compile(_NAME)
_BASE_CLASS = re.compile(rf"(?:::)?{_NAME}(?:::{_NAME})*")


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
    """Where each key's value stands: `structured`, ..., `dispatch.PrivateUse1` for each dispatch key, `tags.core` for
    each element of a list."""
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

    func_text: ScalarText | None = field(default=None, repr=False, compare=False)
    """The `func` value as the file has it."""

    def schema_at(self, start: int, end: int) -> Location:
        """Where `schema[start:end]` stands."""
        if self.schema is None or self.func_text is None:
            return self.location
        before = len(self.func_text.value) - len(self.schema)
        return self.func_text.place(before + start, before + end)

    def at(self, key: str) -> Location:
        """Where `key`'s value stands, or the entry itself where it has no such key."""
        return self.key_locations.get(key, self.location)


class EntryReader:
    """Reads one entry; one reader method per key, so that a fault in one key leaves the others checked."""

    def __init__(self, node: yaml.Node, text: str, path: str, diagnostics: Diagnostics, backend: Backend) -> None:
        self._node = node
        self._text = text
        self._func_text: ScalarText | None = None
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
            self._error(self._node, f"an entry must be a mapping, not {kind(self._node)}", "write `- func: tril.out`")
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
            func_text=self._func_text,
            **self._values,
        )

    def _read_key(self, key_node: yaml.Node, value: yaml.Node) -> None:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None or key not in self._readers:
            shown = f"'{key}'" if key is not None else kind(key_node)
            hint = did_you_mean(key, self._readers) if key is not None else None
            self._error(key_node, f"unknown key {shown}", hint or f"known keys: {', '.join(self._readers)}")
            return
        if key in self._locations:
            self._error(key_node, f"key '{key}' given twice in one entry", "keep one of them")
            return
        self._locations[key] = location(value, self._path)
        result = self._readers[key](key, value)
        if result is not _FAULT:
            self._values[key] = result

    def _error(self, node: yaml.Node, message: str, hint: str | None = None) -> Any:
        self._valid = False
        self._diagnostics.error(location(node, self._path), message, hint)
        return _FAULT

    def _wrong_type(self, key: str, node: yaml.Node, expected: str) -> Any:
        return self._error(node, f"'{key}' must be {expected}, not {kind(node)}")

    def _func(self, key: str, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            return self._wrong_type(key, node, "an operator name")
        match = _FUNC.fullmatch(node.value.strip())
        if match is None:
            return self._error(
                node,
                f"'{node.value}' is not an operator name",
                _with_foreign(
                    node.value,
                    "write `name`, `name.overload` or the whole schema, `name.overload(Tensor self) -> Tensor`",
                ),
            )
        schema = None
        if match["arguments"] is not None:
            # YAML may have folded the schema over several lines; schemas have single spaces.
            schema = match["name"] + " ".join(match["arguments"].split())
            value = f"{match['namespace']}::{schema}" if match["namespace"] else schema
            written = self._text[node.start_mark.index : node.end_mark.index]
            self._func_text = ScalarText(value, written, location(node, self._path))
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
                self._error(key_node, f"a dispatch key must be a string, not {kind(key_node)}")
                continue
            if is_none(value):
                self._error(value, f"no kernel is named for '{key_node.value}'", "name one, or leave the key out")
                continue
            if isinstance(value, yaml.ScalarNode) and value.value in KEYWORDS:
                self._error(value, f"'{value.value}' is a keyword of C++", "name the kernel's function")
                continue
            if not isinstance(value, yaml.ScalarNode) or _KERNEL.fullmatch(value.value) is None:
                shown = f"'{value.value}'" if isinstance(value, yaml.ScalarNode) else kind(value)
                hint = "a kernel name is a C++ identifier"
                if isinstance(value, yaml.ScalarNode):
                    hint = _with_foreign(value.value, hint)
                self._error(value, f"{shown} is not a kernel name", hint)
                continue
            for dispatch_key in (part.strip() for part in key_node.value.split(",")):
                if not dispatch_key:
                    self._error(key_node, "a dispatch key is missing beside a comma", "remove the comma")
                elif dispatch_key not in known:
                    hint = did_you_mean(dispatch_key, known) or f"known keys: {', '.join(known)}"
                    if dispatch_key in ("CUDA", "HIP", "XPU", "MPS", self._backend.name.upper()):
                        hint = f"the key of device {self._backend.name} is {self._backend.dispatch_key}"
                    self._error(key_node, f"unknown dispatch key '{dispatch_key}'", hint)
                elif dispatch_key in kernels:
                    self._error(key_node, f"dispatch key '{dispatch_key}' given twice", "keep one of them")
                else:
                    kernels[dispatch_key] = value.value
                    self._locations[f"dispatch.{dispatch_key}"] = location(value, self._path)
        return kernels

    def _bool(self, key: str, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:bool":
            return self._wrong_type(key, node, "true or false")
        return node.value.lower() in ("true", "yes", "on")

    def _optional_string(self, key: str, node: yaml.Node) -> Any:
        if is_none(node):
            return None
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            return self._wrong_type(key, node, "a name, or none")
        return node.value

    def _base_class(self, key: str, node: yaml.Node) -> Any:
        value = self._optional_string(key, node)
        if isinstance(value, str) and _BASE_CLASS.fullmatch(value) is None:
            return self._error(node, f"'{value}' is not a C++ class name", _with_foreign(value, "write a name"))
        if isinstance(value, str) and KEYWORDS & set(value.split("::")):
            return self._error(node, f"'{value}' is a keyword of C++", "name the base class")
        return value

    def _precomputed(self, key: str, node: yaml.Node) -> Any:
        if is_none(node):
            return None
        expected = "a list such as `- diagonal -> int var`, or none"
        if not isinstance(node, yaml.SequenceNode):
            return self._wrong_type(key, node, expected)
        if not node.value:
            return self._error(node, f"'{key}' is an empty list", "name what is replaced, or write none")
        elements: list[str] = []
        for item in node.value:
            if not isinstance(item, yaml.ScalarNode):
                return self._wrong_type(key, item, expected)
            self._locations[f"{key}.{len(elements)}"] = location(item, self._path)
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
                if item is not node:
                    return self._error(item, f"'{key}' must list names, not {kind(item)}")
                return self._wrong_type(key, item, "a list of names")
            for part in filter(None, map(str.strip, item.value.split(","))):
                names.append(part)
                self._locations.setdefault(f"{key}.{part}", location(item, self._path))
        return tuple(names)

    def _torch(self, key: str, node: yaml.Node) -> Any:
        # Imported here: most operator lists have no such entry, and this import alone takes 20 ms.
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        hint = 'quote a version specifier: torch: ">=2.11,<2.13"'
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            return self._error(node, f"'torch' must be a version specifier, not {kind(node)}", hint)
        if not node.value.strip():
            return self._error(node, "'torch' is empty", f"{hint}, or leave the key out")
        try:
            return SpecifierSet(node.value)
        except InvalidSpecifier:
            return self._error(node, f"'{node.value}' is not a version specifier", hint)


def _with_foreign(word: str, hint: str) -> str:
    """`hint`, and which character of `word` is not ASCII: a letter of another script looks like ours, some look like
    nothing at all."""
    foreign = next((char for char in word if not char.isascii()), None)
    if foreign is None:
        return hint
    return f"{hint}\nit contains U+{ord(foreign):04X} {unicodedata.name(foreign, 'without a name')}"


class _Fault:
    """Marks a value that was refused, which None cannot do: none is a legal value."""


_FAULT = _Fault()
