"""The installed PyTorch's operators, read from the torchgen that its wheel carries. torch itself is never imported.

All knowledge of how torchgen is asked lives here and in `opgen.emit.compat`; parsing takes over a second, so the
result is cached on disk under a hash of everything it depends on.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from opgen import cache
from opgen.diagnostics import OpgenError
from opgen.progress import busy

if TYPE_CHECKING:
    from torchgen.model import BackendIndex, BackendMetadata, NativeFunction, NativeFunctionsGroup, OperatorName

SUPPORTED_RELEASES = ("2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
"""One of each minor release of PyTorch that this tree serves (pyproject.toml has the range)."""

# Goes up whenever Upstream's fields change.
_CACHE_FORMAT = "1"

IN_LIBTORCH_CPU = frozenset(
    {
        "CPU",
        "SparseCPU",
        "SparseCsrCPU",
        "MkldnnCPU",
        "QuantizedCPU",
        "NestedTensorCPU",
        "CompositeImplicitAutograd",
        "CompositeImplicitAutogradNestedTensor",
        "CompositeExplicitAutograd",
        "CompositeExplicitAutogradNonFunctional",
        "Meta",
        "SparseMeta",
        "SparseCsrMeta",
        "QuantizedMeta",
        "NestedTensorMeta",
        "ZeroTensor",
    }
)
"""Dispatch keys whose kernels every PyTorch wheel contains; those of other keys need a wheel built for that device."""

COMPOSITE_KEYS = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd")
"""Dispatch keys whose kernels serve every device, this one too, by calling other operators."""


@dataclass(frozen=True)
class TorchInstall:
    """Where the installed PyTorch's files are."""

    version: str
    """As in torch/version.py: `2.13.0+cpu`."""
    torch: Path
    torchgen: Path

    @property
    def release(self) -> str:
        """Version without the local part, which only says how the wheel was built: `2.13.0`."""
        return self.version.partition("+")[0]

    @property
    def native_yaml(self) -> Path:
        return self.torchgen / "packaged" / "ATen" / "native" / "native_functions.yaml"

    @property
    def tags_yaml(self) -> Path:
        return self.torchgen / "packaged" / "ATen" / "native" / "tags.yaml"

    @property
    def library(self) -> Path:
        """What the backend is linked against; need not exist."""
        return self.torch / "lib" / "libtorch_cpu.so"

    def library_stamp(self) -> str | None:
        """Changes with the library: hashing some hundred megabytes would take longer than all the rest."""
        try:
            status = self.library.stat()
        except OSError:
            return None
        return f"{status.st_size}:{status.st_mtime_ns}"

    def digest(self) -> str:
        """Hash of all that decides what torchgen answers."""
        digest = hashlib.sha256(self.version.encode())
        for path in (self.native_yaml, self.tags_yaml, *sorted(self.torchgen.rglob("*.py"))):
            digest.update(path.relative_to(self.torchgen).as_posix().encode() + b"\0")
            try:
                digest.update(path.read_bytes())
            except OSError as error:
                raise OpgenError(
                    f"cannot read {path}: {error.strerror}", hint="reinstall PyTorch: its wheel carries this file"
                ) from None
        return digest.hexdigest()


def find_torch() -> TorchInstall:
    """The PyTorch that `import torch` would load. Raises OpgenError where there is none."""
    torch = _package_folder("torch")
    # An unpacked wheel may stand on the path next to another torchgen; they must belong together.
    beside = torch.parent / "torchgen"
    torchgen = beside if beside.is_dir() else _package_folder("torchgen")
    return TorchInstall(_stated_version(torch), torch, torchgen)


def install_at(root: Path) -> TorchInstall:
    """The PyTorch whose packages `torch` and `torchgen` lie in folder `root`. Raises OpgenError where there is none."""
    torch = root / "torch"
    return TorchInstall(_stated_version(torch), torch, root / "torchgen")


def _stated_version(torch: Path) -> str:
    try:
        text = (torch / "version.py").read_text(encoding="utf-8")
    except OSError as error:
        raise OpgenError(f"cannot read {torch / 'version.py'}: {error.strerror}") from None
    match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    if match is None:
        raise OpgenError(f"{torch / 'version.py'} states no version", hint="reinstall PyTorch")
    return match[1]


def _package_folder(name: str) -> Path:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not locations:
        raise OpgenError(
            f"package '{name}' is not installed",
            hint="install PyTorch (pip install torch): its wheel carries torchgen, which is not PyPI's torchgen",
        )
    return Path(locations[0])


@dataclass(frozen=True)
class Upstream:
    """What native_functions.yaml says, by operator name as users write it (`add.Tensor`)."""

    torch_version: str
    digest: str
    functions: Mapping[str, NativeFunction]
    """Every overload, the ones that torchgen generates (`autogen`) included."""
    groups: Mapping[str, NativeFunctionsGroup]
    """For overloads that belong to a functional / in-place / out group: that group."""
    indices: Mapping[str, BackendIndex]
    """Dispatch key name -> kernels."""
    tags: frozenset[str]

    def kernel(self, op: str, key: str) -> BackendMetadata | None:
        """The kernel of `op` for `key` in upstream's dispatch table; structured delegates have none of their own."""
        index = self.indices.get(key)
        return index.get_kernel(self.functions[op]) if index is not None else None

    def kernels(self, op: str) -> dict[str, BackendMetadata]:
        """All rows of `op`'s dispatch table, by key name, in upstream's order of keys."""
        return dict(self._rows.get(self.functions[op].func.name, {}))

    @cached_property
    def _rows(self) -> Mapping[OperatorName, Mapping[str, BackendMetadata]]:
        """The dispatch tables the other way round: asking each of thirty for each operator takes far longer."""
        rows: dict[OperatorName, dict[str, BackendMetadata]] = {}
        for key, index in self.indices.items():
            for name, metadata in index.index.items():
                rows.setdefault(name, {})[key] = metadata
        return rows

    def structured_group(self, op: str) -> NativeFunctionsGroup | None:
        """The group of a structured overload (out, or one that delegates to it), None for all others."""
        group = self.groups.get(op)
        return group if group is not None and group.structured else None

    def is_generated(self, op: str) -> bool:
        """Whether the overload stands in no YAML but was made by torchgen from another one."""
        return "generated" in self.functions[op].tags

    @cached_property
    def meta_bases(self) -> frozenset[str]:
        """Base classes that upstream's own meta classes name in `structured_inherits`."""
        bases = (f.structured_inherits for f in self.functions.values())
        return frozenset(base for base in bases if base is not None)

    @cached_property
    def made_from(self) -> Mapping[str, str]:
        """For overloads that torchgen generates: the one that they are made from."""
        return {str(made): op for op, f in self.functions.items() for made in f.autogen}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All overload names, sorted; what a misspelt name is compared with."""
        return tuple(sorted(self.functions))


def load_upstream(install: TorchInstall | None = None) -> Upstream:
    """The catalogue of the installed PyTorch, from the cache where nothing it depends on has changed."""
    install = install or find_torch()
    digest = install.digest()
    name = f"upstream-{install.release}"  # one for each release, so that going back and forth costs nothing
    key = f"{_CACHE_FORMAT}-{sys.version_info[0]}.{sys.version_info[1]}-{digest}"
    import_torchgen(install)
    with _paused_gc():
        cached = cache.load(name, key)
        if isinstance(cached, Upstream):
            return cached
        with busy(f"reading the operators of PyTorch {install.release} (once for each release)"):
            upstream = parse_upstream(install, digest)
        cache.store(name, key, upstream)
        return upstream


def parse_upstream(install: TorchInstall, digest: str) -> Upstream:
    """The catalogue of `install`, read anew by the torchgen that is imported. Raises what torchgen raises."""
    from torchgen.gen import get_grouped_native_functions, parse_native_yaml, parse_tags_yaml
    from torchgen.model import NativeFunctionsGroup

    parsed = parse_native_yaml(str(install.native_yaml), str(install.tags_yaml))
    groups: dict[str, NativeFunctionsGroup] = {}
    for group in get_grouped_native_functions(parsed.native_functions):
        if isinstance(group, NativeFunctionsGroup):
            groups.update((str(f.func.name), group) for f in group.functions())
    return Upstream(
        torch_version=install.version,
        digest=digest,
        functions={str(f.func.name): f for f in parsed.native_functions},
        groups=groups,
        indices={str(key): index for key, index in parsed.backend_indices.items()},
        tags=frozenset(parse_tags_yaml(str(install.tags_yaml))),
    )


@contextmanager
def _paused_gc() -> Iterator[None]:
    """A hundred thousand small objects come to stay; collecting in between only costs time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def import_torchgen(install: TorchInstall) -> None:
    """Make `import torchgen` mean the one that belongs to `install`, for this process.

    A process knows one torchgen only: its modules keep state, and a catalogue of one is of no use to another. Raises
    OpgenError where another one has been imported already.
    """
    loaded = sys.modules.get("torchgen")
    if loaded is not None:
        folder = Path(loaded.__path__[0])
        if folder.resolve() != install.torchgen.resolve():
            raise OpgenError(
                f"torch {install.version} needs its own torchgen, and that of {folder} is loaded",
                hint="analyse one PyTorch in each process",
            )
        return
    spec = importlib.util.spec_from_file_location(
        "torchgen", install.torchgen / "__init__.py", submodule_search_locations=[str(install.torchgen)]
    )
    if spec is None or spec.loader is None or not (install.torchgen / "__init__.py").is_file():
        raise OpgenError(f"no torchgen in {install.torchgen}", hint="reinstall PyTorch: its wheel carries torchgen")
    module = importlib.util.module_from_spec(spec)
    sys.modules["torchgen"] = module
    spec.loader.exec_module(module)
