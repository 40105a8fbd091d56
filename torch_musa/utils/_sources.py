"""Sources in CUDA's dialect (`.cu`) are ported on the way to the compiler."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opgen.diagnostics import Severity
from opgen.port import FileReport, port_tree
from opgen.port.files import State
from torch_musa.utils._compilation import BuildFailed


@dataclass(frozen=True)
class Sources:
    """What to compile, and where headers are."""

    files: tuple[Path, ...]
    include_dirs: tuple[Path, ...]


def ported(files: Sequence[Path], include_dirs: Sequence[Path], out: Path) -> Sources:
    """The sources with each `.cu` replaced by its port, below `out`.

    The folder of each `.cu` is ported whole, and so is each folder of headers that holds a `.cuh`; both are looked at
    before the folders given. Raises BuildFailed with the report where one of the sources cannot be ported.
    """
    cuda = [path for path in files if path.suffix == ".cu"]
    if not cuda:
        return Sources(tuple(files), tuple(include_dirs))
    folders = list(dict.fromkeys(path.parent.resolve() for path in cuda))
    folders += [path.resolve() for path in include_dirs if any(path.rglob("*.cuh")) and path.resolve() not in folders]
    places = {folder: out / f"{number}-{folder.name}" for number, folder in enumerate(folders)}
    reports: dict[Path, FileReport] = {}
    for folder, place in places.items():
        for report in port_tree(folder, place, ignore=[out]).files:
            reports[report.source.resolve()] = report
    found = []
    for path in files:
        report = reports.get(path.resolve()) if path.suffix == ".cu" else None
        found.append(report.target if report is not None else path)
    _tell(reports, {path.resolve() for path in cuda})
    return Sources(tuple(found), (*places.values(), *include_dirs))


def _tell(reports: dict[Path, FileReport], wanted: set[Path]) -> None:
    """A source that cannot be ported ends the build; a header that cannot may not be needed."""
    broken = [report for source, report in reports.items() if source in wanted and report.state is State.FAILED]
    for report in reports.values():
        for problem in report.problems:
            if report not in broken and (problem.severity is Severity.ERROR or report.source in wanted):
                print(problem, file=sys.stderr)
    if broken:
        text = "\n".join(str(problem) for report in broken for problem in report.problems)
        names = ", ".join(report.source.name for report in broken)
        raise BuildFailed(f"{text}\n{names} cannot be ported to MUSA: write a rule (SimplePorting), or a .mu by hand")
