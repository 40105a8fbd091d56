"""Sources of a small project, to see what a change of them touches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from opgen.project import find_root

_SHIPPED = ("yaml", "kernels", "sdk", "torch_musa/csrc", "opgen/port", "cmake")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources that digests look at, somewhere else, with other times. Whoever changes it puts it back."""
    root = tmp_path_factory.mktemp("sources") / "elsewhere"
    for name in _SHIPPED:
        shutil.copytree(find_root() / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CMakeLists.txt", "tests/ops/tested_elsewhere.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(find_root() / name, root / name)
    return root
