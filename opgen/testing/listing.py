"""The overloads that an operator list names, read fast: no torch, no torchgen, so that test collection costs nothing.

`opgen check` is what judges a list; here a well-formed one is taken for granted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet

from opgen.stubs import legacy_stubs

_DENSE_KEYS = frozenset({"PrivateUse1", "AutogradPrivateUse1"})


@dataclass(frozen=True)
class Listed:
    """One overload of a list. ``fallback``: it goes through the CPU on purpose.

    ``certain`` False: its entry names kernels for sparse, nested or quantized tensors alone. For dense ones it follows
    its out= overload where PyTorch wrote the two structured, and is PyTorch's own composition otherwise.
    """

    op: str
    fallback: bool
    certain: bool = True


def listed_overloads(text: str, torch_version: str | None = None, cpu_kernels: str = "") -> tuple[Listed, ...]:
    """The overloads that a list registers for dense tensors under that PyTorch version, by default the installed one.

    ``cpu_kernels`` is the source of the kernels that compute on the CPU on purpose. The out= variants that an entry
    asks for with ``autogen`` count too; entries for sparse, nested or quantized tensors alone only beside a dense one
    of the same operator. (An out= overload of a Legacy group is dense whatever other keys it names.)
    """
    version = torch_version or metadata.version("torch")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    listed: dict[str, Listed] = {}
    through_cpu: set[str] = set()
    followers: set[str] = set()
    host = set(re.findall(r"\w+", cpu_kernels))
    others: list[str] = []
    for entry in yaml.load(text, Loader=loader) or []:
        if not SpecifierSet(str(entry.get("torch", ""))).contains(version, prereleases=True):
            continue
        kernels = _kernels(entry)
        legacy = _name(entry["func"]) in legacy_stubs() and entry.get("structured") is not False
        if kernels and not _DENSE_KEYS & kernels.keys() and not legacy:
            others.append(_name(entry["func"]))
            continue
        dense_kernels = (name for key, name in kernels.items() if key in _DENSE_KEYS)
        fallback = any(name == "cpu_fallback" or name in host for name in dense_kernels)
        names = [_name(entry["func"]), *(name.strip() for name in str(entry.get("autogen", "")).split(","))]
        for name in filter(None, names):
            listed[name] = Listed(name, fallback)
            if fallback:
                through_cpu.add(_root(name))
            elif not kernels:
                followers.add(name)
    roots = {_root(name) for name in listed}
    for name in others:
        if _root(name) in roots:
            listed[name] = Listed(name, False, certain=False)
            followers.add(name)
    # an entry without a kernel follows the out= overload of its group
    return tuple(
        replace(entry, fallback=True) if name in followers and _root(name) in through_cpu else entry
        for name, entry in listed.items()
    )


def read_listed(path: Path, torch_version: str | None = None) -> tuple[Listed, ...]:
    """`listed_overloads` of a project's list, yaml/musa_functions.yaml, beside its kernels/cpu_fallback."""
    sources = sorted((path.parent.parent / "kernels" / "cpu_fallback").glob("*.cpp"))
    cpu_kernels = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    return listed_overloads(path.read_text(encoding="utf-8"), torch_version, cpu_kernels)


def _name(func: str) -> str:
    return func.partition("(")[0].strip()


def _root(name: str) -> str:
    base = name.partition(".")[0]
    return base[:-1] if base.endswith("_") and not base.endswith("__") else base


def _kernels(entry: Mapping[str, Any]) -> dict[str, str]:
    dispatch = entry.get("dispatch") or {}
    return {key.strip(): kernel for keys, kernel in dispatch.items() for key in str(keys).split(",")}
