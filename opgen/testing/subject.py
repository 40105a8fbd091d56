"""What is tested, on which device, against what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from opgen.testing.build import Domain, Rule
from opgen.testing.domains import domain_of
from opgen.testing.overload import Overload, load_overload
from opgen.testing.strategies import accepted_dtypes


@dataclass(frozen=True)
class Subject:
    """An overload, what is known about it, and the two sides that are compared.

    ``reference`` computes on the CPU. ``fallback`` allows the device to go through the CPU. ``watch`` is entered around
    each call on the device and around nothing else: ``torch.musa.count_ops`` sees the operator's own kernels alone.
    """

    op: Overload
    domain: Domain
    reference: Callable[..., Any]
    device: str
    fallback: bool
    watch: Callable[[], AbstractContextManager[Any]] = nullcontext

    @property
    def same_operator(self) -> bool:
        """True where the reference is the operator itself: then warnings and version counters compare, too."""
        return self.reference is load_overload(self.op.name).call

    @property
    def compared_with(self) -> str:
        """ "cpu", "law" for random operators, or the name of the function that takes the operator's place."""
        if self.domain.law:
            return "law"
        if self.same_operator:
            return "cpu"
        return str(getattr(self.reference, "__name__", self.reference))

    def dtypes(self) -> tuple[torch.dtype, ...]:
        """The main dtypes that the reference takes, found by trying."""
        return accepted_dtypes(self.op, self.domain, self.reference)


def load_subject(
    name: str,
    *,
    reference: Callable[..., Any] | None = None,
    device: str = "musa",
    arguments: Mapping[str, Rule] | None = None,
    fallback: bool = False,
    watch: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Subject:
    """The subject for ``"add.Tensor"`` or ``"musa::rope"``; LookupError where PyTorch has no such overload."""
    op = load_overload(name)
    domain = domain_of(op)
    if arguments:
        domain = replace(domain, arguments={**domain.arguments, **arguments})
    return Subject(op, domain, reference or domain.reference or op.call, device, fallback, watch)
