"""Runs the generator's stages on an operator list given as text, with kernel sources given as text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from opgen.backend import MUSA
from opgen.checks import check_sources
from opgen.classify import Registration, classify
from opgen.diagnostics import Diagnostics
from opgen.emit import files
from opgen.kernels import KernelIndex, scan_kernels
from opgen.libtorch import Exports
from opgen.spec import OpSpec, parse_specs
from opgen.upstream import Upstream, load_upstream

YAML = "ops.yaml"


@cache
def upstream() -> Upstream:
    return load_upstream()


def specs(text: str | bytes) -> tuple[tuple[OpSpec, ...], Diagnostics]:
    diagnostics = Diagnostics()
    raw = text if isinstance(text, bytes) else textwrap.dedent(text).encode()
    return parse_specs(raw, YAML, diagnostics), diagnostics


def classified(
    text: str | bytes, kernels: KernelIndex | None = None, exports: Exports | None = None
) -> tuple[tuple[Registration, ...], Diagnostics]:
    entries, diagnostics = specs(text)
    return classify(entries, upstream(), kernels or KernelIndex(), MUSA, diagnostics, exports), diagnostics


def checked(text: str | bytes, kernels: KernelIndex, bases: Collection[str] | None = None) -> Diagnostics:
    registrations, diagnostics = classified(text, kernels)
    check_sources(registrations, kernels, MUSA, diagnostics, bases)
    return diagnostics


def write_kernels(root: Path, sources: Mapping[str, str]) -> Path:
    """Kernel files by path below kernels/; returns the kernels folder."""
    folder = root / "kernels"
    for name, text in sources.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def index(root: Path, sources: Mapping[str, str]) -> KernelIndex:
    return scan_kernels(root, write_kernels(root, sources))


def registrations(text: str) -> tuple[Registration, ...]:
    """Registrations of a list that must be without fault."""
    found, diagnostics = classified(text)
    assert not diagnostics.items, messages(diagnostics)
    return found


def messages(diagnostics: Diagnostics) -> str:
    return "\n".join(str(item) for item in diagnostics)


def rendered(text: str) -> dict[str, str]:
    """All generated files of a list that must be without fault."""
    return files.render(registrations(text), upstream().torch_version, MUSA)


def shard(text: str, root: str) -> str:
    """The registration source of operator `root`, from its first namespace on."""
    source = rendered(text)[files.shard_name(files.shard_of(root, MUSA), MUSA)]
    return source[source.index("#include") :]


def header(text: str, root: str) -> str:
    """The declarations in the generated header of operator `root`."""
    source = rendered(text)[f"include/torch_musa/ops/{root}_native.h"]
    return source[source.index("namespace at::musa {") :]


def squeeze(text: str) -> str:
    """One space for every run of blanks and newlines: the same tokens."""
    return re.sub(r"\s+", " ", text).strip()


def outline(text: str) -> str:
    """A shard without the bodies of its structured classes' set_output functions, which only repeat torchgen."""
    return re.sub(r"( +void set_output_\w+\().*?\n    \}\n\n?", r"\1...)\n", text, flags=re.DOTALL)
