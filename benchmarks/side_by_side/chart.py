"""A run as a picture: every ratio against its target, and bandwidth over size. SVG (or what the file's name says)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from side_by_side.record import BANDWIDTH, GROUPS, Figure, Run

# For readers of every colour vision (Okabe and Ito): blue, orange, grey.
_MET, _SHORT, _NATIVE = "#0072b2", "#d55e00", "#666666"
_COLUMNS = 4


def draw(run: Run, path: Path) -> None:
    """Byte-identical for equal runs and one release of matplotlib."""
    lines = [figure for figure in run.figures if figure.group not in BANDWIDTH]
    curves: dict[tuple[str, str], list[Figure]] = {}
    for figure in run.figures:
        if figure.group in BANDWIDTH:
            curves.setdefault((figure.group, figure.name), []).append(figure)
    rows = -(-len(curves) // _COLUMNS)
    settings = {
        "svg.hashsalt": "gpu",
        "svg.fonttype": "none",
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.axisbelow": True,
    }
    with matplotlib.rc_context(settings):
        heights = [0.22 * len(lines) + 0.9 if lines else 0.01, 1.55 * rows + 0.3 if rows else 0.01]
        canvas = Canvas(figsize=(10, sum(heights) + 0.5), layout="constrained")
        canvas.suptitle(
            f"musa (target {run.machine.musa}) beside {run.machine.native}: {run.machine.device}, {run.dates[1]}"
        )
        upper, lower = canvas.subfigures(2, 1, height_ratios=heights)
        if lines:
            _ratios(upper.subplots(), lines)
        if rows:
            grid = list(lower.subplots(rows, _COLUMNS, squeeze=False, sharex=True).flat)
            for axes, ((_, name), figures) in zip(grid, curves.items(), strict=False):
                _curve(axes, name, figures)
            for axes in grid[len(curves) :]:
                axes.axis("off")
            styles = ((_NATIVE, 2.5, run.machine.native), (_MET, 1, "musa (orange: falls short)"))
            keys = [Line2D([], [], color=colour, linewidth=width, label=label) for colour, width, label in styles]
            lower.legend(handles=keys, loc="outside upper right", ncols=2, frameon=False)
            lower.supxlabel("elements, as a power of two")
            lower.supylabel("GB/s")
        metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else None
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata=metadata)


def _ratios(axes: Any, figures: Sequence[Figure]) -> None:
    """A point for each case, a tick where its target is; times are inverted so that to the right is always faster."""
    for place, figure in enumerate(figures):
        group = GROUPS[figure.group]
        if figure.ratio is None:
            axes.text(1 / group.target if group.most else group.target, place, figure.state, va="center", color=_SHORT)
            continue
        speed, target = (1 / figure.ratio, 1 / group.target) if group.most else (figure.ratio, group.target)
        axes.plot([target, speed], [place, place], color="#cccccc", linewidth=1, zorder=1)
        axes.plot(target, place, "|", color=_NATIVE, markersize=9)
        axes.plot(speed, place, "o", color=_MET if figure.state == "met" else _SHORT, markersize=4)
    axes.set_yticks(range(len(figures)), [f"{figure.group}: {figure.name}" for figure in figures])
    axes.set_ylim(len(figures) - 0.5, -0.5)
    axes.axvline(1, color=_NATIVE, linewidth=0.8)
    axes.set_xlabel("speed of musa over native (point; orange falls short), and its target (tick)")
    axes.grid(axis="x", linewidth=0.3)


def _curve(axes: Any, name: str, figures: Sequence[Figure]) -> None:
    measured = [figure for figure in figures if figure.ratio is not None and figure.elements]
    axes.set_title(name)
    axes.grid(linewidth=0.3)
    if not measured:
        axes.text(0.5, 0.5, figures[0].state, ha="center", va="center", transform=axes.transAxes, color=_SHORT)
        return
    sizes = [figure.elements.bit_length() - 1 for figure in measured if figure.elements]
    axes.plot(sizes, [figure.value(figure.native_s) for figure in measured], color=_NATIVE, linewidth=2.5)
    axes.plot(sizes, [figure.value(figure.musa_s) for figure in measured], color=_MET, linewidth=1)
    short = [
        (size, figure.value(figure.musa_s))
        for size, figure in zip(sizes, measured, strict=True)
        if figure.state == "short"
    ]
    if short:
        axes.plot(*zip(*short, strict=True), "o", color=_SHORT, markersize=4)
    axes.set_ylim(bottom=0)
    axes.set_xticks(sizes)
