"""The table and the plot of what benchmarks/gpu.py has measured, on any machine; needs no torch.

    python benchmarks/gpu_report.py run.json                      # prints the table
    python benchmarks/gpu_report.py run.json --plot run.svg       # needs matplotlib: pip install -e '.[bench]'
    python benchmarks/gpu_report.py run.json more.json --keep     # renews docs/gpu_benchmarks.md and its plot

Several files are parts of one run (of `--only`), from one machine; of a case measured twice the later file counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from side_by_side.record import Run, Unreadable, load, merged, save
from side_by_side.report import in_page, plot, table

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, KEPT, PICTURE = "gpu_benchmarks.md", "gpu_benchmarks.json", "images/gpu_benchmarks.svg"


def kept(docs: Path) -> Run | None:
    """The run that the page shows. Raises Unreadable."""
    return load(docs / KEPT) if (docs / KEPT).exists() else None


def keep(run: Run, docs: Path) -> None:
    """Writes page, figures and plot. Raises ValueError for a page without marks, ImportError without matplotlib."""
    page = in_page((docs / PAGE).read_text(encoding="utf-8"), run, PICTURE)
    plot(run, docs / PICTURE)
    save(run, docs / KEPT)
    (docs / PAGE).write_text(page, encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN.json")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save the plot (SVG, PNG, PDF)")
    parser.add_argument("--keep", action="store_true", help="make this the run that docs/ keep")
    parser.add_argument("--docs", type=Path, default=DOCS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    try:
        run = merged([load(path) for path in arguments.runs], arguments.runs)
        if arguments.keep and run.machine.native != "cuda":
            raise Unreadable(
                f"{arguments.runs[0]}: a trial on the host ({run.machine.native}); docs keep runs on a GPU"
            )
        if arguments.plot:
            plot(run, arguments.plot)
        if arguments.keep:
            keep(run, arguments.docs)
    except (Unreadable, ValueError) as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except ImportError as error:
        sys.exit(f"the plot needs matplotlib ({error}): pip install -e '.[bench]'")
    print(table(run), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
