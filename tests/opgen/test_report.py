"""How diagnostics leave the command: text, JSON, workflow commands; which stream; colours."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from generator_cases import write_kernels
from hypothesis import given
from hypothesis import strategies as st

from opgen.cli import main, opgen
from opgen.diagnostics import Diagnostic, Location, OpgenError, Severity, as_record, from_record
from opgen.report import Format, Reporter, as_github, as_json

ROOT = Path(__file__).resolve().parents[2]
BROKEN = "- func: trill\n- func: nonzero\n  dispach: {PrivateUse1: K}\n"
GOOD = "- func: view_as_real\n  dispatch: {PrivateUse1: view_as_real}\n"
KEYS = ["severity", "path", "line", "column", "end_line", "end_column", "message", "hint"]

_texts = st.text(st.characters(exclude_categories=()), max_size=30)
_numbers = st.integers(0, 10**6)
diagnostics = st.builds(
    Diagnostic,
    st.sampled_from(Severity),
    st.builds(Location, _texts, _numbers, _numbers, _numbers, _numbers),
    _texts,
    st.none() | _texts,
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Operator lists by name, and a folder of kernels."""
    kernels = write_kernels(tmp_path, {"mudnn/A.cpp": "namespace at::musa {}\n"})
    found = {"kernels": kernels, "broken": tmp_path / "broken.yaml", "good": tmp_path / "good.yaml"}
    found["broken"].write_text(BROKEN)
    found["good"].write_text(GOOD)
    return found


def run(capsys: Any, *args: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in args])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def document(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text)
    assert list(parsed) == ["version", "errors", "warnings", "diagnostics"] and parsed["version"] == 1
    assert all(list(record) == KEYS for record in parsed["diagnostics"])
    counts = [sum(r["severity"] == s for r in parsed["diagnostics"]) for s in ("error", "warning")]
    assert counts == [parsed["errors"], parsed["warnings"]]
    return parsed


@given(st.lists(diagnostics, max_size=4))
def test_json_is_one_document_that_gives_the_diagnostics_back(items: list[Diagnostic]) -> None:
    text = as_json(items)
    assert text.isascii()
    back = [from_record(record) for record in document(text)["diagnostics"]]
    assert [as_record(item) for item in back] == [as_record(item) for item in items]
    assert back == items


def unescaped(text: str, *codes: str) -> str:
    """What the runner does to a command's parts: actions/runner, src/Runner.Common/ActionCommand.cs."""
    for code in codes:
        text = text.replace(code, chr(int(code[1:], 16)))
    return text.replace("%25", "%")


@given(diagnostics)
def test_a_workflow_command_is_one_line_that_the_runner_reads_back(item: Diagnostic) -> None:
    line = as_github(item)
    assert "\n" not in line and "\r" not in line
    empty, head, data = line.split("::", 2)
    command, _, properties = head.partition(" ")
    assert (empty, command) == ("", item.severity.value)
    assert unescaped(data, "%0D", "%0A") == str(item)
    given_ = dict(pair.split("=", 1) for pair in properties.split(",") if pair)
    where = item.location
    expected = {"file": where.path, "line": where.line, "endLine": where.end_line, "col": where.column}
    expected["endColumn"] = where.end_column
    assert {key: unescaped(value, "%0D", "%0A", "%3A", "%2C") for key, value in given_.items()} == {
        key: str(value) for key, value in expected.items() if value
    }


def test_a_workflow_command_by_example() -> None:
    item = Diagnostic(Severity.ERROR, Location("a,b:c%.yaml", 3, 9, 3, 14), "100% wrong", "first\nsecond")
    assert as_github(item) == (
        "::error file=a%2Cb%3Ac%25.yaml,line=3,endLine=3,col=9,endColumn=14::"
        "a,b:c%25.yaml:3:9: error: 100%25 wrong%0A    first%0A    second"
    )
    assert as_github(Diagnostic(Severity.WARNING, Location(""), "x")) == "::warning::warning: x"


@pytest.mark.parametrize("verb", ["gen", "check"])
def test_verbs_that_only_report_print_machine_formats_to_standard_output(verb, files, capsys, tmp_path):
    options = ["--kernels", files["kernels"], *(("--out", tmp_path / "out") if verb == "gen" else ())]
    code, out, err = run(capsys, verb, "--yaml", files["broken"], *options, "--format", "json")
    records = document(out)["diagnostics"]
    assert (code, err) == (1, "")
    assert [(r["line"], r["column"]) for r in records] == [(1, 9), (3, 3)]
    assert {r["path"] for r in records} == {str(files["broken"])}
    assert records[0]["hint"] == "did you mean 'tril'?" and records[0]["end_column"] == 14

    code, out, err = run(capsys, verb, "--yaml", files["good"], *options, "--format", "json")
    assert code == 0 and document(out)["diagnostics"] == []
    assert err.startswith("torch ")

    code, out, err = run(capsys, verb, "--yaml", files["broken"], *options, "--format", "github")
    assert (code, err) == (1, "")
    assert [line.split("::")[1] for line in out.splitlines()] == [
        f"error file={files['broken']},line=1,endLine=1,col=9,endColumn=14",
        f"error file={files['broken']},line=3,endLine=3,col=3,endColumn=10",
    ]


@pytest.mark.parametrize("verb", ["list", "coverage"])
def test_verbs_with_an_output_of_their_own_keep_it_clean(verb, files, capsys):
    code, out, err = run(capsys, verb, "--yaml", files["broken"], "--format", "json", "--diagnostics", "json")
    assert code == 1
    json.loads(out)
    assert document(err)["errors"] == 2
    code, out, err = run(capsys, verb, "--yaml", files["good"], "--format", "json", "--diagnostics", "json")
    assert code == 0 and document(err)["errors"] == 0


@pytest.mark.parametrize("verb", ["gen", "check", "list", "coverage"])
def test_what_ends_a_command_is_a_diagnostic_too(verb, tmp_path, capsys):
    code, out, err = run(capsys, verb, "--yaml", tmp_path / "none.yaml", "--diagnostics", "json")
    (record,) = document(out or err)["diagnostics"]
    assert code == 1
    assert (record["path"], record["line"], record["message"]) == (
        str(tmp_path / "none.yaml"),
        None,
        "no such operator list",
    )
    code, out, err = run(capsys, verb, "--yaml", tmp_path / "none.yaml", "--diagnostics", "github")
    assert (out or err).startswith(f"::error file={tmp_path / 'none.yaml'}::")


def test_the_environment_sets_the_format_for_a_whole_job(files, capsys, monkeypatch):
    monkeypatch.setenv("OPGEN_DIAGNOSTICS", "json")
    assert document(run(capsys, "check", "--yaml", files["broken"])[1])["errors"] == 2
    monkeypatch.setenv("OPGEN_DIAGNOSTICS", "xml")
    code, out, err = run(capsys, "check", "--yaml", files["broken"])
    assert code == 2 and out == "" and "'json', 'github'" in err


def test_every_verb_takes_the_option():
    context = click.Context(opgen)
    for name in opgen.list_commands(context):
        command = opgen.get_command(context, name)
        assert command is not None
        taken = [parameter for parameter in command.params if "--diagnostics" in parameter.opts]
        assert len(taken) == 1, name


def on_a_terminal(yaml: Path, **env: str) -> str:
    """Standard error of `opgen check` where it is a terminal."""
    master, slave = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "OPGEN_DIAGNOSTICS")}
    command = [sys.executable, "-m", "opgen.cli", "check", "--yaml", str(yaml)]
    subprocess.run(command, stderr=slave, env={**environment, "PYTHONPATH": str(ROOT), **env}, check=False)
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        text += piece
    os.close(master)
    return text.decode()


def test_colours_are_for_terminals_whose_user_wants_them(files, capsys):
    assert "\x1b[" in on_a_terminal(files["broken"])
    assert "\x1b[" not in on_a_terminal(files["broken"], NO_COLOR="1")
    assert "\x1b[" not in run(capsys, "check", "--yaml", files["broken"])[2]


def test_the_number_of_findings_ends_the_text(files, capsys):
    assert run(capsys, "check", "--yaml", files["broken"])[2].endswith("\n2 errors; nothing was written\n")


def test_what_another_program_said_is_shown_above_the_message_or_is_the_hint(capsys):
    error = OpgenError("the build failed", output="a.cpp:1:1: error: no\na.cpp:2:1: note: here\n")
    for output in Format:
        reporter = Reporter(output, machine_to_stdout=True)
        reporter.fail(error)
        reporter.close()
    out, err = capsys.readouterr()
    assert err == "a.cpp:1:1: error: no\na.cpp:2:1: note: here\nerror: the build failed\n"
    json_text, separator, command = out.partition("::error")
    (record,) = document(json_text)["diagnostics"]
    assert (record["message"], record["hint"]) == ("the build failed", "a.cpp:1:1: error: no\na.cpp:2:1: note: here")
    shown = "error: the build failed%0A    a.cpp:1:1: error: no%0A    a.cpp:2:1: note: here"
    assert separator + command == f"::error::{shown}\n"
