"""Finding the compiled part: build/<target>-torch<version>/ in the project, one for each PyTorch and target."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

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


def target() -> str:
    """The toolkit in use: TORCH_MUSA_TARGET, else the CPU stand-in."""
    return os.environ.get("TORCH_MUSA_TARGET", "host")


def find(torch_version: str) -> Build | None:
    """The build for this PyTorch, or None. TORCH_MUSA_BUILD_DIR names a folder to use instead of looking for one."""
    build = Build(_folder(torch_version))
    return build if build.extension.is_file() else None


def how_to_build(torch_version: str) -> str:
    """What to tell someone for whom `find` returned None."""
    folder = _folder(torch_version)
    lines = [f"torch_musa is not built for PyTorch {torch_version} (target {target()}): no {folder}/lib/_C.so."]
    others = sorted(path.parent.parent.name for path in _PROJECT.glob("build/*/lib/_C.so"))
    if "TORCH_MUSA_BUILD_DIR" in os.environ:
        lines.append("TORCH_MUSA_BUILD_DIR says to look there.")
    elif others:
        lines.append(f"There are builds for other combinations: {', '.join(others)}.")
    lines.append(f"Run `opgen build` in {_PROJECT} to make it.")
    return " ".join(lines)


def _folder(torch_version: str) -> Path:
    chosen = os.environ.get("TORCH_MUSA_BUILD_DIR")
    if chosen:
        return Path(chosen).resolve()
    return _PROJECT / "build" / f"{target()}-torch{torch_version.split('+')[0]}"
