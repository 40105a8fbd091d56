"""Everything that `opgen coverage` answers from, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.coverage.matrix import Matrix, has_cuda_kernel, measure, overload_of, vendor_only
from opgen.coverage.rows import Row, Standing, row_of, row_of_loaded, rows_of, standing_of_loaded
from opgen.diagnostics import Diagnostics, OpgenError

if TYPE_CHECKING:
    from opgen.backend import Backend
    from opgen.classify import Registration
    from opgen.truth.record import Record
    from opgen.upstream import TorchInstall, Upstream

__all__ = ["Survey", "survey"]


@dataclass(frozen=True)
class Survey:
    """The matrix and what it was made from."""

    root: Path
    backend: Backend
    upstream: Upstream
    registered: Mapping[str, Registration]
    """Under the backend's dense key, by overload."""
    matrix: Matrix
    records: Mapping[str, Record]
    """What running the overloads has shown; of operators that are not counted, too."""
    loaded: Mapping[str, Record] = field(default_factory=dict)
    """What `opgen truth --load` has shown of operators that the project does not know, as they were then."""

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return rows_of(self.matrix, self.registered, self.upstream)

    @property
    def title(self) -> str:
        return f"{self.backend.name.upper()} operator coverage"

    def badge(self) -> str:
        from opgen.coverage.badge import badge

        label = f"{self.backend.name} operators"
        strict = sum(row.standing is Standing.STRICT for row in self.rows)
        if self.records:
            return badge(label, strict, self.matrix.denominator)
        return badge(label, self.matrix.totals()["registered"], self.matrix.denominator, "registered")

    def operator(self, word: str) -> list[tuple[Row, str | None]]:
        """The rows of an overload, or of all that share a name; beside each why it is not counted, None where it is.
        Raises OpgenError for a word that means nothing."""
        from opgen.find import find_operator

        own = [op for op in {**self.registered, **self.loaded} if op not in self.upstream.functions]
        found = find_operator(word, [*self.upstream.names, *own])
        overloads = found.overloads or ((found.op,) if found.op is not None else ())
        if not overloads:
            near = " or ".join(repr(name) for name in found.nearest)
            raise OpgenError(
                f"PyTorch {self.matrix.torch_version} has no operator '{word[:80]}', and the list defines none",
                hint=_hint(word, near),
            )
        return [(self._row(op), self._note(op)) for op in overloads]

    def _row(self, op: str) -> Row:
        if op in self.loaded:
            return row_of_loaded(self.loaded[op])
        overload = replace(overload_of(op, self.registered, self.upstream), record=self.records.get(op))
        return row_of(overload, self.registered, self.upstream)

    def _note(self, op: str) -> str | None:
        if op in self.loaded:
            return f"not counted: no operator of this project; {standing_of_loaded(self.loaded[op])}"
        if op not in self.upstream.functions:
            return "not counted: an operator of our own"
        if op in vendor_only():
            return f"not counted: vendor-only ({vendor_only()[op].library}): {vendor_only()[op].reason}"
        return None if has_cuda_kernel(op, self.upstream) else "not counted: PyTorch has no CUDA kernel for it"


def survey(yaml_path: Path | None, torch: TorchInstall | None, diagnostics: Diagnostics) -> Survey:
    """Read the project around the working folder."""
    from opgen.gen import Sources, analyse
    from opgen.project import find_project
    from opgen.truth.known import known_records, loaded_records

    project = find_project()
    sources = Sources.of(project, yaml_path, torch=torch)
    analysis = analyse(sources, diagnostics, need_sources=False)
    backend = sources.backend
    records = known_records(project.root, sources, analysis)
    known = {*analysis.upstream.functions, *(r.op for r in analysis.registrations)}
    return Survey(
        root=project.root,
        backend=backend,
        upstream=analysis.upstream,
        registered={r.op: r for r in analysis.registrations if r.dispatch_key == backend.dispatch_key},
        matrix=measure(analysis.registrations, analysis.upstream, backend, records),
        records=records,
        loaded={op: record for op, record in loaded_records(project.root, sources).items() if op not in known},
    )


def _hint(word: str, near: str) -> str:
    if near:
        return f"did you mean {near}?"
    if "::" in word:
        return f"one that a file of yours registers: `opgen truth {word[:80]} --load FILE` runs it and keeps a record"
    return "`opgen list` shows what is registered"
