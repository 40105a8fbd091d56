"""Whole folders and the command: what is written where, what is left alone, and bad input."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import opgen.port.ours
from opgen.cli import opgen as command_line
from opgen.port import State, Tree, load_mapping, port_text, port_tree, run
from opgen.port.files import write_atomically

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != ".opgen-port.json")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def command(*arguments: object, **environment: str) -> Result:
    return CliRunner().invoke(command_line, ["port", *map(str, arguments)], env=environment)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(
        tmp_path / "src",
        a_dot_cu='#include "inc/b.cuh"\ncudaStream_t s;\n',
        inc__b_dot_cuh="cudaEvent_t e;\n",
        host_dot_cpp="#include <cuda_runtime.h>\n",
    )


def test_host_sources_are_ported_and_renamed_files_found(source: Path, tmp_path: Path) -> None:
    assert port_tree(source, tmp_path / "out").problems == ()
    assert files(tmp_path / "out") == {
        "a.mu": '#include "inc/b.muh"\nmusaStream_t s;\n',
        "inc/b.muh": "musaEvent_t e;\n",
        "host.cpp": "#include <musa_runtime.h>\n",
    }


def test_a_second_port_and_the_port_of_a_port_change_nothing(source: Path, tmp_path: Path) -> None:
    port_tree(source, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert port_tree(source, tmp_path / "out").written == ()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before
    run(Tree(tmp_path / "out", tmp_path / "again", everything=True))
    assert files(tmp_path / "again") == files(tmp_path / "out")


def test_includes_follow_the_files_that_they_name(tmp_path: Path) -> None:
    source = write(
        tmp_path / "src",
        k__a_dot_cu='#include "../lib/x.cuh"\n#include "lib/x.cuh"\n#include "cuda.h"\n#include "skip/y.cuh"\n'
        '#include "../skip/y.cuh"\n#include <elsewhere/z.cuh>\n',
        k__cuda_dot_h="int own;\n",
        lib__x_dot_cuh="",
        skip__y_dot_cuh="",
    )
    port_tree(source, tmp_path / "out", ignore=[source / "skip"])
    assert files(tmp_path / "out")["k/a.mu"].splitlines() == [
        '#include "../lib/x.muh"',
        '#include "lib/x.muh"',
        '#include "cuda.h"',  # one of their own
        '#include "skip/y.muh"',
        '#include "../skip/y.cuh"',  # is there, and keeps its name
        "#include <elsewhere/z.muh>",
    ]


def test_names_that_other_files_define_are_no_unknown_ones(tmp_path: Path) -> None:
    source = write(
        tmp_path / "src",
        a_dot_cu="#define HERE_CUDA 1\nMY_CUDA_LOOP(HERE_CUDA); cudaNope(); OwnCUDAThing t;\n",
        b_dot_cuh="#define MY_CUDA_LOOP(i) for (;;)\nclass MY_API OwnCUDAThing final { int a; };\n",
    )
    done = port_tree(source, tmp_path / "out")
    assert [problem.message for problem in done.problems] == ["'cudaNope' has no known MUSA counterpart"]


def test_hand_written_files_are_left_alone(source: Path, tmp_path: Path) -> None:
    write(source, hand_dot_mu="cudaStream_t mine;\n", a_dot_mu="my own a\n")
    done = port_tree(source, tmp_path / "out")
    assert [str(problem).splitlines()[0] for problem in done.problems] == [
        f"{source}/a.cu: warning: not ported: a.mu stands beside it, written by hand"
    ]
    out = files(tmp_path / "out")
    assert out["a.mu"] == "my own a\n" and "hand.mu" not in out
    run(Tree(source, tmp_path / "out", everything=True))
    assert files(tmp_path / "out")["hand.mu"] == "cudaStream_t mine;\n"


def test_a_target_that_nobody_ported_is_left_alone(source: Path, tmp_path: Path) -> None:
    out = write(tmp_path / "out", a_dot_mu="somebody's\n")
    done = port_tree(source, out)
    assert [str(problem).splitlines()[0] for problem in done.problems] == [
        f"{out}/a.mu: error: was not written by opgen port"
    ]
    assert files(out)["a.mu"] == "somebody's\n" and "host.cpp" in files(out)


def test_a_port_that_was_changed_by_hand_is_left_alone(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    port_tree(source, out)
    (out / "a.mu").write_text("better\n")
    again = port_tree(source, out)
    assert again.problems == () and {f.target.name: f.state for f in again.files}["a.mu"] is State.KEPT
    (source / "a.cu").write_text("int news;\n")
    done = port_tree(source, out)
    assert [problem.message for problem in done.problems] == ["was changed by hand since it was ported"]
    assert files(out)["a.mu"] == "better\n"


def test_what_an_interrupted_run_has_written_is_known_to_the_next(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = opgen.port.ours.put

    def interrupted(target: Path, data: bytes, **choices: bool) -> object:
        if target.name == "host.cpp":
            raise KeyboardInterrupt
        return put(target, data, **choices)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("opgen.port.ours.put", interrupted)
        port_tree(source, tmp_path / "out")
    assert sorted(files(tmp_path / "out")) == ["a.mu"]
    (source / "a.cu").write_text("int news;\n")
    assert port_tree(source, tmp_path / "out").problems == ()
    assert files(tmp_path / "out")["a.mu"] == "int news;\n"


def test_an_interrupt_while_a_file_is_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def interrupted(path: Path, *arguments: str) -> object:
        opened(path, *arguments).close()  # type: ignore[call-overload]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "open", interrupted)
        write_atomically(tmp_path / "a.mu", b"text")
    assert list(tmp_path.iterdir()) == []


def test_names_may_be_as_long_as_the_disk_allows(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / f"{'日' * 84}.cu").write_text("cudaStream_t s;\n")
    assert port_tree(source, tmp_path / "out").problems == ()
    assert files(tmp_path / "out") == {f"{'日' * 84}.mu": "musaStream_t s;\n"}


def test_a_port_whose_source_is_gone_is_removed_only_when_asked(source: Path, tmp_path: Path) -> None:
    out = write(tmp_path / "out", notes_dot_txt="mine")
    port_tree(source, out)
    (source / "host.cpp").unlink()
    (source / "inc/b.cuh").unlink()
    (out / "inc/b.muh").write_text("changed by hand")
    done = port_tree(source, out)
    assert [problem.message for problem in done.problems] == ["a port whose source is gone"]
    assert "host.cpp" in files(out)
    assert run(Tree(source, out, clean=True)).stale == (out / "host.cpp",)
    assert sorted(files(out)) == ["a.mu", "inc/b.muh", "notes.txt"]


def test_two_sources_of_one_port_are_an_error(tmp_path: Path) -> None:
    source = write(tmp_path / "src", ATen__cuda__x_dot_h="int a;\n", ATen__musa__x_dot_h="int b;\n")
    done = port_tree(source, tmp_path / "out")
    assert [problem.message for problem in done.problems] == [
        f"its port would be {tmp_path}/out/ATen/musa/x.h, which is the port of ATen/cuda/x.h"
    ]
    assert files(tmp_path / "out") == {"ATen/musa/x.h": "int a;\n"}


def test_bad_files_are_reported_and_the_rest_is_ported(source: Path, tmp_path: Path) -> None:
    (source / "latin.cu").write_bytes(b"// caf\xe9\n")
    write(source, broken_dot_cu="void f() {\n  g(1;\n}\n", cut_dot_cu="void f() { cudaMalloc(\n")
    (source / "nowhere.cu").symlink_to(source / "missing")
    (source / "itself.cu").symlink_to(source / "itself.cu")
    (source / "inc/loop").symlink_to(source)
    (source / "twice").symlink_to(source / "inc")
    result = command(source, "--out", tmp_path / "out")
    lines = [line.replace(f"{source}/", "") for line in result.stderr.splitlines() if line[:1] == "/"]
    assert lines == [
        "broken.cu:3:1: error: '}' closes nothing",
        "cut.cu:1:22: error: '(' is never closed",
        "inc/loop: error: a link in a circle: it leads to a folder above itself",
        "itself.cu: error: cannot be read: Too many levels of symbolic links",
        "latin.cu:1:7: error: not UTF-8 text",
        "nowhere.cu: error: cannot be read: No such file or directory",
        "twice: warning: a link to a folder that is ported in its own place",
    ]
    assert result.exit_code == 1 and result.exception.__class__ is SystemExit
    assert sorted(files(tmp_path / "out")) == ["a.mu", "host.cpp", "inc/b.muh"]


def test_a_link_to_a_folder_elsewhere_is_followed(source: Path, tmp_path: Path) -> None:
    write(tmp_path / "common", c_dot_cuh="cudaEvent_t e;\n")
    (source / "common").symlink_to(tmp_path / "common")
    port_tree(source, tmp_path / "out")
    assert files(tmp_path / "out")["common/c.muh"] == "musaEvent_t e;\n"


@pytest.mark.parametrize("out", [".", "..", "../src/../src"])
def test_sources_are_never_ported_in_place_or_below_the_output(source: Path, out: str) -> None:
    before = files(source)
    result = command(source, "--out", source / out)
    assert result.exit_code == 1 and "name another folder with --out" in result.stderr
    assert files(source) == before


def test_a_hand_written_file_where_a_port_belongs_is_left_alone_at_every_run(tmp_path: Path) -> None:
    source = write(
        tmp_path / "src", ATen__cuda__CUDAThing_dot_cuh="cudaEvent_t e;", ATen__musa__MUSAThing_dot_muh="mine"
    )
    for _ in range(2):
        done = port_tree(source, tmp_path / "out")
        assert [p.message.split(":")[0] for p in done.problems] == ["not ported"]
        assert files(tmp_path / "out") == {"ATen/musa/MUSAThing.muh": "mine"}
    assert done.written == ()


def test_an_include_by_a_way_round_outside_leads_to_the_port(tmp_path: Path) -> None:
    source = write(tmp_path / "src", sub__a_dot_cu='#include "../../src/b.cuh"\n', b_dot_cuh="int x;")
    write(tmp_path, outside_dot_cuh="int y;")
    write(source, c_dot_cu='#include "../outside.cuh"\n')
    port_tree(source, tmp_path / "out")
    assert files(tmp_path / "out")["sub/a.mu"] == '#include "../b.muh"\n'
    assert files(tmp_path / "out")["c.mu"] == '#include "../outside.cuh"\n'


def test_pipes_are_told_and_never_read(source: Path, tmp_path: Path) -> None:
    os.mkfifo(source / "pipe.cu")
    os.mkfifo(source / "pipe.txt")
    done = run(Tree(source, tmp_path / "out", everything=True))
    assert [str(p).splitlines()[0] for p in done.problems] == [f"{source}/pipe.cu: error: neither a file nor a folder"]
    assert sorted(files(tmp_path / "out")) == ["a.mu", "host.cpp", "inc/b.muh"]


@pytest.mark.parametrize("text, what", [("UTF-16", "it is UTF-16"), ("UTF-32", "it is UTF-32")])
def test_a_file_in_another_encoding_is_called_by_its_name(source: Path, tmp_path: Path, text: str, what: str) -> None:
    (source / "wide.cu").write_text("cudaStream_t s;\n", encoding=text)
    assert f"wide.cu:1:1: error: not UTF-8 text: {what}" in command(source, "--out", tmp_path / "out").stderr


def test_a_file_of_somebody_elses_is_no_place_for_the_port_of_one_file(tmp_path: Path) -> None:
    write(tmp_path, a_dot_cu="cudaStream_t s;\n", a_dot_mu="mine")
    one = (tmp_path / "a.cu", "--out", tmp_path / "a.mu")
    refused = command(*one)
    assert refused.exit_code == 1 and "was not written by opgen port" in refused.stderr
    assert (tmp_path / "a.mu").read_text() == "mine"
    assert command(*one, "--overwrite").exit_code == 0
    write(tmp_path, a_dot_cu="cudaEvent_t e;\n")
    assert command(*one).exit_code == 0  # this one was written by a port
    assert (tmp_path / "a.mu").read_text() == "musaEvent_t e;\n"


def test_one_file_goes_where_out_says(tmp_path: Path) -> None:
    write(tmp_path, a_dot_cpp="cudaStream_t s;\n", b_dot_cu="f(cudaFoo);\n")
    assert command(tmp_path / "a.cpp", "--out", tmp_path / "c.cpp").exit_code == 0
    assert (tmp_path / "c.cpp").read_text() == "musaStream_t s;\n"
    wrong = command(tmp_path / "b.cu", "--out", tmp_path / "c.cu")
    assert wrong.exit_code == 1 and "the port of b.cu is called *.mu" in wrong.stderr
    assert command(tmp_path / "b.cu", "--out", tmp_path / "b.mu", "--partial").exit_code == 1
    assert (tmp_path / "b.mu").read_text() == "f(cudaFoo);\n"


def test_ports_into_one_folder_at_the_same_time_are_all_recorded(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(6)]
    write(tmp_path / "src", **{f"{name}_dot_cu": "cudaStream_t s;\n" for name in names})
    commands = [
        [sys.executable, "-m", "opgen.port", str(tmp_path / f"src/{name}.cu"), "--out", str(tmp_path / "out")]
        for name in names
    ]
    assert [p.wait() for p in [subprocess.Popen(command, cwd=ROOT) for command in commands]] == [0] * len(names)
    recorded = json.loads((tmp_path / "out/.opgen-port.json").read_text())["files"]
    assert sorted(recorded) == [f"{name}.mu" for name in names]


def test_the_record_names_files_by_their_bytes() -> None:
    out, name = Path("/out"), "\u65e5.mu"
    seen_in_c_locale = name.encode().decode("ascii", "surrogateescape")
    assert opgen.port.ours.key_of(out / name, out) == opgen.port.ours.key_of(out / seen_in_c_locale, out) == name
    assert opgen.port.ours.path_of(name, out) == out / name


def test_one_file_is_never_ported_onto_itself(tmp_path: Path) -> None:
    write(tmp_path, a_dot_mu="cudaStream_t s;\n")
    assert command(tmp_path / "a.mu", "--out", tmp_path / "a.mu").exit_code == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="/proc refuses files to everybody, but says so only to root in this way")
def test_an_output_folder_that_takes_no_files_is_one_error(source: Path) -> None:
    result = command(source, "--out", "/proc/port")
    assert result.exit_code == 1 and result.stderr.count("error:") == 1 and "cannot be written to" in result.stderr


def test_an_output_folder_that_is_a_file_is_an_error(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    result = command(source, "--out", tmp_path / "out")
    assert result.exit_code == 1 and "cannot be written to" in result.stderr


def test_a_place_that_takes_no_file_costs_that_file_alone(source: Path, tmp_path: Path) -> None:
    out = write(tmp_path / "out", inc="a file where a folder should be")
    result = command(source, "--out", out)
    assert result.exit_code == 1 and f"{out}/inc/b.muh: error: cannot be written: " in result.stderr
    assert sorted(files(out)) == ["a.mu", "host.cpp", "inc"]


def test_line_ends_and_marks_of_a_file_stay(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.cu").write_bytes(
        b"\xef\xbb\xbf#define F(x) \\\r\n  cudaFree(x) // cudaFree\r\nint \xc3\xa9;\r\n"
    )
    port_tree(tmp_path / "src", tmp_path / "out")
    expected = b"\xef\xbb\xbf#define F(x) \\\r\n  musaFree(x) // cudaFree\r\nint \xc3\xa9;\r\n"
    assert (tmp_path / "out/a.mu").read_bytes() == expected


def test_a_broken_record_of_earlier_ports_is_told(source: Path, tmp_path: Path) -> None:
    write(tmp_path / "out", **{"_dot_opgen-port_dot_json": "{"})
    result = command(source, "--out", tmp_path / "out")
    assert result.exit_code == 1 and "the record of earlier ports cannot be read" in result.stderr


def test_check_writes_nothing_and_fails_while_anything_is_to_do(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command(source, "--out", out, "--check").exit_code == 1
    assert not out.exists()
    assert command(source, "--out", out).exit_code == 0
    assert command(source, "--out", out, "--check").exit_code == 0
    write(source, d_dot_cu="__global__ void k(double* p) {}\n")
    assert command(source, "--out", out, "--arch", "mp_21").exit_code == 0
    assert command(source, "--out", out, "--arch", "mp_21", "--check").exit_code == 1
    assert command(source, "--out", out, "--arch", "mp_21", "--fp64", "--check").exit_code == 0
    assert command(source, "--out", out, "--check", MUSA_ARCH="mp_21").exit_code == 1
    assert command(source, "--out", out, "--check", MUSA_ARCH="21;22;31").exit_code == 1  # one binary for all of them


def test_diff_shows_what_changes_and_writes_nothing(source: Path, tmp_path: Path) -> None:
    result = command(source, "--out", tmp_path / "out", "--diff")
    assert result.exit_code == 0 and not (tmp_path / "out").exists()
    assert "-cudaEvent_t e;\n+musaEvent_t e;\n" in result.stdout
    done = subprocess.run(["git", "apply", "--stat", "-p0"], input=result.stdout, text=True, capture_output=True)
    assert done.returncode == 0 and "3 files changed" in done.stdout


def test_the_report_says_what_became_of_every_file(source: Path, tmp_path: Path) -> None:
    write(source, bad_dot_cu="cudaNope(); cudaNope(); cudnnCreate();\n")
    result = command(source, "--out", tmp_path / "out", "--format", "json", "--report", tmp_path / "r/report.json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "r/report.json").read_text())
    assert report["counts"] == {"written": 3, "unchanged": 0, "copied": 0, "kept": 0, "failed": 1}
    assert report["unknown"] == [
        {"name": "cudaNope", "count": 2, "rule": "musaNope"},
        {"name": "cudnnCreate", "count": 1, "rule": None},
    ]
    assert [(p["line"], p["column"], p["end_column"]) for p in report["problems"]] == [
        (1, 1, 9),
        (1, 13, 21),
        (1, 25, 36),
    ]
    assert {"from": "cudaStream_t", "to": "musaStream_t", "count": 1} in report["files"][0]["changes"]


def test_rules_that_may_be_missing_are_proposed_in_a_form_that_map_takes(source: Path, tmp_path: Path) -> None:
    write(source, bad_dot_cu="cudaNope(); IMPL(x, CUDA, f); MY_CUDA_X;\n")
    result = command(source, "--out", tmp_path / "out")
    rules = [line.strip() for line in result.stderr.splitlines() if "\t" in line]
    assert rules == ["cudaNope\tmusaNope", "CUDA\tPrivateUse1", "MY_CUDA_X\tMY_MUSA_X"]
    (tmp_path / "rules.tsv").write_text("\n".join(rules))
    assert command(source, "--out", tmp_path / "out", "--map", tmp_path / "rules.tsv").exit_code == 0
    assert files(tmp_path / "out")["bad.mu"] == "musaNope(); IMPL(x, PrivateUse1, f); MY_MUSA_X;\n"


def test_partial_writes_what_has_errors_too(tmp_path: Path) -> None:
    source = write(tmp_path / "src", a_dot_cu="cudaNope(); cudaFree(p);\n")
    assert command(source, "--out", tmp_path / "out").exit_code == 1
    assert files(tmp_path / "out") == {}
    assert command(source, "--out", tmp_path / "out", "--partial").exit_code == 1
    assert files(tmp_path / "out") == {"a.mu": "cudaNope(); musaFree(p);\n"}


def test_ignored_folders_are_meant_from_here_or_from_the_sources(source: Path, tmp_path: Path) -> None:
    for ignore in (source / "inc", "inc"):
        port_tree(source, tmp_path / str(ignore).strip("/").replace("/", "-"), ignore=[Path(ignore)])
    assert command(source, "--out", tmp_path / "out", "--ignore", "inc").exit_code == 0
    assert sorted(files(tmp_path / "out")) == ["a.mu", "host.cpp"]
    assert "no such folder to ignore" in command(source, "--out", tmp_path / "out", "--ignore", "nowhere").stderr
    assert "this is all of the source" in command(source, "--out", tmp_path / "out", "--ignore", source).stderr


def test_a_terminal_sees_a_bar(source: Path, tmp_path: Path) -> None:
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    arguments = [sys.executable, "-m", "opgen.cli", "port", str(source), "--out", str(tmp_path / "out")]
    done = subprocess.run(arguments, cwd=ROOT, stderr=other, stdout=subprocess.DEVNULL, env=environment)
    os.close(other)
    shown = os.read(main, 65536).decode()
    os.close(main)
    assert done.returncode == 0 and "porting" in shown and "2/3" in shown.replace(" ", "")


def test_five_megabytes_take_seconds() -> None:
    """2.9 s on a loaded core when this was written; the bound is for slow machines."""
    text = (ROOT / "kernels/ported/ScatterReduce.cu").read_text()
    start = time.process_time()
    done = port_text(text * (5_000_000 // len(text)), load_mapping())
    assert not done.problems and time.process_time() - start < 20


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void f() { g<<<1, 1>>>(); }\n" * 8_000,
        "void f() { g<<<1, 1>>>(); }\n" * 8_000,
        "namespace cuda {" * 60_000 + "}" * 60_000,
        "int x = " + "a + " * 60_000 + "1;",
        "/**/ " * 100_000,
    ],
    ids=["launches from kernels", "launches", "deep namespaces", "deep sums", "comments"],
)
def test_time_grows_no_faster_than_the_source(source: str) -> None:
    """At most 1 s each when this was written, and minutes where it grew with the square."""
    start = time.process_time()
    port_text(source, load_mapping())
    assert time.process_time() - start < 8


def test_time_grows_no_faster_than_the_number_of_unknown_names(tmp_path: Path) -> None:
    calls = {f"f{i}_dot_cu": "".join(f"void g{j}() {{ cudaX{i}_{j}(); }}\n" for j in range(150)) for i in range(150)}
    source = write(tmp_path / "src", **calls)
    start = time.process_time()
    done = port_tree(source, tmp_path / "out")
    assert len(done.problems) == 150 * 150 and time.process_time() - start < 12


def test_nonsense_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opgen.port.structure._SECONDS", -10.0)  # no machine is fast enough for that
    source = "} ( cudaX <<< #if\n __global__ { ) double " * 10_000
    start = time.process_time()
    done = port_text(source, load_mapping())
    assert "the grammar makes too little sense of this file to port it" in {p.message for p in done.problems}
    assert time.process_time() - start < 15
