"""Cases for an overload: from its schema, from what the domain table adds, and from what the CPU accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from opgen.testing.asked import asked_value
from opgen.testing.build import OMIT, Build, Domain
from opgen.testing.case import Case, TensorSpec
from opgen.testing.overload import Overload, functional_of
from opgen.testing.rules import make_argument
from opgen.testing.run import run
from opgen.testing.source import CONTENT, ByteSource, SeededSource, Source, choose
from opgen.testing.tensors import DTYPES, FLOATING, draw_shape, lay_out

Call = Callable[..., Any]


def cases(op: Overload, domain: Domain, reference: Call, dtypes: tuple[torch.dtype, ...]) -> st.SearchStrategy[Case]:
    """Cases of ``op`` with main dtypes out of ``dtypes``."""
    return CONTENT.map(lambda content: make_case(op, domain, reference, ByteSource(content), dtypes))


def make_case(op: Overload, domain: Domain, reference: Call, source: Source, dtypes: tuple[torch.dtype, ...]) -> Case:
    """One case."""
    # every third case has the simplest dtype, so that few examples still see enough of it
    dtype = choose(source, (*dtypes, *[dtypes[0]] * (len(dtypes) // 3)))
    build = Build(op, source, domain, dtype, draw_shape(source, *domain.ranks, domain.least_size))
    if domain.prepare:
        build.made.update(domain.prepare(build))
    for argument in op.inputs:
        asked = domain.asked.get(argument.name)
        if asked or argument.name not in build.made:
            rule = asked or domain.arguments.get(argument.name, make_argument)
            value = asked_value(op.name, argument.name, rule, rule(build, argument))
            if value is OMIT:
                build.made.pop(argument.name, None)
            else:
                build.made[argument.name] = value
    arguments = {a.name: build.made[a.name] for a in op.inputs if build.made.get(a.name, OMIT) is not OMIT}
    case = Case(op, arguments)
    return _with_outs(case, source, dtype, domain, reference) if op.outs else case


def accepted_dtypes(op: Overload, domain: Domain, reference: Call) -> tuple[torch.dtype, ...]:
    """The dtypes that the reference takes on the CPU, found by trying; float32 first where it is one of them."""
    return tuple(dtype for dtype in domain.dtypes or DTYPES if _accepts(op, domain, reference, dtype))


_ATTEMPTS = 12


def _accepts(op: Overload, domain: Domain, reference: Call, dtype: torch.dtype) -> bool:
    tried, accepted = 0, 0
    for seed in range(_ATTEMPTS):
        case = make_case(op, domain, reference, SeededSource(seed), (dtype,))
        # kernels look at the dtype only when there is something to compute
        first = next((spec for _, spec in case.tensors()), None)
        if first is None or first.value.numel():
            tried += 1
            accepted += run(case, "cpu", reference).error is None
    # a case may pass because another operand's dtype wins the promotion
    return accepted * 4 >= tried and accepted > 0


def refused_cases(op: Overload, domain: Domain, reference: Call, dtype: torch.dtype, seeds: range) -> Iterator[Case]:
    """Cases of a main dtype that the reference does not take, as far as arguments of it can be made."""
    for seed in seeds:
        try:
            case = make_case(op, domain, reference, SeededSource(seed), (dtype,))
        except Exception:  # some rules compute, with operators that do not take the dtype either
            continue
        yield case


def refusal(op: Overload, domain: Domain, reference: Call, dtype: torch.dtype) -> Exception | None:
    """What the reference raises for the first case of a main dtype that it refuses; None where it takes all."""
    errors = (
        run(make_case(op, domain, reference, SeededSource(seed), (dtype,)), "cpu", reference).error
        for seed in range(_ATTEMPTS)
    )
    return next((error for error in errors if error is not None), None)


# How the tensors given as out= are made. "exact" is the commonest; the others are one of upstream's promises each.
_PLANS = ("exact", "exact", "laid out", "laid out", "empty", "cast", "wrong shape", "uncast")


def _with_outs(case: Case, source: Source, dtype: torch.dtype, domain: Domain, reference: Call) -> Case:
    wanted = _wanted_outs(case, dtype, reference)
    plans = ("exact",) if domain.trusts_out else _PLANS
    plan = choose(source, [plan for plan in plans if plan != "laid out" or not domain.dense_out])
    if any(argument.kind.many for argument in case.op.outs):
        # the overloads that have one have no other out=
        outs: dict[str, Any] = {case.op.outs[0].name: [_make_out(source, tensor, plan) for tensor in wanted]}
    else:
        outs = {a.name: _make_out(source, tensor, plan) for a, tensor in zip(case.op.outs, wanted, strict=False)}
    return Case(case.op, {**case.arguments, **outs})


def _wanted_outs(case: Case, dtype: torch.dtype, reference: Call) -> list[Tensor]:
    """Tensors of the shape and dtype that the call will give."""
    functional = functional_of(case.op)
    if functional and reference is case.op.call:
        results = run(Case(functional, case.arguments), "cpu", functional.call).results
        # what the out= form alone writes into its inputs, the functional one returns behind the rest
        spared = {argument.name for argument in functional.inputs if not argument.written}
        results = results[: len(results) - sum(a.written and a.name in spared for a in case.op.inputs)]
        if len(results) == len(case.op.outs) or any(argument.kind.many for argument in case.op.outs):
            return results
    for candidate in dict.fromkeys((dtype, torch.float32, torch.int64, torch.bool)):
        outs = {argument.name: TensorSpec.of(torch.empty(0, dtype=candidate)) for argument in case.op.outs}
        outcome = run(Case(case.op, {**case.arguments, **outs}), "cpu", reference)
        if outcome.error is None:
            return [outcome.live.tensors[argument.name] for argument in case.op.outs]
    return [torch.empty(0, dtype=dtype) for _ in case.op.outs]


def _make_out(source: Source, wanted: Tensor, plan: str) -> TensorSpec:
    shape = tuple(wanted.shape)
    dtype = wanted.dtype
    if plan == "cast":
        dtype = {torch.bool: torch.uint8, torch.complex64: torch.complex128}.get(
            dtype, torch.float64 if dtype in FLOATING else torch.float32
        )
    elif plan == "uncast":
        # a result of a higher category than the tensor can hold: floating into integral, number into bool
        dtype = torch.int64 if dtype in FLOATING else torch.bool
    elif plan == "empty":
        shape = (0,)
    elif plan == "wrong shape":
        shape = (*shape, 2)
    # the old content differs from any result, so an element that the kernel forgets shows
    content = torch.full(shape, 113, dtype=torch.float64).to(dtype)
    return lay_out(source, content, expand=False, dense=False) if plan == "laid out" else TensorSpec.of(content)
