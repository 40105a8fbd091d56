"""Generates and compiles an operator list of a test's own into one library that a running torch_musa can load."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from opgen.backend import MUSA
from opgen.checks import check_sources
from opgen.classify import Registration, classify
from opgen.diagnostics import Diagnostics
from opgen.emit import files
from opgen.kernels import scan_kernels
from opgen.project import find_root
from opgen.spec import parse_specs
from opgen.upstream import find_torch, load_upstream


def generate(operators: str, sources: Path, folder: Path) -> tuple[tuple[Registration, ...], Path]:
    """The registrations, and one translation unit with everything: reading PyTorch's headers takes longest.

    `sources` holds kernels/ as a project does; CUDA-dialect ones are scanned, not compiled.
    """
    diagnostics = Diagnostics()
    index, upstream = scan_kernels(sources), load_upstream()
    specs = parse_specs(operators.encode(), "ops.yaml", diagnostics)
    registrations = classify(specs, upstream, index, MUSA, diagnostics)
    check_sources(registrations, index, MUSA, diagnostics)
    assert not diagnostics.items, "\n".join(str(item) for item in diagnostics)
    rendered = files.render(registrations, upstream.torch_version, MUSA)
    for name, text in rendered.items():
        path = folder / "generated" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    generated = [folder / "generated" / name for name in sorted(rendered) if name.endswith(".cpp")]
    parts = [*sorted(sources.glob("kernels/*/*.cpp")), *generated]
    unit = folder / "all.cpp"
    unit.write_text("".join(f'#include "{path}"\n' for path in parts), encoding="utf-8")
    return registrations, unit


def compile_library(unit: Path, library: Path, build: Path) -> None:
    """Links `unit` against the build of torch_musa at `build`. -O0: what counts is that it computes, not how fast."""
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None, "a C++ compiler is needed, as for building the project"
    root, torch = find_root(), find_torch().torch
    includes = [unit.parent / "generated" / "include", root, root / "sdk" / "include"]
    systems = [torch / "include", torch / "include" / "torch" / "csrc" / "api" / "include"]
    flags = ["-shared", "-fPIC", "-O0", "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", "-DNDEBUG"]
    command = [compiler, *flags, *(f"-I{path}" for path in includes), *(f"-isystem{path}" for path in systems)]
    libraries = ["-ltorch_musa", "-lmudnn", "-lmusart", "-ltorch_cpu", "-lc10"]
    command += [str(unit), "-o", str(library), f"-L{build / 'lib'}", f"-L{torch / 'lib'}", *libraries]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-6000:]
