"""Catalogues of releases that never were, from a few lines of native_functions.yaml and a header each."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from generator_cases import index, specs

from opgen.backend import MUSA
from opgen.releases.catalogue import Catalogue, catalogue_of
from opgen.releases.changes import Comparison
from opgen.releases.diff import compare
from opgen.releases.stub_headers import declared_stubs
from opgen.releases.timeline import Timeline
from opgen.upstream import TorchInstall, find_torch, import_torchgen, parse_upstream


class Releases:
    """Makes catalogues in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made = 0

    def catalogue(self, version: str, functions: str, header: str = "", name: str = "Some.h") -> Catalogue:
        install = find_torch()
        import_torchgen(install)
        # A place of its own for each: torchgen remembers what it has read by path.
        self._made += 1
        root = self.folder / f"release{self._made}"
        native = root / "torchgen" / "packaged" / "ATen" / "native"
        native.mkdir(parents=True, exist_ok=True)
        (native / "native_functions.yaml").write_text(textwrap.dedent(functions))
        (native / "tags.yaml").write_bytes(install.tags_yaml.read_bytes())
        small = TorchInstall(version, root / "torch", root / "torchgen")
        headers = {f"ATen/native/{name}": header} if header else {}
        return catalogue_of(parse_upstream(small, version), declared_stubs(headers))

    def compare(
        self,
        entries: str,
        *releases: Catalogue,
        kernels: Mapping[str, str] | None = None,
        vendor_only: Mapping[str, str] | None = None,
    ) -> Comparison:
        """The comparison of the first release with the last one, those between them being known."""
        listed, diagnostics = specs(entries)
        assert not diagnostics.items, list(diagnostics)
        timeline = Timeline.of(releases[0], releases[-1], releases[1:-1])
        return compare(listed, index(self.folder, kernels or {}), timeline, MUSA, vendor_only or {})
