"""What cannot be written to standard output is an exit status and one line, for every verb; a reader that has seen
enough is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opgen.cli import main
from opgen.project import find_root

OPGEN = f"{sys.executable} -m opgen.cli"
PRINTING = ("list", "coverage", "coverage --csv -", "coverage lerp --format json", "explain lerp.Scalar", "check")
PRINTING += ("completion bash", "--help", "coverage --help", "--version", "diff --help")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], cwd=find_root(), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("verb", PRINTING)
def test_a_write_that_fails_is_one_line_and_no_success(verb: str) -> None:
    for target, why in ((">&-", "standard output is closed"), ("> /dev/full", "No space left on device")):
        done = shell(f"{OPGEN} {verb} {target}")
        assert done.returncode == 1 and done.stderr.splitlines() == [f"opgen: error: {why}"], (target, done)


@pytest.mark.parametrize("verb", ["list", "coverage --csv -", "--help"])
def test_a_reader_that_goes_is_no_line_at_all(verb: str) -> None:
    done = shell(f"{OPGEN} {verb} | head -c 1 > /dev/null")
    assert (done.returncode, done.stderr) == (0, "")


def test_files_are_written_whole_where_nothing_has_to_be_printed(tmp_path: Path) -> None:
    """What a verb opens later must not become its standard output."""
    done = shell(f"{OPGEN} gen --force --out {tmp_path / 'generated'} >&-")
    assert done.stderr.splitlines()[-1] == "opgen: error: standard output is closed" and done.returncode == 1
    assert all("registrations;" not in path.read_text() for path in tmp_path.rglob("*.cpp"))


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
def test_a_time_that_never_comes_is_a_usage_error(seconds: str, capfd: pytest.CaptureFixture[str]) -> None:
    for verb in ("test", "truth"):
        with pytest.raises(SystemExit) as stopped:
            main([verb, "neg", "--timeout", seconds, "--no-build"])
        assert stopped.value.code == 2 and "--timeout" in capfd.readouterr().err
