"""Checks of random operators, whose values cannot be compared: range, moments, seeds."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Law
from opgen.testing.case import Case, SeededGenerator
from opgen.testing.problem import Category, Problem
from opgen.testing.run import flatten, run, to_cpu

# A right generator fails a test of its mean once in 10^8 cases at 6 standard errors; of its spread at 8, which covers
# laws with heavier tails than the normal one.
_MEAN_SIGMAS = 6.0
_SPREAD_SIGMAS = 8.0
# fewer values say nothing about moments, and may repeat by chance
_ENOUGH = 256


def check(case: Case, law: Law, device: str) -> list[Problem]:
    """Everything that is wrong with the stream of numbers that the case gives."""
    first, again, other = (_sample(case, device, seed) for seed in (7, 7, 8))
    arguments = {argument.name: argument.default for argument in case.op.arguments if argument.has_default}
    arguments.update({name: getattr(value, "value", value) for name, value in case.arguments.items()})
    problems: list[Problem] = []
    if not torch.equal(first, again):
        problems.append(Problem(Category.NONDETERMINISM, "gives different numbers from the same seed"))
    inside = law.support(arguments, first)
    if not bool(inside.all()):
        problems.append(Problem(Category.LAW, f"gives values outside its support: {first[~inside][:5].tolist()}"))
    if first.numel() < _ENOUGH:
        return problems
    if law.std and torch.as_tensor(law.std(arguments)).min() > 0 and torch.equal(first, other):
        problems.append(Problem(Category.GENERATOR, "gives the same numbers from different seeds"))
    if law.mean and law.std:
        problems += _check_moments(first.double(), law.mean(arguments), law.std(arguments))
    return problems


def _sample(case: Case, device: str, seed: int) -> Tensor:
    arguments = {
        name: SeededGenerator(seed) if isinstance(value, SeededGenerator) else value
        for name, value in case.arguments.items()
    }
    # operators without a generator argument, or with None, take the device's default one
    torch.manual_seed(seed)
    outcome = run(Case(case.op, arguments), device, case.op.call)
    assert outcome.error is None, outcome.error
    return to_cpu(flatten(outcome.results)[0])


def _check_moments(values: Tensor, mean: Any, std: Any) -> list[Problem]:
    """Standardised values have mean 0 and variance 1 within their standard errors."""
    standard = (values - torch.as_tensor(mean)) / torch.as_tensor(std)
    count = standard.numel()
    problems: list[Problem] = []
    off = float(standard.mean()) * math.sqrt(count)
    if abs(off) > _MEAN_SIGMAS:
        problems.append(Problem(Category.LAW, f"has a mean {off:.1f} standard errors off"))
    fourth = float(standard.pow(4).mean())
    spread = (float(standard.pow(2).mean()) - 1) * math.sqrt(count / max(fourth - 1, 1.0))
    if abs(spread) > _SPREAD_SIGMAS:
        problems.append(Problem(Category.LAW, f"has a variance {spread:.1f} standard errors off"))
    return problems
