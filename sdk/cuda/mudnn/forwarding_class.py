"""Writes a C++ class that hands every virtual function of its base on to another object of the base.

    python forwarding_class.py --name Forwarding --class Class a.h b.h -o forwarding.h

PyTorch's interface of a CUDA allocator has about fifty virtual functions, and each release adds some. A class that
changes one of them and leaves the rest as it is needs them all, so it is made from the headers of the wheel that is
installed. The class and those that it derives from are looked for in the given headers. The result derives from it, has
`virtual Class& next() const = 0` and overrides each of the functions.

Exit code: 0; 1 where a class is not found, or a declaration is beyond this tool, with file and line.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_EXPORTS = re.compile(rb"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_API\b")
_CLASSES = ("class_specifier", "struct_specifier")
_BASES = ("type_identifier", "qualified_identifier")
_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration")


class Unreadable(Exception):
    """A message for people: what is wrong, where."""


@dataclass(frozen=True)
class Parameter:
    before: str
    """What is written in front of the name; a type's declarator may go on behind it."""
    after: str

    def named(self, name: str) -> str:
        return f"{self.before} {name}{self.after}"

    def handed_on(self, name: str) -> str:
        declared = (self.before + self.after).rstrip()
        is_lvalue = "&" in declared and not declared.endswith(("&&", ">"))
        return name if is_lvalue else f"std::move({name})"


@dataclass(frozen=True)
class Method:
    owner: str
    returns: str
    name: str
    parameters: tuple[Parameter, ...]
    qualifiers: str

    @property
    def signature(self) -> tuple[str, tuple[Parameter, ...], str]:
        return self.name, self.parameters, self.qualifiers

    def forwarded(self) -> str:
        """The override."""
        names = [f"a{i}" for i in range(len(self.parameters))]
        parameters = ", ".join(p.named(name) for p, name in zip(self.parameters, names, strict=True))
        arguments = ", ".join(p.handed_on(name) for p, name in zip(self.parameters, names, strict=True))
        qualifiers = f" {self.qualifiers}" if self.qualifiers else ""
        call = f"static_cast<{self.owner}&>(next()).{self.name}({arguments})"
        return f"{self.returns} {self.name}({parameters}){qualifiers} override {{\n    return {call};\n  }}"


@dataclass(frozen=True)
class Class:
    bases: tuple[str, ...]
    """Names without their namespaces."""
    methods: tuple[Method, ...]
    """The virtual functions that it declares itself, without its destructor."""


def read_class(name: str, path: Path) -> Class | None:
    """Class `name` as the header defines it; None where it does not."""
    source = _EXPORTS.sub(lambda match: b" " * len(match.group()), path.read_bytes())
    root = Parser(Language(tree_sitter_cuda.language())).parse(source).root_node
    for node in _descendants(root):
        own, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if node.type not in _CLASSES or own is None or body is None or _text(own) != name:
            continue
        methods = (_method(child, name, path) for child in body.named_children)
        clauses = [child for child in node.children if child.type == "base_class_clause"]
        bases = (base for clause in clauses for base in clause.named_children if base.type in _BASES)
        return Class(
            bases=tuple(_text(base).rpartition("::")[2] for base in bases),
            methods=tuple(method for method in methods if method is not None),
        )
    return None


def _method(node: Node, owner: str, path: Path) -> Method | None:
    virtual = next((child for child in node.children if child.type == "virtual"), None)
    if virtual is None:
        return None
    at = f"{path}:{node.start_point[0] + 1}"
    if any(_broken(child) for child in node.children):
        raise Unreadable(f"{at}: this declaration cannot be parsed: {_text(node)[:80]}")
    declarator = _function(node)
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    parameters = None if declarator is None else declarator.child_by_field_name("parameters")
    if name is not None and name.type == "destructor_name":
        return None
    if declarator is None or name is None or parameters is None or name.type != "field_identifier":
        raise Unreadable(f"{at}: only plain virtual functions can be forwarded, this is {_text(node)[:80]}")
    behind = [child for child in declarator.children if child.start_byte >= parameters.end_byte]
    behind = [child for child in behind if child.type != "virtual_specifier"]  # override
    return Method(
        owner=owner,
        returns=_between(node, virtual.end_byte, declarator.start_byte),
        name=_text(name),
        parameters=tuple(_parameter(p) for p in parameters.named_children if p.type in _PARAMETERS),
        qualifiers=" ".join(_text(child) for child in behind),
    )


def _broken(node: Node) -> bool:
    """Whether a part that is read has an error; bodies are not, nor defaults (`= {0, 0}` the grammar takes amiss)."""
    if not node.has_error or node.type == "compound_statement":
        return False
    if node.is_error or node.is_missing:
        return True
    default = node.child_by_field_name("default_value") if node.type in _PARAMETERS else None
    return any(_broken(child) for child in node.children if child != default)


def _function(node: Node) -> Node | None:
    """The function's own declarator, behind what its return type has of `*` and `&`."""
    found = node.child_by_field_name("declarator")
    while found is not None and found.type in ("pointer_declarator", "reference_declarator"):
        found = found.child_by_field_name("declarator") or found.named_children[-1]
    return found if found is not None and found.type == "function_declarator" else None


def _parameter(node: Node) -> Parameter:
    declarator = node.child_by_field_name("declarator")
    end = node.end_byte
    default = node.child_by_field_name("default_value")
    if default is not None:
        end = next(child.start_byte for child in node.children if child.type == "=")
    name = declarator and next((n for n in _descendants(declarator) if n.type == "identifier"), None)
    if name:
        return Parameter(_between(node, node.start_byte, name.start_byte), _between(node, name.end_byte, end))
    return Parameter(_between(node, node.start_byte, end), "")


def _descendants(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text; without recursion, however deep they nest."""
    nodes = [node]
    while nodes:
        node = nodes.pop()
        yield node
        nodes.extend(reversed(node.named_children))


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _between(node: Node, begin: int, end: int) -> str:
    text = (node.text or b"")[begin - node.start_byte : end - node.start_byte].decode()
    return " ".join(text.split())


def forwarding_class(name: str, cls: str, headers: Sequence[Path]) -> str:
    """The text of class `name`, which derives from `cls` of one of the headers."""
    methods: dict[object, Method] = {}
    classes = [cls]
    while classes:
        wanted = classes.pop(0)
        found = next((read for header in headers if (read := read_class(wanted, header)) is not None), None)
        if found is None:
            raise Unreadable(f"no class {wanted} in {', '.join(map(str, headers))}")
        classes.extend(found.bases)
        for method in found.methods:
            methods.setdefault(method.signature, method)
    lines = [
        f"class {name} : public {cls} {{",
        " public:",
        "  // Where the calls go.",
        f"  virtual {cls}& next() const = 0;",
        "",
        *(f"  {method.forwarded()}" for method in methods.values()),
        "};",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("headers", nargs="+", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--class", dest="cls", required=True)
    parser.add_argument("-o", dest="out", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        text = forwarding_class(options.name, options.cls, options.headers)
        note = f"// Made by {Path(__file__).name} of the headers that are installed.\n"
        options.out.write_text(note + text, encoding="utf-8")
    except Unreadable as error:
        print(f"forwarding_class: error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"forwarding_class: error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
