"""Gets the wheel of a PyTorch release with pip and keeps of it what opgen reads: torchgen and the headers.

pip is asked, and not an index directly, because only pip knows the user's configuration: indexes, credentials,
certificates, folders with wheels. It cannot fetch parts of a file, so the whole wheel comes and is deleted again.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from opgen.diagnostics import Location, OpgenError

__all__ = ["Progress", "download", "explain", "extract"]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: unknown)."""

_WANTED = ("torchgen/", "torch/include/", "torch/version.py")
_NEEDED = ("torch/version.py", "torchgen/model.py", "torchgen/packaged/ATen/native/native_functions.yaml")
_SIZE = re.compile(r"Downloading .*\((?P<number>[\d.]+) (?P<unit>kB|MB|GB)\)")
_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
# torchgen and the headers are the same in the wheels for every Python, so another one's will do.
_OTHER_PYTHONS = ("3.12", "3.14")


def download(version: str, folder: Path, progress: Progress) -> Path:
    """The wheel of `version` (a release, or a prefix such as `2.14.*`) in `folder`.

    Raises OpgenError where no index has it, none can be reached, or it cannot be written.
    """
    said = ""
    for python in (None, *_OTHER_PYTHONS):
        code, text = _pip(version, python, folder, progress)
        wheels = sorted(folder.glob("torch-*.whl"))
        if code == 0 and wheels:
            return wheels[0]
        said += text
        if "No matching distribution" not in text or "(from versions: none)" in text:
            break
    raise explain(version, said)


def _pip(version: str, python: str | None, folder: Path, progress: Progress) -> tuple[int, str]:
    other = ["--python-version", python] if python is not None else []
    command = [
        *(sys.executable, "-m", "pip", "download", f"torch=={version}", "--no-deps", "--only-binary=:all:", *other),
        # The cache of pip would keep a second copy of a file that is deleted in a minute.
        *("--dest", str(folder), "--no-cache-dir", "--progress-bar=off", "--no-input", "--no-color"),
        "--disable-pip-version-check",
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # pip downloads into its temporary folder: there the growing file can be watched, and is removed with ours.
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert process.stdout is not None
    total = [0]
    what = f"fetching torch {version}"
    try:
        with _watched(folder, total, lambda done: progress(what, done, total[0])):
            lines = []
            for line in process.stdout:
                lines.append(line)
                match = _SIZE.search(line)
                if match is not None:
                    total[0] = int(float(match["number"]) * _UNITS[match["unit"]])
            return process.wait(), "".join(lines)
    except BaseException:
        process.terminate()
        process.wait()
        raise


@contextmanager
def _watched(folder: Path, total: list[int], report: Callable[[int], None]) -> Iterator[None]:
    """Report how far the largest file in `folder` has grown, five times a second."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.2):
            report(min(_largest(folder), total[0] or sys.maxsize))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _largest(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*.whl"):
        try:
            size = max(size, path.stat().st_size)
        except OSError:  # moved on
            continue
    return size


def _forbids(constraint: str, version: str) -> bool:
    """Whether `torch<=2.14.1` is why `version` is not to be had: pip tells of constraints whatever else is wrong."""
    wanted = _version(version.removesuffix(".*"))
    try:
        return wanted is None or not Requirement(constraint).specifier.contains(wanted, prereleases=True)
    except InvalidRequirement:
        return True


def explain(version: str, said: str) -> OpgenError:
    """What pip said, in terms of what to do about it."""
    if "No module named pip" in said:
        return OpgenError(
            f"pip is needed to fetch torch {version}, and this environment has none",
            hint=f"run `{sys.executable} -m ensurepip`, or name a folder with an unpacked wheel",
        )
    constraint = re.search(r"\(constraint\) (torch\S*)", said)
    if constraint is not None and _forbids(constraint[1], version):
        return OpgenError(
            f"pip is told not to go beyond {constraint[1]}, so it does not fetch torch {version}",
            hint="a constraints file says so (`pip config list`); PIP_CONSTRAINT=/dev/null lifts it for one command",
        )
    if "No space left on device" in said or "Errno 28" in said:
        return OpgenError(
            f"the disk is full: the wheel of torch {version} takes up to 1 GB until it is unpacked",
            hint="make room, or name a folder on another disk with --cache DIR or OPGEN_CACHE_DIR",
        )
    known = {word.strip() for found in re.findall(r"\(from versions: ([^)]*)\)", said) for word in found.split(",")}
    versions = sorted((v for v in map(_version, known) if v is not None), reverse=True)
    if versions:
        listed = ", ".join(dict.fromkeys(v.public for v in versions if not v.is_prerelease))
        return OpgenError(f"there is no torch {version}", hint=f"the package index has {listed}")
    if "from versions: none" in said or re.search(r"connection|resolve|timed? ?out|Retrying", said, re.IGNORECASE):
        return OpgenError(
            f"cannot fetch torch {version}: no package index of pip's can be reached, or none has any torch",
            hint="check the network and `pip config list`, or name a folder with an unpacked wheel",
        )
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
    return OpgenError(f"cannot fetch torch {version}: {last.removeprefix('ERROR: ')}")


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def extract(wheel: Path, folder: Path, progress: Progress) -> None:
    """Unpack torchgen, the headers and torch/version.py of `wheel` into `folder`.

    Raises OpgenError when the file is damaged, is no wheel of PyTorch, or cannot be written.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if _is_wanted(name)]
            missing = [name for name in _NEEDED if name not in names]
            if missing:
                raise OpgenError(
                    f"no wheel of PyTorch: {missing[0]} is missing",
                    Location(str(wheel)),
                    "name a wheel called torch-VERSION-....whl",
                )
            for done, name in enumerate(names):
                if done % 200 == 0:
                    progress(f"unpacking {wheel.name}", done, len(names))
                archive.extract(name, folder)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise OpgenError(f"the wheel is damaged: {error}", Location(str(wheel)), "fetch it again") from None
    except OSError as error:
        raise _unwritable(error, folder) from None
    except Exception as error:  # zlib.error and lzma's own, which have no common base
        if type(error).__module__ not in ("zlib", "_lzma", "lzma"):
            raise
        raise OpgenError(f"the wheel is damaged: {error}", Location(str(wheel)), "fetch it again") from None


def _is_wanted(name: str) -> bool:
    return name.startswith(_WANTED) and not name.endswith("/") and ".." not in name.split("/")


def _unwritable(error: OSError, folder: Path) -> OpgenError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "the disk is full" if full else f"cannot unpack the wheel: {error.strerror or error}"
    hint = (
        "make room, or name another folder with --cache DIR or OPGEN_CACHE_DIR"
        if full
        else "name another folder with --cache DIR"
    )
    return OpgenError(what, Location(str(error.filename or folder)), hint)
