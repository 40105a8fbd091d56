"""The guide is true: what it quotes stands in the files it names, and its other entries and kernels fit together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from opgen.classify import Kind
from opgen.diagnostics import Diagnostics
from opgen.gen import Sources, analyse
from opgen.project import find_root
from opgen.upstream import find_torch

ROOT = find_root(Path(__file__).parent)
GUIDE = ROOT / "docs" / "add_an_op.md"


@dataclass(frozen=True)
class Block:
    """A fenced block; `path` is the project file it says it quotes."""

    language: str
    path: str | None
    text: str
    line: int


def blocks(document: Path = GUIDE) -> list[Block]:
    found = []
    source = document.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", source, re.DOTALL | re.MULTILINE):
        language, text = match[1], match[2]
        quoted = re.match(r"(?://|#) ((?:yaml|kernels)/\S+)\n", text)
        line = source.count("\n", 0, match.start()) + 1
        found.append(Block(language, quoted and quoted[1], text[quoted.end() :] if quoted else text, line))
    return found


def named(block: Block) -> str:
    return f"line {block.line}"


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("block", [b for b in blocks() if b.path and b.language == "cpp"], ids=named)
def test_quoted_source_is_in_its_file(block: Block) -> None:
    assert block.path is not None
    assert one_line(block.text) in one_line((ROOT / block.path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("block", [b for b in blocks() if b.path and b.language == "yaml"], ids=named)
def test_quoted_entries_are_in_the_operator_list(block: Block) -> None:
    assert block.path is not None
    listed = {entry["func"]: entry for entry in yaml.safe_load((ROOT / block.path).read_text(encoding="utf-8"))}
    for entry in yaml.safe_load(block.text):
        whole = listed[entry["func"]]
        # the guide may leave out kernels for sparse and other tensors
        assert entry.get("dispatch", {}).items() <= whole.get("dispatch", {}).items()
        assert "PrivateUse1" in entry.get("dispatch", {}) or "PrivateUse1" not in whole.get("dispatch", {})
        assert {**whole, "dispatch": None} == {**entry, "dispatch": None}


def test_the_other_entries_and_kernels_fit_together(tmp_path: Path) -> None:
    """Each free-standing entry is valid, and the kernels shown for them have the signatures required."""
    entries = "".join(b.text for b in blocks() if b.language == "yaml" and b.path is None)
    operator_list = tmp_path / "ops.yaml"
    # add.Tensor alone is half a group: its out overload follows upstream's structure with an impl of its own.
    operator_list.write_text(entries + "- func: add.out\n  dispatch: {PrivateUse1: MusaAdd}\n")
    kernels = tmp_path / "kernels"
    (kernels / "mudnn").mkdir(parents=True)
    for i, block in enumerate(b for b in blocks() if b.language == "cpp" and b.path is None):
        (kernels / "mudnn" / f"{i}.cpp").write_text(block.text)
    (kernels / "mudnn" / "AddOut.cpp").write_text(
        "namespace at::musa { TORCH_IMPL_FUNC(MusaAdd)"
        "(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& out) {} }"
    )
    diagnostics = Diagnostics()
    analysis = analyse(Sources(operator_list, kernels, find_torch()), diagnostics)
    assert [str(item) for item in diagnostics] == []
    kinds = {(r.op, r.kind, r.form.value if r.form else None) for r in analysis.registrations}
    assert {
        ("bincount", Kind.UNSTRUCTURED, "fallback"),
        ("musa::scaled_relu", Kind.UNSTRUCTURED, "new"),
        ("add.Tensor", Kind.UNSTRUCTURED, "own"),
    } <= kinds


ERRORS = ROOT / "docs" / "errors.md"


def errors_in(folder: Path, kernels: dict[str, str], operators: str, *options: str) -> str:
    """What `opgen check` prints about a project of these files."""
    (folder / "yaml").mkdir()
    (folder / "yaml" / "musa_functions.yaml").write_text(operators)
    for name, text in kernels.items():
        (folder / "kernels" / "mudnn").mkdir(parents=True)
        (folder / "kernels" / "mudnn" / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPGEN_DIAGNOSTICS": "text"}
    command = [sys.executable, "-m", "opgen.cli", "check", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return (done.stdout + done.stderr).replace(find_torch().version, "2.13.0+cpu")


def test_the_errors_shown_are_the_ones_that_are_printed(tmp_path: Path) -> None:
    found = {b.language: b for b in reversed(blocks(ERRORS))}
    shown = errors_in(tmp_path, {"Nonzero.cpp": found["cpp"].text}, found["yaml"].text)
    assert shown == found["text"].text


def test_the_json_shown_is_the_one_that_is_printed(tmp_path: Path) -> None:
    (block,) = (b for b in blocks(ERRORS) if b.language == "json")
    assert errors_in(tmp_path, {"None.cpp": ""}, "- func: trill\n", "--format", "json") == block.text


def test_links_lead_somewhere() -> None:
    for document in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        text = document.read_text(encoding="utf-8")
        for target, anchor in re.findall(
            r"\]\(([^)#\s]*)(#[^)\s]*)?\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        ):
            if target.startswith(("http://", "https://")):
                continue
            linked = (document.parent / target).resolve() if target else document
            assert linked.exists(), f"{document.name} links to {target}"
            if anchor and linked.suffix == ".md":
                headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {"#" + re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
                assert anchor in anchors, f"{document.name} links to {target}{anchor}"
