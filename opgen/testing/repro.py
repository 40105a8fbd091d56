"""A failing case as a script that needs nothing but PyTorch and the backend."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Collection
from typing import Any

import torch

from opgen.testing.case import Case, DeviceHere, MadeBy, SeededGenerator, StorageOf, TensorSpec, specs_in
from opgen.testing.origins import Borrowed, definition, written
from opgen.testing.overload import Overload
from opgen.testing.problem import Category

# values past which a tensor of one value is written as such
_LONG = 8

_SHOW = """


def each(named):
    for name, value in named.items():
        if isinstance(value, (tuple, list)):
            yield from ((f"{name}[{position}]", item) for position, item in enumerate(value))
        else:
            yield name, value


def strided(value):
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested


def show(device, op):
    print(f"--- {device}")
    try:
        results, arguments = map(dict, map(each, call(device, op)))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return
    for name, value in {**results, **arguments}.items():
        if strided(value):
            same = [f"is {other}" for other, tensor in arguments.items() if value is tensor and other != name]
            mine = value.untyped_storage()._cdata
            same += [
                f"shares {other}"
                for other, tensor in arguments.items()
                if strided(tensor) and value is not tensor and tensor.untyped_storage()._cdata == mine
            ]
            same += [f"version {value._version}"] if name in arguments else []
            same += ["conjugate bit"] if value.is_conj() else []
            same += ["negative bit"] if value.is_neg() else []
            print(f"{name}: {value.dtype}{list(value.shape)} strides {value.stride()}", *same)
            size = value.untyped_storage().nbytes() // value.element_size()
            if name in arguments and size > value.numel() and not value.is_quantized:
                print(f"{name} in its storage:", value.detach().as_strided([size], [1], 0).cpu())
        value = value.detach().cpu() if isinstance(value, torch.Tensor) else value
        print(f"{name}:", value)


"""


def script(
    case: Case,
    device: str,
    reference: Callable[..., Any] | None = None,
    backward: bool = False,
    about: Collection[Category] = (),
) -> str:
    """Python source that makes the call on the CPU and on ``device`` and prints results and arguments afterwards.

    ``reference`` is what is called on the CPU instead of the operator. That and an operator of one's own come by
    import, by loading what defines them, or by their source; where a reader has to supply one of them, the script says
    so at its top, and ends there until that is done. ``backward`` prints the gradients, too. ``about`` says what is
    wrong, so that the script shows that: warnings that are given once for a process, or what ran on the CPU.
    """
    target = _name_of_overload(case.op)
    own = definition(case.op)
    instead = written(reference) if reference and reference is not case.op.call else Borrowed(name=target)
    names = [argument.name for argument in case.op.arguments if argument.name in case.arguments]
    lines = [*(f"# {note}" for note in (*own.notes, *instead.notes)), "import torch", *own.lines, *instead.lines, ""]
    lines += ['nan, inf = float("nan"), float("inf")', "", "", "def call(device, op):"]
    lines += ["    torch.manual_seed(7)"] if _is_random(case) else []
    known: dict[int, str] = {}
    leaves: list[str] = []
    for name in names:
        value = case.arguments[name]
        # a tensor given twice is one tensor in the script too
        first = known.setdefault(id(value), _local(name)) if isinstance(value, TensorSpec) else ""
        text = first if first and first != _local(name) else _source(value)
        if backward and first == _local(name) and (value.dtype.is_floating_point or value.dtype.is_complex):
            text, leaves = f"{text}.requires_grad_()", [*leaves, first]
        lines.append(f"    {_local(name)} = {text}")
    lines.append(f"    results = op({_passed(case, leaves)})")
    lines.append("    results = results if isinstance(results, (tuple, list)) else [results]")
    named = ", ".join(f'"{name}": {_local(name)}' for name in names if _holds_tensors(case.arguments[name]))
    lines.append('    named = {f"result {position}": result for position, result in enumerate(results)}')
    if backward:
        lines += [
            "    wanted = [result for result in results if result is not None and result.requires_grad]",
            "    weights = [((torch.arange(r.numel()) % 7 - 3) / 2).reshape(r.shape).to(r) for r in wanted]",
            f"    gradients = torch.autograd.grad(wanted, [{', '.join(leaves)}], weights, allow_unused=True)",
            '    named |= {f"gradient {position}": gradient for position, gradient in enumerate(gradients)}',
        ]
    lines.append(f"    return named, {{{named}}}")
    shown = (
        _SHOW.replace("    try:", "    torch.set_warn_always(True)\n    try:") if Category.WARNING in about else _SHOW
    )
    on_device = f'show("{device}", {target})\n'
    if Category.FALLBACK in about and device.partition(":")[0] == "musa":
        told = "print('on the CPU:', counts.on_host, torch.musa.fallback_counts())"
        on_device = f"with torch.musa.count_ops() as counts:\n    {on_device}{told}\n"
    return "\n".join(lines) + shown + f'show("cpu", {instead.name})\n' + on_device


def _name_of_overload(op: Overload) -> str:
    return f"torch.ops.{op.namespace}.{op.base}.{op.overload or 'default'}"


def _is_random(case: Case) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(case.op.call, "tags", ())


def _holds_tensors(value: Any) -> bool:
    return not isinstance(value, StorageOf) and any(specs_in(value, ""))


def _passed(case: Case, leaves: list[str]) -> str:
    """The arguments of the call, by position as long as none is left out, as `make_live` passes them: a reference may
    have other names for them."""
    given: list[str] = []
    gap = False
    for argument in case.op.arguments:
        gap = gap or argument.keyword or argument.name not in case.arguments
        if argument.name in case.arguments:
            # what is written cannot be a leaf
            clone = ".clone()" if argument.written and _local(argument.name) in leaves else ""
            given.append(f"{argument.name}=" * gap + _local(argument.name) + clone)
    return ", ".join(given)


_TAKEN = frozenset({"device", "op", "results", "named", "wanted", "weights", "gradients"})


def _local(name: str) -> str:
    return f"{name}_" if name in _TAKEN or keyword.iskeyword(name) else name


def _source(value: Any) -> str:
    if isinstance(value, TensorSpec):
        return _tensor_source(value)
    if isinstance(value, list):
        return f"[{', '.join(_source(item) for item in value)}]"
    if isinstance(value, MadeBy):
        return f"{value.function}({', '.join(_source(item) for item in value.arguments)})"
    if isinstance(value, StorageOf):
        return f"{_tensor_source(value.tensor)}.untyped_storage()"
    if isinstance(value, DeviceHere):
        return "torch.device(device)"
    if isinstance(value, SeededGenerator):
        return f"torch.Generator(device).manual_seed({value.seed})"
    return _number_source(value)


def _number_source(number: Any) -> str:
    """As Python reads it back: its own spelling of a complex number loses the sign of a zero, and has an infj."""
    if not isinstance(number, complex) or all(math.isfinite(part) and part for part in (number.real, number.imag)):
        return repr(number)
    return f"complex({number.real!r}, {number.imag!r})"


def _tensor_source(spec: TensorSpec) -> str:
    size = spec.base.numel()
    if size > _LONG and _one_value(spec.base):
        text = f"torch.full([{size}], {_number_source(spec.base[0].item())}, dtype={spec.dtype})"
    else:
        text = f"torch.tensor([{', '.join(map(_number_source, spec.base.tolist()))}], dtype={spec.dtype})"
    if not spec.on_cpu:
        text += ".to(device)"
    shape = list(spec.shape)
    if not spec.dense or spec.value.numel() != size:
        text += f".as_strided({shape}, {list(spec.strides)}, {spec.offset})"
    elif shape != list(spec.base.shape):
        text += f".reshape({shape})"
    text += ".conj()" if spec.conjugated else ""
    return f"torch._neg_view({text})" if spec.negated else text


def _one_value(base: torch.Tensor) -> bool:
    """True where all elements are the same, signs of zeros and nan included."""
    bits = base.resolve_conj().contiguous().view(torch.uint8).view(base.numel(), -1)
    return bool((bits == bits[0]).all())
