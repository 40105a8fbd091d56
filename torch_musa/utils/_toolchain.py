"""What an extension is compiled and linked with: the one place that knows the targets."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch

from torch_musa import _build

_PROJECT = Path(__file__).resolve().parents[2]
_TORCH = Path(torch.__file__).resolve().parent


@dataclass(frozen=True)
class Toolchain:
    """Commands and folders. Device sources are `.mu`; host sources are C++."""

    target: str
    device_compiler: tuple[str, ...]
    device_flags: tuple[str, ...]
    host_compiler: tuple[str, ...]
    host_flags: tuple[str, ...]
    include_dirs: tuple[Path, ...]
    library_dirs: tuple[Path, ...]
    libraries: tuple[str, ...]
    link_flags: tuple[str, ...]


def find_toolchain() -> Toolchain:
    """The toolchain of the target in use, against the build that fits the running PyTorch.

    Raises:
        RuntimeError: nothing is built for it, or extensions cannot be built for that target.
    """
    target = _build.target()
    version = str(torch.__version__)
    build = _build.find(version)
    if build is None:
        raise RuntimeError(_build.how_to_build(version))
    if target == "host":
        return _host(build)
    raise RuntimeError(
        f"extensions cannot be built for target {target} yet: unset TORCH_MUSA_TARGET, or set it to host"
    )


def _host(build: _build.Build) -> Toolchain:
    """The stand-in: mcc rewrites `.mu` to C++ for the machine's compiler."""
    cxx = tuple(os.environ.get("CXX", "g++").split())
    # As the wheel and the backend are built: some classes have other members without NDEBUG.
    common = ("-std=c++20", "-fPIC", "-DNDEBUG", "-Wno-unused-local-typedefs")
    lib = build.folder / "lib"
    return Toolchain(
        target="host",
        device_compiler=(sys.executable, str(_PROJECT / "sdk" / "host" / "mcc")),
        device_flags=(*common, "-O2"),
        host_compiler=cxx,
        host_flags=(*common, "-O2"),
        include_dirs=(_PROJECT, _PROJECT / "torch_musa/csrc/porting", _PROJECT / "sdk/include", *_common_includes()),
        library_dirs=(lib, _TORCH / "lib"),
        libraries=("torch_musa", "mudnn", "musart", "c10", "torch", "torch_cpu", "torch_python"),
        # The libraries are in the process already when an extension is imported after torch; run paths serve the rest.
        link_flags=("-shared", "-Wl,--as-needed", *(f"-Wl,-rpath,{folder}" for folder in (lib, _TORCH / "lib"))),
    )


def _common_includes() -> tuple[Path, ...]:
    include = _TORCH / "include"
    return (include, include / "torch/csrc/api/include", Path(sysconfig.get_paths()["include"]))
