"""`opgen gen` end to end: what is written, what is left alone, and what an interruption leaves behind."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from generator_cases import write_kernels

from opgen import tree
from opgen.backend import MUSA
from opgen.diagnostics import Diagnostics, OpgenError
from opgen.gen import Sources, Summary, generate
from opgen.tree import read_manifest, write_tree
from opgen.upstream import find_torch

ROOT = Path(__file__).resolve().parents[2]

KERNELS = {
    "mudnn/Ops.cpp": """\
        namespace at::musa {
        TORCH_IMPL_FUNC(MusaTril)(const Tensor& self, int64_t k, const Tensor& result) {}
        TORCH_IMPL_FUNC(MusaTriu)(const Tensor& self, int64_t k, const Tensor& result) {}
        Tensor Nonzero(const at::Tensor & self) { return self; }
        Tensor& NonzeroOut(const at::Tensor & self, at::Tensor& out) { return out; }
        }
        """
}
LIST = """\
- func: tril
- func: tril.out
  dispatch: {PrivateUse1: MusaTril}
- func: nonzero
  dispatch: {PrivateUse1: Nonzero}
"""


class Project:
    """A small project in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.yaml = root / "ops.yaml"
        self.out = root / "out"
        self.yaml.write_text(LIST)
        self.kernels = write_kernels(root, KERNELS)

    def generate(self, **options: bool) -> Summary:
        diagnostics = Diagnostics()
        summary = generate(Sources(self.yaml, self.kernels, find_torch()), self.out, diagnostics, **options)
        assert summary is not None, list(map(str, diagnostics))
        return summary

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Content and modification time of every generated file."""
        return {
            path.relative_to(self.out).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(self.out.rglob("*"))
            if path.is_file() and ".opgen" not in path.parts
        }

    def line(self) -> list[str]:
        options = ("--yaml", self.yaml, "--kernels", self.kernels, "--out", self.out)
        return [sys.executable, "-m", "opgen.cli", "gen", *map(str, options)]

    def command(
        self, *args: str, env: dict[str, str] | None = None, cwd: Path = ROOT
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.line(), *args],
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def changed(before: dict[str, tuple[bytes, int]], after: dict[str, tuple[bytes, int]]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_first_run_writes_everything(project):
    summary = project.generate()
    assert (summary.entries, summary.registrations, summary.shards_written) == (3, 3, MUSA.shard_count)
    names = set(project.snapshot())
    assert names == {f"RegisterPrivateUse1_{n:02d}.cpp" for n in range(8)} | {
        *(f"Signatures_{n:02d}.cpp" for n in range(4)),
        "op_table.json",
        "include/torch_musa/MUSANativeFunctions.h",
        "include/torch_musa/RegistrationHelpers.h",
        "include/torch_musa/RegistrationSignatures.h",
        "include/torch_musa/ops/nonzero_native.h",
        "include/torch_musa/ops/tril_native.h",
    }


def test_nothing_changed_writes_nothing_and_imports_nothing(project):
    project.generate()
    before = project.snapshot()
    manifest = (project.out / ".opgen" / "manifest.json").stat().st_mtime_ns
    code = (
        "import sys; from opgen.cli import main\n"
        f"try: main(['gen', '--yaml', {str(project.yaml)!r}, '--kernels', {str(project.kernels)!r}, "
        f"'--out', {str(project.out)!r}])\n"
        "except SystemExit as e: code = e.code\n"
        "heavy = {'torch', 'torchgen', 'jinja2', 'yaml', 'tree_sitter'} & set(sys.modules)\n"
        "assert not code and not heavy, (code, heavy)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "shards: 0 written, 8 unchanged; up to date" in result.stdout
    assert project.snapshot() == before
    assert (project.out / ".opgen" / "manifest.json").stat().st_mtime_ns == manifest


def test_generating_never_imports_torch(project):
    code = (
        "import sys; from opgen.cli import main\n"
        f"try: main(['gen', '--yaml', {str(project.yaml)!r}, '--kernels', {str(project.kernels)!r}, "
        f"'--out', {str(project.out)!r}])\n"
        "except SystemExit as e: code = e.code\n"
        "assert not code and 'torchgen' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)


def test_one_changed_entry_changes_one_shard(project):
    project.generate()
    before = project.snapshot()
    project.yaml.write_text(LIST.replace("tril.out", "tril.out\n  device_check: NoCheck"))
    summary = project.generate()
    assert (summary.shards_written, summary.shards_unchanged) == (1, 7)
    # The entries below moved by a line, which only the table tells.
    assert changed(before, project.snapshot()) == {"RegisterPrivateUse1_04.cpp", "op_table.json"}


def test_a_new_operator_changes_no_other_shard_and_leaves_without_trace(project):
    project.generate()
    before = project.snapshot()
    project.yaml.write_text(LIST + "- func: triu.out\n  dispatch: {PrivateUse1: MusaTriu}\n")
    assert project.generate().shards_written == 1
    added = changed(before, project.snapshot())
    assert added == {
        next(name for name in added if name.startswith("Register")),
        "include/torch_musa/MUSANativeFunctions.h",
        "include/torch_musa/ops/triu_native.h",
        "op_table.json",
    }
    project.yaml.write_text(LIST)
    project.generate()
    assert {name: data for name, (data, _) in project.snapshot().items()} == {
        name: data for name, (data, _) in before.items()
    }


def test_a_file_of_the_users_stays(project):
    project.generate()
    mine = project.out / "notes.txt"
    mine.write_text("mine")
    project.yaml.write_text(LIST + "- func: nonzero.out\n  dispatch: {PrivateUse1: NonzeroOut}\n")
    project.generate()
    assert mine.read_text() == "mine"


def test_a_file_that_was_touched_is_made_again(project):
    project.generate()
    header = project.out / "include/torch_musa/ops/tril_native.h"
    before = header.read_bytes()
    header.write_text("edited by hand")
    assert project.generate().files_written == 1
    assert header.read_bytes() == before
    header.unlink()
    assert project.generate().files_written == 1
    assert header.read_bytes() == before


def test_changed_kernels_are_checked_again(project):
    project.generate()
    write_kernels(project.kernels.parent, {"mudnn/Ops.cpp": "namespace at::musa {}"})
    diagnostics = Diagnostics()
    assert generate(Sources(project.yaml, project.kernels, find_torch()), project.out, diagnostics) is None
    assert len(diagnostics.errors) == 2
    # A draft only warns, and goes on warning.
    for _ in range(2):
        diagnostics = Diagnostics()
        sources = Sources(project.yaml, project.kernels, find_torch())
        assert generate(sources, project.out, diagnostics, draft=True) is not None
        assert not diagnostics.errors and len(diagnostics.warnings) == 2


def test_warnings_are_said_again_without_generating_again(project, tmp_path):
    project.yaml.write_text(LIST.replace("tril.out", "tril.out\n  device_guard: true"))
    project.generate()
    for name in ("ops.yaml", "renamed.yaml"):
        project.yaml = project.yaml.rename(tmp_path / name)
        diagnostics = Diagnostics()
        summary = generate(Sources(project.yaml, project.kernels, find_torch()), project.out, diagnostics)
        assert summary is not None and summary.up_to_date == (name == "ops.yaml")
        # MusaTriu has no entry in this list, which is said first, as the file that it stands in comes first.
        places = ["kernels/mudnn/Ops.cpp:3:1", f"{tmp_path / name}:3:17"]
        assert [str(item.location) for item in diagnostics.warnings] == places


def test_a_draft_is_not_up_to_date_for_anybody_else(project):
    project.yaml.write_text(LIST + "- func: nonzero.out\n  dispatch: {PrivateUse1: Missing}\n")
    sources = Sources(project.yaml, project.kernels, find_torch())
    for up_to_date in (False, True):
        diagnostics = Diagnostics()
        summary = generate(sources, project.out, diagnostics, draft=True)
        assert summary is not None and summary.up_to_date == up_to_date
        assert {item.message for item in diagnostics.warnings} == {
            "no source defines kernel 'Missing' for 'nonzero.out'",
            "no entry names kernel 'MusaTriu'",
        }
    diagnostics = Diagnostics()
    assert generate(sources, project.out, diagnostics) is None and len(diagnostics.errors) == 1
    # A draft that lacks nothing is as good as any.
    project.yaml.write_text(LIST)
    assert not project.generate(draft=True).up_to_date
    assert project.generate().up_to_date


def test_output_is_the_same_whatever_the_hash_seed_and_the_folder(project, tmp_path):
    outputs = []
    for seed, cwd in (("1", ROOT), ("2", tmp_path)):
        result = project.command("--force", env={"PYTHONHASHSEED": seed}, cwd=cwd)
        assert result.returncode == 0, result.stderr
        outputs.append({name: data for name, (data, _) in project.snapshot().items()})
    assert outputs[0] == outputs[1]


def test_op_table_tells_kind_and_source(project):
    project.generate()
    ops = json.loads((project.out / "op_table.json").read_text())["ops"]
    assert ops["nonzero"] == [
        {
            "op": "nonzero",
            "kind": "unstructured",
            "form": "own",
            "dispatch_key": "PrivateUse1",
            "kernel": "Nonzero",
            "family": "mudnn",
            "source": "kernels/mudnn/Ops.cpp",
            "line": 4,
        }
    ]


# ---- the folder writer ---------------------------------------------------------------------------------------------

OLD = {"a.cpp": "old a", "b.cpp": "same", "deep/c.h": "old c", "gone/d.h": "old d"}
NEW = {"a.cpp": "new a", "b.cpp": "same", "deep/c.h": "new c", "fresh/e.h": "new e"}


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".opgen" not in path.parts
    }


class Interrupted(BaseException):
    """Like KeyboardInterrupt, but not mistaken for the tester's own."""


def count_renames(monkeypatch, limit: int | None, error: BaseException) -> list[Path]:
    """Let `limit` renames pass, then fail; returns the renames seen."""
    seen: list[Path] = []
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if limit is not None and len(seen) == limit:
            seen.append(self)
            raise error
        seen.append(self)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    return seen


@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("error", [Interrupted(), OSError(errno.ENOSPC, "No space left on device")])
def test_a_write_that_fails_anywhere_leaves_the_old_state(tmp_path, monkeypatch, step, error):
    write_tree(tmp_path, OLD, "old", {})
    with monkeypatch.context() as patch:
        count_renames(patch, step, error)
        if step < 5:  # journal, three files, manifest
            with pytest.raises(Interrupted if isinstance(error, Interrupted) else OpgenError):
                write_tree(tmp_path, NEW, "new", {})
            assert contents(tmp_path) == OLD
        else:
            write_tree(tmp_path, NEW, "new", {})
            assert contents(tmp_path) == NEW
    manifest = read_manifest(tmp_path)
    assert manifest is not None and manifest.inputs == ("old" if step < 5 else "new")
    assert tree.is_intact(tmp_path, manifest)
    assert sorted(p.name for p in (tmp_path / ".opgen").iterdir()) == ["lock", "manifest.json"]


@pytest.mark.parametrize("step", range(5))
def test_a_killed_write_is_undone_by_the_next_run(tmp_path, monkeypatch, step):
    write_tree(tmp_path, OLD, "old", {})
    with monkeypatch.context() as patch:
        count_renames(patch, step, Interrupted())
        # Nothing is undone in the process that dies.
        patch.setattr(tree, "_undo", lambda folder: None)
        with pytest.raises(Interrupted):
            write_tree(tmp_path, NEW, "new", {})
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    if step > 0:
        assert not tree.is_intact(tmp_path, manifest)
    tree.recover(tmp_path)
    assert contents(tmp_path) == OLD
    assert write_tree(tmp_path, NEW, "new", {}).written == ("a.cpp", "deep/c.h", "fresh/e.h")
    assert contents(tmp_path) == NEW


@pytest.mark.parametrize("manifest", [None, "{}", "of another version"])
def test_sources_of_an_older_layout_go_also_where_no_manifest_lists_them(tmp_path, manifest):
    """A build compiles what lies there: each operator would be registered twice."""
    write_tree(tmp_path, {"Register_00.cpp": f"// {tree.MARK}.\n", "Register_01.cpp": f"// {tree.MARK}.\n"}, "old", {})
    (tmp_path / "mine.cpp").write_text("// Not generated.\n")
    listing = tmp_path / ".opgen" / "manifest.json"
    listing.unlink() if manifest is None else listing.write_text(manifest)
    done = write_tree(tmp_path, {"Register_00.cpp": f"// {tree.MARK}.\n"}, "new", {})
    assert done.removed == ("Register_01.cpp",)
    assert sorted(path.name for path in tmp_path.glob("*.cpp")) == ["Register_00.cpp", "mine.cpp"]


def test_stale_files_and_their_folders_go(tmp_path):
    write_tree(tmp_path, OLD, "old", {})
    written = write_tree(tmp_path, NEW, "new", {})
    assert written.removed == ("gone/d.h",)
    assert written.unchanged == ("b.cpp",)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_at_any_moment_the_tree_is_old_or_new(project, sig):
    project.generate()
    old = {name: data for name, (data, _) in project.snapshot().items()}
    project.yaml.write_text(LIST.replace("tril.out", "tril.out\n  device_check: NoCheck"))
    for delay in (0.05, 0.3, 0.5):
        process = subprocess.Popen(
            [*project.line(), "--force"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)
        process.send_signal(sig)
        process.wait()
        tree.recover(project.out)
        now = {name: data for name, (data, _) in project.snapshot().items()}
        manifest = read_manifest(project.out)
        assert manifest is not None and tree.is_intact(project.out, manifest)
        if now != old:
            break
    project.generate()
    final = {name: data for name, (data, _) in project.snapshot().items()}
    assert now in (old, final)


def _write(folder: str, number: int) -> None:
    files = {f"f{n}.cpp": f"{number}" for n in range(40)}
    write_tree(Path(folder), {**files, f"only{number}.h": "x"}, str(number), {})


def test_concurrent_writers_take_turns(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(str(tmp_path), n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    found = contents(tmp_path)
    (last,) = {text for name, text in found.items() if name.startswith("f")}
    assert {name for name in found if name.startswith("only")} == {f"only{last}.h"}
    manifest = read_manifest(tmp_path)
    assert manifest is not None and manifest.inputs == last and tree.is_intact(tmp_path, manifest)


def test_a_full_disk_is_told_and_keeps_the_old_tree(project, monkeypatch):
    project.generate()
    before = project.snapshot()
    project.yaml.write_text(LIST + "- func: nonzero.out\n  dispatch: {PrivateUse1: NonzeroOut}\n")

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(tree, "_write", full)
    with pytest.raises(OpgenError, match="cannot write the generated files: No space left on device") as caught:
        project.generate()
    assert "the old files are untouched" in str(caught.value)
    assert project.snapshot() == before


def test_a_folder_that_cannot_be_written_is_told(project):
    blocked = project.out.parent / "file"
    blocked.write_text("")
    project.out = blocked / "out"
    result = project.command()
    assert result.returncode == 1
    assert "error: cannot write the generated files: Not a directory" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_damaged_manifest_is_no_manifest(project):
    project.generate()
    path = project.out / ".opgen" / "manifest.json"
    whole = json.loads(path.read_text())
    for damage in ("", "{", "[]", '{"inputs": 1}', json.dumps({**whole, "warnings": [{"severity": "x"}]})):
        path.write_text(damage)
        summary = project.generate()
        assert not summary.up_to_date and summary.files_written == 0


def test_a_damaged_catalogue_cache_only_costs_time(project, tmp_path):
    stored = tmp_path / "opgen" / f"upstream-{find_torch().release}.pickle"
    stored.parent.mkdir()
    stored.write_bytes(b"garbage")
    result = project.command(env={"XDG_CACHE_HOME": str(tmp_path), "OPGEN_CACHE_DIR": ""})
    assert result.returncode == 0, result.stderr
    assert stored.stat().st_size > 100_000


def test_a_cache_that_cannot_be_written_only_costs_time(project, tmp_path):
    (tmp_path / "file").write_text("")
    result = project.command(env={"XDG_CACHE_HOME": str(tmp_path / "file"), "OPGEN_CACHE_DIR": ""})
    assert result.returncode == 0, result.stderr
