"""A run as a table (Markdown), as the page in docs/, and as a plot. Needs no torch; the plot needs matplotlib."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from side_by_side.record import BANDWIDTH, GROUPS, PROFILERS_OWN, Figure, Group, Launched, Machine, Run

BEGIN, END = "<!-- figures: written by benchmarks/gpu_report.py -->", "<!-- /figures -->"
NO_RUN = "No run on a GPU is kept yet."


def plot(run: Run, path: Path) -> None:
    """Raises ImportError without matplotlib."""
    from side_by_side.chart import draw

    draw(run, path)


def shown(figure: Figure) -> str:
    """One figure in a line."""
    if figure.ratio is None:
        return figure.reason or "failed: no time was taken"
    pair = " against ".join(_number(figure.value(seconds)) for seconds in (figure.musa_s, figure.native_s))
    note = f" ({figure.note})" if figure.note else ""
    return (
        f"{pair} {figure.unit}, ratio {figure.ratio:.3f}, wanted {GROUPS[figure.group].wanted()}: {figure.state}{note}"
    )


def table(run: Run) -> str:
    """The whole of a run; ends in a line's end."""
    parts = [measured_on(run), *summary(run)]
    for group in GROUPS.values():
        figures = [figure for figure in run.figures if figure.group == group.name]
        if figures:
            parts.append(f"### {group.title}")
            parts.append(
                _sizes(figures, run.machine) if group.name in BANDWIDTH else _lines(figures, group, run.machine)
            )
    parts += _explanations(run)
    parts += _unmeasured(run)
    return "\n\n".join(parts) + "\n"


def measured_on(run: Run) -> str:
    machine, (first, last) = run.machine, run.dates
    when = first if first == last else f"{first} to {last}"
    cuda = f", CUDA {machine.cuda}" if machine.cuda else ""
    driver = f", driver {machine.driver}" if machine.driver else ""
    return (
        f"Measured on {when}, {machine.device}, torch {machine.torch}{cuda}{driver}, Python {machine.python}, "
        f"{machine.cores} cores of {machine.cpu}: `musa` on target {machine.musa} beside `{machine.native}`."
    )


def summary(run: Run) -> Iterator[str]:
    rows = []
    for group in GROUPS.values():
        figures = [figure for figure in run.figures if figure.group == group.name]
        ratios = sorted((f.ratio for f in figures if f.ratio is not None), reverse=not group.most)
        if not figures:
            continue
        met = sum(figure.state == "met" for figure in figures)
        middle, worst = (f"{statistics.median(ratios):.3f}", f"{ratios[-1]:.3f}") if ratios else ("", "")
        what = "times" if group.most else "speeds"
        rows.append((group.title, what, group.wanted(), f"{met} of {len(figures)}", middle, worst))
    yield _markdown(("", "ratio of", "wanted", "met", "middle", "worst"), rows)


def _lines(figures: Sequence[Figure], group: Group, machine: Machine) -> str:
    rows = []
    for figure in figures:
        values = [_number(figure.value(seconds)) for seconds in (figure.musa_s, figure.native_s)]
        ratio = "" if figure.ratio is None else f"{figure.ratio:.3f}"
        state = f"**{figure.state}**" if figure.state != "met" else figure.state
        rows.append((_escaped(figure.name), *values, figure.unit, ratio, group.wanted(), state, _escaped(figure.note)))
    return _markdown(("", "`musa`", f"`{machine.native}`", "unit", "ratio", "wanted", "", "note"), rows)


def _sizes(figures: Sequence[Figure], machine: Machine) -> str:
    sizes = sorted({figure.elements for figure in figures if figure.elements})
    rows = []
    for name in dict.fromkeys(figure.name for figure in figures):
        of = {figure.elements: figure for figure in figures if figure.name == name}
        notes = dict.fromkeys(figure.note for figure in of.values() if figure.note)
        rows.append((_escaped(name), *(_cell(of.get(size)) for size in sizes), _escaped("; ".join(notes))))
    columns = ("", *(f"2^{size.bit_length() - 1}" for size in sizes), "note")
    says = f"Ratio of bandwidths; in brackets those of `musa` and `{machine.native}` in GB/s. Bold is below the target."
    return says + "\n\n" + _markdown(columns, rows)


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    if figure.ratio is None:
        return f"**{figure.state}**"
    ratio = f"{figure.ratio:.3f}" if figure.state == "met" else f"**{figure.ratio:.3f}**"
    values = ", ".join(_number(figure.value(seconds)) for seconds in (figure.musa_s, figure.native_s))
    return f"{ratio} ({values})"


def _explanations(run: Run) -> Iterator[str]:
    short = [figure for figure in run.figures if figure.state == "short" and figure.where]
    if not short:
        return
    yield "### Where the time goes"
    yield (
        "Of figures that fall short: one call by the profiler, which makes the host slower than it is. Kernels with "
        "their number and their time in it."
    )
    lines = []
    for figure in short:
        seen = {device: _seen(launched, figure.group not in BANDWIDTH) for device, launched in figure.where.items()}
        parts = [f"{device} {what}" for device, what in seen.items() if what]
        if parts:
            lines.append(f"- {figure.name}{_size(figure)}, ratio {figure.ratio or 0:.3f}: {'. '.join(parts)}.")
    yield "\n".join(map(_escaped, lines))


def _seen(launched: Launched, host: bool) -> str:
    """Kernels, where any were seen, and what was on the CPU, where that is asked for."""
    kernels = "; ".join(_part(*each) for each in launched.kernels[:3])
    own = [each for each in launched.host if host and each[0] not in PROFILERS_OWN]
    calls = "; ".join(_part(*each) for each in own[:4])
    parts = [f"{_number(launched.kernels_us)} us in kernels ({kernels})"] if kernels else []
    return "; ".join([*parts, f"on the CPU {calls}"] if calls else parts)


def _part(name: str, count: float, us: float) -> str:
    return f"`{_short(name)}` {count:.3g} × {us / count if count else us:.3g} us"


def _short(name: str, width: int = 70) -> str:
    """A kernel's name without its result type, its parameters and what stands in innermost brackets over that width."""
    name = re.sub(r"^void |\(anonymous namespace\)::|<unnamed>::", "", name)
    while len(name) > width:
        shorter = re.sub(r"<[^<>]+>", "", name, count=1)
        if shorter == name:
            shorter = re.sub(r"\([^()]*\)", "", name, count=1)
        if shorter == name:
            return name[: width - 1] + "…"
        name = shorter
    return name


def _unmeasured(run: Run) -> Iterator[str]:
    missing: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in run.figures:
        if figure.ratio is None:
            reason = figure.reason or "failed: no time was taken"
            missing.setdefault((figure.group, figure.name, reason), []).append(figure)
    if not missing:
        return
    yield "### Not measured"
    lines = []
    for (group, name, reason), figures in missing.items():
        sizes = ", ".join(f"2^{figure.elements.bit_length() - 1}" for figure in figures if figure.elements)
        lines.append(_escaped(f"- {group}: {name}{f' ({sizes})' if sizes else ''}: {reason}"))
    yield "\n".join(lines)


def _size(figure: Figure) -> str:
    return f", 2^{figure.elements.bit_length() - 1}" if figure.elements else ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def in_page(page: str, run: Run | None, picture: str) -> str:
    """The page with its part between the two marks renewed. Raises ValueError where it has no such marks."""
    head, found, rest = page.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the page has no '{BEGIN}' ... '{END}'")
    if run is None:
        text = f"{NO_RUN}\n"
    else:
        text = f"![Ratios and bandwidths of musa and {run.machine.native}]({picture})\n\n{table(run)}"
    return f"{head}{BEGIN}\n\n{text}\n{END}{tail}"
