"""What was measured, what was wanted, and the file that it is kept in. Needs neither torch nor a device."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1
"""Of the file's format."""


@dataclass(frozen=True)
class Group:
    """A kind of work and what is wanted of it."""

    name: str
    title: str
    target: float
    """Of `Figure.ratio`."""
    most: bool
    """Whether the ratio is of times and the target its upper bound; else it is of speeds and the target its lower."""

    def met(self, ratio: float) -> bool:
        return ratio <= self.target if self.most else ratio >= self.target

    def wanted(self) -> str:
        return f"{'≤' if self.most else '≥'} {self.target:.2f}"


GROUPS = {
    group.name: group
    for group in (
        Group("issue", "Time to issue a small operator", 1.15, True),
        # As fast means: no slower than such a measurement varies from one run to the next.
        Group("allocator", "Caching allocator", 1.05, True),
        Group("training", "Training step", 0.95, False),
        Group("matmul", "Matrix product", 0.98, False),
        Group("convolution", "Convolution", 0.98, False),
        Group("elementwise", "Elementwise kernels", 0.95, False),
        Group("reduction", "Reductions", 0.95, False),
        Group("softmax", "Softmax", 0.95, False),
        Group("layer_norm", "Layer norm", 0.95, False),
        Group("copy", "Copies and casts", 0.95, False),
        Group("index", "Indexing", 0.95, False),
        Group("sort", "Sorting", 0.95, False),
    )
}
"""In the order in which they are measured and shown. Targets are those of the project's plan."""

BANDWIDTH = ("elementwise", "reduction", "softmax", "layer_norm", "copy", "index", "sort")
"""Groups that are measured over sizes and shown as curves."""

PROFILERS_OWN = ("Activity Buffer Request",)
"""Names of what no case calls."""


@dataclass(frozen=True)
class Launched:
    """What one call made one device do, by the profiler."""

    kernels_us: float
    """Time in kernels of one call, microseconds."""
    kernels: list[tuple[str, float, float]]
    """(name, number in one call, microseconds in one call), longest first."""
    host: list[tuple[str, float, float]]
    """The same of operators and runtime calls: time on the CPU that is theirs alone. The profiler's own is in it."""


@dataclass(frozen=True)
class Figure:
    """One case on both devices. Seconds are of one call; None where `reason` says why there are none."""

    group: str
    name: str
    unit: str
    """us, ms, GB/s, TFLOP/s, images/s, tokens/s."""
    amount: float = 0.0
    """What one call does in the unit's numerator (bytes, operations, images); 0 for times."""
    elements: int | None = None
    musa_s: float | None = None
    native_s: float | None = None
    rounds: int = 0
    reason: str = ""
    """`failed: ...` or `not run: ...`."""
    note: str = ""
    date: str = ""
    where: dict[str, Launched] = field(default_factory=dict)
    """By device name; of figures that fall short."""

    @property
    def key(self) -> str:
        return f"{self.group}/{self.name}" + (f"/{self.elements}" if self.elements else "")

    @property
    def ratio(self) -> float | None:
        """musa's time over native's where times are bounded, else musa's speed over native's."""
        if not self.musa_s or not self.native_s:
            return None
        quotient = self.musa_s / self.native_s
        return quotient if GROUPS[self.group].most else 1 / quotient

    @property
    def state(self) -> str:
        """met, short, failed or not run."""
        if self.reason:
            return self.reason.split(":", 1)[0]
        ratio = self.ratio
        if ratio is None:
            return "failed"
        return "met" if GROUPS[self.group].met(ratio) else "short"

    def value(self, seconds: float | None) -> float | None:
        """Seconds of one call in the figure's unit."""
        if not seconds:
            return None
        if self.unit in _SCALE_OF_TIME:
            return seconds * _SCALE_OF_TIME[self.unit]
        return self.amount / seconds / _SCALE_OF_RATE[self.unit]


_SCALE_OF_TIME = {"us": 1e6, "ms": 1e3}
_SCALE_OF_RATE = {"GB/s": 1e9, "TFLOP/s": 1e12, "images/s": 1.0, "tokens/s": 1.0}


@dataclass(frozen=True)
class Machine:
    """Where the figures come from."""

    musa: str
    """What `musa` runs on: `cuda` (the target), or `host`."""
    native: str
    """The device compared with: cuda, or cpu."""
    device: str
    torch: str
    cuda: str
    driver: str
    cpu: str
    cores: int
    python: str


@dataclass(frozen=True)
class Run:
    machine: Machine
    figures: tuple[Figure, ...]

    @property
    def dates(self) -> tuple[str, str]:
        """First and last date of its figures (YYYY-MM-DD)."""
        dates = sorted(figure.date[:10] for figure in self.figures if figure.date)
        return (dates[0], dates[-1]) if dates else ("", "")


class Unreadable(Exception):
    """A file that is none of ours, or runs that do not belong together; the text says which and why."""


def save(run: Run, path: Path) -> None:
    """Writes the whole file or leaves what was there."""
    figures = [
        {**asdict(figure), "ratio": figure.ratio, "state": figure.state, "target": GROUPS[figure.group].wanted()}
        for figure in run.figures
    ]
    text = json.dumps({"version": VERSION, "machine": asdict(run.machine), "figures": figures}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)


def load(path: Path) -> Run:
    """Raises Unreadable."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("version") != VERSION:
            raise Unreadable(f"{path}: format {data.get('version')!r}, where this script reads {VERSION}: measure anew")
        return Run(Machine(**data["machine"]), tuple(figure_from(item) for item in data["figures"]))
    except Unreadable:
        raise
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{path}: no record of benchmarks/gpu.py: {error}") from error


def figure_from(item: dict[str, Any]) -> Figure:
    """A figure of what `save` or a worker wrote; what is computed from the rest is left out."""
    known = {name: item[name] for name in Figure.__dataclass_fields__ if name in item}
    where = {device: launched_from(launched) for device, launched in known.pop("where", {}).items()}
    figure = Figure(**known, where=where)
    if figure.group not in GROUPS or figure.unit not in {**_SCALE_OF_TIME, **_SCALE_OF_RATE}:
        raise ValueError(f"figure '{figure.key}' has an unknown group or unit")
    return figure


def launched_from(item: dict[str, Any]) -> Launched:
    return Launched(
        item["kernels_us"],
        [(str(n), float(c), float(t)) for n, c, t in item["kernels"]],
        [(str(n), float(c), float(t)) for n, c, t in item["host"]],
    )


def merged(runs: Sequence[Run], paths: Sequence[Path]) -> Run:
    """Runs of one machine as one: of a case measured twice the later counts. Raises Unreadable for two machines."""
    for run, path in zip(runs[1:], paths[1:], strict=True):
        for name, value in asdict(run.machine).items():
            if value != getattr(runs[0].machine, name):
                raise Unreadable(f"{path}: {name} is '{value}', in {paths[0]} '{getattr(runs[0].machine, name)}'")
    found: dict[str, Figure] = {}
    for run in runs:
        for figure in run.figures:
            before = found.get(figure.key)
            if before is None or before.state in ("failed", "not run") or figure.state not in ("failed", "not run"):
                found[figure.key] = figure
    return Run(runs[0].machine, tuple(in_order(found.values())))


def in_order(figures: Iterable[Figure]) -> list[Figure]:
    """By group; within a group as they came, sizes of one name together."""
    places = {name: place for place, name in enumerate(GROUPS)}
    names: dict[tuple[str, str], int] = {}
    listed = list(figures)
    for figure in listed:
        names.setdefault((figure.group, figure.name), len(names))
    return sorted(listed, key=lambda f: (places[f.group], names[f.group, f.name], f.elements or 0))
