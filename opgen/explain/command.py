"""The verb `opgen explain`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen.completion import OPERATOR
from opgen.diagnostics import Diagnostic, Diagnostics, OpgenError
from opgen.options import format_option, torch_option, yaml_option
from opgen.progress import on_terminal
from opgen.report import report

if TYPE_CHECKING:
    from opgen.explain.facts import Explanation, Inputs
    from opgen.upstream import TorchInstall

__all__ = ["command", "load_inputs"]

_OPERATOR = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
# No operator's name is longer; a longer word is shortened where a message repeats it.
_LONGEST = 80


@click.command(epilog="Example: opgen explain lerp.Scalar_out")
@click.argument("op", type=OPERATOR)
@yaml_option
@torch_option
@format_option
def command(op: str, yaml_path: Path | None, torch: TorchInstall | None, output: str) -> None:
    """Explain an operator: its group, the kinds possible, what is chosen and why, and the C++ to write.

    OP is an overload (`tril.out`), an operator of our own (`musa::swiglu`), or a name that several overloads share
    (`add`), which lists them. It may be written as error messages have it, `aten::tril.out`.
    """
    inputs = load_inputs(yaml_path, torch)  # first: it decides whose torchgen the modules below import
    from opgen.explain.facts import explain
    from opgen.explain.text import overload_table, render
    from opgen.find import find_operator

    if not inputs.all_specs and inputs.diagnostics:
        _doubt(inputs.diagnostics, "no answer, as nothing can be read from the operator list")
    known = [*inputs.upstream.names, *(name for name in inputs.specs if name not in inputs.upstream.functions)]
    found = find_operator(op, known)
    if found.overloads:
        explained = [explain(name, inputs) for name in found.overloads]
        if output == "json":
            click.echo(json.dumps([one.as_json() for one in explained], indent=2))
        else:
            click.echo(f"'{op}' is the name of {len(explained)} overloads; `opgen explain` tells of each:\n")
            click.echo(overload_table([(one.op, one.state) for one in explained]))
        _doubt([fault for one in explained for fault in one.faults])
        return
    if found.op is None:
        raise unknown_operator(op, found.nearest, inputs)
    explanation: Explanation = explain(found.op, inputs)
    if output == "json":
        click.echo(json.dumps(explanation.as_json(), indent=2))
    else:
        click.echo(render(explanation, _width()), nl=False)
    _doubt(explanation.faults)


def _doubt(faults: Iterable[Diagnostic], outcome: str = "the answer above may be wrong") -> None:
    """Report what makes the answer doubtful and end with status 1; nothing where there are no faults."""
    found = Diagnostics()
    for fault in faults:
        found.add(fault)
    if found:
        report(found, outcome)
        raise SystemExit(1)


def unknown_operator(op: str, nearest: tuple[str, ...], inputs: Inputs) -> OpgenError:
    """There is no such operator; what it may have been meant to be."""
    word = op.partition("(")[0].strip()
    name = word.rpartition("::")[2]
    if nearest:
        hint = f"did you mean {' or '.join(repr(near) for near in nearest)}?"
    elif _OPERATOR.fullmatch(name) and len(name) <= _LONGEST:
        own = f"{inputs.backend.op_namespace}::{name}"
        hint = f"a new operator is made with `opgen new '{own}(Tensor self) -> Tensor'`"
    else:
        hint = "name an overload (`tril.out`), an operator of your own (`musa::rope`), or what overloads share (`add`)"
    shown = word if len(word) <= _LONGEST else f"{word[: _LONGEST - 3]}..."
    return OpgenError(
        f"PyTorch {inputs.upstream.torch_version} has no operator '{shown}', and the operator list defines none",
        hint=hint,
    )


def load_inputs(yaml_path: Path | None, torch: TorchInstall | None = None) -> Inputs:
    """Catalogue, operator list and sources of the project around the working folder."""
    from opgen.gen import Sources, analyse
    from opgen.project import find_project
    from opgen.spec import select_specs

    sources = Sources.of(find_project(), yaml_path, torch=torch)
    diagnostics = Diagnostics()
    analysis = analyse(sources, diagnostics)
    from opgen.explain.facts import Inputs
    from opgen.explain.trust import entries_of

    active = select_specs(analysis.specs, analysis.upstream.torch_version, Diagnostics())
    return Inputs(
        upstream=analysis.upstream,
        specs={spec.func: spec for spec in active},
        registrations=analysis.registrations,
        kernels=analysis.kernels,
        backend=sources.backend,
        include=sources.install.torch / "include",
        diagnostics=tuple(diagnostics),
        missing=analysis.missing,
        entries=entries_of(sources.yaml, analysis.specs) if diagnostics.errors else (),
        all_specs=analysis.specs,
        inactive={spec.func: spec for spec in analysis.specs if spec.func not in {a.func for a in active}},
    )


def _width() -> int:
    """The terminal's width within reason; 80 columns in a pipe, whatever COLUMNS says there."""
    return max(60, min(shutil.get_terminal_size().columns, 100)) if on_terminal(sys.stdout) else 80
