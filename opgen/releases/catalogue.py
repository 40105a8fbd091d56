"""One release's operators as plain data, so that two releases can be compared in one process.

`opgen.upstream.Upstream` holds objects of that release's torchgen, and a process can only have one torchgen: each
release is read by a process of its own, and the result is cached.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opgen import cache
from opgen.diagnostics import OpgenError
from opgen.releases.stub_headers import Stub, declared_stubs, stub_headers
from opgen.upstream import TorchInstall, import_torchgen, load_upstream

if TYPE_CHECKING:
    from opgen.upstream import Upstream

__all__ = ["Catalogue", "Operator", "catalogue_of", "load_catalogue"]

# Goes up whenever Catalogue's fields, or what stands in them, change.
_FORMAT = "1"


@dataclass(frozen=True)
class Operator:
    """One overload as one release has it."""

    schema: str
    signature: str
    """What a plain kernel of it looks like: `at::Tensor K(const at::Tensor & self)`."""
    kernels: Mapping[str, str] = field(default_factory=dict)
    """Upstream's dispatch table: key -> kernel."""
    group: tuple[str, ...] = ()
    """The members of its structured group, the out overload first; empty outside of such groups."""
    impl: str | None = None
    """For the out overload of a structured group: the parameters of its implementation."""
    inherits: str | None = None
    precomputed: tuple[str, ...] = ()
    made_from: str | None = None
    """For overloads that torchgen generates (`autogen`): the one it is made from, or "" where that is not said."""
    autogen: tuple[str, ...] = ()
    cuda: bool = False
    """Whether it counts in the coverage denominator, vendor-only ones included."""

    @property
    def structured(self) -> bool:
        return bool(self.group)

    @property
    def out(self) -> str | None:
        return self.group[0] if self.group else None


@dataclass(frozen=True)
class Catalogue:
    """One release."""

    version: str
    operators: Mapping[str, Operator]
    stubs: Mapping[str, Stub]

    def as_json(self) -> dict[str, object]:
        return {
            "version": self.version,
            "operators": {name: asdict(operator) for name, operator in self.operators.items()},
            "stubs": {name: asdict(stub) for name, stub in self.stubs.items()},
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Catalogue:
        def operator(values: dict[str, Any]) -> Operator:
            lists = ("group", "precomputed", "autogen")
            fields: dict[str, Any] = {name: tuple(v) if name in lists else v for name, v in values.items()}
            return Operator(**fields)

        return Catalogue(
            version=data["version"],
            operators={name: operator(dict(values)) for name, values in data["operators"].items()},
            stubs={name: Stub(**values) for name, values in data["stubs"].items()},
        )


def catalogue_of(upstream: Upstream, stubs: Mapping[str, Stub]) -> Catalogue:
    """The plain form of what torchgen says."""
    from opgen.coverage.matrix import cuda_overloads
    from opgen.emit import compat

    counted = frozenset(cuda_overloads(upstream))
    parents = {str(made): name for name, f in upstream.functions.items() for made in f.autogen}
    operators = {}
    for name, function in sorted(upstream.functions.items()):
        group = upstream.structured_group(name)
        members: tuple[str, ...] = ()
        if group is not None:
            members = (str(group.out.func.name), *(str(f.func.name) for f in group.functions() if f is not group.out))
        is_out = group is not None and function is group.out
        precomputed = function.precomputed.to_list() if function.precomputed is not None else ()
        operators[name] = Operator(
            schema=str(function.func),
            signature=compat.native_declaration(function, "K"),
            kernels={key: str(metadata.kernel) for key, metadata in upstream.kernels(name).items()},
            group=members,
            impl=compat.impl_arguments(group) if is_out else None,
            inherits=function.structured_inherits,
            precomputed=tuple(precomputed),
            made_from=parents.get(name, "") if upstream.is_generated(name) else None,
            autogen=tuple(str(made) for made in function.autogen),
            cuda=name in counted,
        )
    return Catalogue(upstream.torch_version.partition("+")[0], operators, stubs)


def load_catalogue(install: TorchInstall, on_wait: Callable[[str], None] = lambda what: None) -> Catalogue:
    """The catalogue of `install`, from the cache where nothing it depends on has changed; `on_wait` is told otherwise.

    Raises OpgenError when the release cannot be read.
    """
    headers = stub_headers(install.torch / "include")
    texts = "\0".join(f"{name}\0{text}" for name, text in headers.items())
    digest = hashlib.sha256(f"{_FORMAT}\0{install.digest()}\0{texts}".encode()).hexdigest()
    name = f"catalogue-{install.release}"
    cached = cache.load(name, digest)
    if isinstance(cached, Catalogue):
        return cached
    on_wait(f"reading torch {install.release}")
    catalogue = _read_elsewhere(install)
    cache.store(name, digest, catalogue)
    return catalogue


def _read_elsewhere(install: TorchInstall) -> Catalogue:
    package = Path(__file__).parents[2]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, install.version, str(install.torch), str(install.torchgen)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    if done.returncode != 0:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it said nothing")
        raise OpgenError(
            f"torchgen of torch {install.version} cannot read its own catalogue: {last.removeprefix('error: ')}",
            hint=f"look whether {install.torchgen} is complete, and whether this opgen supports that release",
        )
    return Catalogue.from_json(json.loads(done.stdout))


def _main(version: str, torch: str, torchgen: str) -> None:
    install = TorchInstall(version, Path(torch), Path(torchgen))
    import_torchgen(install)
    catalogue = catalogue_of(load_upstream(install), declared_stubs(stub_headers(install.torch / "include")))
    json.dump(catalogue.as_json(), sys.stdout)


if __name__ == "__main__":
    _main(*sys.argv[1:])
