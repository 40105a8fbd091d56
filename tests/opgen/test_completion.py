"""Completion as a shell drives it, and what every verb's help ends with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from generator_cases import upstream

from opgen.cli import _COMMANDS, opgen
from opgen.completion import listed_names, upstream_names
from opgen.upstream import find_torch

VERBS = list(_COMMANDS)


def complete(cwd: Path, shell: str, words: list[str], **environment: str) -> tuple[list[str], float]:
    """What `opgen` answers when the last of `words` is to be completed, and the processor time that it took."""
    line = " ".join(["opgen", *words])
    position = {"fish": words[-1]}.get(shell, str(len(words)))
    before = os.times()
    result = subprocess.run(
        [sys.executable, "-m", "opgen.cli"],
        cwd=cwd,
        env={
            **os.environ,
            "_OPGEN_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": position,
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    assert result.stderr == ""
    took = after.children_user + after.children_system - before.children_user - before.children_system
    return re.findall(r"^(?:plain[,\n])?([^\s,_]\S*|_\S+)$", result.stdout, re.MULTILINE), took


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "musa_functions.yaml").write_text(
        "- func: lerp.Scalar\n- func: 'musa::rope(Tensor q) -> Tensor'\n"
    )
    return tmp_path


def test_verbs_are_completed(project: Path) -> None:
    assert complete(project, "bash", ["e"])[0] == ["explain"]
    assert "coverage" in complete(project, "bash", ["co"])[0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_operators_are_completed(project: Path, shell: str) -> None:
    found = complete(project, shell, ["explain", "lerp"])[0]
    assert {"lerp.Scalar", "lerp.Scalar_out", "lerp_.Tensor"} <= set(found)


def test_operators_of_our_own_and_generated_ones_are_completed(project: Path) -> None:
    assert complete(project, "bash", ["explain", "musa::r"])[0] == ["musa::rope"]
    assert "celu.out" in complete(project, "bash", ["explain", "celu"])[0]


def test_options_are_completed(project: Path) -> None:
    assert "--format" in complete(project, "bash", ["explain", "--f"])[0]


def test_completing_an_operator_takes_less_than_three_tenths_of_a_second(project: Path, tmp_path: Path) -> None:
    # the best of three, without any cache: other processes may be busy
    empty = {"OPGEN_CACHE_DIR": str(tmp_path / "no-cache")}
    assert min(complete(project, "bash", ["explain", "lerp"], **empty)[1] for _ in range(3)) < 0.3
    started = time.perf_counter()
    complete(project, "bash", ["explain", "lerp"])
    assert time.perf_counter() - started < 3


def test_a_broken_installation_completes_to_nothing(project: Path) -> None:
    (project / "torch").mkdir()  # shadows the real one, and has no version.py
    (project / "torch" / "__init__.py").touch()
    code = "import sys; sys.path.insert(0, '.'); from opgen.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, "_OPGEN_COMPLETE": "bash_complete", "COMP_WORDS": "opgen explain x", "COMP_CWORD": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout.strip(), result.stderr) == ("", "")


def test_names_read_by_pattern_are_those_of_the_catalogue() -> None:
    names, real = upstream_names(find_torch().native_yaml.read_text()), set(upstream().names)
    assert names <= real
    assert all(upstream().is_generated(op) for op in real - names) and len(real - names) < 10


def test_listed_names_in_every_spelling() -> None:
    text = (
        "- func: a.out\n  - func: 'b(Tensor x)'\n- {func: c_.S, dispatch: {}}\n# - func: no\n-  func: musa::d(Tensor q)"
    )
    assert listed_names(text) == {"a.out", "b", "c_.S", "musa::d"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_accepted_by_its_shell(shell: str) -> None:
    result = CliRunner().invoke(opgen, ["completion", shell], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout.startswith("# ") and "_OPGEN_COMPLETE" in result.stdout
    program = shutil.which(shell)
    if program is not None:
        done = subprocess.run([program, "-n"], input=result.stdout, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_really_completes_an_operator(project: Path) -> None:
    """The script is sourced, and its function called as bash calls it on the tabulator key."""
    wrapper = project / "bin" / "opgen"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m opgen.cli "$@"\n')
    wrapper.chmod(0o755)
    script = """
        eval "$(opgen completion bash | grep -v '^complete\\|^_opgen_completion_setup;')"
        COMP_WORDS=(opgen explain tril.o); COMP_CWORD=2
        _opgen_completion opgen
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    environment = {
        **os.environ,
        "PATH": f"{wrapper.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["tril.out"], done.stderr


# ---- help


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_ends_with_an_example(verb: str) -> None:
    result = CliRunner().invoke(opgen, [verb, "--help"], catch_exceptions=False)
    assert result.exit_code == 0
    last = result.stdout.strip().split("\n\n")[-1]
    assert re.search(rf"^\s*Example: .*\bopgen {verb}\b", last), last
    assert "\x1b" not in result.stdout


def test_help_lists_every_verb_and_ends_with_an_example() -> None:
    text = CliRunner().invoke(opgen, ["--help"], catch_exceptions=False).stdout
    assert all(re.search(rf"^  {verb} ", text, re.MULTILINE) for verb in VERBS)
    assert text.strip().splitlines()[-1].strip().startswith("Example: opgen")
