"""Shell completion: the verb that prints the script, and the names of operators.

Completing must feel instant, so nothing is parsed and torchgen is not imported: names are read off the text of
native_functions.yaml and of the operator list by pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from opgen.diagnostics import OpgenError

__all__ = ["OPERATOR", "UNLISTED_OPERATOR", "command", "listed_names", "upstream_names"]

_FUNC = re.compile(r"- func: *([\w.]+)\(")
_AUTOGEN = re.compile(r"^ +autogen: *(.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^\s*- +(?:\{ *)?func: *['\"]?((?:\w+::)?[\w.]+)", re.MULTILINE)
_ENVIRONMENT = "_OPGEN_COMPLETE"
_WHERE = {
    "bash": 'eval "$(opgen completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(opgen completion zsh)"     # in ~/.zshrc, after compinit',
    "fish": "opgen completion fish | source     # in ~/.config/fish/config.fish",
}


def upstream_names(native_functions: str) -> set[str]:
    """Every overload that a native_functions.yaml defines or has torchgen make."""
    names: set[str] = set()
    for entry in re.split(r"^(?=- func:)", native_functions, flags=re.MULTILINE):
        func = _FUNC.match(entry)
        if func is None:
            continue
        names.add(func[1])
        # Of what is made of other operators implicitly, torchgen makes nothing but for a few core operators.
        if "dispatch:" in entry and "CompositeImplicitAutograd:" not in entry:
            names.update(name.strip() for line in _AUTOGEN.findall(entry) for name in line.split(","))
    return names


def listed_names(operator_list: str) -> set[str]:
    """Every operator with an entry."""
    return set(_ENTRY.findall(operator_list))


class OperatorName(click.types.StringParamType):
    """An operator's name, which the shell can complete. Whether there is such an operator is asked later."""

    name = "op"

    def __init__(self, *, unlisted: bool = False) -> None:
        self._unlisted = unlisted

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names that begin with what has been typed; `unlisted` ones are those without an entry."""
        try:
            known, listed = _names(ctx.params.get("yaml_path"))
        except (OSError, OpgenError):
            return []
        names: Iterable[str] = known - listed if self._unlisted else known | listed
        return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


OPERATOR: Any = OperatorName()
UNLISTED_OPERATOR: Any = OperatorName(unlisted=True)


def _names(operator_list: Path | None) -> tuple[set[str], set[str]]:
    from opgen.project import find_project
    from opgen.upstream import find_torch

    path = operator_list or find_project().yaml
    listed = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return upstream_names(find_torch().native_yaml.read_text(encoding="utf-8")), listed_names(listed)


@click.command(epilog='Example: eval "$(opgen completion bash)"')
@click.argument("shell", type=click.Choice(sorted(_WHERE)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete opgen's verbs, options and operator names.

    One line in the shell's start-up file switches it on; the script's first line says which.
    """
    completion = get_completion_class(shell)
    assert completion is not None, "click has a class for each of the choices"
    script = completion(ctx.find_root().command, {}, "opgen", _ENVIRONMENT).source()
    click.echo(f"# {_WHERE[shell]}\n{script.strip()}")
