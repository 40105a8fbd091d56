"""What an extension is compiled and linked with: the one place that knows the targets."""

from __future__ import annotations

import os
import re
import shlex
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch

from opgen.targets import Machine
from torch_musa import _build

PROJECT = Path(__file__).resolve().parents[2]
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
        RuntimeError: nothing is built for it, TORCH_MUSA_TARGET names no target, or the target's compiler is missing.
    """
    version = str(torch.__version__)
    try:
        target = _build.target()
        build = _build.find(version)
    except ValueError as error:
        raise RuntimeError(str(error)) from error
    if build is None:
        raise RuntimeError(_build.how_to_build(version))
    return {"host": _host, "cuda": _cuda, "musa": _musa}[target](build)


# As the wheel and the backend are built: some classes have other members without NDEBUG.
_COMMON = ("-std=c++20", "-fPIC", "-DNDEBUG", "-Wno-unused-local-typedefs")
_NOT_CUDAS = ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS", "BFLOAT16_CONVERSIONS")
_LIBRARIES = ("torch_musa", "mudnn", "musart", "c10", "torch", "torch_cpu", "torch_python")


def _host(build: _build.Build) -> Toolchain:
    """The stand-in: mcc rewrites `.mu` to C++ for the machine's compiler."""
    return _toolchain("host", build, (sys.executable, str(PROJECT / "sdk" / "host" / "mcc")), (*_COMMON, "-O2"))


def _cuda(build: _build.Build) -> Toolchain:
    """An NVIDIA GPU: mcc is nvcc. $MUSA_CUDA_ARCH names the card where it is not in this machine."""
    cuda = Machine(torch.version.cuda).nvcc()
    first = PROJECT / "sdk/cuda/include/musa_runtime_api.h"
    return _toolchain(
        "cuda",
        build,
        (sys.executable, str(PROJECT / "sdk" / "cuda" / "mcc")),
        # As in torch's own extensions: c10::Half's operators are meant, not CUDA's.
        (*_COMMON, "-O2", *(f"-D__CUDA_NO_{name}__" for name in _NOT_CUDAS)),
        host_flags=("-include", str(first)),
        toolkit=(PROJECT / "sdk/cuda/include",),
        # Host sources see CUDA's vector types through the runtime's header.
        after=(cuda.resolve().parents[1] / "include",) if cuda else (),
        libraries=("c10_cuda", "torch_cuda"),
    )


def _musa(build: _build.Build) -> Toolchain:
    """Moore Threads' toolkit. Chips are those of $MUSA_ARCH; $ENABLE_COMPILE_FP64 is as in torch_musa's own builds."""
    machine = Machine(torch.version.cuda)
    home = machine.musa_home()
    if home is None:
        raise RuntimeError(f"extensions cannot be built for target musa: {machine.cannot_build('musa')}")
    chips = re.findall(r"[^;, ]+", os.environ.get("MUSA_ARCH", "")) or ["31"]
    flags = ["-x", "musa", "-mtgpu", *_COMMON, "-O2"]
    flags += [f"--offload-arch=mp_{chip.removeprefix('mp_')}" for chip in chips]
    if os.environ.get("ENABLE_COMPILE_FP64", "0") not in ("", "0"):
        flags.append("-DENABLE_COMPILE_FP64=1")
    return _toolchain(
        "musa", build, (str(home / "bin" / "mcc"),), tuple(flags), after=(home / "include",), folders=(home / "lib",)
    )


def _toolchain(
    target: str,
    build: _build.Build,
    device_compiler: tuple[str, ...],
    device_flags: tuple[str, ...],
    *,
    toolkit: tuple[Path, ...] = (),
    after: tuple[Path, ...] = (),
    folders: tuple[Path, ...] = (),
    libraries: tuple[str, ...] = (),
    host_flags: tuple[str, ...] = (),
) -> Toolchain:
    """What all targets share: the backend's headers and libraries. `toolkit` stands in front of sdk/include."""
    lib = build.folder / "lib"
    # The real toolkit brings the headers that sdk/include stands in for.
    sdk = () if target == "musa" else (PROJECT / "sdk/include",)
    porting = PROJECT / "torch_musa/csrc/porting"
    # PyTorch's device headers: the backend's own, then the wheel's as the build has ported them. On the host mcc has
    # translated these, and a few have a faster version.
    own = (porting, build.folder / "ported/wheel")
    if target == "host":
        own = (PROJECT / "torch_musa/csrc/porting_host", porting, build.folder / "mcc/wheel")
    run_paths = (lib, _TORCH / "lib", *folders)
    return Toolchain(
        target=target,
        device_compiler=device_compiler,
        device_flags=(*device_flags, "-include", str(porting / "device_prelude.h")),
        host_compiler=tuple(shlex.split(os.environ.get("CXX", "")) or ["g++"]),
        host_flags=(*_COMMON, "-O2", *host_flags),
        include_dirs=(PROJECT, *own, *toolkit, *sdk, *after, *_common_includes()),
        library_dirs=(lib, _TORCH / "lib", *folders),
        libraries=(*_LIBRARIES, *libraries),
        # The libraries are in the process already when an extension is imported after torch; run paths serve the rest.
        link_flags=("-shared", "-Wl,--as-needed", *(f"-Wl,-rpath,{folder}" for folder in run_paths)),
    )


def _common_includes() -> tuple[Path, ...]:
    include = _TORCH / "include"
    return (include, include / "torch/csrc/api/include", Path(sysconfig.get_paths()["include"]))
