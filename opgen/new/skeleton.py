"""The text of a new kernel's source: includes, signatures and the usual steps are written; where only the author can
know the computation, a call of `NotWritten` stands, which raises, names the file, and keeps the operator from being
counted as done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2

from opgen.backend import Backend
from opgen.cpp import split_top_level
from opgen.emit import compat
from opgen.new.choose import Choice
from opgen.stub_signatures import StubSignature
from opgen.ways import Stub, WayKind

if TYPE_CHECKING:
    from torchgen.model import NativeFunction, NativeFunctionsGroup

__all__ = ["Body", "Parameter", "own_operator", "render", "suffix_of"]


@dataclass(frozen=True)
class Parameter:
    """A parameter as the project's sources spell it: `const Tensor&` `self`."""

    type: str
    name: str


@dataclass(frozen=True)
class Body:
    """One definition, as the templates see it."""

    head: str
    """Everything before the opening brace."""
    op: str
    form: str
    """Which template writes the inside: iterator, structured, plain, delegate, host, meta or stub."""
    marks: str = ""
    """The kernels that are unfinished until this body is written, for NotWritten."""
    parameters: tuple[Parameter, ...] = ()
    tensors: tuple[str, ...] = ()
    """Input tensors that are always there."""
    outputs: tuple[str, ...] = ()
    """Tensors to write: out arguments, or the one that an in-place operator changes."""
    guard: str = ""
    """What the device guard is made of; empty where a generated class has done it."""
    resizes: bool = False
    """Whether the outputs may come in any size."""
    results: tuple[str, ...] = ()
    """Names of the tensors that a functional overload allocates."""
    returns: str = ""
    """The closing return statement."""
    call: str = ""
    """The whole computation, where it is known: of a delegate, or through the CPU."""


def suffix_of(choice: Choice) -> str:
    return ".cu" if choice.family == "ported" else ".cpp"


def render(choice: Choice, path: str, backend: Backend) -> str:
    """The source at `path` for everything that `choice` needs written."""
    if choice.stubs:
        return _render(choice.family, path, backend, _stub_bodies(choice), choice, "at::native")
    if choice.group is not None:
        return _render(choice.family, path, backend, _group_bodies(choice, choice.group), choice, backend.namespace)
    return _render(choice.family, path, backend, _function_bodies(choice), choice, backend.namespace)


def own_operator(
    function: NativeFunction, kernels: Mapping[str, str], name: str, family: str, path: str, backend: Backend
) -> str:
    """The source of an operator with a schema of our own; `kernels` maps dispatch keys to function names."""
    bodies = [
        _function(function, kernel, name, kernel, None, family if key == backend.dispatch_key else "meta")
        for key, kernel in kernels.items()
    ]
    return _template(family).render(
        path=path,
        bodies=bodies,
        namespace=backend.namespace,
        includes=_includes(str(function.root_name), bodies, family, backend),
        stubs=(),
        comment=f"{name}, an operator of our own.",
        not_written=backend.skeleton_function,
    )


def _render(family: str, path: str, backend: Backend, bodies: Sequence[Body], choice: Choice, namespace: str) -> str:
    names = ", ".join(str(f.func.name) for f in choice.members)
    includes = _includes(choice.root, bodies, family, backend)
    if choice.stubs:
        headers = dict.fromkeys(stub.header for stub in choice.stubs)
        includes = [
            "<ATen/core/Tensor.h>",
            *(f"<{header}>" for header in headers),
            "<ATen/native/TensorIterator.h>",
            *_family_includes(family, bodies),
            f'"{backend.skeleton_header}"',
        ]
    qualified = f"{backend.namespace}::{backend.skeleton_function}" if choice.stubs else backend.skeleton_function
    register = "REGISTER_DISPATCH" if family == "ported" else backend.register_stub_macro
    return _template(family).render(
        path=path,
        bodies=bodies,
        namespace=namespace,
        includes=list(dict.fromkeys(includes)),
        stubs=choice.stubs,
        register=register,
        comment=f"{names}, hung on PyTorch's stubs." if choice.stubs else f"{names}.",
        not_written=qualified,
    )


def _includes(root: str, bodies: Sequence[Body], family: str, backend: Backend) -> list[str]:
    found = [f"<{backend.op_header(root)}>"]
    forms = {body.form for body in bodies}
    if "plain" in forms or any(body.guard for body in bodies):
        found.append("<ATen/DeviceGuard.h>")
    if any(body.results for body in bodies) or "delegate" in forms:
        found.append("<ATen/ops/empty.h>")
    if "host" in forms:
        resizes = any("resize_output" in body.call for body in bodies)
        found += ["<ATen/native/Resize.h>"] if resizes else []
        found += [f"<ATen/ops/{root}.h>", '"torch_musa/csrc/aten/FallbackCounts.h"']
    found += _family_includes(family, bodies)
    if any(body.marks for body in bodies):
        found.append(f'"{backend.skeleton_header}"')
    return list(dict.fromkeys(found))


def _family_includes(family: str, bodies: Sequence[Body]) -> list[str]:
    """What the steps of a family's kernels need."""
    forms = {body.form for body in bodies}
    guards = any(body.guard for body in bodies)
    if family == "ported":
        found = ["<ATen/native/cuda/Loops.cuh>"] if forms & {"iterator", "stub"} else []
        found += ["<c10/cuda/CUDAGuard.h>"] if guards else []
        found += ['"kernels/ported/EachElement.cuh"'] if forms & {"plain", "structured"} else []
        return [*found, '"kernels/ported/OpmathDispatch.cuh"'] if forms & {"iterator", "stub"} else found
    if family == "cpu_fallback":
        return ['"torch_musa/csrc/core/MUSAGuard.h"'] if guards else []
    found = ['"kernels/mudnn/Operands.h"'] if "iterator" in forms else ['"torch_musa/csrc/aten/utils/Utils.h"']
    return [*found, '"torch_musa/csrc/core/MUSAGuard.h"'] if guards else found


# ---- bodies


def _stub_bodies(choice: Choice) -> list[Body]:
    group = choice.group
    inputs = _input_count(group.functional) if group is not None and "pointwise" in group.out.tags else 0
    return [_stub_body(stub, choice, inputs) for stub in choice.stubs]


def _stub_body(stub: Stub, choice: Choice, inputs: int) -> Body:
    signature = stub.signature or StubSignature(stub.name, "void", ())
    parameters = tuple(_parameter(text) for text in signature.parameters)
    iterator = parameters[:1] if parameters and "TensorIterator" in parameters[0].type else ()
    return Body(
        head=signature.definition(stub.kernel),
        op=str((choice.group.out if choice.group is not None else choice.members[0]).func.name),
        form="stub",
        marks=stub.name,
        parameters=parameters,
        tensors=tuple("abcdefgh"[:inputs]) if iterator and inputs else (),
        returns=f"return {parameters[0].name};" if signature.returns.endswith("&") and parameters else "",
    )


def _group_bodies(choice: Choice, group: NativeFunctionsGroup) -> list[Body]:
    """Implementation and, for Customized, meta function of a structured group."""
    op = str(group.out.func.name)
    kernel = choice.kernels[op]
    bodies = []
    if choice.kind is WayKind.CUSTOMIZED:
        group = compat.with_out(group, compat.with_meta(group.out, group.out.structured_inherits, None))
        bodies.append(
            Body(
                head=_spelled(compat.meta_definition(group, precompute=False)),
                op=op,
                form="meta",
                marks=compat.meta_name(group),
                outputs=tuple(a.name for a in group.out.func.arguments.out),
            )
        )
    arguments = compat.impl_arguments(group)
    parameters = tuple(map(_parameter, split_top_level(_spelled(arguments))))
    outputs = tuple(a.name for a in group.out.func.arguments.out)
    tensors = tuple(p.name for p in parameters if p.type == "const Tensor&" and p.name not in outputs)
    head = f"TORCH_IMPL_FUNC({kernel})({', '.join(f'{p.type} {p.name}' for p in parameters)})"
    iterates = "TensorIterator" in (group.out.structured_inherits or "")
    host = _through_cpu(group.functional, parameters, outputs, op) if choice.family == "cpu_fallback" else ""
    form = "host" if host else "iterator" if iterates and choice.family != "cpu_fallback" else "structured"
    marks = "" if host else kernel
    return [*bodies, Body(head, op, form, marks, parameters, tensors, outputs, call=host)]


def _function_bodies(choice: Choice) -> list[Body]:
    by_kind = {f.func.kind().name: f for f in choice.members}
    out = by_kind.get("out")
    unfinished = [kernel for op, kernel in choice.kernels.items()]
    bodies = []
    functional = by_kind.get("functional")
    if choice.family == "cpu_fallback" and functional is not None and out is not None:
        bodies = _host_pair(functional, out, choice)
        if bodies:
            return bodies
    # The one that computes comes first, since the others call it.
    for function in sorted(choice.members, key=lambda f: f is not out):
        name = str(function.func.name)
        kernel = choice.kernels[name]
        marks = ", ".join(unfinished) if function is out else kernel
        target = choice.kernels[str(out.func.name)] if out is not None and function is not out else None
        bodies.append(
            _function(function, kernel, name, marks, (out, target) if out and target else None, choice.family)
        )
    return bodies


def _host_pair(functional: NativeFunction, out: NativeFunction, choice: Choice) -> list[Body]:
    """Through the CPU: the functional overload computes there, the out overload copies its result."""
    computes, copies = (choice.kernels[str(f.func.name)] for f in (functional, out))
    first = _function(functional, computes, str(functional.func.name), "", None, choice.family)
    outputs = [a.name for a in out.func.arguments.out]
    if first.form != "host" or len(choice.members) != 2:
        return []
    second = _function(out, copies, str(out.func.name), "", None, "")
    passed = ", ".join(p.name for p in first.parameters)
    lines = [f"const auto results = {computes}({passed});"]
    for position, output in enumerate(outputs):
        value = "results" if len(outputs) == 1 else f"std::get<{position}>(results)"
        lines += [f"native::resize_output({output}, {value}.sizes());", f"{output}.copy_({value});"]
    lines.append(second.returns)
    return [first, replace(second, form="host", marks="", guard="", results=(), call="\n  ".join(lines))]


def _function(
    function: NativeFunction,
    kernel: str,
    op: str,
    marks: str,
    delegate: tuple[NativeFunction, str] | None,
    family: str,
) -> Body:
    declaration = _spelled(compat.native_declaration(function, kernel))
    head, _, rest = declaration.partition(f"{kernel}(")
    parameters = tuple(map(_parameter, split_top_level(rest.rpartition(")")[0])))
    written = tuple(p.name for p in parameters if p.type == "Tensor&")
    tensors = tuple(p.name for p in parameters if p.type == "const Tensor&")
    returned = head.strip()
    single, several = returned == "Tensor", re.fullmatch(r"(?:::)?std::tuple<([^&]*)>", returned)
    elements = split_top_level(several[1]) if several else []
    count = 1 if single else len(elements) if set(elements) == {"Tensor"} else 0
    taken = {p.name for p in parameters}
    results = tuple(_fresh("out" if count == 1 else f"out{i}", taken) for i in range(count))
    closing = {0: f"return {written[0]};" if written else "", 1: f"return {results[0]};" if results else ""}
    if "tuple" in returned:
        names = results or (written if "&" in returned else ())
        returns = f"return {{{', '.join(names)}}};"
    elif returned == "void":
        returns = ""
    elif returned.endswith("&") or single:
        returns = closing[min(count, 1)]
    else:
        returns = "return {};"
    common: dict[str, Any] = {
        "head": declaration,
        "op": op,
        "parameters": parameters,
        "tensors": tensors,
        "returns": returns,
    }
    if delegate is not None:
        call = _delegation(function, delegate, parameters, results)
        if call is not None:
            needs = () if function.func.kind().name == "inplace" else results
            return Body(**common, form="delegate", call=call, results=needs, guard=_like(parameters))
    if family == "cpu_fallback":
        call = _through_cpu(function, parameters, (), op)
        if call:
            return Body(**common, form="host", call=call)
    return Body(
        **common,
        form="meta_function" if family == "meta" else "plain",
        marks=marks,
        outputs=written,
        resizes=bool(written) and function.func.kind().name == "out",
        results=results,
        guard=_guard(parameters),
    )


def _delegation(
    function: NativeFunction,
    delegate: tuple[NativeFunction, str],
    parameters: Sequence[Parameter],
    results: Sequence[str],
) -> str | None:
    """`return XOut(self, ..., out);`, where arguments are the same but for the outputs."""
    out, target = delegate
    passed = [p.name for p in parameters]
    wanted = [a.name for a in out.func.arguments.flat_all if a not in out.func.arguments.out]
    if passed != wanted:
        return None
    outputs = len(out.func.arguments.out)
    if function.func.kind().name == "inplace":
        return f"return {target}({', '.join([*passed, *passed[:1]])});" if outputs == 1 else None
    if len(results) != outputs:
        return None
    call = f"{target}({', '.join([*passed, *results])})"
    return f"return {call};" if outputs == 1 else f"{call};\n  return {{{', '.join(results)}}};"


def _through_cpu(function: NativeFunction, parameters: Sequence[Parameter], outputs: Sequence[str], op: str) -> str:
    """Call the functional overload on CPU copies; empty where an argument is of a type that has no plain copy."""
    plain = [p for p in parameters if p.name not in outputs]
    names = [a.name for a in function.func.arguments.flat_all]
    if [p.name for p in plain] != names or any("Tensor" in p.type and p.type != "const Tensor&" for p in plain):
        return ""
    if any(
        a.type.is_generator() if hasattr(a.type, "is_generator") else False for a in function.func.arguments.flat_all
    ):
        return ""
    tensors = [p.name for p in plain if p.type == "const Tensor&"]
    returns = len(function.func.returns)
    if not tensors or not returns or any(str(r.type) != "Tensor" for r in function.func.returns):
        return ""
    passed = ", ".join(f"{p.name}.cpu()" if p.name in tensors else p.name for p in plain)
    base = str(function.func.name.name)
    lines = [f'count_cpu_fallback("{op}");', f"const auto results = at::{base}({passed});"]
    each = ["results"] if returns == 1 else [f"std::get<{i}>(results)" for i in range(returns)]
    if outputs:
        lines += [f"{out}.copy_({value});" for out, value in zip(outputs, each, strict=True)]
    else:
        moved = [f"{value}.to({tensors[0]}.device())" for value in each]
        lines.append(f"return {moved[0] if returns == 1 else '{' + ', '.join(moved) + '}'};")
    return "\n  ".join(lines)


# ---- parameters


def _guard(parameters: Sequence[Parameter]) -> str:
    """What tells the device."""
    for p in parameters:
        if p.type in ("const Tensor&", "Tensor&", "TensorList", "const ITensorListRef&"):
            return f"device_of({p.name})"
    return next((p.name for p in parameters if p.type == "std::optional<Device>"), "")


def _like(parameters: Sequence[Parameter]) -> str:
    """Whose options an output starts with."""
    return next((f"{p.name}.options()" for p in parameters if p.type == "const Tensor&"), "")


def _input_count(function: NativeFunction) -> int:
    return sum(str(a.type) == "Tensor" for a in function.func.arguments.flat_all)


def _fresh(name: str, taken: set[str]) -> str:
    return name if name not in taken else f"{name}_"


def _parameter(text: str) -> Parameter:
    text = _spelled(text)
    match = re.fullmatch(r"(.*?[\s&*>])\s*(\w+)", text)
    assert match is not None, text
    return Parameter(match[1].strip(), match[2])


def _spelled(text: str) -> str:
    """C++ as the project's sources have it: inside namespace at, `const Tensor& self`."""
    text = re.sub(r"(?<![\w:])at::(?=[A-Z])", "", text)
    text = re.sub(r"(?<!\w)::std::", "std::", text)
    return re.sub(r"\s*([&*])\s*(?=\w)", r"\1 ", text)


@cache
def _template(family: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opgen.new"),
        autoescape=False,  # the output is C++
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(f"{family}.jinja")
