"""C++ and MUSA extensions of third-party packages, as `torch.utils.cpp_extension` has them for CUDA:

    from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension

    setup(
        name="mine",
        ext_modules=[MUSAExtension("mine._C", ["csrc_musa/nms.mu", "csrc_musa/bindings.cpp"])],
        cmdclass={"build_ext": BuildExtension},
    )

or at run time, `load(name="mine", sources=[...])` and `load_inline(...)`. Sources are `.mu`, C++, and `.cu`, which are
ported on the way. Compiled is for the toolkit that torch_musa runs on (docs/port.md).
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import setuptools
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, SetupError

from torch_musa.utils import _compilation, _sources
from torch_musa.utils._compilation import BuildFailed, Step
from torch_musa.utils._toolchain import Toolchain, find_toolchain

__all__ = ["BuildExtension", "MUSAExtension", "load", "load_inline"]

_DEVICE = (".mu", ".cu")
_HOST = (".cpp", ".cc", ".cxx", ".c++")
_FORCE_MCC = "force_mcc"  # in the flags for C++: the toolkit's compiler takes the C++ sources, too
_MARK = "_torch_musa"


def MUSAExtension(
    name: str, sources: Sequence[str | os.PathLike[str]], *args: Any, **kwargs: Any
) -> setuptools.Extension:
    """A `setuptools.Extension` for `BuildExtension`: the counterpart of `CUDAExtension`.

    Args:
        name: the module, `package._C`.
        sources: `.mu`, `.cu` and C++ files.
        extra_compile_args: flags for all compilers, or `{"cxx": [...], "mcc": [...]}` (`"nvcc"` is not read: its flags
            are another compiler's). `"force_mcc"` among those for `cxx` has the toolkit's compiler take the C++
            sources, too.
        **kwargs: whatever `setuptools.Extension` takes: `include_dirs`, `define_macros`, `libraries`, `extra_link_args`
        ...
    """
    kwargs.setdefault("language", "c++")
    flags = kwargs.pop("extra_compile_args", None)
    extension = setuptools.Extension(name, [os.fspath(source) for source in sources], *args, **kwargs)
    # setuptools takes a list only; the compilers' flags are ours to read.
    setattr(extension, _MARK, _flags_of(flags))
    return extension


def _flags_of(given: Mapping[str, Sequence[str]] | Sequence[str] | None) -> dict[str, list[str]]:
    if isinstance(given, Mapping):
        return {"cxx": list(given.get("cxx", ())), "mcc": list(given.get("mcc", ()))}
    return {"cxx": list(given or ()), "mcc": list(given or ())}


class BuildExtension(build_ext):
    """`build_ext` for `MUSAExtension`s (and, as ever, for all others). Ninja runs the compilers where it is installed;
    MAX_JOBS says how many at once."""

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """A command class with options set; `use_ninja=False` does without Ninja."""

        class WithOptions(cls):  # type: ignore[misc, valid-type]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                if not options.get("use_ninja", True):
                    os.environ["USE_NINJA"] = "0"

        return WithOptions

    def build_extension(self, ext: setuptools.Extension) -> None:
        flags = getattr(ext, _MARK, None)
        if flags is None:
            super().build_extension(ext)
            return
        target = Path(self.get_ext_fullpath(ext.name)).absolute()
        folder = Path(self.build_temp).absolute() / ext.name
        defines = [f"-D{key}" if value is None else f"-D{key}={value}" for key, value in ext.define_macros]
        defines += [f"-U{key}" for key in ext.undef_macros]
        link = [*(str(Path(path).absolute()) for path in ext.extra_objects)]
        link += [f"-L{Path(path).absolute()}" for path in ext.library_dirs]
        link += [f"-Wl,-rpath,{path}" for path in ext.runtime_library_dirs or []]
        link += [f"-l{library}" for library in ext.libraries]
        try:
            _build(
                name=ext.name.rpartition(".")[2],
                sources=[Path(source).absolute() for source in ext.sources],
                target=target,
                folder=folder,
                include_dirs=[Path(path).absolute() for path in ext.include_dirs],
                cxx_flags=[*defines, *flags["cxx"]],
                mcc_flags=[*defines, *flags["mcc"]],
                link_flags=[*link, *(ext.extra_link_args or [])],
                reads=[Path(path).absolute() for path in ext.depends],
                verbose=self.verbose > 1,
            )
        except BuildFailed as error:
            raise CompileError(f"building {ext.name}:\n{error}") from None
        except (RuntimeError, ValueError) as error:
            raise SetupError(f"building {ext.name}: {error}") from None


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
    folder = Path(build_directory) if build_directory is not None else _cache(name)
    folder.mkdir(parents=True, exist_ok=True)
    files = [Path(source).absolute() for source in given]
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise RuntimeError(f"there is no {', '.join(missing)} to build {name} from")
    with _locked(folder):
        # A library that this process has loaded is never written over: one of other contents gets a name of its own.
        includes = [Path(path).absolute() for path in extra_include_paths or ()]
        digest = _digest(files, includes, (extra_cflags, extra_musa_cflags, extra_ldflags))
        target = folder / f"{name}_{digest}.so"
        try:
            _build(
                name=name,
                sources=files,
                target=target,
                folder=folder / "objects",
                include_dirs=includes,
                cxx_flags=list(extra_cflags or ()),
                mcc_flags=list(extra_musa_cflags or ()),
                link_flags=list(extra_ldflags or ()),
                verbose=verbose,
            )
        except BuildFailed as error:
            raise RuntimeError(f"Error building extension '{name}':\n{error}") from None
    return _import(name, target) if is_python_module else _load_library(target)


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
    folder = Path(build_directory) if build_directory is not None else _cache(name)
    folder.mkdir(parents=True, exist_ok=True)
    bound = functions if isinstance(functions, Mapping) else {f: f for f in _texts(functions or ())}
    cpp = ["#include <torch/extension.h>", *_texts(cpp_sources)]
    if bound:
        # Texts go in as raw strings, whatever a docstring holds.
        lines = [f'  m.def("{f}", &{f}, R"__doc__({doc})__doc__");' for f, doc in bound.items()]
        cpp += ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}"]
    files = [_write(folder / "main.cpp", cpp)] if bound or _texts(cpp_sources) else []
    head = ["#include <torch/types.h>", "#include <cuda_runtime.h>", "#include <ATen/cuda/CUDAContext.h>"]
    if _texts(cuda_sources):
        files.append(_write(folder / "cuda" / "device.cu", [*head, *_texts(cuda_sources)]))
    if _texts(musa_sources):
        head = ["#include <torch/types.h>", "#include <musa_runtime.h>"]
        head.append('#include "torch_musa/csrc/aten/musa/MUSAContext.h"')
        files.append(_write(folder / "musa_device.mu", [*head, *_texts(musa_sources)]))
    return load(
        name,
        [str(path) for path in files],
        extra_cflags,
        extra_musa_cflags,
        extra_ldflags,
        extra_include_paths,
        folder,
        verbose,
        is_python_module,
    )


def _texts(given: str | Sequence[str]) -> list[str]:
    return [text for text in ([given] if isinstance(given, str) else given) if text]


def _write(path: Path, lines: Sequence[str]) -> Path:
    """Writes a source unless it says the same already, which spares its compilation."""
    text = "\n".join(lines) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def _build(
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
    own = (*include_dirs, *dict.fromkeys(path.parent for path in sources))
    taken = _sources.ported(sources, include_dirs, folder / "ported")
    read = (*reads, *_compilation.headers(own), *_compilation.headers([folder / "ported"]))
    steps = []
    for number, path in enumerate(taken.files):
        output = folder / f"{number}-{path.stem}.o"
        command = _compile(tools, name, path, output, taken.include_dirs, cxx_flags, mcc_flags)
        steps.append(Step(output, (path,), tuple(command), read))
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
    return path.name == "include" and path.parent.name == "sdk"


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


# ---- load ----


def _cache(name: str) -> Path:
    import torch

    root = os.environ.get("TORCH_EXTENSIONS_DIR")
    base = (
        Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "torch_musa_extensions"
    )
    version = f"py{sys.version_info.major}{sys.version_info.minor}-torch{str(torch.__version__).split('+')[0]}"
    return base / f"{version}-{find_toolchain().target}" / name


def _digest(files: Sequence[Path], include_dirs: Sequence[Path], flags: object) -> str:
    """Of what the library is made from: sources, the headers beside them and in the include folders, flags."""
    hashed = hashlib.sha256(repr((include_dirs, flags)).encode())
    folders = dict.fromkeys([*(path.parent for path in files), *include_dirs])
    for path in (*files, *_compilation.headers(folders)):
        hashed.update(f"{path}\0".encode() + path.read_bytes())
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
