"""The house rules that can be read off the sources: sizes of modules, who imports whom, what is imported lazily."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 420
FOREIGN = ("torch_musa", "sdk", "kernels", "tests", "benchmarks")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((ROOT / "opgen").rglob("*.py"))}


def imports(path: Path, *, at_import: bool) -> Iterator[str]:
    """Names of the modules that a source imports; with `at_import` only those that importing it imports."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8")), at_import):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parts, *([base] if base else [])])
            for alias in node.names:
                # `from opgen import tree` imports a module, `from opgen.tree import X` a name.
                full = f"{base}.{alias.name}"
                yield full if full in MODULES else base


def _nodes(node: ast.AST, at_import: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if at_import and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _nodes(child, at_import)


def top(name: str) -> str:
    return name.partition(".")[0]


def test_no_import_cycle():
    graph = {
        name: {target for target in imports(path, at_import=True) if target in MODULES and target != name}
        for name, path in MODULES.items()
    }
    # Importing a module imports its packages first, but a package that names its own modules is no cycle.
    try:
        order = list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")
    assert len(order) == len(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_short(name):
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("name", MODULES)
def test_the_tool_does_not_import_the_backend(name):
    assert not {target for target in imports(MODULES[name], at_import=False) if top(target) in FOREIGN}


@pytest.mark.parametrize("name", MODULES)
def test_torch_is_imported_by_the_test_bench_alone_and_by_the_probe_lazily(name):
    eager = {top(target) for target in imports(MODULES[name], at_import=True)}
    lazy = {top(target) for target in imports(MODULES[name], at_import=False)} - eager
    assert "torch" not in eager or name.startswith("opgen.testing.")
    assert "torch" not in lazy or name.startswith(
        ("opgen.testing", "opgen.coverage", "opgen.truth", "opgen.trace.runner")
    )


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("opgen.testing")])
def test_nothing_else_imports_the_test_bench_with_itself(name):
    assert not [target for target in imports(MODULES[name], at_import=True) if target.startswith("opgen.testing")]


def test_the_checks_see_what_they_look_for(tmp_path, monkeypatch):
    """An import inside a function counts only as a lazy one, one under TYPE_CHECKING as none."""
    source = ROOT / "opgen" / "example.py"
    text = (
        "import torch.nn\nfrom . import tree\nfrom .emit import files\nfrom opgen.gen import Sources\n"
        "if TYPE_CHECKING:\n    import click\ndef f():\n    import rich\n"
    )
    monkeypatch.setattr(Path, "read_text", lambda self, **_: text)
    eager = list(imports(source, at_import=True))
    assert eager == ["torch.nn", "opgen.tree", "opgen.emit.files", "opgen.gen"]
    assert list(imports(source, at_import=False)) == [*eager, "rich"]


def test_generating_is_typed_strictly():
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"] is True
    assert "opgen" in settings.get("packages", settings.get("files", []))
