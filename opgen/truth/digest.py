"""What a record depends on, as one hash: with the same hash, running the overload again would show the same.

It is made of contents and names relative to the project, never of paths or times, so another checkout of the same
sources has the same. It covers

- the sources of the overload's kernel and of every operator that ran inside it (`Record.calls`), with all they include,
  what they call, and the toolkit's stand-ins that they name;
- what `opgen gen` wrote for these operators;
- the test bench, and the overload's line in its table of domains;
- what every call goes through: the device's own sources, the toolkit's runtime, how things are compiled, the operators
  that bring arguments to the device and results back;
- PyTorch's release and the chip (MUSA_ARCH).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.architectures import architecture
from opgen.diagnostics import OpgenError
from opgen.stubs import legacy_stubs, reused_stubs
from opgen.targets import Machine, built_targets, choose, torch_cuda
from opgen.truth.harness import HarnessDigests
from opgen.truth.sources import SourceTree

if TYPE_CHECKING:
    from opgen.emit.pieces import Printed
    from opgen.gen import Analysis, Sources
    from opgen.registration import Registration
    from opgen.truth.record import Record

__all__ = ["Digests", "beside", "chosen_target", "holds", "load_digests"]

# Goes up when what records say changes in a way that no source shows.
_FORMAT = "1"
# What every call on the device goes through.
_DEVICE = ("torch_musa/csrc/core", "torch_musa/csrc/aten", "CMakeLists.txt", "cmake")
# What the test bench calls to bring arguments to the device and results back.
_BENCH_OPS = ("_copy_from", "as_strided", "empty.memory_format", "empty_strided")
# What turns a kernel in CUDA dialect into an object: the port step, the kernel language and its compiler.
_PORT = ("opgen/port", "sdk/include/musa_kernel")
_PORT_COMMAND = frozenset({"opgen/port/__main__.py", "opgen/port/cli.py"})


@dataclass(frozen=True)
class Digests:
    """Digests for one state of the sources."""

    torch: str
    target: str
    arch: str
    tree: SourceTree = field(repr=False)
    harness: HarnessDigests = field(repr=False)
    printed: Printed = field(repr=False)
    registrations: Mapping[str, tuple[Registration, ...]] = field(repr=False)
    """By overload, for all dispatch keys."""
    stubs: Mapping[str, tuple[str, ...]] = field(repr=False)
    """DispatchStub -> the sources that register a kernel on it."""
    _kernels: dict[str, str] = field(default_factory=dict, repr=False)

    def of(self, op: str, calls: Iterable[str] = ()) -> str:
        """The digest for an overload inside which ``calls`` ran on the device."""
        found = hashlib.sha256("\0".join((self._common, self.harness.of(op))).encode())
        for name in sorted({op, *calls}):
            found.update(f"\0{name}\0{self.kernel(name)}".encode())
        return found.hexdigest()

    def freeze(self) -> Digests:
        """Reads every source now: what is edited while operators run is not what was run."""
        for op in self.registrations:
            self.kernel(op)
        _ = self._common
        return self

    def kernel(self, op: str) -> str:
        """Of the sources and registrations of one operator; of a name alone where PyTorch's own code serves it."""
        if op not in self._kernels:
            registrations = self.registrations.get(op, ())
            pieces = {repr(self.printed.of(r.root)) for r in registrations if r.root in self.printed.keys}
            self._kernels[op] = _sha(*sorted(pieces), self.tree.digest(self.sources(op)))
        return self._kernels[op]

    def sources(self, op: str) -> frozenset[str]:
        """Every file of the project that the operator's kernels are made of."""
        starts: set[str] = set()
        for registration in self.registrations.get(op, ()):
            starts.update([registration.source] if registration.source else [])
            starts.update(path for stub in _stubs_of(registration) for path in self.stubs.get(stub, ()))
        found = {path for start in starts for path in self.tree.closure(start)}
        if any(path.endswith((".cu", ".mu")) for path in found):
            port = self.tree.below(*_PORT, f"sdk/{self.target}/kernel", f"sdk/{self.target}/mcc")
            found.update(path for path in port if path not in _PORT_COMMAND)
        return frozenset(found)

    @cached_property
    def _common(self) -> str:
        device = self.tree.below(*_DEVICE, "sdk/runtime", f"sdk/{self.target}/runtime")
        helpers = "\0".join(self.printed.helpers)
        bench = [self.kernel(op) for op in _BENCH_OPS]
        return _sha(_FORMAT, self.torch, self.target, self.arch, self.tree.digest(device), helpers, *bench)


def chosen_target(sources: Sources) -> str:
    """The toolkit that a process would run on: TORCH_MUSA_TARGET, else the best that is built and here.

    Raises:
        OpgenError: the variable names no target.
    """
    install = sources.install
    built = built_targets(sources.kernels.parent, install.release)
    try:
        return choose(Machine(torch_cuda(install.torch)), built).target
    except ValueError as error:
        raise OpgenError(str(error)) from None


def holds(record: Record, digests: Digests) -> bool:
    """Whether nothing that the record depends on has changed since."""
    return (
        record.torch == digests.torch
        and record.target == digests.target
        and record.digest == beside(digests.of(record.op, record.calls), record.loaded)
    )


def load_digests(sources: Sources, analysis: Analysis, target: str) -> Digests:
    """Digests for the sources as they are now, for the target and the chip that the environment names."""
    from opgen.gen import printed

    registrations: dict[str, tuple[Registration, ...]] = {}
    for registration in analysis.registrations:
        registrations[registration.op] = (*registrations.get(registration.op, ()), registration)
    functions = {
        name: {definition.path for definition in definitions}
        for index in (analysis.kernels.functions, analysis.kernels.impls, analysis.kernels.metas)
        for name, definitions in index.items()
    }
    return Digests(
        torch=sources.install.release,
        target=target,
        arch=architecture(),
        tree=SourceTree(sources.kernels.parent, target, functions),
        harness=HarnessDigests(Path(__file__).resolve().parent.parent),
        printed=printed(analysis, sources),
        registrations=registrations,
        stubs={name: tuple(d.path for d in definitions) for name, definitions in analysis.kernels.stubs.items()},
    )


def _stubs_of(registration: Registration) -> tuple[str, ...]:
    """DispatchStubs that upstream's implementation ends up in."""
    out = str(registration.group.out.func.name) if registration.group is not None else registration.op
    legacy, reused = legacy_stubs().get(out), reused_stubs().get(registration.op)
    return (*(legacy.stubs if legacy is not None else ()), *(reused.stubs if reused is not None else ()))


def beside(digest: str, loaded: Iterable[str]) -> str:
    """A digest for a process that had loaded these files: their contents count, though not what they import."""
    contents = [_content(path) for path in loaded]
    return f"{digest} loaded {_sha(*contents)}" if contents else digest


def _content(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:  # gone: nothing that was told of it holds
        return path


def _sha(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
