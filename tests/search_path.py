"""PYTHONPATH for the processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def with_path(*folders: Path | str, **variables: str) -> dict[str, str]:
    """This process' environment with `variables`, the tree and `folders` found first.

    What the caller's PYTHONPATH has stays: on a machine where nothing is installed (tests/gpu) it brings the packages.
    """
    path = [str(ROOT), *map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **variables}
