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
# A stream that is continued too early repeats most of its numbers; of those that no chance repeats a few may coincide.
_COINCIDENCE = 0.2
_OTHER_SEED = 1234
# fewer values say nothing about moments, and may repeat by chance
_ENOUGH = 256


def check(case: Case, law: Law, device: str) -> list[Problem]:
    """Everything that is wrong with the stream of numbers that the case gives."""
    before = _default_state(device)
    first, second = _samples(case, device, 7, count=2)
    after = _state(device)
    (again,), (other,) = _samples(case, device, 7), _samples(case, device, 8)
    arguments = {argument.name: argument.default for argument in case.op.arguments if argument.has_default}
    arguments.update({name: getattr(value, "value", value) for name, value in case.arguments.items()})
    problems: list[Problem] = []
    if not torch.equal(first, again):
        problems.append(Problem(Category.NONDETERMINISM, "gives different numbers from the same seed"))
    inside = law.support(arguments, first)
    if not bool(inside.all()):
        problems.append(Problem(Category.LAW, f"gives values outside its support: {first[~inside][:5].tolist()}"))
    if _has_generator(case) and not torch.equal(before, after):
        problems.append(Problem(Category.GENERATOR, "moves the default generator though it was given one"))
    if not torch.equal(*_around_state(case, device)):
        problems.append(Problem(Category.GENERATOR, "gives other numbers once its generator's state has been put back"))
    if first.numel() < _ENOUGH:
        return problems
    if law.std and torch.as_tensor(law.std(arguments)).min() > 0:
        if torch.equal(first, other):
            problems.append(Problem(Category.GENERATOR, "gives the same numbers from different seeds"))
        if torch.equal(first, second):
            problems.append(Problem(Category.GENERATOR, "does not advance its generator: a second call repeats it"))
        elif _overlap(first, second) > _COINCIDENCE:
            problems.append(Problem(Category.GENERATOR, "gives a second call numbers that the first one had"))
    if law.mean and law.std:
        problems += _check_moments(first.double(), law.mean(arguments), law.std(arguments))
    return problems


def _around_state(case: Case, device: str) -> list[Tensor]:
    """What the case gives from a generator that has drawn before, and again from the state that this one had."""
    draw = _Drawing(case, device, seed=5)
    draw()
    state = draw.state()
    first = draw()
    draw.put_back(state)
    return [first, draw()]


class _Drawing:
    """Calls in a row, from the generator that the case is given or else from the device's default one."""

    def __init__(self, case: Case, device: str, seed: int) -> None:
        given = _has_generator(case)
        self._device = device
        self._generator = torch.Generator(device=device).manual_seed(seed) if given else None
        # a generator that is given and ignored shows as a seed without effect
        torch.manual_seed(_OTHER_SEED if given else seed)
        arguments = {
            name: self._generator if isinstance(value, SeededGenerator) else value
            for name, value in case.arguments.items()
        }
        self._case = Case(case.op, arguments)

    def __call__(self) -> Tensor:
        outcome = run(self._case, self._device, self._case.op.call)
        assert outcome.error is None, outcome.error
        return to_cpu(flatten(outcome.results)[0])

    def state(self) -> Tensor:
        return _state(self._device) if self._generator is None else self._generator.get_state()

    def put_back(self, state: Tensor) -> None:
        if self._generator is not None:
            self._generator.set_state(state)
        elif self._device.partition(":")[0] == "cpu":
            torch.set_rng_state(state)
        else:
            getattr(torch, self._device.partition(":")[0]).set_rng_state(state)


def _samples(case: Case, device: str, seed: int, count: int = 1) -> list[Tensor]:
    draw = _Drawing(case, device, seed)
    return [draw() for _ in range(count)]


def _has_generator(case: Case) -> bool:
    return any(isinstance(value, SeededGenerator) for value in case.arguments.values())


def _default_state(device: str) -> Tensor:
    """The default generator's state once it has been seeded as `_samples` seeds it beside a given generator."""
    torch.manual_seed(_OTHER_SEED)
    return _state(device)


def _state(device: str) -> Tensor:
    kind = device.partition(":")[0]
    return torch.get_rng_state() if kind == "cpu" else to_cpu(getattr(torch, kind).get_rng_state())


def _overlap(first: Tensor, second: Tensor) -> float:
    """The share of the second sample's numbers that are in the first one; 0 where numbers repeat by chance."""
    if first.unique().numel() < 0.99 * first.numel():
        return 0.0
    return float(torch.isin(second, first).float().mean())


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
