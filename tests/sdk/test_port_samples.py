"""CUDA programs of various kinds, ported, compiled by the host's toolkit and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from opgen.cli import opgen

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests/port_samples"
REPORT = SAMPLES / "report.txt"
# The host's toolkit has no muBLAS, muFFT, muSOLVER, muSPARSE and MCCL.
NOT_COMPILED = {"gemm", "transform"}
NOT_PORTED = {"texture", "cooperative", "tuned"}
RUN = sorted({path.stem for path in SAMPLES.glob("*.cu")} - NOT_COMPILED - NOT_PORTED)
BUILD = Path(
    os.environ.get("TORCH_MUSA_BUILD_DIR", ROOT / "build" / f"host-torch{metadata.version('torch').split('+')[0]}")
)


@pytest.fixture(scope="module")
def ported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ported")
    CliRunner().invoke(opgen, ["port", str(SAMPLES), "--out", str(out)])
    return out


def test_the_report_of_all_samples(tmp_path: Path) -> None:
    """EXPECTTEST_ACCEPT=1 renews it: read what changed."""
    result = CliRunner().invoke(opgen, ["port", str(SAMPLES), "--out", str(tmp_path)])
    said = result.stderr.replace(f"{SAMPLES}/", "")
    if os.environ.get("EXPECTTEST_ACCEPT"):
        REPORT.write_text(said)
    assert said == REPORT.read_text()
    assert result.exit_code == 1


def test_what_ports_is_written_and_what_does_not_is_not(ported: Path) -> None:
    assert {path.stem for path in ported.glob("*.mu")} == {*RUN, *NOT_COMPILED}


@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++").split()[0]) is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", RUN)
def test_a_ported_sample_runs(ported: Path, tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    libraries = [f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib", "-lmusart", "-lmurand"]
    command = [sys.executable, ROOT / "sdk/host/mcc", "-O0", ported / f"{name}.mu", "-o", program, *libraries]
    subprocess.run(command, check=True)
    for architecture in ("mp_31", "mp_22"):
        for blocking in ("1", "0"):
            environment = {**os.environ, "MUSA_ARCH": architecture, "MUSA_LAUNCH_BLOCKING": blocking}
            done = subprocess.run([program], env=environment, capture_output=True, text=True)
            assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr
