"""What a caller asks of a check, looked at before anything is run: what is wrong, and what there is instead."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from opgen.diagnostics import did_you_mean
from opgen.testing.build import Rule
from opgen.testing.overload import Overload
from opgen.testing.tensors import DTYPES

__all__ = ["asked_count", "asked_dtypes", "asked_rules"]


def asked_rules(op: Overload, arguments: Mapping[str, Rule] | None) -> Mapping[str, Rule]:
    """Rules by argument. Raises LookupError for an argument that the overload lacks, TypeError for what is no rule."""
    if arguments is not None and not isinstance(arguments, Mapping):
        raise TypeError(f"`arguments` maps names of arguments to rules, and is {_shown(arguments)}")
    drawn = [argument.name for argument in op.inputs]
    for name, rule in (arguments or {}).items():
        if name in {argument.name for argument in op.outs}:
            raise LookupError(
                f"{op.name}: {name!r} is an out= argument, which follows from the results; no rule for it"
            )
        if name not in drawn:
            hint = did_you_mean(str(name), drawn)
            raise LookupError(
                f"{op.name} has no argument {name!r}" + (f"; {hint}" if hint else "") + f" (it has {', '.join(drawn)})"
            )
        if not callable(rule):
            raise TypeError(
                f"{op.name}: the rule for {name!r} is {_shown(rule)}, and has to be a function of (build, argument); "
                f"opgen.testing.rules has some: constant({_shown(rule)}) always gives this value"
            )
        if not _takes_two(rule):
            raise TypeError(
                f"{op.name}: the rule for {name!r}, {_name(rule)}, cannot be called with (build, argument); "
                f"the building blocks of opgen.testing.rules are called first: values(0, 1)"
            )
    return arguments or {}


def asked_value(op: str, name: str, rule: Rule, value: Any) -> Any:
    """What a rule has given. Raises TypeError for a function, which no argument can be: the rule is one that makes
    rules."""
    if inspect.isroutine(value):
        raise TypeError(
            f"{op}: the rule for {name!r}, {_name(rule)}, gives a function instead of a value; "
            "the building blocks of opgen.testing.rules are called first: values(0, 1)"
        )
    return value


def asked_dtypes(dtypes: Iterable[torch.dtype | str] | None) -> tuple[torch.dtype, ...] | None:
    """The main dtypes to try; a name stands for its dtype. Raises LookupError for another name, TypeError for what is
    no dtype, and ValueError where there is none."""
    if dtypes is None:
        return None
    valid = ", ".join(_spelling(dtype) for dtype in DTYPES)
    if isinstance(dtypes, (str, torch.dtype)) or not isinstance(dtypes, Iterable):
        raise TypeError(f"`dtypes` is a list of dtypes, [torch.float32] say, and is {_shown(dtypes)}")
    found = tuple(_dtype(dtype, valid) for dtype in dtypes)
    if not found:
        raise ValueError(f"`dtypes` is empty, so nothing would be tried; leave it out for all, or take of {valid}")
    return found


def _dtype(dtype: Any, valid: str) -> torch.dtype:
    if isinstance(dtype, str):
        found = getattr(torch, dtype.removeprefix("torch."), None)
        if not isinstance(found, torch.dtype):
            hint = did_you_mean(dtype, [_spelling(known) for known in DTYPES])
            raise LookupError(f"PyTorch has no dtype {dtype!r}" + (f"; {hint}" if hint else "") + f" ({valid})")
        return found
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"{_shown(dtype)} in `dtypes` is no dtype; there are {valid}")
    return dtype


def asked_count(count: int | None, name: str = "count") -> int | None:
    """How many cases. Raises TypeError for what is no whole number, ValueError for less than one."""
    if count is None:
        return None
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"`{name}` is a number of cases, and is {_shown(count)}")
    if count < 1:
        raise ValueError(f"`{name}` is {count}: without a case nothing is compared; it is 1 or more")
    return count


def _takes_two(rule: Any) -> bool:
    try:
        inspect.signature(rule).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def _name(rule: Any) -> str:
    return str(getattr(rule, "__qualname__", rule))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _spelling(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
