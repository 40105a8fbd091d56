"""Where things are: the project's root and the folders that `opgen` reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opgen.diagnostics import OpgenError

OPERATOR_LIST = Path("yaml") / "musa_functions.yaml"


@dataclass(frozen=True)
class Project:
    """A backend's source tree. All paths are absolute."""

    root: Path

    @property
    def yaml(self) -> Path:
        return self.root / OPERATOR_LIST

    @property
    def kernels(self) -> Path:
        return self.root / "kernels"

    def generated(self, torch_version: str) -> Path:
        """Output of `opgen gen`; one folder for each PyTorch, so that switching back regenerates nothing."""
        return self.root / "generated" / f"torch{torch_version}"

    def build(self, target: str, torch_version: str) -> Path:
        return self.root / "build" / f"{target}-torch{torch_version}"


def find_root(start: Path | None = None) -> Path:
    """The nearest folder at or above `start` (the working folder) that holds the operator list.

    Outside any project it is the tree that this package was installed from in editable mode, so that `opgen list`
    works from everywhere.
    """
    try:
        origin = (start or Path.cwd()).resolve()
    except FileNotFoundError:
        raise OpgenError("the working folder no longer exists", hint="change to another folder") from None
    for folder in (origin, *origin.parents):
        if (folder / OPERATOR_LIST).is_file():
            return folder
    return Path(__file__).resolve().parent.parent


def find_project(start: Path | None = None) -> Project:
    return Project(find_root(start))
