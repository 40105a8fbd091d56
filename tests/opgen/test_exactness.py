"""Generating is exact: the same bytes wherever and however it runs, and whatever caches and disks do meanwhile."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from generator_cases import registrations, upstream, write_kernels
from hypothesis import given, settings
from hypothesis import strategies as st

from opgen import tree
from opgen.backend import MUSA
from opgen.diagnostics import Diagnostics, OpgenError
from opgen.emit import files
from opgen.emit.pieces import by_root, piece_key, print_all
from opgen.gen import Sources, generate
from opgen.upstream import TorchInstall, find_torch

ROOT = Path(__file__).resolve().parents[2]

LIST = """\
- func: tril
- func: tril.out
  dispatch: {PrivateUse1: MusaTril}
- func: nonzero
  dispatch: {PrivateUse1: Nonzero}
- func: musa::twice(Tensor self) -> Tensor
  dispatch: {PrivateUse1: Twice, AutogradPrivateUse1: TwiceAutograd}
"""
KERNELS = {
    "mudnn/Ops.cpp": """\
        namespace at::musa {
        TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}
        Tensor Nonzero(const at::Tensor & self) { return self; }
        Tensor Twice(const at::Tensor & self) { return self; }
        Tensor TwiceAutograd(const at::Tensor & self) { return self; }
        }
        """
}


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.yaml = root / "ops.yaml"
        self.out = root / "out"
        self.yaml.write_text(LIST)
        self.kernels = write_kernels(root, KERNELS)

    def contents(self) -> dict[str, bytes]:
        return contents(self.out)

    def generate(self, **options: bool) -> None:
        diagnostics = Diagnostics()
        assert generate(Sources(self.yaml, self.kernels, find_torch()), self.out, diagnostics, **options) is not None

    def arguments(self, start: Path | None = None) -> list[str]:
        """The options of `opgen gen`, with paths relative to `start`."""
        paths = [os.path.relpath(p, start) if start else str(p) for p in (self.yaml, self.kernels, self.out)]
        return ["gen", "--yaml", paths[0], "--kernels", paths[1], "--out", paths[2]]

    def run(
        self, *, cwd: Path = ROOT, start: Path | None = None, prepare: Callable[[], None] | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "opgen.cli", *self.arguments(start), "--force"],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), **env},
            preexec_fn=prepare,
            capture_output=True,
            text=True,
            check=False,
        )


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".opgen" not in path.parts
    }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(folder))
    return folder


# ---- the same bytes ------------------------------------------------------------------------------------------------


def test_bytes_do_not_depend_on_seed_folder_kind_of_path_locale_time_zone_or_umask(project, tmp_path):
    project.generate()
    expected = project.contents()
    elsewhere = tmp_path / "a folder, with blanks"
    elsewhere.mkdir()
    runs: list[dict[str, object]] = [
        {"PYTHONHASHSEED": "1", "cwd": tmp_path, "start": tmp_path},
        {"PYTHONHASHSEED": "4711", "cwd": elsewhere, "LC_ALL": "C", "TZ": "Asia/Kathmandu"},
        {"PYTHONHASHSEED": "random", "LC_ALL": "tr_TR.UTF-8", "PYTHONUTF8": "0", "prepare": lambda: os.umask(0o077)},
    ]
    for options in runs:
        shutil.rmtree(project.out)
        # A cache of its own: what another run has printed must not stand in for this one.
        done = project.run(OPGEN_CACHE_DIR=str(tmp_path / f"cache-{options['PYTHONHASHSEED']}"), **options)
        assert done.returncode == 0, done.stderr
        assert project.contents() == expected


PLAIN = [
    op
    for op in upstream().names
    if upstream().structured_group(op) is None
    and upstream().kernel(op, "CPU") is not None
    and upstream().kernel(op, "CompositeExplicitAutograd") is None
    and not upstream().functions[op].manual_kernel_registration
]


def entry(op: str, number: int) -> str:
    return f"- func: {op}\n  dispatch: {{PrivateUse1: Own{number}}}\n"


@settings(max_examples=25, deadline=None)
@given(ops=st.lists(st.sampled_from(PLAIN), min_size=2, max_size=12, unique=True), data=st.data())
def test_adding_an_operator_changes_no_source_but_its_own(ops, data):
    """In whichever place of the list: its registration shard, its type's source, its header, the two lists of names."""
    entries = [entry(op, number) for number, op in enumerate(ops)]
    added = data.draw(st.integers(0, len(ops) - 1))
    with_it = registrations("".join(entries))
    without = registrations("".join(entries[:added] + entries[added + 1 :]))
    before, after = (files.render(found, "test", MUSA) for found in (without, with_it))
    (new,) = [r for r in with_it if r.op == ops[added]]
    (pointer,) = [
        s.wrapper.pointer
        for s, r in zip(print_all(with_it, MUSA).of(new.root).statements, by_root(with_it)[new.root], strict=True)
        if r.op == new.op
    ]
    assert pointer is not None
    allowed = {
        files.shard_name(files.shard_of(new.root, MUSA), MUSA),
        files.signature_shard_name(files.signature_shard_of(pointer, MUSA)),
        f"include/{MUSA.op_header(new.root)}",
        f"include/{MUSA.umbrella_header}",
        files.TABLE,
    }
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= allowed
    assert files.shard_name(files.shard_of(new.root, MUSA), MUSA) in changed


def test_each_type_of_wrapper_is_instantiated_once_and_every_wrapper_finds_its_own():
    found = registrations("".join(entry(op, number) for number, op in enumerate(PLAIN[:200])))
    rendered = files.render(found, "test", MUSA)
    sources = [text for name, text in rendered.items() if name.startswith("Signatures")]
    instantiated = [line for text in sources for line in text.splitlines() if line.startswith("template torch::")]
    assert len(instantiated) == len(set(instantiated))
    wanted = {
        f"template torch::CppFunction wrapped({s.wrapper.pointer});"
        for piece in print_all(found, MUSA).pieces.values()
        for s in piece.statements
    }
    assert set(instantiated) == wanted


# ---- what has been printed before ----------------------------------------------------------------------------------

VARIANTS = [
    "- func: tril.out\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: tril.out\n  dispatch: {PrivateUse1: MusaTril2}\n",
    "- func: tril.out\n  device_check: NoCheck\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: tril.out\n  structured_inherits: MyBase\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: tril.out\n  structured_inherits: MyBase2\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: tril.out\n  precomputed: [diagonal -> int var]\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: tril.out\n  precomputed: [diagonal -> int va]\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: tril\n- func: tril_\n- func: tril.out\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: tril\n- func: tril.out\n  precomputed: [diagonal -> int var]\n  dispatch: {PrivateUse1: MusaTril}\n",
    "- func: nonzero\n  dispatch: {PrivateUse1: Nonzero}\n",
    "- func: nonzero\n  device_guard: true\n  dispatch: {PrivateUse1: Nonzero}\n",
    "- func: nonzero\n  device_check: ExactSame\n  dispatch: {PrivateUse1: Nonzero}\n",
    "- func: nonzero\n  dispatch: {PrivateUse1: Nonzero, SparsePrivateUse1: Nonzero}\n",
    "- func: nonzero\n  dispatch: {SparsePrivateUse1: Nonzero}\n",
    "- func: nonzero\n  dispatch: {PrivateUse1: cpu_fallback}\n",
    "- func: view_as_real\n  dispatch: {PrivateUse1: view_as_real}\n",
    "- func: view_as_real\n  dispatch: {PrivateUse1: ViewAsReal}\n",
    "- func: empty.memory_format\n  dispatch: {PrivateUse1: empty_own}\n",
    "- func: empty.memory_format\n  dispatch: {PrivateUse1: empty_own_symint}\n",
    "- func: musa::f(Tensor x) -> Tensor\n  dispatch: {PrivateUse1: F}\n",
    "- func: musa::f(Tensor x, int n=1) -> Tensor\n  dispatch: {PrivateUse1: F}\n",
    "- func: musa::f(Tensor x, int n=2) -> Tensor\n  dispatch: {PrivateUse1: F}\n",
    "- func: musa::f(Tensor x) -> Tensor\n  tags: pt2_compliant_tag\n  dispatch: {PrivateUse1: F}\n",
    "- func: musa::f(Tensor x) -> Tensor\n  dispatch: {PrivateUse1: F, Meta: F}\n",
]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_known_piece_is_what_printing_it_again_would_give(backwards):
    """Each change of an entry that the output shows has another key; the pieces of all earlier lists are at hand."""
    known = None
    for text in reversed(VARIANTS) if backwards else VARIANTS:
        found = registrations(text)
        printed = print_all(found, MUSA, known)
        assert files.render(found, "test", MUSA, printed) == files.render(found, "test", MUSA)
        kept = known.pieces if known is not None else {}
        known = type(printed)(printed.helpers, {**kept, **printed.pieces}, {})


def test_variants_differ_in_what_is_printed():
    """So that the test above compares something: no two lists of one operator print the same under one key."""
    keys = [piece_key(members) for text in VARIANTS for members in by_root(registrations(text)).values()]
    assert len(set(keys)) == len(keys)


# ---- no torch ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PyTorch whose files are all there but whose `import torch` fails."""
    install, folder = find_torch(), tmp_path_factory.mktemp("broken")
    (folder / "torch").mkdir()
    for path in install.torch.iterdir():
        if path.name not in ("__init__.py", "__pycache__"):
            (folder / "torch" / path.name).symlink_to(path)
    (folder / "torch" / "__init__.py").write_text("raise ImportError('somebody imported torch')\n")
    (folder / "torchgen").symlink_to(install.torchgen)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["list"],
        ["list", "--format", "json"],
        ["explain", "tril.out"],
        ["port", "--help"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_the_tool_works_where_torch_cannot_be_imported(without_torch, arguments):
    done = subprocess.run(
        [sys.executable, "-m", "opgen.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{without_torch}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_generating_works_where_torch_cannot_be_imported(without_torch, project):
    done = project.run(PYTHONPATH=f"{without_torch}{os.pathsep}{ROOT}")
    assert done.returncode == 0, done.stderr
    with_torch = project.contents()
    project.generate(force=True)
    assert project.contents() == with_torch


# ---- caches --------------------------------------------------------------------------------------------------------


def damaged(data: bytes) -> Iterator[bytes]:
    yield b""
    yield b"garbage"
    yield data[: len(data) // 2]
    yield data[:-1]
    yield bytes([data[0] ^ 0xFF]) + data[1:]
    # of another opgen: the key differs, and what is kept has another shape
    yield pickle.dumps(("another key", {"no": "catalogue"}))
    yield pickle.dumps("neither key nor value")
    yield b"cno.such.module\nThing\n."


def test_a_damaged_cache_is_healed_and_never_seen(project, cache):
    project.generate()
    expected = project.contents()
    names = sorted(path.name for path in cache.glob("*.pickle"))
    assert {name.partition("-")[0].removesuffix(".pickle") for name in names} >= {"kernels", "printed", "upstream"}
    for name in names:
        whole = (cache / name).read_bytes()
        # The catalogue takes a second to make anew; two kinds of damage are enough there.
        for damage in list(damaged(whole))[:: 4 if name.startswith("upstream") else 1]:
            (cache / name).write_bytes(damage)
            project.generate(force=True)
            assert project.contents() == expected
            assert pickle.loads((cache / name).read_bytes())[0] == pickle.loads(whole)[0]


def test_what_the_cache_holds_for_the_same_key_but_of_another_kind_is_not_used(project, cache):
    project.generate()
    expected = project.contents()
    for path in cache.glob("*.pickle"):
        key, _ = pickle.loads(path.read_bytes())
        path.write_bytes(pickle.dumps((key, "nonsense")))
    project.generate(force=True)
    assert project.contents() == expected


def copied(install: TorchInstall, folder: Path) -> TorchInstall:
    """The same PyTorch with files of its own where they are to be changed."""
    torchgen = folder / "torchgen"
    shutil.copytree(install.torchgen, torchgen, ignore=shutil.ignore_patterns("__pycache__"))
    return TorchInstall(install.version, install.torch, torchgen)


def test_touching_a_file_invalidates_nothing_and_one_byte_does(project, cache, tmp_path):
    install = copied(find_torch(), tmp_path)
    sources = Sources(project.yaml, project.kernels, install)
    before, catalogue = sources.digest(), install.digest()
    for path in (install.native_yaml, install.torchgen / "model.py", project.yaml, project.kernels / "mudnn/Ops.cpp"):
        os.utime(path, (1, 1))
    assert (sources.digest(), install.digest()) == (before, catalogue)
    for path in (install.native_yaml, install.torchgen / "model.py", install.tags_yaml):
        data = path.read_bytes()
        path.write_bytes(data + b"\n")
        assert install.digest() != catalogue and sources.digest() != before
        path.write_bytes(data)
    for path in (project.yaml, project.kernels / "mudnn/Ops.cpp"):
        data = path.read_bytes()
        path.write_bytes(data.replace(b"Nonzero", b"nonzero", 1))
        assert sources.digest() != before
        path.write_bytes(data)
    assert (sources.digest(), install.digest()) == (before, catalogue)


def test_runs_at_once_share_cache_and_folder(project, cache):
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "opgen.cli", *project.arguments(), "--force"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
    found = project.contents()
    assert not [path for path in cache.iterdir() if path.suffix != ".pickle"]
    project.generate(force=True)
    assert project.contents() == found


# ---- interrupted, and disks that are full --------------------------------------------------------------------------

OLD = {**{f"f{n}.cpp": "old" * n for n in range(30)}, "deep/only_old.h": "x"}
NEW = {**{f"f{n}.cpp": "new" * n for n in range(30)}, "deeper/only_new.h": "y"}


def test_killed_at_random_moments_the_folder_is_old_or_new(tmp_path):
    """The writer alone, many times: it is killed anywhere between its first and its last step."""
    texts = {name: {n: t.encode() for n, t in content.items()} for name, content in (("old", OLD), ("new", NEW))}
    started = time.perf_counter()
    tree.write_tree(tmp_path, NEW, "new", {})
    tree.write_tree(tmp_path, OLD, "old", {})
    whole = (time.perf_counter() - started) / 2
    rng = random.Random(0)
    seen = set()
    state = "old"
    for _ in range(60):
        target = "new" if state == "old" else "old"
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                tree.write_tree(tmp_path, NEW if target == "new" else OLD, target, {})
            os._exit(0)
        time.sleep(rng.uniform(0, 1.5 * whole))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tree.recover(tmp_path)
        manifest = tree.read_manifest(tmp_path)
        assert manifest is not None and tree.is_intact(tmp_path, manifest)
        assert contents(tmp_path) == texts[manifest.inputs]
        seen.add((state, manifest.inputs))
        state = manifest.inputs
    assert len(seen) > 1  # some writes came to their end, some did not


def test_a_file_size_limit_is_told_and_keeps_the_old_tree(project):
    project.generate()
    before = project.contents()
    project.yaml.write_text(LIST.replace("tril.out", "tril.out\n  device_check: NoCheck"))
    done = project.run(prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
    assert done.returncode == 1
    assert "error: cannot write the generated files: File too large" in done.stderr
    assert "the old files are untouched" in done.stderr and "Traceback" not in done.stderr
    assert project.contents() == before
    project.generate()
    assert project.contents() != before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mounting a small file system is not permitted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full_or_read_only_is_told_and_keeps_the_old_tree(project, small_disk):
    project.out = small_disk / "out"
    project.generate()
    before = project.contents()
    project.yaml.write_text(LIST.replace("tril.out", "tril.out\n  device_check: NoCheck"))
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    with pytest.raises(OpgenError, match="cannot write the generated files: No space left on device"):
        project.generate()
    assert project.contents() == before
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OpgenError, match="cannot write the generated files: Read-only file system"):
        project.generate()
    assert project.contents() == before
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    project.generate()
    assert project.contents() != before


def test_a_full_device_behind_standard_output_is_told(project):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "opgen.cli", *project.arguments()],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr
