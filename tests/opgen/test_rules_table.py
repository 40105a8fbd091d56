"""docs/rules.md names a golden and a runtime test for every rule, and both exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from opgen.backend import MUSA
from opgen.classify import Form, Kind
from opgen.testing.listing import read_listed

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = {"E": "tests/opgen/test_emit_golden.py", "R": "tests/opgen/test_golden_rules.py"}
CHECKS = "tests/rules/checks.py"


def rows(text: str) -> list[tuple[str, ...]]:
    """The cells of every table row, heads left out."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not set(line) <= set("|-")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]
    return [row for row in cells if row[0] not in ("rule", "upstream's overload")]


RULES = rows((ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def exists(reference: str, operators: set[str]) -> bool:
    """Whether there is what a reference (``E `test_legacy` ``) names."""
    match = re.fullmatch(r"(?:([EROC]) )?`([^`]+)`", reference)
    assert match is not None, f"not a reference: {reference}"
    where, name = match.groups()
    if where in GOLDENS:
        return name in functions(GOLDENS[where])
    if where == "C":
        return f"check_{name}" in functions(CHECKS)
    if where == "O":
        return name in operators
    path, _, test = name.partition("::")
    return (ROOT / path).is_file() and test in functions(path)


@pytest.mark.parametrize("row", RULES, ids=lambda row: row[0])
def test_rule_has_a_golden_and_a_runtime_test(row: tuple[str, ...]) -> None:
    operators = {listed.op for listed in read_listed(ROOT / "yaml" / "musa_functions.yaml")}
    rule, golden, runtime = row
    assert all(re.match(r"[ER] `", each) for each in golden.split(", ")), f"no golden for {rule}"
    missing = [each for each in (*golden.split(", "), *runtime.split(", ")) if not exists(each, operators)]
    assert not missing, f"{rule}: no such test"


def test_every_kind_form_and_key_has_a_rule() -> None:
    rules = "\n".join(row[0] for row in RULES)
    named = {kind.value for kind in Kind if kind is not Kind.UNSTRUCTURED} | {form.value for form in Form}
    assert [name for name in sorted(named) if not re.search(rf"^{name}\b", rules, re.MULTILINE)] == []
    assert [key for key in MUSA.dispatch_keys if not re.search(rf"^{key}$", rules, re.MULTILINE)] == []


def test_every_row_of_the_guides_table_is_a_rule() -> None:
    guide = (ROOT / "docs" / "add_an_op.md").read_text(encoding="utf-8")
    table = guide[guide.index("## Which way?") : guide.index("## Structured operators")]
    named = {(kind, form) for row in rows(table) for kind, _, form in [row[2].partition(", ")]}
    assert {kind for kind, _ in named} >= {"legacy", "legacy_meta", "customized", "unstructured"}
    rules = "\n".join(row[0] for row in RULES)
    for kind, form in named - {("unstructured", ""), ("as its out overload", "")}:
        assert re.search(rf"^{form or kind}\b", rules, re.MULTILINE), f"no rule for {kind}, {form}"
    assert "as its out overload" in rules and "`K` and `structured: false`" in rules


def test_every_check_and_every_golden_belongs_to_a_rule() -> None:
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    checks = {name.removeprefix("check_") for name in functions(CHECKS) if name.startswith("check_")}
    goldens = {name for name in functions(GOLDENS["R"]) if name.startswith("test_")}
    assert [name for name in sorted(checks | goldens) if f"`{name}`" not in text] == []
