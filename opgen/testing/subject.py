"""What is tested, on which device, against what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from opgen.testing.asked import asked_rules
from opgen.testing.build import Domain, Rule
from opgen.testing.domains import domain_of
from opgen.testing.overload import Overload, load_overload
from opgen.testing.strategies import accepted_dtypes, refusal
from opgen.testing.tensors import DTYPES


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

    def refused(self, accepted: Collection[torch.dtype]) -> tuple[torch.dtype, ...]:
        """The main dtypes that the operator refuses, ``accepted`` being those that it takes; none where a function
        stands in for the operator on the CPU, whose refusals promise nothing."""
        if not accepted or not self.same_operator:
            return ()
        return tuple(dtype for dtype in DTYPES if dtype not in accepted)

    def why_no_dtypes(self) -> str:
        """A sentence for a reference that refuses every case: with what exception, and what can be done about it."""
        tried = (self.domain.dtypes or DTYPES)[0]
        error = refusal(self.op, self.domain, self.reference, tried)
        said = str(error).strip().splitlines()[0] if error is not None and str(error).strip() else ""
        how = f", with {tried} by {type(error).__name__}: {said}" if error is not None else ""
        return (
            f"the reference refuses every case{how}. Where its arguments have to be other ones, rules make them: "
            "`arguments` of check_overload, or a line in the table of domains"
        )


def load_subject(
    name: str,
    *,
    reference: Callable[..., Any] | None = None,
    device: str = "musa",
    arguments: Mapping[str, Rule] | None = None,
    fallback: bool = False,
    watch: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Subject:
    """The subject for ``"add.Tensor"`` or ``"musa::rope"``; LookupError where PyTorch has no such overload, or the
    overload no argument that there is a rule for, TypeError for what is no rule or no reference."""
    op = load_overload(name)
    domain = domain_of(op)
    rules = asked_rules(op, arguments)
    if rules:
        domain = replace(domain, asked=rules)
    if reference is not None and not callable(reference):
        raise TypeError(f"{op.name}: the reference is {reference!r}, and has to be a function of the same arguments")
    return Subject(op, domain, reference or domain.reference or op.call, device, fallback, watch)
