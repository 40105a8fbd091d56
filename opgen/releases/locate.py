"""DIR_OR_VERSION -> the files of that PyTorch.

A folder may be site-packages, an unpacked wheel, the package `torch` itself or a virtual environment. A version is the
installed PyTorch where that is the one, else a folder of the cache, filled from the package index on first use.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packaging.version import Version

from opgen.cache import cache_dir
from opgen.diagnostics import Location, OpgenError
from opgen.releases import wheel
from opgen.releases.wheel import Progress
from opgen.upstream import SUPPORTED_RELEASES, TorchInstall, find_torch, install_at

__all__ = ["between", "cached_releases", "find_release", "release_cache"]

INSTALLED = "installed"
"""The word for the PyTorch of the running environment."""

# Releases, their candidates and nightlies (2.16.0rc1, 2.16.0.dev20261130), with or without how the wheel was built.
_VERSION = re.compile(r"\d+\.\d+(\.\d+((a|b|rc|\.dev)\d+)?)?(\+[\w.]+)?")


def release_cache(explicit: Path | None = None) -> Path:
    """Where fetched releases are kept, a folder for each version: `torch/` in opgen's cache."""
    return explicit if explicit is not None else cache_dir() / "torch"


def cached_releases(cache: Path) -> tuple[TorchInstall, ...]:
    """The releases that have been fetched, oldest first."""
    folders = cache.iterdir() if cache.is_dir() else ()
    found = [install_at(f) for f in folders if _VERSION.fullmatch(f.name) and (f / "torch/version.py").is_file()]
    return tuple(sorted(found, key=lambda install: Version(install.version)))


def find_release(text: str, cache: Path, progress: Progress) -> TorchInstall:
    """The PyTorch that `text` names: `installed`, a version (`2.14.1`, or `2.14` for its newest), a folder or a wheel.

    Raises OpgenError where there is none, or it cannot be fetched.
    """
    if text == INSTALLED:
        return find_torch()
    path = Path(text)
    if text and path.is_dir():  # the empty string would be the working folder
        return _in_folder(path)
    if path.suffix == ".whl" and path.is_file():
        return _keep(path, cache, progress)
    if _VERSION.fullmatch(text) is None:
        raise OpgenError(
            f"'{text}' is neither a folder nor a version of PyTorch",
            hint="name a version (2.14.1), a wheel, or a folder that holds torch/ and torchgen/",
        )
    oldest = Version(SUPPORTED_RELEASES[0])
    if Version(text).release[:2] < oldest.release[:2]:
        raise OpgenError(
            f"torch {text} is older than any that opgen can read",
            hint=f"name {oldest} or a newer one; supported are {oldest} to {SUPPORTED_RELEASES[-1]}",
        )
    return _installed(text) or _cached(text, cache) or _fetch(text, cache, progress)


def between(one: TorchInstall, other: TorchInstall, cache: Path) -> tuple[TorchInstall, ...]:
    """The releases at hand (fetched, or installed) that lie between two, one of each; nothing is fetched."""
    low, high = sorted((Version(one.release), Version(other.release)))
    installed: tuple[TorchInstall, ...]
    try:
        installed = (find_torch(),)
    except OpgenError:
        installed = ()
    at_hand = {install.release: install for install in (*installed, *cached_releases(cache))}
    return tuple(install for release, install in at_hand.items() if low < Version(release) < high)


def _in_folder(folder: Path) -> TorchInstall:
    for root in _roots(folder):
        if (root / "torch" / "version.py").is_file() and (root / "torchgen" / "model.py").is_file():
            return install_at(root)
    raise OpgenError(
        "no PyTorch in this folder",
        Location(str(folder)),
        "name a folder that holds torch/ and torchgen/ (site-packages, an unpacked wheel), or a virtual environment",
    )


def _roots(folder: Path) -> Iterator[Path]:
    yield folder
    yield folder.resolve().parent  # `folder` is the package torch itself
    yield from sorted(folder.glob("lib/python*/site-packages"), reverse=True)
    yield folder / "Lib" / "site-packages"


def _matches(wanted: str, version: str) -> bool:
    """`2.14` is any 2.14.x, `2.14.1` also `2.14.1+cpu`, and `2.14.1+cpu` only itself."""
    if "+" in wanted:
        return wanted == version
    release = version.partition("+")[0]
    return release == wanted or (wanted.count(".") == 1 and release.startswith(f"{wanted}."))


def _installed(text: str) -> TorchInstall | None:
    try:
        install = find_torch()
    except OpgenError:
        return None
    return install if _matches(text, install.version) else None


def _cached(text: str, cache: Path) -> TorchInstall | None:
    return next((i for i in reversed(cached_releases(cache)) if _matches(text, i.version)), None)


def _fetch(text: str, cache: Path, progress: Progress) -> TorchInstall:
    wanted = f"{text}.*" if text.count(".") == 1 else text
    with _locked(cache):
        # Another process may have fetched it while this one waited.
        found = _cached(text, cache)
        if found is not None:
            return found
        with _staging(cache) as stage:
            return _unpack(wheel.download(wanted, stage, progress), stage, cache, progress)


def _keep(path: Path, cache: Path, progress: Progress) -> TorchInstall:
    with _locked(cache), _staging(cache) as stage:
        return _unpack(path, stage, cache, progress)


def _unpack(path: Path, stage: Path, cache: Path, progress: Progress) -> TorchInstall:
    """Unpack beside the final place and rename, so that a folder of the cache is always complete."""
    unpacked = stage / "unpacked"
    wheel.extract(path, unpacked, progress)
    version = install_at(unpacked).version
    final = cache / version.partition("+")[0]
    if final.exists():
        # Its files may be in use; moving it away leaves those who have opened them alone.
        final.rename(stage / "replaced")
    unpacked.rename(final)
    return install_at(final)


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """One download at a time; the lock goes with the process."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / ".lock").open("w")
    except OSError as error:
        raise OpgenError(
            f"cannot write to the cache of PyTorch releases: {error.strerror}",
            Location(str(cache)),
            "name another folder with --cache DIR or OPGEN_CACHE_DIR",
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _staging(cache: Path) -> Iterator[Path]:
    for left in cache.glob(".staging-*"):  # by a run that was killed: the lock says that no other is alive
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".staging-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
