"""Extensions that are built at run time and imported: `load` and `load_inline` of `musa_extension`."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import keyword
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from torch_musa.utils._building import absent, build, listed
from torch_musa.utils._compilation import BuildFailed
from torch_musa.utils._includes import included
from torch_musa.utils._toolchain import find_toolchain


def load(
    name: str,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    extra_cflags: Sequence[str] | None = None,
    extra_musa_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    is_python_module: bool = True,
) -> ModuleType | str:
    """Builds an extension where that is needed and imports it: the counterpart of `torch.utils.cpp_extension.load`.

    Args:
        name: the module's, also `TORCH_EXTENSION_NAME` in the sources.
        build_directory: where to build; default: a folder for this name in TORCH_EXTENSIONS_DIR, or in the user's
        cache.
        is_python_module: False: load the library for the operators it registers, and return its path.

    Raises:
        RuntimeError: it does not compile; the text is what the compilers said.
    """
    given = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    folder = _folder(name, build_directory)
    files = [Path(source).absolute() for source in given]
    flags = _Flags.of(extra_cflags, extra_musa_cflags, extra_ldflags, extra_include_paths)
    with _locked(folder):
        target = _made(name, files, flags, folder, verbose)
    return _import(name, target) if is_python_module else _load_library(target)


@dataclass(frozen=True)
class _Flags:
    """What `load` takes beside the sources."""

    cxx: tuple[str, ...]
    mcc: tuple[str, ...]
    link: tuple[str, ...]
    include_dirs: tuple[Path, ...]

    @classmethod
    def of(
        cls,
        cxx: Sequence[str] | None,
        mcc: Sequence[str] | None,
        link: Sequence[str] | None,
        include_dirs: Sequence[str | os.PathLike[str]] | None,
    ) -> _Flags:
        return cls(
            tuple(listed(cxx, "extra_cflags")),
            tuple(listed(mcc, "extra_musa_cflags")),
            tuple(listed(link, "extra_ldflags")),
            tuple(Path(path).absolute() for path in listed(include_dirs, "extra_include_paths")),
        )


def _made(name: str, files: list[Path], flags: _Flags, folder: Path, verbose: bool) -> Path:
    """The library, built where that is needed. A library that this process has loaded is never written over: one of
    other contents gets a name of its own."""
    if complaint := absent(name, files):
        raise RuntimeError(complaint)
    target = folder / f"{name}_{_digest(files, flags)}.so"
    try:
        build(
            name=name,
            sources=files,
            target=target,
            folder=folder / "objects",
            include_dirs=flags.include_dirs,
            cxx_flags=flags.cxx,
            mcc_flags=flags.mcc,
            link_flags=flags.link,
            verbose=verbose,
        )
    except BuildFailed as error:
        raise RuntimeError(f"Error building extension '{name}':\n{error}") from None
    return target


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str] = "",
    musa_sources: str | Sequence[str] = "",
    cuda_sources: str | Sequence[str] = "",
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_musa_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    is_python_module: bool = True,
) -> ModuleType | str:
    """`load` with the sources as texts: the counterpart of `torch.utils.cpp_extension.load_inline`.

    Args:
        cpp_sources: C++. `torch/extension.h` is included for it.
        musa_sources: MUSA's dialect; cuda_sources: CUDA's, which is ported. Both get the headers of the runtime and of
            torch's types.
        functions: names to bind, with docstrings where it is a mapping; declared in `cpp_sources`.
    """
    folder = _folder(name, build_directory)
    flags = _Flags.of(extra_cflags, extra_musa_cflags, extra_ldflags, extra_include_paths)
    bound = functions if isinstance(functions, Mapping) else {f: f for f in _texts(functions or ())}
    cpp = ["#include <torch/extension.h>", *_texts(cpp_sources)]
    if bound:
        lines = [f'  m.def("{function}", &{function}, {_literal(doc)});' for function, doc in bound.items()]
        cpp += ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}"]
    texts = {}
    if bound or _texts(cpp_sources):
        texts[folder / "main.cpp"] = cpp
    head = ["#include <torch/types.h>", "#include <cuda_runtime.h>", "#include <ATen/cuda/CUDAContext.h>"]
    if _texts(cuda_sources):
        texts[folder / "cuda" / "device.cu"] = [*head, *_texts(cuda_sources)]
    if _texts(musa_sources):
        head = ["#include <torch/types.h>", "#include <musa_runtime.h>"]
        head.append('#include "torch_musa/csrc/aten/musa/MUSAContext.h"')
        texts[folder / "musa_device.mu"] = [*head, *_texts(musa_sources)]
    with _locked(folder):  # two processes with other texts of one name: each compiles its own
        files = [_write(path, lines) for path, lines in texts.items()]
        target = _made(name, files, flags, folder, verbose)
    return _import(name, target) if is_python_module else _load_library(target)


def _literal(text: str) -> str:
    """A raw string that holds the text, whatever stands in it."""
    mark = "doc"
    while f'){mark}"' in text:
        mark += "_"
    return f'R"{mark}({text}){mark}"'


def _texts(given: str | Sequence[str]) -> list[str]:
    return [text for text in ([given] if isinstance(given, str) else given) if text]


def _write(path: Path, lines: Sequence[str]) -> Path:
    """Writes a source unless it says the same already, which spares its compilation."""
    data = ("\n".join(lines) + "\n").encode()  # bytes: line ends stay what they are
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)
    return path


def _cache(name: str) -> Path:
    import torch

    root = os.environ.get("TORCH_EXTENSIONS_DIR")
    base = (
        Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "torch_musa_extensions"
    )
    version = f"py{sys.version_info.major}{sys.version_info.minor}-torch{str(torch.__version__).split('+')[0]}"
    return base / f"{version}-{find_toolchain().target}" / name


def _folder(name: str, build_directory: str | os.PathLike[str] | None) -> Path:
    """Where to build. The name becomes part of the C++ (`TORCH_EXTENSION_NAME`) and of file names."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is no name for a module: letters, digits and underscores")
    folder = Path(build_directory) if build_directory is not None else _cache(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "name another build_directory, or set TORCH_EXTENSIONS_DIR"
        raise RuntimeError(f"{folder} cannot be made to build {name} in: {error.strerror}; {hint}") from error
    return folder


def _digest(files: Sequence[Path], flags: _Flags) -> str:
    """Of what the library is made from: sources, what they include of their own project, flags."""
    hashed = hashlib.sha256(repr(flags).encode())
    for path in (*files, *included(files, flags.include_dirs)):
        hashed.update(f"{path}\0".encode("utf-8", "surrogateescape") + path.read_bytes())
    return hashed.hexdigest()[:16]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two processes that load the same extension build it one after the other."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_imported: dict[tuple[str, Path], ModuleType] = {}


def _import(name: str, path: Path) -> ModuleType:
    """The module; the same one as before where this library is loaded already."""
    if (name, path) in _imported:
        return _imported[name, path]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    _imported[name, path] = module
    return module


def _load_library(path: Path) -> str:
    import torch

    torch.ops.load_library(str(path))
    return str(path)
