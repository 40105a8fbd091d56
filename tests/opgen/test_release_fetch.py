"""Finding another PyTorch: fetched with pip, in a folder, or from a wheel. No test here uses a network."""

from __future__ import annotations

import errno
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from opgen.diagnostics import OpgenError
from opgen.releases import wheel
from opgen.releases.locate import cached_releases, find_release
from opgen.releases.wheel import explain, extract
from opgen.upstream import find_torch, import_torchgen, install_at

NATIVE = "torchgen/packaged/ATen/native/native_functions.yaml"


def silent(what: str, done: int, total: int) -> None:
    """Nobody is told."""


def make_wheel(folder: Path, version: str = "2.15.0", *, without: str = "", big: bool = False) -> Path:
    """A wheel as PyTorch's are built, only smaller."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torch-{version}-py3-none-any.whl"
    files = {
        "torch/version.py": f"__version__ = '{version}'\n",
        "torch/__init__.py": "raise ImportError\n",
        "torch/include/ATen/native/Some.h": "// a header\n" * (20000 if big else 1),
        "torch/lib/libtorch_cpu.so": "not kept",
        "torchgen/__init__.py": "",
        "torchgen/model.py": "",
        NATIVE: "- func: fade(Tensor self) -> Tensor\n",
        f"torch-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"torch-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"torch-{version}.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            if name != without:
                archive.writestr(name, text)
    return path


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """pip sees the wheels in the folder returned, and nothing else."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    return folder


def files_below(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_a_version_is_fetched_once_and_only_its_headers_and_torchgen_stay(offline, tmp_path, monkeypatch):
    make_wheel(offline, "2.15.0+cpu")
    cache = tmp_path / "cache"
    install = find_release("2.15.0", cache, silent)
    assert (install.version, install.release, install.torch) == ("2.15.0+cpu", "2.15.0", cache / "2.15.0" / "torch")
    assert files_below(cache) == [
        ".lock",
        "2.15.0/torch/include/ATen/native/Some.h",
        "2.15.0/torch/version.py",
        "2.15.0/torchgen/__init__.py",
        "2.15.0/torchgen/model.py",
        f"2.15.0/{NATIVE}",
    ]
    monkeypatch.setattr(wheel, "download", None)  # would be called for a second fetch
    assert find_release("2.15.0", cache, silent) == install


def test_a_minor_version_means_its_newest_patch(offline, tmp_path):
    for version in ("2.14.0", "2.14.1", "2.15.0"):
        make_wheel(offline, version)
    assert find_release("2.14", tmp_path / "cache", silent).version == "2.14.1"
    assert [install.version for install in cached_releases(tmp_path / "cache")] == ["2.14.1"]


@pytest.mark.parametrize("version", ["2.16.0rc1", "2.16.0.dev20261130+cpu"])
def test_a_candidate_or_a_nightly_can_be_named(version, offline, tmp_path):
    make_wheel(offline, version)
    make_wheel(offline, "2.15.0")
    install = find_release(version.partition("+")[0], tmp_path / "cache", silent)
    assert install.version == version
    assert cached_releases(tmp_path / "cache") == (install,)


def test_the_installed_release_is_taken_where_it_stands(tmp_path):
    install = find_torch()
    assert find_release("installed", tmp_path, silent) == install
    assert find_release(install.release, tmp_path / "none", silent) == install
    assert not (tmp_path / "none").exists()


def test_an_unknown_version_names_those_that_exist(offline, tmp_path):
    for version in ("2.14.1", "2.15.0", "2.16.0rc1"):
        make_wheel(offline, version)
    with pytest.raises(OpgenError) as error:
        find_release("2.99.0", tmp_path / "cache", silent)
    assert error.value.message == "there is no torch 2.99.0"
    assert error.value.hint == "the package index has 2.15.0, 2.14.1"
    assert files_below(tmp_path / "cache") == [".lock"]


def test_without_an_index_the_reason_is_said(offline, tmp_path):
    with pytest.raises(OpgenError, match="no package index of pip's can be reached"):
        find_release("2.15.0", tmp_path / "cache", silent)


def test_a_constraints_file_is_named_as_the_reason(offline, tmp_path, monkeypatch):
    make_wheel(offline, "2.15.0")
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("torch<=2.14.1\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(constraints))
    with pytest.raises(OpgenError, match=r"not to go beyond torch<=2\.14\.1") as error:
        find_release("2.15.0", tmp_path / "cache", silent)
    assert "PIP_CONSTRAINT=/dev/null" in str(error.value.hint)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("/usr/bin/python3: No module named pip\n", "pip is needed"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", "disk is full"),
        ("WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'\n", "cannot fetch"),
        ("ERROR: HTTP error 403 while getting https://example.org/torch.whl\n", "HTTP error 403"),
        ("", "it said nothing"),
    ],
)
def test_what_pip_says_is_explained(said, message):
    assert message in explain("2.15.0", said).message


def test_a_damaged_wheel_leaves_nothing_behind(tmp_path):
    path = make_wheel(tmp_path / "wheels", big=True)
    data = bytearray(path.read_bytes())
    middle = data.index(b"// a header") + 1000
    data[middle : middle + 10] = b"\0" * 10
    path.write_bytes(data)
    with pytest.raises(OpgenError, match="the wheel is damaged"):
        find_release(str(path), tmp_path / "cache", silent)
    path.write_bytes(data[:1000])
    with pytest.raises(OpgenError, match="the wheel is damaged"):
        find_release(str(path), tmp_path / "cache", silent)
    assert files_below(tmp_path / "cache") == [".lock"]


def test_another_projects_wheel_is_refused(tmp_path):
    path = make_wheel(tmp_path / "wheels", without=NATIVE)
    with pytest.raises(OpgenError, match="no wheel of PyTorch"):
        find_release(str(path), tmp_path / "cache", silent)


def test_names_that_leave_the_folder_are_not_unpacked(tmp_path):
    path = make_wheel(tmp_path / "wheels")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("torch/include/../../../escaped.h", "")
    extract(path, tmp_path / "out" / "deep", silent)
    assert not list(tmp_path.rglob("escaped.h"))


def test_a_full_disk_is_said_and_the_old_state_stays(tmp_path, monkeypatch):
    path = make_wheel(tmp_path / "wheels")
    before = find_release(str(path), tmp_path / "cache", silent)

    def full(self, name, folder):
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(zipfile.ZipFile, "extract", full)
    with pytest.raises(OpgenError, match="the disk is full") as error:
        find_release(str(path), tmp_path / "cache", silent)
    assert "--cache" in str(error.value.hint)
    assert cached_releases(tmp_path / "cache") == (before,)
    assert not list((tmp_path / "cache").glob(".staging-*"))


def test_what_a_killed_run_left_is_removed(offline, tmp_path):
    left = tmp_path / "cache" / ".staging-old"
    left.mkdir(parents=True)
    (left / "torch-2.15.0.whl").write_bytes(b"half")
    make_wheel(offline)
    find_release("2.15.0", tmp_path / "cache", silent)
    assert not left.exists()


def test_a_folder_may_be_site_packages_a_package_or_an_environment(tmp_path):
    site = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    extract(make_wheel(tmp_path), site, silent)
    expected = install_at(site)
    for folder in (site, tmp_path / "env"):
        assert find_release(str(folder), tmp_path / "cache", silent) == expected
    assert find_release(str(site / "torch"), tmp_path / "cache", silent).torch.resolve() == expected.torch.resolve()
    with pytest.raises(OpgenError, match="no PyTorch in this folder"):
        find_release(str(tmp_path), tmp_path / "cache", silent)


@pytest.mark.parametrize("text", ["latest", "2", "torch==2.15.0", "2.15.0.1", "no/such/folder", ""])
def test_what_names_nothing_is_refused_without_asking_pip(text, tmp_path, monkeypatch):
    monkeypatch.setattr(wheel, "download", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OpgenError, match="neither a folder nor a version"):
        find_release(text, tmp_path / "cache", silent)


def test_progress_is_told_in_parts(tmp_path):
    told: list[tuple[str, int, int]] = []
    extract(make_wheel(tmp_path), tmp_path / "out", lambda *step: told.append(step))
    assert told and all(0 <= done < total for _, done, total in told)


def test_two_runs_at_once_fetch_once(offline, tmp_path):
    make_wheel(offline)
    script = (
        "from pathlib import Path; import sys\n"
        "from opgen.releases.locate import find_release\n"
        "print(find_release('2.15.0', Path(sys.argv[1]), lambda what, done, total: print(what, file=sys.stderr)).torch)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "cache")]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [run.communicate(timeout=120) for run in runs]
    assert {run.returncode for run in runs} == {0}, outputs
    assert len({stdout for stdout, _ in outputs}) == 1
    assert sum("unpacking" in stderr for _, stderr in outputs) == 1


def test_a_process_takes_one_torchgen_only(tmp_path):
    import_torchgen(find_torch())
    other = tmp_path / "other"
    extract(make_wheel(tmp_path), other, silent)
    with pytest.raises(OpgenError, match="needs its own torchgen"):
        import_torchgen(install_at(other))


def test_a_constraint_that_allows_the_version_is_not_the_reason():
    said = "ERROR: the user requested (constraint) torch<=2.14.1 (from versions: 2.13.0, 2.14.1)"
    assert "no torch 2.12.9" in explain("2.12.9", said).message
    assert "not to go beyond torch<=2.14.1" in explain("2.15.0", said).message


@pytest.mark.parametrize("version", ["1.0", "2.8", "2.8.1+cpu"])
def test_a_release_before_the_supported_ones_is_refused_before_anything_is_fetched(version, tmp_path, monkeypatch):
    monkeypatch.setattr(wheel, "fetch", lambda *_: pytest.fail("fetched"), raising=False)
    with pytest.raises(OpgenError, match=r"older than any"):
        find_release(version, tmp_path / "cache", silent)
