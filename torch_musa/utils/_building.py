"""One extension from its sources: compiled by the compilers of the target in use, and linked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch_musa.utils import _compilation, _sources
from torch_musa.utils._compilation import Step
from torch_musa.utils._includes import included
from torch_musa.utils._toolchain import PROJECT, Toolchain, find_toolchain

_DEVICE = (".mu", ".cu")
_HOST = (".cpp", ".cc", ".cxx", ".c++")
_FORCE_MCC = "force_mcc"  # in the flags for C++: the toolkit's compiler takes the C++ sources, too


def listed(given: Sequence[Any] | None, name: str) -> list[Any]:
    """A list that was given; a text would come apart into letters."""
    if isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is a list: [{str(given)!r}]")
    return list(given or ())


def absent(name: str, sources: Sequence[Path]) -> str | None:
    """What to say where sources are not there, or none are given; None where all are."""
    missing = [str(path) for path in sources if not path.is_file()]
    return f"there is no {', '.join(missing) or 'source'} to build {name} from" if missing or not sources else None


def build(
    *,
    name: str,
    sources: Sequence[Path],
    target: Path,
    folder: Path,
    include_dirs: Sequence[Path],
    cxx_flags: Sequence[str],
    mcc_flags: Sequence[str],
    link_flags: Sequence[str],
    reads: Sequence[Path] = (),
    verbose: bool = False,
) -> None:
    """Compiles and links one extension. Raises BuildFailed with the compilers' messages."""
    tools = find_toolchain()
    unknown = [str(path) for path in sources if path.suffix not in (*_DEVICE, *_HOST)]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: sources are {', '.join((*_DEVICE, *_HOST))}")
    if complaint := absent(name, sources):
        raise ValueError(complaint)
    taken = _sources.ported(sources, include_dirs, folder / "ported")
    steps = []
    for number, path in enumerate(taken.files):
        output = folder / f"{number}-{path.stem}.o"
        command = _compile(tools, name, path, output, taken.include_dirs, cxx_flags, mcc_flags)
        read = included([path], taken.include_dirs)
        steps.append(Step(output, (path,), tuple(command), (*reads, *read)))
    objects = tuple(step.output for step in steps)
    steps.append(Step(target, objects, tuple(_link(tools, objects, target, link_flags))))
    target.parent.mkdir(parents=True, exist_ok=True)
    _compilation.make(steps, folder, verbose=verbose)


def _compile(
    tools: Toolchain,
    name: str,
    source: Path,
    output: Path,
    include_dirs: Sequence[Path],
    cxx_flags: Sequence[str],
    mcc_flags: Sequence[str],
) -> list[str]:
    on_device = source.suffix in _DEVICE
    own = list(mcc_flags if on_device else (flag for flag in cxx_flags if flag != _FORCE_MCC))
    if on_device:
        tool = [*tools.device_compiler, *tools.device_flags]
    elif _FORCE_MCC in cxx_flags and tools.target != "host":
        tool = [*tools.device_compiler, "-x", "musa", *tools.device_flags]
    else:
        tool = [*tools.host_compiler, *tools.host_flags]  # on the host both are the same compiler
    includes = [f"-I{path}" for path in include_dirs]
    for path in tools.include_dirs:
        # Warnings in headers of others are no news.
        includes += ["-isystem", str(path)] if not _is_sdk(path) else [f"-I{path}"]
    defines = [f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    return [*tool, *defines, *includes, *own, "-c", str(source), "-o", str(output)]


def _is_sdk(path: Path) -> bool:
    """Whether the folder stands in for a toolkit's: found before the compiler's own, each in its place in the list."""
    return path.is_relative_to(PROJECT / "sdk")


def _link(tools: Toolchain, objects: Sequence[Path], target: Path, flags: Sequence[str]) -> list[str]:
    folders = [f"-L{path}" for path in tools.library_dirs]
    libraries = [f"-l{library}" for library in tools.libraries]
    return [
        *tools.host_compiler,
        *map(str, objects),
        *flags,
        *folders,
        *libraries,
        *tools.link_flags,
        "-o",
        str(target),
    ]
