"""The verb `opgen new`."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from opgen.completion import UNLISTED_OPERATOR
from opgen.diagnostics import Location, OpgenError
from opgen.options import yaml_option

if TYPE_CHECKING:
    from opgen.kernels import Family
    from opgen.new.plan import Files, Plan

__all__ = ["command"]

_KINDS = ("legacy", "legacy_meta", "customized", "unstructured", "reused", "cpu_fallback")
_FAMILIES = ("mudnn", "ported", "cpu_fallback")


@click.command(epilog="Example: opgen new fractional_max_pool2d --family ported --dry-run")
@click.argument("op", type=UNLISTED_OPERATOR)
@yaml_option
@click.option("--kind", type=click.Choice(_KINDS), help="How much of PyTorch's code to reuse; default: what fits best.")
@click.option("--family", type=click.Choice(_FAMILIES), help="The folder under kernels/ that the kernel goes to.")
@click.option("--name", metavar="KERNEL", help="Name of the kernel and of its source; default: after the operator.")
@click.option("--dry-run", is_flag=True, help="Show what would be written.")
def command(
    op: str, yaml_path: Path | None, kind: str | None, family: str | None, name: str | None, dry_run: bool
) -> None:
    """Add an operator: the entries of its whole group, the skeleton of its kernel, a test.

    OP is an overload (`fractional_max_pool2d`, `aten::fractional_max_pool2d.output`), or the schema of an operator of
    your own: `'musa::rope(Tensor q, Tensor k) -> Tensor'`. The entries go next to their relatives in the operator list,
    every other byte of which stays as it is. The skeleton compiles at once; calls of it raise NotImplementedError until
    its computation is written, and until then the operator counts as missing. Either everything is written or nothing.

    Kinds: legacy (upstream's meta function and implementation, a kernel on a DispatchStub), legacy_meta (upstream's
    meta function), customized (nothing but the structure), unstructured (a plain function for each overload), reused
    (upstream's function as it is), cpu_fallback (through the CPU, on purpose).
    """
    from opgen.explain.command import load_inputs
    from opgen.new.choose import Request
    from opgen.new.plan import make_plan
    from opgen.new.write import locked, write_all
    from opgen.project import find_project
    from opgen.ways import WayKind

    project = find_project()
    path = yaml_path or project.yaml
    if not path.is_file():
        raise OpgenError("no such operator list", Location(str(path)), "name another one with --yaml FILE")
    request = Request(op, WayKind(kind) if kind is not None else None, cast("Family | None", family), name)
    with locked(path):
        inputs = load_inputs(yaml_path)
        files = _files(path, project.root)
        plan = make_plan(request, inputs, files)
        created = {where: _formatted(text, project.root / where) for where, text in plan.created.items()}
        if dry_run:
            _show(plan, files, created)
            return
        write_all(path, files.content, plan.list_after, {project.root / where: text for where, text in created.items()})
    _report(plan, files)


def _files(path: Path, root: Path) -> Files:
    from opgen.new.plan import Files
    from opgen.yaml_nodes import MAX_BYTES

    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    existing: dict[str, str | None] = {}
    for folder, patterns in (("kernels", ("*.cpp", "*.cu")), ("tests", ("test_*.py",))):
        for pattern in patterns:
            for source in sorted((root / folder).rglob(pattern)):
                try:
                    existing[source.relative_to(root).as_posix()] = source.read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError):
                    existing[source.relative_to(root).as_posix()] = None
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return Files(str(shown), content, existing)


def _formatted(text: str, path: Path) -> str:
    """C++ in the project's layout, where clang-format is installed; it compiles either way."""
    program = shutil.which("clang-format") or shutil.which("clang-format", path=str(Path(sys.executable).parent))
    if path.suffix not in (".cpp", ".cu") or program is None:
        return text
    name = path.with_suffix(".cpp")  # it knows .cu as CUDA, which lays out launches otherwise
    done = subprocess.run(
        [program, f"--assume-filename={path if path.suffix == '.cpp' else name}"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 and done.stdout.strip() else text


def _show(plan: Plan, files: Files, created: dict[str, str]) -> None:
    """What a run would change, as a patch."""
    name = files.operator_list
    before = files.content.decode("utf-8", "replace").splitlines(keepends=True)
    after = plan.list_after.decode("utf-8", "replace").splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
        _patch_line(line)
    for path, text in created.items():
        for line in difflib.unified_diff([], text.splitlines(keepends=True), "/dev/null", f"b/{path}"):
            _patch_line(line)
    click.echo(f"{plan.op}: {plan.kind}; {plan.reason}", err=True)
    for note in plan.notes:
        click.echo(f"note: {note}", err=True)


def _patch_line(line: str) -> None:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[0])
    click.echo(click.style(line.rstrip("\r\n"), fg=colour) if colour is not None else line.rstrip("\r\n"))


def _report(plan: Plan, files: Files) -> None:
    click.echo(f"{click.style(plan.op, bold=True)}: {plan.kind}; {plan.reason}")
    for note in plan.notes:
        click.echo(f"note: {note}")
    click.echo(f"  {files.operator_list}:{plan.line}: {', '.join(plan.added)} ({plan.place})")
    for path in plan.created:
        click.echo(f"  {path}")
    click.echo(click.style("Next", bold=True))
    for step in plan.next:
        click.echo(f"  {step}")
