"""Sources in CUDA's dialect (`.cu`) are ported on the way to the compiler."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opgen.diagnostics import Severity
from opgen.port import FileReport, Tree, run
from opgen.port.files import State
from torch_musa.utils._compilation import BuildFailed
from torch_musa.utils._includes import included

_CUDA = re.compile(rb"cuda|cublas|curand|cufft|cusolver|cusparse|nccl", re.IGNORECASE)
_BY_HAND = {".cu": ".mu", ".cuh": ".muh"}


@dataclass(frozen=True)
class Sources:
    """What to compile, and where headers are."""

    files: tuple[Path, ...]
    include_dirs: tuple[Path, ...]


def ported(files: Sequence[Path], include_dirs: Sequence[Path], out: Path) -> Sources:
    """The sources with each `.cu` replaced by its port, below `out`.

    Ported with it is what it includes of its own folder, and of each folder of headers from which it includes one that
    speaks of CUDA; both ports are looked at before the folders given. Raises BuildFailed with the report where one of
    the sources cannot be ported.
    """
    cuda = [path.resolve() for path in files if path.suffix == ".cu"]
    if not cuda:
        return Sources(tuple(files), tuple(include_dirs))
    headers = [path.resolve() for path in included(cuda, include_dirs)]
    folders = list(dict.fromkeys(path.parent for path in cuda))
    for folder in (path.resolve() for path in include_dirs):
        if folder not in folders and any(_of_cuda(h) for h in headers if h.is_relative_to(folder)):
            folders.append(folder)
    places = {folder: out / f"{number}-{folder.name}" for number, folder in enumerate(folders)}
    reports: dict[Path, FileReport] = {}
    for folder, place in places.items():
        inside = [path for path in (*cuda, *headers) if path.is_relative_to(folder) and not path.is_relative_to(out)]
        # A .mu written by hand beside one of them is taken in its place.
        twins = [path.with_suffix(new) for path in inside if (new := _BY_HAND.get(path.suffix))]
        only = dict.fromkeys(path.relative_to(folder).as_posix() for path in (*inside, *filter(Path.is_file, twins)))
        for report in run(Tree(folder, place, only=tuple(sorted(only)), overwrite=True, clean=True)).files:
            reports[report.source.resolve()] = report
    found = []
    for path in files:
        report = reports.get(path.resolve()) if path.suffix == ".cu" else None
        found.append(report.target if report is not None else path)
    _tell(reports, set(cuda))
    return Sources(tuple(found), (*places.values(), *include_dirs))


def _of_cuda(header: Path) -> bool:
    return header.suffix == ".cuh" or _CUDA.search(header.read_bytes()) is not None


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
