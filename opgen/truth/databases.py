"""Asks tests/judge, PyTorch's own databases on the device, about one operator."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opgen.truth.judging import sentence
from opgen.truth.pool import environment

__all__ = ["Answer", "asked", "read_report"]


@dataclass(frozen=True)
class Answer:
    """What the databases have shown of an operator."""

    passed: int
    skipped: int
    """Questions that do not apply, dtypes that the device lacks, faults that are known."""
    failures: tuple[tuple[str, str], ...]
    """Test and message."""

    @property
    def summary(self) -> str:
        """One line."""
        if not self.passed and not self.skipped and not self.failures:
            return "PyTorch's own databases have no entry for it"
        counts = f"{self.passed} passed, {self.skipped} skipped, {len(self.failures)} failed"
        return f"PyTorch's own databases: {counts}"


class Pending:
    """A run that has been started."""

    def __init__(self, process: subprocess.Popen[str], report: Path) -> None:
        self._process = process
        self._report = report

    def answer(self) -> Answer:
        """Waits for it."""
        said, _ = self._process.communicate()
        try:
            return read_report(self._report.read_text(encoding="utf-8"))
        except (OSError, ET.ParseError):
            last = said.strip().splitlines()[-1] if said.strip() else "it says nothing"
            return Answer(0, 0, (("tests/judge", f"ended with status {self._process.returncode}: {sentence(last)}"),))


@contextmanager
def asked(root: Path, op: str) -> Iterator[Pending | None]:
    """Asks while other things go on; None where the project has no such tests, or pytest is not installed."""
    folder = root / "tests" / "judge"
    if not folder.is_dir() or importlib.util.find_spec("pytest") is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder), "--op", op]
        process = subprocess.Popen(
            [*command, f"--junitxml={report}"],
            cwd=root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield Pending(process, report)
        finally:
            process.kill()
            process.wait()


def read_report(text: str) -> Answer:
    """Counts the tests of the databases in a JUnit report; others (of the judge itself) are left out."""
    passed, skipped, failures = 0, 0, []
    for case in ET.fromstring(text).iter("testcase"):
        if "_db" not in case.get("classname", ""):
            continue
        found = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        if found is None:
            passed += 1
        elif found.tag == "skipped":
            skipped += 1
        else:
            failures.append((case.get("name", ""), sentence(found.get("message") or found.text or "")))
    return Answer(passed, skipped, tuple(failures))
