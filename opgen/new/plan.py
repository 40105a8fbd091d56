"""What `opgen new` would write: the operator list with its new entries, the kernel's source, a test.

The plan is checked as a whole before anything exists: the new list is classified with the new sources in place, and
whatever is not as promised, or wrong where it was right before, ends in an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import jinja2

from opgen.checks import check_sources
from opgen.classify import classify
from opgen.diagnostics import Diagnostic, Diagnostics, OpgenError
from opgen.explain.facts import Inputs, tests_of
from opgen.kernel_source import parse_source
from opgen.kernels import Definition, KernelIndex, index_definitions
from opgen.naming import camel_case, file_stem
from opgen.new.choose import Choice, Request, check_name, check_unused, choose
from opgen.new.place import Entry, Spot, find_spot, insert
from opgen.new.skeleton import own_operator, render, suffix_of
from opgen.redundant import warn_redundant
from opgen.spec import parse_specs
from opgen.ways import WayKind

if TYPE_CHECKING:
    from torchgen.model import NativeFunction

    from opgen.backend import Backend
    from opgen.kernels import Family
    from opgen.registration import Registration
    from opgen.spec import OpSpec

__all__ = ["Files", "Plan", "make_plan"]

_DOCUMENTED = "docs/add_an_op.md"


@dataclass(frozen=True)
class Files:
    """What stands on the disk already, as far as a plan has to know."""

    operator_list: str
    """The list's path, as messages show it."""
    content: bytes
    existing: Mapping[str, str | None]
    """Sources and tests by path below the project's root; the text, or None where it cannot be read."""


@dataclass(frozen=True)
class Plan:
    """Everything to write, and what to say about it."""

    op: str
    kind: str
    reason: str
    list_after: bytes
    created: Mapping[str, str]
    """Path below the project's root -> text."""
    line: int
    """Where the first new entry stands."""
    place: str
    """Why there."""
    added: tuple[str, ...]
    notes: tuple[str, ...]
    next: tuple[str, ...]


def make_plan(request: Request, inputs: Inputs, files: Files) -> Plan:
    """The plan for an operator of upstream's, or for a schema of one's own. Raises OpgenError."""
    if "(" in request.op:
        return _own_plan(request, inputs, files)
    choice = choose(request, inputs)
    entries = [_entry(choice, str(f.func.name), inputs) for f in choice.members]
    created = {}
    source = _source_path(choice, request, files, inputs.backend) if choice.needs_source else None
    if source is not None:
        created[source] = render(choice, source, inputs.backend)
        probes = {op: f"OpgenProbe{i}" for i, op in enumerate(choice.kernels)}
        check_unused(choice.kernels.values(), render(replace(choice, kernels=probes), source, inputs.backend))
    overload = str(choice.members[0].func.name.overload_name)
    test, text = _test(choice, overload, entries, files)
    created[test] = text
    family = None if choice.kind is WayKind.REUSED and source is None else choice.family
    notes = list(choice.notes)
    if source is None and choice.kind is not WayKind.FALLBACK:
        notes.append("no kernel is to be written")
    plan, registrations = _assembled(inputs, files, entries, created, family, choice.reason, notes, source)
    _check_kind(registrations, choice, inputs)
    return plan


def _own_plan(request: Request, inputs: Inputs, files: Files) -> Plan:
    """A new operator in a namespace of one's own, with a kernel and a meta function."""
    backend = inputs.backend
    match = re.fullmatch(r"\s*(\w+)::(\w+)(?:\.(\w+))?\s*(\(.*)", request.op, re.DOTALL)
    if match is None or match[1] == "aten":
        raise OpgenError(
            f"'{request.op}' is no schema in a namespace of its own",
            hint=f"write '{backend.op_namespace}::name(Tensor self) -> Tensor'; operators of PyTorch go by their name",
        )
    if request.kind not in (None, WayKind.UNSTRUCTURED):
        raise OpgenError(f"a new operator cannot be {request.kind.value}: there is nothing to take over")
    if request.family == "cpu_fallback":
        raise OpgenError("a new operator has no kernel on the CPU to fall back to", hint="say `--family ported`")
    name = f"{match[1]}::{match[2]}" + (f".{match[3]}" if match[3] else "")
    if name in inputs.specs:
        raise OpgenError(f"'{name}' is listed already", inputs.specs[name].location, "edit that entry")
    family: Family = request.family or "ported"
    stem = request.name or camel_case(match[2]) + camel_case(match[3] or "")
    kernels = {backend.dispatch_key: stem, "Meta": f"{stem}Meta"}
    for kernel in kernels.values():
        check_name(name, kernel, inputs)
    entry, function = _own_entry(" ".join(request.op.split()), kernels, inputs, files)
    source = f"kernels/{family}/{request.name or file_stem(match[2])}{'.cu' if family == 'ported' else '.cpp'}"
    probes = {key: f"OpgenProbe{key}" for key in kernels}
    check_unused(kernels.values(), own_operator(function, probes, name, family, source, backend))
    test = _test_path(match[2], match[3] or "", files)
    created = {
        source: own_operator(function, kernels, name, family, source, backend),
        test: _template("test_own").render(
            name=name,
            word=_word(match[2]),
            parameters=_python_parameters(function),
        ),
    }
    reason = "a schema of our own: a kernel for the device, and a meta function for shapes without data"
    notes = ["for gradients add AutogradPrivateUse1; musa::swiglu shows how"]
    return _assembled(inputs, files, [entry], created, family, reason, notes, source)[0]


def _own_entry(schema: str, kernels: Mapping[str, str], inputs: Inputs, files: Files) -> tuple[Entry, NativeFunction]:
    """The entry of a schema, and what torchgen makes of it. What is random gets the tag that says so."""
    faults = []
    random: dict[str, str] = {"tags": "nondeterministic_seeded"}
    # Whether it is random is torchgen's judgement: the tag is tried where the entry is wrong without it.
    for tags in ({}, random):
        entry = Entry(schema, {**tags, "dispatch": kernels})
        probe = Diagnostics()
        content = insert(b"", files.operator_list, [entry], Spot(None, ""))
        specs = parse_specs(content, "the schema", probe, inputs.backend)
        found = classify(specs, inputs.upstream, KernelIndex(), inputs.backend, probe)
        if not probe.errors:
            return entry, found[0].function
        faults.append(probe.errors[0])
    raise OpgenError(faults[0].message, hint=faults[0].hint)


def _assembled(
    inputs: Inputs,
    files: Files,
    entries: list[Entry],
    created: dict[str, str],
    family: str | None,
    reason: str,
    notes: list[str],
    source: str | None,
) -> tuple[Plan, tuple[Registration, ...]]:
    for path, text in created.items():
        if path in files.existing and _substance(files.existing[path]) != _substance(text):
            raise OpgenError(f"{path} exists already", hint="choose another name for the kernel with --name")
    names = [spec.func for spec in inputs.all_specs]
    families = {r.op: r.family for r in inputs.registrations}
    first = entries[0].func.partition("(")[0]
    spot = find_spot(first, names, families, family or "upstream")
    if spot.together and "dispatch" not in entries[0].settings:
        spot = replace(spot, together=all("dispatch" not in entry.settings for entry in entries))
    after = insert(files.content, files.operator_list, entries, spot)
    added = tuple(entry.func.partition("(")[0] for entry in entries)
    shown = {path: text for path, text in created.items() if path not in files.existing}
    registrations, line = _check(after, shown, added, inputs, files)
    todo = [f"write the kernel: {source}"] if source is not None and "NotWritten" in created[source] else []
    tests = next(path for path in created if path.startswith("tests/"))
    plan = Plan(
        op=first,
        kind=next(_kind(r) for r in registrations if r.op == first),
        reason=reason,
        list_after=after,
        created=shown,
        line=line,
        place=spot.why,
        added=added,
        notes=tuple(notes),
        next=(
            *todo,
            "opgen build",
            f"python -m pytest {tests}",
            *([] if "::" in first else [f"python -m pytest tests/ops {tests_of(added)}"]),
        ),
    )
    return plan, registrations


def _substance(text: str | None) -> str | None:
    """The text without what laying it out may change: white space, and where comments are broken."""
    return None if text is None else re.sub(r"[\s/]+", "", text)


def _kind(registration: Registration) -> str:
    form = registration.form
    return registration.kind.value + (f", {form.value}" if form is not None else "")


def _check(
    after: bytes, created: Mapping[str, str], added: tuple[str, ...], inputs: Inputs, files: Files
) -> tuple[tuple[Registration, ...], int]:
    """Read the new list with the new sources as `opgen check` would: the entries are there, the others as they were,
    and no error is new."""
    diagnostics = Diagnostics()
    specs = parse_specs(after, files.operator_list, diagnostics, inputs.backend)
    kernels = _with_sources(inputs.kernels, created)
    registrations = classify(specs, inputs.upstream, kernels, inputs.backend, diagnostics)
    check_sources(registrations, kernels, inputs.backend, diagnostics)
    known = {item.message for item in inputs.diagnostics}
    for item in diagnostics.errors:
        if item.message not in known:
            raise OpgenError(f"this would not be right: {item.message}; nothing was written", hint=item.hint)
    warning = _new_warning(specs, registrations, kernels, added, inputs)
    if warning is not None and warning.message not in known:
        raise OpgenError(
            f"this would be of no use: {warning.message}; nothing was written", hint="choose another kind with --kind"
        )
    names = [spec.func for spec in specs]
    if sorted(names) != sorted([spec.func for spec in inputs.all_specs] + list(added)):
        raise OpgenError("the entries cannot be added to this list; nothing was written", hint=_DOCUMENTED)
    lines = {spec.func: spec.location.line for spec in specs}
    return registrations, lines[added[0]]


def _new_warning(
    specs: Sequence[OpSpec],
    registrations: Sequence[Registration],
    kernels: KernelIndex,
    added: tuple[str, ...],
    inputs: Inputs,
) -> Diagnostic | None:
    """What `opgen check` would say of the new entries' effect; that a kernel is not written yet is none of it."""
    groups = (inputs.upstream.structured_group(op) for op in added)
    around = {str(f.func.name) for group in groups if group is not None for f in group.functions()} | {*added}
    near = [spec for spec in specs if spec.func in around]
    places = {place for spec in near if spec.func in added for place in (spec.location, *spec.key_locations.values())}
    found = Diagnostics()
    registered = [r for r in registrations if r.op in around]
    warn_redundant(near, registered, inputs.upstream, kernels, inputs.backend, None, found)
    return next((item for item in found if item.location in places), None)


def _check_kind(registrations: tuple[Registration, ...], choice: Choice, inputs: Inputs) -> None:
    """Every new entry is registered as it was meant to be."""
    expected = {WayKind.REUSED: "unstructured", WayKind.FALLBACK: "unstructured"}.get(choice.kind, choice.kind.value)
    forms = {WayKind.REUSED: "reused", WayKind.FALLBACK: "fallback"}
    by_op = {r.op: r for r in registrations if r.dispatch_key == inputs.backend.dispatch_key}
    for function in choice.members:
        found = by_op.get(str(function.func.name))
        follows = choice.kind is WayKind.LEGACY and not choice.stubs
        right = found is not None and (found.kind.value == expected or follows)
        if right and choice.kind in forms and found is not None:
            right = found.form is not None and found.form.value == forms[choice.kind]
        if not right:
            got = f"{found.kind.value}" if found is not None else "nothing"
            raise OpgenError(f"'{function.func.name}' would become {got}, not {choice.kind.value}; nothing was written")


def _with_sources(kernels: KernelIndex, created: Mapping[str, str]) -> KernelIndex:
    known = [
        d for table in (kernels.functions, kernels.impls, kernels.metas, kernels.stubs) for d in sum(table.values(), ())
    ]
    new = [
        Definition(
            kind=item.kind,
            name=item.name,
            namespace=item.namespace,
            path=path,
            line=item.line,
            column=item.column,
            family=_family_of(path),
            returns=item.returns,
            params=item.params,
            text=item.text,
            unwritten=item.unwritten,
        )
        for path, text in created.items()
        if path.startswith("kernels/")
        for item in parse_source(text.encode())
    ]
    return index_definitions([*known, *new])


def _family_of(path: str) -> Family:
    folder = path.split("/")[1]
    return "ported" if folder == "ported" else "cpu_fallback" if folder == "cpu_fallback" else "mudnn"


def _entry(choice: Choice, op: str, inputs: Inputs) -> Entry:
    settings: dict[str, str | Mapping[str, str]] = {}
    kernel = choice.kernels.get(op)
    group = choice.group or inputs.upstream.structured_group(op)
    is_out = group is not None and op == str(group.out.func.name)
    if choice.kind is WayKind.CUSTOMIZED and is_out and group is not None:
        settings["structured_inherits"] = group.out.structured_inherits or inputs.backend.meta_base
        if group.out.precomputed is not None:
            settings["precomputed"] = "none"
    if choice.kind is WayKind.UNSTRUCTURED and is_out:
        settings["structured"] = "false"
    if kernel is not None:
        settings["dispatch"] = {inputs.backend.dispatch_key: kernel}
    return Entry(op, settings)


def _source_path(choice: Choice, request: Request, files: Files, backend: Backend) -> str:
    """Named after the operator; a second group of that name has its overload's name added."""
    folder, suffix = f"kernels/{choice.family}", suffix_of(choice)
    path = f"{folder}/{choice.stem}{suffix}"
    if _substance(files.existing.get(path)) == _substance(render(choice, path, backend)):
        return path
    overload = camel_case(str(choice.members[0].func.name.overload_name))
    if path not in files.existing or request.name is not None or not overload:
        return path
    return f"{folder}/{choice.stem}{overload}{suffix}"


def _test(choice: Choice, overload: str, entries: Sequence[Entry], files: Files) -> tuple[str, str]:
    """Path and text of the group's test; one that an interrupted run has left is found again."""
    texts = {}
    for word in _test_words(choice.root, overload):
        texts[f"tests/ops/test_op_{word}.py"] = _template("test_op").render(
            title=f"`{entries[0].func}`" + (" and its group" if len(entries) > 1 else ""),
            ops=[entry.func for entry in entries],
            word=word,
            fallback=choice.family == "cpu_fallback",
        )
    left = next((p for p, text in texts.items() if _substance(files.existing.get(p)) == _substance(text)), None)
    path = left or _test_path(choice.root, overload, files)
    return path, texts[path]


def _test_words(root: str, overload: str) -> list[str]:
    return [_word(root), *([f"{_word(root)}_{overload.lower()}"] if overload else [])]


def _test_path(root: str, overload: str, files: Files) -> str:
    """Names of test files are unique in the whole tree."""
    taken = {path.rpartition("/")[2] for path in files.existing if path.startswith("tests/")}
    words = _test_words(root, overload)
    free = [word for word in words if f"test_op_{word}.py" not in taken]
    return f"tests/ops/test_op_{(free or words)[0]}.py"


def _word(root: str) -> str:
    return root.strip("_") or root


def _python_parameters(function: object) -> str:
    """The operator's parameters with their defaults, as Python has them."""
    arguments = getattr(function, "func").arguments  # noqa: B009 - torchgen is untyped here
    positional = [_python_parameter(a.name, a.default) for a in arguments.flat_positional]
    keyword = [_python_parameter(a.name, a.default) for a in arguments.flat_kwarg_only]
    return ", ".join([*positional, *(["*", *keyword] if keyword else [])])


def _python_parameter(name: str, default: str | None) -> str:
    if default is None:
        return name
    try:
        return f"{name}={ast.literal_eval(default)!r}"
    except (ValueError, SyntaxError):  # `contiguous_format`, say
        return f"{name}=None"


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opgen.new"),
        autoescape=False,  # the output is Python
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    return environment.get_template(f"{name}.jinja")
