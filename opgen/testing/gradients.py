"""Compares gradients: what autograd gives on the device with what it gives on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from opgen.testing.build import Domain
from opgen.testing.case import Case, make_live
from opgen.testing.check import for_every
from opgen.testing.compare import compare_values, terms_of, working_dtype
from opgen.testing.domains import domain_of
from opgen.testing.overload import load_overload
from opgen.testing.repro import script
from opgen.testing.run import fallback_counts, flatten, to_cpu
from opgen.testing.strategies import accepted_dtypes, cases


@dataclass
class Compared:
    """How many cases had a gradient to compare."""

    cases: int = 0


def check_gradients(name: str, device: str = "musa", count: int = 5, fallback: bool = False) -> Compared:
    """Runs an overload forward and backward in float32 on both sides; raises AssertionError where gradients differ.

    ``fallback`` allows operators to go through the CPU fallback. The result says in how many of ``count`` cases there
    was a gradient: none for an operator without a derivative, and none for random operators, whose gradients depend on
    the numbers drawn.
    """
    op = load_overload(name)
    # nan and infinity have no gradient worth comparing
    domain = domain_of(op)
    domain = replace(domain, numbers=replace(domain.numbers, special=False), accumulates=True)
    call = domain.reference or op.call
    compared = Compared()
    if domain.law or domain.undefined:
        return compared
    if torch.float32 not in accepted_dtypes(op, replace(domain, dtypes=(torch.float32,)), call):
        return compared

    def check(case: Case) -> None:
        compared.cases += check_case(case, domain, device, fallback)

    for_every(cases(op, domain, call, (torch.float32,)), check, count)
    return compared


def check_case(case: Case, domain: Domain, device: str, fallback: bool) -> bool:
    """True when there was a gradient to compare."""
    if not _gradients(case, domain, "cpu"):
        return False
    # several of the CPU's backward kernels take parameters for dense tensors
    expected = _gradients(case.dense(), domain, "cpu")
    before = fallback_counts(device)
    actual = _gradients(case, domain, device)
    problems = []
    taken = {op: count for op, count in fallback_counts(device).items() if count != before.get(op, 0)}
    if taken and not fallback:
        problems.append(f"goes through the CPU fallback: {sorted(taken)}")
    if actual.keys() != expected.keys():
        problems.append(f"has gradients for {sorted(actual)}, the CPU for {sorted(expected)}")
    for path in expected.keys() & actual.keys():
        # forward and backward both round, in whatever dtype an operand has
        terms = 4 * terms_of(case, domain)
        dtype = working_dtype(case, domain, expected[path].dtype)
        differences = compare_values(expected[path], actual[path], terms, dtype)
        problems += [f"gradient of {path!r} {text}" for text in differences]
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise AssertionError(
            f"{case.op.name} on {device}, backward\n{listed}\n\nin the case\n  {case!r}\n\n"
            f"The forward call:\n\n{script(case, device)}"
        )
    return True


def _gradients(case: Case, domain: Domain, device: str) -> dict[str, Tensor]:
    """Gradients of every floating argument, for a cotangent that differs from element to element."""
    live = make_live(case, device, leaves=lambda path: path not in domain.mutates)
    call = (domain.reference or case.op.call) if device == "cpu" else case.op.call
    try:
        results = flatten(call(*live.positional, **live.keywords))
    except Exception:
        if device == "cpu":
            return {}
        raise
    results = [result for result in results if isinstance(result, Tensor) and result.requires_grad]
    if not results:
        return {}
    cotangents = [_cotangent(result.shape, result.dtype).to(device) for result in results]
    leaves = {path: tensor for path, tensor in live.tensors.items() if tensor.requires_grad}
    try:
        gradients = torch.autograd.grad(results, list(leaves.values()), cotangents, allow_unused=True)
    except Exception:
        if device == "cpu":
            return {}
        raise
    return {path: to_cpu(gradient) for path, gradient in zip(leaves, gradients, strict=True) if gradient is not None}


def _cotangent(shape: torch.Size, dtype: torch.dtype) -> Tensor:
    count = shape.numel()
    return (((torch.arange(count) % 7) - 3) / 2).reshape(shape).to(dtype)
