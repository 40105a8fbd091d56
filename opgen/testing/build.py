"""What a rule sees while the arguments of a case are being made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from opgen.testing.case import Case, TensorSpec
from opgen.testing.overload import Argument, Overload
from opgen.testing.source import Source, choose, one_in
from opgen.testing.tensors import ORDINARY, Numbers, flip, lay_out, numbers


class Omit:
    """What a rule returns to leave an argument to its default."""


OMIT = Omit()


@dataclass
class Build:
    """A case in the making.

    ``dtype`` is the case's main dtype and ``shape`` the shape that its tensors have or broadcast to. ``made`` holds the
    arguments that are ready; rules run in schema order, so a rule for ``index`` may look at ``self``. What depends on
    each other comes before all rules (`Domain.prepare`): a rule for one of these arguments finds its value there, too.
    """

    op: Overload
    source: Source
    domain: Domain
    dtype: torch.dtype
    shape: tuple[int, ...]
    made: dict[str, Any] = field(default_factory=dict)

    def tensor(
        self,
        shape: tuple[int, ...] | list[int],
        dtype: torch.dtype | None = None,
        of: Numbers | None = None,
        expand: bool = True,
    ) -> TensorSpec:
        """A tensor of that shape with random values in a random layout."""
        of = of or self.domain.numbers
        if self.dtype.is_complex:
            # what a product of complex numbers with infinite parts gives is open
            of = replace(of, special=False)
        values = numbers(self.source, tuple(shape), dtype or self.dtype, of)
        return flip(self.source, lay_out(self.source, values, expand))

    def lay_out(self, tensor: Tensor) -> TensorSpec:
        """A tensor with these values in a random layout."""
        return lay_out(self.source, tensor, expand=False)

    def size(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return self.source.integer(low, high)

    def flag(self) -> bool:
        """False or True."""
        return bool(self.source.integer(0, 1))

    def maybe(self, n: int = 2) -> bool:
        """True in one case of ``n``."""
        return one_in(self.source, n)

    def pick(self, *options: Any) -> Any:
        """One of the options; the first is the simplest."""
        return choose(self.source, options)

    def rank(self, name: str = "self") -> int:
        """The rank of a tensor that is made, or of the first one, or of the case's shape."""
        made = self.made.get(name)
        if isinstance(made, TensorSpec):
            return len(made.shape)
        first = next((value for value in self.made.values() if isinstance(value, TensorSpec)), None)
        return len(first.shape) if first else len(self.shape)

    def dim(self, rank: int) -> int:
        """A dim of a tensor of that rank, negative in half of the cases; 0-d tensors have dims -1 and 0."""
        rank = max(rank, 1)
        dim = self.source.integer(0, rank - 1)
        return dim - rank if self.flag() else dim


Rule = Callable[[Build, Argument], Any]
Prepare = Callable[[Build], dict[str, Any]]
# puts results that upstream leaves open (the index of one of several equal maxima) into a form that can be compared
Normalize = Callable[[Case, list[Any]], list[Any]]


@dataclass(frozen=True)
class Law:
    """The distribution a random operator promises. Functions of the arguments by name, absent ones at their default.

    ``support`` tells which values may occur; ``mean`` and ``std`` are None where the law has none (Cauchy).
    """

    support: Callable[[dict[str, Any], Tensor], Tensor]
    mean: Callable[[dict[str, Any]], Any] | None = None
    std: Callable[[dict[str, Any]], Any] | None = None


@dataclass(frozen=True)
class Domain:
    """What the schema does not say about an operator.

    ``prepare`` makes arguments that depend on each other, before the rest; ``arguments`` has rules for single ones that
    it does not make. ``asked`` are the caller's own rules, which count more than either: they find in `Build.made` what
    ``prepare`` has made, the argument's own value among it.
    ``ranks`` bounds the case's shape. ``reference`` computes what the CPU kernel of the same name would (for operators
    the CPU lacks). ``mutates`` names arguments that are written though the schema does not say so. ``law`` marks a
    random operator and ``undefined`` one whose new elements have no values: there only the form is compared.
    ``accumulates``: each result element adds up many terms, so rounding grows with their number.
    ``strides``: results have the same strides as on the CPU, though the operator is not pointwise (True), or need not
    have, though it is (False).
    ``promotes`` False: the tensors have to have one dtype, though the operator is pointwise.
    ``gradient_dtype``: the CPU computes the gradient no better than in that dtype.
    ``grows``: a result may hold elements that nobody has written; ``normalize`` leaves those out.
    ``atomic``: several threads may add to one element, and a device with threads has them do it in any order, so that
    two runs differ by rounding.
    ``private`` results are for the backward operator of the same device alone, so nobody else may look at them.
    ``trusts_out``: an internal operator that writes into ``out`` without looking at its shape.
    ``through_cpu`` names operators that may run on the CPU inside of it, for a reason that stands beside it.
    ``dense_out``: the CPU's kernel writes ``out`` as if it were contiguous, so only such ones can be compared.
    """

    prepare: Prepare | None = None
    arguments: Mapping[str, Rule] = field(default_factory=dict)
    asked: Mapping[str, Rule] = field(default_factory=dict)
    numbers: Numbers = ORDINARY
    ranks: tuple[int, int] = (0, 5)
    least_size: int = 0
    dtypes: tuple[torch.dtype, ...] | None = None
    reference: Callable[..., Any] | None = None
    mutates: frozenset[str] = frozenset()
    law: Law | None = None
    undefined: bool = False
    accumulates: bool = False
    strides: bool | None = None
    pointwise: bool = False
    trusts_out: bool = False
    through_cpu: frozenset[str] = frozenset()
    dense_out: bool = False
    promotes: bool = True
    gradient_dtype: torch.dtype | None = None
    grows: bool = False
    atomic: bool = False
    private: frozenset[int] = frozenset()
    normalize: Normalize | None = None
