"""`opgen diff`, `opgen versions` and `--torch` as commands, on releases that are a few files each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from opgen.ninja import run_ninja
from opgen.project import Project, find_project, find_root
from opgen.releases import syntax_only
from opgen.releases.locate import cached_releases, release_cache
from opgen.releases.syntax import check_syntax
from opgen.releases.versions import Row, merge, read_rows, render
from opgen.upstream import find_torch, install_at

ROOT = find_root(Path(__file__).parent)
FADE = "- func: fade(Tensor self) -> Tensor\n  dispatch:\n    CPU, CUDA: fade\n"


def make_release(folder: Path, version: str, functions: str, header: str = "") -> Path:
    """A release of PyTorch in `folder`: the installed torchgen, with another native_functions.yaml."""
    install = find_torch()
    native = folder / "torchgen" / "packaged" / "ATen" / "native"
    native.mkdir(parents=True)
    for path in install.torchgen.rglob("*.py"):
        link = folder / "torchgen" / path.relative_to(install.torchgen)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    (native / "native_functions.yaml").write_text(functions)
    (native / "tags.yaml").write_bytes(install.tags_yaml.read_bytes())
    headers = folder / "torch" / "include" / "ATen" / "native"
    headers.mkdir(parents=True)
    (headers / "Some.h").write_text(header)
    (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\n")
    return folder


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs opgen in an empty folder with a cache of its own."""
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))

    def run(*arguments: str | Path, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "opgen.cli", *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def project(tmp_path):
    """An operator list with its kernel."""
    (tmp_path / "ops.yaml").write_text("- func: fade\n  dispatch: {PrivateUse1: MyFade}\n")
    kernels = tmp_path / "kernels" / "mudnn"
    kernels.mkdir(parents=True)
    (kernels / "Fade.cpp").write_text("namespace at::musa {\nTensor MyFade(const Tensor& self) { return self; }\n}\n")
    return tmp_path


def test_diff_of_two_folders_from_command_to_json(project, command):
    old = make_release(project / "old", "2.9.1", FADE)
    new = make_release(project / "new", "2.15.0", FADE.replace("(Tensor self)", "(Tensor self, int k)"))
    arguments = ("diff", "--yaml", "ops.yaml", "--kernels", "kernels", "--from", old, "--to", new)
    first = command(*arguments, "--format", "json")
    assert first.returncode == 0, first.stderr
    document = json.loads(first.stdout)
    assert (document["from"], document["to"], document["counts"]["edit"]) == ("2.9.1", "2.15.0", 1)
    assert "reading torch 2.9.1" in first.stderr
    # The second time nothing is read again, and the status speaks when asked to.
    second = command(*arguments, "--exit-code")
    assert (second.returncode, second.stderr) == (1, "")
    assert "MyFade needs another signature" in second.stdout
    # Without a difference the status is 0.
    assert (
        command("diff", "--yaml", "ops.yaml", "--kernels", "kernels", "--from", old, "--to", str(old) + "/").returncode
        == 0
    )


def test_diff_imports_neither_torch_nor_the_torchgen_of_the_environment(project, command):
    old = make_release(project / "old", "2.9.1", FADE)
    new = make_release(project / "new", "2.15.0", FADE)
    script = (
        "import sys; from opgen.cli import opgen\n"
        "opgen.main(['diff', '--yaml', 'ops.yaml', '--kernels', 'kernels', *sys.argv[1:]], standalone_mode=False)\n"
        "assert 'torch' not in sys.modules and 'torchgen' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "--from", str(old), "--to", str(new)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_releases_in_the_cache_tell_when_something_changed(project, command):
    for version, functions in (("2.11.0", FADE), ("2.13.0", "- func: other(Tensor self) -> Tensor\n")):
        make_release(project / "cache" / "torch" / version, version, functions)
    old = make_release(project / "old", "2.9.1", FADE)
    new = make_release(project / "new", "2.15.0", "- func: other(Tensor self) -> Tensor\n")
    done = command("diff", "--yaml", "ops.yaml", "--kernels", "kernels", "--from", old, "--to", new)
    assert "looked at 2.11.0, 2.13.0 between them" in done.stdout
    assert 'torch: "<2.13"' in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "both sides are 'installed'"),
        (("--from", "no/such/folder"), "neither a folder nor a version"),
        (("--from", "."), "no PyTorch in this folder"),
        (("--from", "broken"), "cannot read its own catalogue"),
    ],
)
def test_diff_fails_with_a_message(project, command, arguments, said):
    make_release(project / "broken", "2.9.1", "- func: fade(Tensor self -> Tensor\n")
    done = command("diff", "--yaml", "ops.yaml", "--kernels", "kernels", *arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_diff_says_what_is_wrong_with_the_operator_list(project, command):
    old = make_release(project / "old", "2.9.1", FADE)
    (project / "ops.yaml").write_text("- fun: fade\n")
    done = command("diff", "--yaml", "ops.yaml", "--kernels", "kernels", "--from", old)
    assert done.returncode == 1
    assert "ops.yaml:1:3: error: unknown key 'fun'" in done.stderr
    assert "nothing was compared" in done.stderr


def test_verbs_work_for_a_pytorch_that_is_not_installed(project, command):
    other = make_release(project / "other", "2.15.0", FADE)
    arguments = ("--yaml", "ops.yaml", "--kernels", "kernels")
    checked = command("check", *arguments, "--torch", other)
    assert (checked.returncode, checked.stdout) == (0, "torch 2.15.0: 1 entry, 1 registration, no errors\n")
    generated = command("gen", *arguments, "--torch", other, "--out", "out")
    assert generated.returncode == 0, generated.stderr
    assert "MyFade" in (project / "out" / "include" / "torch_musa" / "ops" / "fade_native.h").read_text()
    for verb in (("list",), ("coverage",), ("explain", "fade")):
        asked = command(*verb, "--yaml", "ops.yaml", "--torch", other)
        assert (asked.returncode, asked.stderr) == (0, "")
        assert ("2.15.0" if verb[0] == "coverage" else "fade") in asked.stdout
    # The installed PyTorch has no such operator.
    assert "has no operator 'fade'" in command("check", *arguments).stderr


# ---- the table -----------------------------------------------------------------------------------------------------


def row(torch: str, failed: str = "0", day: str = "2026-11-30") -> Row:
    return Row(torch, "740", "742", "154", failed, "g++ 12.2.0", day)


def test_the_table_keeps_rows_of_releases_that_were_not_checked_again(tmp_path):
    path = tmp_path / "versions.md"
    assert read_rows(path) == ()
    path.write_text(render([row("2.9.1"), row("2.15.0", failed="3")]))
    assert read_rows(path) == (row("2.9.1"), row("2.15.0", failed="3"))
    again = merge(read_rows(path), [row("2.15.0", day="2026-12-01"), row("2.11.0")])
    assert again == (row("2.9.1"), row("2.11.0"), row("2.15.0", day="2026-12-01"))


def test_the_committed_table_has_every_release_and_no_failure():
    text = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    rows = read_rows(ROOT / "docs" / "versions.md")
    assert render(rows) == text, "docs/versions.md is written by `make versions`"
    releases = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("RELEASES"))
    assert [r.torch for r in rows] == releases.split("?=")[1].split()
    assert {r.failed for r in rows} == {"0"}
    assert all(date.fromisoformat(r.date) for r in rows)


# ---- checking without compiling ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("g++ -O2 -o a.o -c a.cpp", True),
        ("g++ -x c++-header -o pch.gch -c pch.cxx", False),
        ("g++ -o lib.so a.o", False),
    ],
)
def test_only_compilations_become_checks(command, changed):
    words = command.split()
    expected = ([*words, "-fsyntax-only"], "a.o") if changed else (words, None)
    assert syntax_only.syntax_command(words) == expected


@pytest.mark.build
def test_a_source_that_does_not_compile_fails_the_check_and_a_good_one_is_marked(tmp_path):
    good, bad = tmp_path / "good.cpp", tmp_path / "bad.cpp"
    good.write_text("template <class T> T twice(T x) { return x + x; }\nint four() { return twice(2); }\n")
    # Wrong only once the template is instantiated.
    bad.write_text("template <class T> auto call(T x) { return x.no_such(); }\nint one() { return call(1); }\n")
    for source, code in ((good, 0), (bad, 1)):
        command = ["g++", "-o", str(source.with_suffix(".o")), "-c", str(source)]
        assert syntax_only.main(command) == code
    assert good.with_suffix(".o").read_bytes() == b""
    assert not bad.with_suffix(".o").exists()


SMALL_PROJECT = """\
cmake_minimum_required(VERSION 3.27)
project(small LANGUAGES CXX)
add_library(small SHARED ${CMAKE_SOURCE_DIR}/kernels/one.cpp ${CMAKE_SOURCE_DIR}/kernels/two.cpp)
target_include_directories(small SYSTEM PRIVATE ${TORCH_DIR}/include)
target_precompile_headers(small PRIVATE <ATen/native/Some.h>)
target_link_libraries(small PRIVATE ${TORCH_DIR}/lib/no_such_library.so)
"""


@pytest.mark.build
def test_a_tree_is_checked_against_headers_alone_and_only_what_changed_again(tmp_path):
    install = install_at(make_release(tmp_path / "torch", "2.15.0", FADE, "inline int some() { return 1; }\n"))
    (tmp_path / "CMakeLists.txt").write_text(SMALL_PROJECT)
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    (kernels / "one.cpp").write_text("int one() { return some(); }\n")
    (kernels / "two.cpp").write_text("int two() { return none(); }\n")

    def check() -> tuple[int, int, tuple[str, ...]]:
        result = check_syntax(Project(tmp_path), install, 1, lambda done, total, what: None)
        assert ("not declared" in result.text) == bool(result.failed)
        assert result.compiler.split()[1][0].isdigit()
        return result.files, result.checked, result.failed

    assert check() == (2, 2, ("CMakeFiles/small.dir/kernels/two.cpp.o",))
    assert check() == (2, 1, ("CMakeFiles/small.dir/kernels/two.cpp.o",))
    (kernels / "two.cpp").write_text("int two() { return some(); }\n")
    assert check() == (2, 1, ())
    assert check() == (2, 0, ())
    (install.torch / "include" / "ATen" / "native" / "Some.h").write_text("inline int other() { return 1; }\n")
    assert len(check()[2]) == 2


def test_ninja_goes_on_after_a_failure_and_names_what_failed(tmp_path):
    (tmp_path / "build.ninja").write_text(
        "rule run\n  command = $what\n  description = making $out\n"
        "build a: run\n  what = echo wrong && false\n"
        "build b: run\n  what = touch b\n"
    )
    steps: list[str] = []
    ninja = str(Path(sys.executable).with_name("ninja"))
    done = run_ninja(ninja, tmp_path, 1, lambda finished, total, what: steps.append(what), keep_going=True)
    assert (done.code, done.failed) == (1, ("a",))
    assert done.text.splitlines()[-1] == "wrong"
    assert "echo wrong" not in done.text.splitlines()[-1]
    assert (tmp_path / "b").exists()
    assert sorted(steps) == ["making a", "making b"]


@pytest.mark.parametrize("release", ["2.9.1", "2.11.0", "2.14.1", "2.15.0"])
def test_the_tree_generates_without_a_diagnostic_for(release, tmp_path):
    known = {install.release: install for install in cached_releases(release_cache())}
    if release not in known:
        pytest.skip(f"torch {release} has not been fetched; `make versions` does")
    root = known[release].torch.parent
    arguments = ["gen", "--torch", str(root), "--out", str(tmp_path / "out"), "--diagnostics=json"]
    done = subprocess.run(
        [sys.executable, "-m", "opgen.cli", *arguments],
        cwd=find_project(ROOT).root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["diagnostics"]) == (0, [])
