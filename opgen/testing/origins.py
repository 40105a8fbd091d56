"""How a printed script comes by what PyTorch alone does not bring: an operator of one's own, a reference function."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import runpy
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from opgen.testing.overload import Overload

__all__ = ["Borrowed", "definition", "load", "written"]

# Files that `load` has run or loaded, and what they registered: operators live as long as their Library.
_LOADED: dict[str, object] = {}


@dataclass(frozen=True)
class Borrowed:
    """What a script has to say to have something: ``notes`` at its top, ``lines`` behind its imports, and then ``name``
    is an expression for it. ``lines`` end the script with a message where the reader has to supply the thing."""

    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    name: str = ""


def load(path: str) -> None:
    """Runs a Python file, or loads a shared library, that registers operators; what it raises is the caller's."""
    if Path(path).suffix == ".py":
        _LOADED[path] = runpy.run_path(path)
    else:
        torch.ops.load_library(path)
        _LOADED[path] = None


def definition(op: Overload) -> Borrowed:
    """How to have an operator that is not PyTorch's own defined; nothing for one that is."""
    if op.namespace in ("aten", "prims", "prim"):
        return Borrowed()
    name = f"{op.namespace}::{op.base}"
    place = _defined_at(op)
    file = place.rpartition(":")[0]
    if _LOADED:
        lines = _lines_to_load(_LOADED)
    elif file.endswith(".py"):
        lines = _lines_to_import(file) or _lines_to_load([file])
    else:
        lines = _lines_to_load(sorted(torch.ops.loaded_libraries))
    at = f", which {place} defines" if file.endswith(".py") else ""
    lines += [
        f'if not hasattr(torch.ops.{op.namespace}, "{op.base}"):',
        f"    raise SystemExit({f'supply {name}{at}: it has to be defined before this line'!r})",
    ]
    note = f"{name} is no operator of PyTorch's own" + (f"; it is defined at {place}" if at else "")
    return Borrowed((note,), tuple(lines))


def _lines_to_load(paths: Iterable[str]) -> list[str]:
    sources = [path for path in paths if path.endswith(".py")]
    lines = [f"torch.ops.load_library({path!r})" for path in paths if path not in sources]
    if sources:
        # what registers an operator has to live as long as the operator
        runs = ", ".join(f"runpy.run_path({path!r})" for path in sources)
        lines += ["import runpy", f"kept = [{runs}]"]
    return lines


def _defined_at(op: Overload) -> str:
    """`file:line` of what registered the schema, as the dispatcher and PyTorch's Python decorators remember it."""
    from torch._library.custom_ops import OPDEFS

    custom = OPDEFS.get(f"{op.namespace}::{op.base}")
    code = getattr(getattr(custom, "_init_fn", None), "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    found = re.search(r"^debug: registered at (.+)$", torch._C._dispatch_dump(op.name), re.MULTILINE)
    place = found[1] if found else ""
    # torch.library.define registers for whoever calls it
    return "" if place.startswith(str(Path(torch.__file__).parent)) else place


def _lines_to_import(file: str) -> list[str]:
    """For the module that a file is; none where it is no module that can be imported by name."""
    for name, module in list(sys.modules.items()):
        if "main__" not in name and getattr(module, "__file__", None) == file:
            return [*_path_to(name, file), f"import {name}"]
    return []


def _path_to(module: str, file: str) -> list[str]:
    """What makes a module importable that is not installed."""
    depth = module.count(".") + (Path(file).name == "__init__.py")
    root = Path(file).resolve().parents[depth]
    installed = {str(Path(path).resolve()) for path in sysconfig.get_paths().values()}
    if str(root) in installed or module.partition(".")[0] in ("opgen", "torch"):
        return []
    return ["import sys", f"sys.path.insert(0, {str(root)!r})"]


# ---- reference functions

_HOMES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "torch.Tensor")


def written(function: Callable[..., Any]) -> Borrowed:
    """How a script can call ``function``: PyTorch's by its name, one of a module by import, a lambda or a local
    function by its source. Where none of these is possible, the script says what to supply."""
    try:
        return _written(function)
    except TypeError:  # not hashable, so not to be remembered
        return _written.__wrapped__(function)


@functools.lru_cache(maxsize=64)
def _written(function: Callable[..., Any]) -> Borrowed:
    return _of_torch(function) or _imported(function) or _pasted(function) or _to_supply(function)


def _of_torch(function: Callable[..., Any]) -> Borrowed | None:
    if isinstance(function, torch._ops.OpOverload):
        name = function.name().replace("::", ".")
        return Borrowed(name=f"torch.ops.{name}" if "." in function.name() else f"torch.ops.{name}.default")
    if isinstance(function, torch._ops.OpOverloadPacket):
        return Borrowed(name=f"torch.ops.{function._qualified_op_name.replace('::', '.')}")
    name = getattr(function, "__name__", "")
    for home in _HOMES:
        if name and getattr(_resolve(home), name, None) is function:
            return Borrowed(name=f"{home}.{name}")
    return None


def _resolve(path: str) -> Any:
    return functools.reduce(getattr, path.split(".")[1:], torch)


def _imported(function: Callable[..., Any]) -> Borrowed | None:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<>")
    if not module or module == "__main__" or "<" in name or module not in sys.modules:
        return None
    home: Any = sys.modules[module]
    try:
        found: Any = functools.reduce(getattr, name.split("."), home)
    except AttributeError:
        return None
    file = getattr(home, "__file__", None)
    if found is not function or file is None:
        return None
    first = name.partition(".")[0]
    return Borrowed(
        lines=(*_path_to(module, file), f"from {module} import {first}", f"reference = {name}"), name="reference"
    )


def _pasted(function: Callable[..., Any]) -> Borrowed | None:
    """The function's source, where all that it names can be written down; tried out before it is given."""
    lines = _source_lines(function, frozenset())
    if lines is None:
        return None
    lines = (*lines, *(["reference = " + function.__name__] if function.__name__.isidentifier() else []))
    space: dict[str, Any] = {}
    try:
        exec(compile("import torch\n" + "\n".join(lines), "<reference>", "exec"), space)
    except Exception:
        return None
    return Borrowed(lines=lines, name="reference") if _same_code(space["reference"], function) else None


def _source_lines(function: Any, above: frozenset[int]) -> tuple[str, ...] | None:
    """Lines that define a function by its own name, a lambda as ``reference``; None where something cannot be said."""
    if not isinstance(function, types.FunctionType) or id(function) in above or len(above) > 8:
        return None
    lines: list[str] = []
    for name, value in _named_outside(function):
        if value is torch:
            lines += [] if name == "torch" else [f"{name} = torch"]
            continue
        said = _plain(name, value) or (
            _source_lines(value, above | {id(function)}) if getattr(value, "__name__", "") == name else None
        )
        if said is None:
            return None
        lines += said
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    if function.__name__ != "<lambda>":
        return (*lines, *text.rstrip().splitlines())
    if above:  # it would take the name of the function that it belongs to
        return None
    found = [one for one in _lambdas(text) if _same_code(eval(compile(one, "<reference>", "eval"), {}), function)]
    found = list(dict.fromkeys(found))
    return (*lines, f"reference = {found[0]}") if len(found) == 1 else None


def _named_outside(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Globals and variables of outer functions that a function names."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    seen = set(function.__code__.co_freevars)
    left = [function.__code__]
    while left:
        code = left.pop()
        left += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for name in code.co_names:
            if name in function.__globals__ and name not in seen:
                seen.add(name)
                yield name, function.__globals__[name]


def _plain(name: str, value: Any) -> tuple[str, ...] | None:
    """A line that gives a name to a module, an operator or a constant; None for anything else."""
    if isinstance(value, torch._ops._OpNamespace):  # a module, too, but one that nobody can import
        return (f"{name} = torch.ops.{value.name}",)
    if isinstance(value, types.ModuleType):
        return (f"import {value.__name__}",) if value.__name__ == name else (f"import {value.__name__} as {name}",)
    if value is None or isinstance(value, (bool, int, str, torch.dtype)):
        return (f"{name} = {value!r}",)
    if isinstance(value, float):
        return (f"{name} = float({str(value)!r})",)
    known = _of_torch(value) if callable(value) else None
    return (f"{name} = {known.name}",) if known else None


def _lambdas(text: str) -> Iterator[str]:
    """Every lambda in lines that may be a piece of a statement only."""
    stripped = text.strip()
    argument = stripped.rstrip(",")
    # of a call, its last line, of a dict, the head of a loop
    pieces = (
        stripped,
        f"f({argument})",
        f"f({argument}",
        f"({argument.rstrip(')')})",
        f"{{{argument}}}",
        f"{stripped} pass",
    )
    for attempt in pieces:
        try:
            tree = ast.parse(attempt)
        except SyntaxError:
            continue
        yield from (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Lambda))
        return


def _same_code(one: Any, other: Any) -> bool:
    def shape(code: types.CodeType) -> tuple[Any, ...]:
        constants = tuple(shape(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
        return code.co_code, code.co_varnames, code.co_names, constants

    mine, theirs = getattr(one, "__code__", None), getattr(other, "__code__", None)
    # a variable of an outer function becomes a global of the script: other instructions for the same thing
    if mine is None or theirs is None or theirs.co_freevars:
        return mine is not None and theirs is not None and mine.co_varnames == theirs.co_varnames
    return shape(mine) == shape(theirs)


def _to_supply(function: Callable[..., Any]) -> Borrowed:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    place = f" (defined at {code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    what = f"what the results are compared with, {name}{place}"
    return Borrowed(
        (f"Supply `reference`: {what}; it cannot be imported.",),
        (
            "reference = None  # supply it here",
            "if reference is None:",
            f"    raise SystemExit({f'supply `reference`: {what}'!r})",
        ),
        "reference",
    )
