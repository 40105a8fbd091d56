"""Finding the compiled part: build/<target>-torch<version>/ in the project, one for each PyTorch and target."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from opgen.targets import Choice, Machine, built_targets, choose, target_of_build

_PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Build:
    """A build folder that holds the extension module."""

    folder: Path

    @property
    def extension(self) -> Path:
        return self.folder / "lib" / "_C.so"

    @property
    def op_table(self) -> Path:
        return self.folder / "op_table.json"


def choice() -> Choice:
    """The target to run on: TORCH_MUSA_TARGET, else the best that is built and whose device is here.

    Raises:
        ValueError: the variable names no target.
    """
    release = str(torch.__version__).partition("+")[0]
    return choose(Machine(torch.version.cuda), built_targets(_PROJECT, release))


def target() -> str:
    """The toolkit of the build that this process runs on, or would run on: "host", "cuda" or "musa".

    Raises:
        ValueError: TORCH_MUSA_TARGET names no target.
    """
    chosen = os.environ.get("TORCH_MUSA_BUILD_DIR")
    return (target_of_build(Path(chosen).resolve()) if chosen else None) or choice().target


def find(torch_version: str) -> Build | None:
    """The build for this PyTorch, or None. TORCH_MUSA_BUILD_DIR names a folder to use instead of looking for one."""
    build = Build(_folder(torch_version))
    return build if build.extension.is_file() else None


def how_to_build(torch_version: str) -> str:
    """What to tell someone for whom `find` returned None."""
    folder = _folder(torch_version)
    lines = [f"torch_musa is not built for PyTorch {torch_version} (target {target()}): no {folder}/lib/_C.so."]
    others = sorted(path.name for path in _PROJECT.glob("build/*") if Build(path).extension.is_file())
    if "TORCH_MUSA_BUILD_DIR" in os.environ:
        lines.append("TORCH_MUSA_BUILD_DIR says to look there.")
    elif others:
        lines.append(f"There are builds for other combinations: {', '.join(others)}.")
    option = "" if target() == "host" else f" --target {target()}"
    lines.append(f"Run `opgen build{option}` in {_PROJECT} to make it.")
    return " ".join(lines)


def _folder(torch_version: str) -> Path:
    chosen = os.environ.get("TORCH_MUSA_BUILD_DIR")
    if chosen:
        return Path(chosen).resolve()
    return _PROJECT / "build" / f"{target()}-torch{torch_version.split('+')[0]}"
