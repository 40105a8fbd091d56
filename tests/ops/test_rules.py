"""The generator's rules at run time: the operator list of tests/rules, compiled into a library of its own.

What the project's own list has an example of is tested on that; docs/rules.md says which test holds which rule.
"""

from __future__ import annotations

import ast
import fcntl
import json
import subprocess
import sys
from pathlib import Path

import pytest
from extra_library import compile_library, generate

RULES = Path(__file__).resolve().parents[1] / "rules"
CHECKS = [
    node.name.removeprefix("check_")
    for node in ast.parse((RULES / "checks.py").read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory, device: str) -> dict[str, str]:
    """How every check ended. Compiled and run once, by the first of the test processes that needs it."""
    if device != "musa":
        pytest.skip("the rules are about kernels for musa")
    import torch

    from torch_musa._build import find

    build = find(torch.__version__)
    assert build is not None
    folder = tmp_path_factory.getbasetemp().parent / "opgen-rules"
    folder.mkdir(exist_ok=True)
    report = folder / f"results-{torch.__version__}.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not report.exists() or report.stat().st_mtime < _newest(build.folder):
            _, unit = generate((RULES / "operators.yaml").read_text(encoding="utf-8"), RULES, folder)
            compile_library(unit, folder / "librules.so", build.folder)
            command = [sys.executable, str(RULES / "checks.py"), str(folder / "librules.so")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            report.write_text(done.stdout.splitlines()[-1], encoding="utf-8")
    found = json.loads(report.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def _newest(build: Path) -> float:
    return max(path.stat().st_mtime for path in (*RULES.rglob("*.*"), *(build / "lib").iterdir()))


@pytest.mark.build
@pytest.mark.parametrize("check", CHECKS)
def test_rule_holds_at_run_time(check: str, results: dict[str, str]) -> None:
    # The checks ran in a process of their own: they say what a marker would say here.
    if results[check].startswith("skipped: "):
        pytest.skip(results[check].removeprefix("skipped: "))
    assert results[check] == "", results[check]
