"""PyTorch's device headers, ported from the wheel that is installed.

The wheel (a CPU wheel, too) brings the headers that PyTorch's own CUDA kernels are written against: `gpu_kernel`,
`gpu_reduce_kernel`, `OffsetCalculator` ... They are ported on the user's machine, into a folder of the build, and
nothing of their text is kept in the project. What is decided about single places of them stands in
mappings/wheel.yaml.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from opgen.diagnostics import Location, OpgenError
from opgen.port.mapping import DEFAULT_TABLES, load_mapping
from opgen.port.rewrite import Options
from opgen.port.tree import Tree

DECISIONS = DEFAULT_TABLES / "wheel.yaml"


@dataclass(frozen=True)
class HeaderEdit:
    """A place in some headers, and what to write there."""

    headers: tuple[str, ...]
    find: re.Pattern[str]
    put: str
    why: str

    def apply(self, text: str) -> str:
        """The text with all such places replaced; every line keeps its number."""
        return self.find.sub(lambda match: self.put + "\n" * match[0].count("\n"), text)


@dataclass(frozen=True)
class Decisions:
    """What mappings/wheel.yaml says."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    edits: tuple[HeaderEdit, ...]
    left_out: tuple[tuple[str, str], ...]
    """Patterns for headers, each with the reason."""

    def reason(self, header: str) -> str | None:
        """Why this header (a path as in an include) is not ported; None for one that is."""
        return next((why for pattern, why in self.left_out if fnmatchcase(header, pattern)), None)

    def prepare(self, header: str, text: str) -> str:
        """A header's text with the decisions about it carried out."""
        for edit in self.edits:
            if any(fnmatchcase(header, pattern) for pattern in edit.headers):
                text = edit.apply(text)
        return text


@lru_cache(maxsize=2)
def read_decisions(path: Path = DECISIONS) -> Decisions:
    """Raises OpgenError where the file is not what it should be."""
    try:
        table: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Decisions(
            folders=tuple(table["folders"]),
            files=tuple(table["files"]),
            edits=tuple(
                HeaderEdit(tuple(row["headers"]), re.compile(row["find"], re.DOTALL), row["put"], row["why"])
                for row in table["edits"]
            ),
            left_out=tuple((header, row["why"]) for row in table["left_out"] for header in row["headers"]),
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, re.error) as error:
        raise OpgenError(f"cannot read the decisions about PyTorch's headers: {error}", Location(str(path))) from error


def include_dir(torch_dir: Path) -> Path:
    """Where a `torch` package has its headers. Raises OpgenError where it has none of the device's."""
    folder = torch_dir / "include"
    if not any((folder / name).is_dir() for name in read_decisions().folders):
        message = "this PyTorch brings no device headers (ATen/cuda, ATen/native/cuda, c10/cuda)"
        raise OpgenError(message, Location(str(folder)), "install an official wheel of PyTorch 2.9 to 2.15")
    return folder


def installed_torch() -> Path:
    """The folder of the `torch` package that this Python would import; it is not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise OpgenError(
            "PyTorch is not installed here", hint="pip install torch, or name the folder of a torch package"
        )
    return Path(spec.submodule_search_locations[0])


def headers_tree(
    include: Path, out: Path, *, own: Iterable[Path] = (), options: Options | None = None, write: bool = True
) -> Tree:
    """The port of the device headers below `include` to the same places below `out`. Ports of earlier runs that have no
    source any more are removed.

    Args:
        own: folders with headers that stand in for ported ones: those of the same (ported) path are not ported.
    """
    decisions, mapping = read_decisions(), load_mapping()
    by_hand = tuple(own)
    return Tree(
        include,
        out,
        mapping=mapping,
        options=options,
        only=tuple(place for place in (*decisions.folders, *decisions.files) if (include / place).exists()),
        wanted=lambda header: _reason(header, by_hand) is None,
        prepare=decisions.prepare,
        clean=True,
        write=write,
    )


def left_out(include: Path, own: Iterable[Path] = ()) -> tuple[tuple[str, str], ...]:
    """The device headers below `include` that are not ported, each with the reason; in order."""
    by_hand = tuple(own)
    paths = sorted(path for folder in read_decisions().folders for path in (include / folder).rglob("*.*h"))
    headers = [path.relative_to(include).as_posix() for path in paths]
    reasons = ((header, _reason(header, by_hand)) for header in headers)
    return tuple((header, reason) for header, reason in reasons if reason is not None)


def _reason(header: str, own: Iterable[Path]) -> str | None:
    """Why this header is not ported; None for one that is."""
    ported = load_mapping().include(header)
    if any((place / ported).is_file() for place in own):
        return "one of the backend's own stands in for it"
    return read_decisions().reason(header)
