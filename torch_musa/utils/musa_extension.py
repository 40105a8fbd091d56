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

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import setuptools
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, SetupError

from torch_musa.utils._building import build, listed
from torch_musa.utils._compilation import BuildFailed
from torch_musa.utils._loading import load, load_inline

__all__ = ["BuildExtension", "MUSAExtension", "load", "load_inline"]

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
    if not isinstance(given, Mapping):
        return {"cxx": listed(given, "extra_compile_args"), "mcc": listed(given, "extra_compile_args")}
    unknown = sorted(set(given) - {"cxx", "mcc", "nvcc"})
    if unknown:
        raise SetupError(f"extra_compile_args[{unknown[0]!r}]: the compilers are 'cxx' and 'mcc'")
    return {name: listed(given.get(name), f"extra_compile_args[{name!r}]") for name in ("cxx", "mcc")}


class BuildExtension(build_ext):
    """`build_ext` for `MUSAExtension`s (and, as ever, for all others). Ninja runs the compilers where it is installed;
    MAX_JOBS says how many at once."""

    _no_python_abi_suffix = False

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """A command class with options set: `use_ninja=False` does without Ninja, `no_python_abi_suffix=True` calls the
        library `name.so`."""
        unknown = sorted(options.keys() - {"use_ninja", "no_python_abi_suffix"})
        if unknown:
            raise TypeError(f"BuildExtension has no option {unknown[0]}: there are use_ninja and no_python_abi_suffix")

        class WithOptions(cls):  # type: ignore[misc, valid-type]
            _no_python_abi_suffix = options.get("no_python_abi_suffix", False)

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                if not options.get("use_ninja", True):
                    os.environ["USE_NINJA"] = "0"

        return WithOptions

    def get_ext_filename(self, fullname: str) -> str:
        """Where the library goes: with `no_python_abi_suffix`, without `cpython-311-x86_64-linux-gnu`."""
        path = Path(super().get_ext_filename(fullname))
        stem, *_, suffix = path.name.split(".")
        return str(path.with_name(f"{stem}.{suffix}") if self._no_python_abi_suffix else path)

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
            build(
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
