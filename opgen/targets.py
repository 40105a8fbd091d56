"""The toolkits that a backend is built against and runs on, and which of them this machine has.

`host` is everywhere. `cuda` needs nvcc to build and an NVIDIA GPU to run, both with a PyTorch that was built with
CUDA; `musa` needs Moore Threads' toolkit. All answers come from files and the environment: asking must not start a
driver, which a process that forks later could not use any more.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "BEST_FIRST",
    "TARGETS",
    "VARIABLE",
    "Choice",
    "Machine",
    "built_targets",
    "choose",
    "target_of_build",
    "torch_cuda",
]

TARGETS = ("host", "cuda", "musa")
BEST_FIRST = ("musa", "cuda", "host")
VARIABLE = "TORCH_MUSA_TARGET"

_RECORD = "target"
"""The file of a build folder that says what it was built for (CMakeLists.txt writes it)."""


@dataclass(frozen=True)
class Machine:
    """Where to look. `root` and `environment` are replaced by tests; `torch_cuda` is the CUDA release that the
    installed PyTorch was built with, None for none."""

    torch_cuda: str | None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    root: Path = Path("/")

    def musa_home(self) -> Path | None:
        """The MUSA toolkit: $MUSA_HOME, else /usr/local/musa, else where the mcc on PATH is. None: there is none."""
        given = self.environment.get("MUSA_HOME")
        if given:
            return Path(given) if _is_musa(Path(given)) else None
        usual = self.root / "usr/local/musa"
        if _is_musa(usual):
            return usual
        compiler = self._on_path("mcc")
        home = compiler.resolve().parent.parent if compiler else None
        return home if home and _is_musa(home) else None

    def nvcc(self) -> Path | None:
        """CUDA's compiler: of $CUDA_HOME or $CUDA_PATH, else the one on PATH, else of /usr/local/cuda."""
        home = self.environment.get("CUDA_HOME") or self.environment.get("CUDA_PATH")
        if home:
            compiler = Path(home) / "bin" / "nvcc"
            return compiler if compiler.is_file() else None
        usual = self.root / "usr/local/cuda/bin/nvcc"
        return self._on_path("nvcc") or (usual if usual.is_file() else None)

    def has_nvidia_gpu(self) -> bool:
        """Whether the driver shows a GPU to this process."""
        if self.environment.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "NoDevFiles"):
            return False
        # /dev/dxg is how Windows lends its GPU to Linux.
        return any((self.root / "dev").glob("nvidia[0-9]*")) or (self.root / "dev/dxg").exists()

    def cannot_build(self, target: str) -> str | None:
        """Why nothing can be built for the target here, and what to do; None where it can."""
        if target == "cuda":
            return self._no_torch_cuda() or (None if self.nvcc() else self._no_nvcc())
        if target == "musa" and self.musa_home() is None:
            return self._no_musa()
        return None

    def cannot_run(self, target: str) -> str | None:
        """Why the target's device is not here; None where it is."""
        if target == "cuda":
            return self._no_torch_cuda() or (None if self.has_nvidia_gpu() else self._no_gpu())
        if target == "musa" and self.musa_home() is None:
            return self._no_musa()
        return None

    def _on_path(self, program: str) -> Path | None:
        found = shutil.which(program, path=self.environment.get("PATH", ""))
        return Path(found) if found else None

    def _no_torch_cuda(self) -> str | None:
        if self.torch_cuda is not None:
            return None
        return "the installed PyTorch is a build without CUDA (pip install torch from PyPI brings one with it)"

    def _no_nvcc(self) -> str:
        home = self.environment.get("CUDA_HOME") or self.environment.get("CUDA_PATH")
        if home:
            return f"no nvcc in {home}/bin, which CUDA_HOME names"
        return "no nvcc on PATH or in /usr/local/cuda/bin; set CUDA_HOME where the CUDA toolkit is elsewhere"

    def _no_gpu(self) -> str:
        hidden = self.environment.get("CUDA_VISIBLE_DEVICES")
        if hidden is not None and hidden.strip() in ("", "-1", "NoDevFiles"):
            return f"no NVIDIA GPU: CUDA_VISIBLE_DEVICES={hidden} hides all"
        return "no NVIDIA GPU: the driver shows none in /dev (nvidia-smi says more)"

    def _no_musa(self) -> str:
        given = self.environment.get("MUSA_HOME")
        if given:
            return f"no MUSA toolkit in {given}, which MUSA_HOME names: it has no bin/mcc"
        return "no MUSA toolkit: MUSA_HOME is not set, /usr/local/musa has no bin/mcc, and no mcc is on PATH"


@dataclass(frozen=True)
class Choice:
    """A target, and what the user should know about how it came to be chosen (None: nothing)."""

    target: str
    note: str | None = None


def choose(machine: Machine, built: Collection[str]) -> Choice:
    """The target to run on: the one that TORCH_MUSA_TARGET names, else the best that is built and present.

    A known target that is named but is not here gives way to `host`, with a note that says so.

    Raises:
        ValueError: the variable names no target.
    """
    named = machine.environment.get(VARIABLE, "")
    if not named:
        here = (target for target in BEST_FIRST if target in built and machine.cannot_run(target) is None)
        return Choice(next(here, "host"))
    if named not in TARGETS:
        raise ValueError(f"{VARIABLE}={named} is not one of {', '.join(TARGETS)}")
    reason = machine.cannot_run(named)
    if reason is None:
        return Choice(named)
    return Choice("host", f"{VARIABLE}={named}, but {reason}. The target is host instead")


def torch_cuda(torch: Path) -> str | None:
    """The CUDA release that a PyTorch (its package folder) was built with, read without importing it."""
    try:
        text = (torch / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"^cuda\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return match[1] if match else None


def target_of_build(folder: Path) -> str | None:
    """What a build folder was built for; None where it does not say."""
    try:
        text = (folder / _RECORD).read_text(encoding="utf-8").strip()
    except OSError:
        text = folder.name.partition("-torch")[0]
    return text if text in TARGETS else None


def built_targets(root: Path, release: str) -> frozenset[str]:
    """The targets that the project at ``root`` has a build of for a PyTorch release (`2.13.0`)."""
    folders = (path for path in root.glob(f"build/*-torch{release}") if (path / "lib" / "_C.so").is_file())
    return frozenset(target for folder in folders if (target := target_of_build(folder)))


def _is_musa(home: Path) -> bool:
    return (home / "bin" / "mcc").is_file()
