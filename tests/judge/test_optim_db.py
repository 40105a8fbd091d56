"""Every optimizer of PyTorch's optim_db on the device: a few steps give the parameters that they give on the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase

from judge import plan
from judge.case import Case, instantiate, judging, kind_of, name_of, told
from judge.samples import SEED, copy_to
from judge.skips import Subject
from judge.verdict import ESSENTIAL, answer, differences, lacks

_STEPS = 3
_SHAPES = ((3, 4), (4, 3), (2, 5))
_DTYPES = [torch.float32, torch.float64, torch.bfloat16]
# Rounding adds up over the steps, and several implementations order the same sums differently: twice PyTorch's own
# tolerances between its single-tensor and foreach implementations.
_TOLERANCES = {torch.float32: (2e-5, 1e-5), torch.float64: (1e-7, 1e-7), torch.bfloat16: (5e-2, 5e-2)}


def about_optimizers(kind: str) -> Any:
    """Makes a method one test for each optimizer and dtype; it gets `Case`, the OptimizerInfo and the dtype."""
    wanted = [info for info in optim_db if plan.current.wants([info.name])]

    def decorate(method: Any) -> Any:
        def test(self: Any, device: str, dtype: torch.dtype, optim_info: Any) -> None:
            name = optim_info.name
            with judging(Case(Subject("optim_db", name, kind, name_of(dtype)), kind_of(device))) as case:
                method(self, case, optim_info, dtype)

        test.__name__ = method.__name__
        return optims(wanted, dtypes=_DTYPES)(test) if wanted else None

    return decorate


class TestOptimDb(TestCase):
    @about_optimizers("plain")
    def test_optimizer_plain(self, case: Case, info: Any, dtype: torch.dtype) -> None:
        compare_steps(self, case, info, dtype, {"foreach": False} if "foreach" in info.supported_impls else {})

    @about_optimizers("foreach")
    def test_optimizer_foreach(self, case: Case, info: Any, dtype: torch.dtype) -> None:
        if "foreach" not in info.supported_impls:
            self.skipTest("it has no foreach implementation")
        compare_steps(self, case, info, dtype, {"foreach": True})

    @about_optimizers("fused")
    def test_optimizer_fused(self, case: Case, info: Any, dtype: torch.dtype) -> None:
        if "fused" not in info.supported_impls:
            self.skipTest("it has no fused implementation")
        compare_steps(self, case, info, dtype, {"fused": True})

    @about_optimizers("capturable")
    def test_optimizer_capturable(self, case: Case, info: Any, dtype: torch.dtype) -> None:
        if not info.has_capturable_arg:
            self.skipTest("it has no capturable implementation")
        # the reference is the plain one: capturable exists on devices only
        compare_steps(self, case, info, dtype, {"capturable": True, "foreach": False}, device_only=("capturable",))

    @about_optimizers("state")
    def test_optimizer_state(self, case: Case, info: Any, dtype: torch.dtype) -> None:
        """A state that is saved and loaded again goes on as if nothing had been."""
        for kwargs, about in settings(info, case.device, dtype):
            straight = answer(lambda kwargs=kwargs: steps(info, case.device, dtype, kwargs), case.device, case.ran)
            halted = answer(lambda kwargs=kwargs: steps(info, case.device, dtype, kwargs, reload=True), case.device)
            if straight.error or halted.error:
                errors = [told(one) for one in (straight, halted) if one.error]
                if all(lacks(one.error, dtype in ESSENTIAL) for one in (straight, halted)):
                    case.unsupported(straight.error)
                else:
                    case.add(errors, about)
            else:
                case.add(differences(self, straight.result, halted.result, case.device, None), about)


def settings(info: Any, device: str, dtype: torch.dtype) -> Iterator[tuple[dict[str, Any], str]]:
    """The arguments that PyTorch's database tries for the optimizer."""
    for made in plan.current.chosen(info.optim_inputs_func(device=device, dtype=dtype)):
        if not {"foreach", "fused", "differentiable", "capturable"} & set(made.kwargs):
            yield dict(made.kwargs), f"{info.name}: {made.desc}"


def compare_steps(
    test: Any,
    case: Case,
    info: Any,
    dtype: torch.dtype,
    more: dict[str, Any],
    *,
    device_only: tuple[str, ...] = (),
) -> None:
    """The same steps on both sides, for all of the optimizer's settings."""
    at_home = {name: value for name, value in more.items() if name not in device_only}
    for kwargs, about in settings(info, case.device, dtype):
        on_cpu = answer(lambda kwargs=kwargs: steps(info, "cpu", dtype, {**kwargs, **at_home}), "cpu")
        there = {**kwargs, **more}
        on_device = answer(lambda there=there: steps(info, case.device, dtype, there), case.device, case.ran)
        if on_device.error and not on_cpu.error and lacks(on_device.error, dtype in ESSENTIAL):
            case.unsupported(on_device.error)
        elif on_cpu.error or on_device.error:
            same = type(on_cpu.error) is type(on_device.error)
            case.add([] if same else [f"{told(on_device)}, the CPU {told(on_cpu)}"], f"{about} {more}")
        else:
            # capturable keeps the step in float32, whatever the parameters are
            rounded = torch.float32 if device_only and dtype == torch.float64 else dtype
            tolerance = _TOLERANCES[rounded]
            if info.step_requires_closure:
                # it divides by differences of gradients that are nearly equal: half of the digits are left
                tolerance = (math.sqrt(torch.finfo(rounded).eps) * 4,) * 2
            found = differences(test, on_cpu.result, on_device.result, case.device, tolerance)
            case.add(found, f"{about} {more}")


def steps(info: Any, device: str, dtype: torch.dtype, kwargs: dict[str, Any], *, reload: bool = False) -> list[Any]:
    """Parameters after a few steps with gradients that are the same on every device."""
    generator = torch.Generator().manual_seed(SEED)

    def draw(shape: tuple[int, ...]) -> torch.Tensor:
        return copy_to(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype), device)

    kwargs = {name: copy_to(v, device) if isinstance(v, torch.Tensor) else v for name, v in kwargs.items()}
    parameters = [torch.nn.Parameter(draw(shape)) for shape in _SHAPES]
    optimizer = info.optim_cls(parameters, **kwargs)
    gradients = [[draw(shape) for shape in _SHAPES] for _ in range(_STEPS)]
    for step, given in enumerate(gradients):
        if reload and step:
            saved = optimizer.state_dict()
            optimizer = info.optim_cls(parameters, **kwargs)
            optimizer.load_state_dict(saved)
        for parameter, gradient in zip(parameters, given, strict=True):
            parameter.grad = gradient.to_sparse() if info.only_supports_sparse_grads else gradient.clone()

        def closure(given: list[torch.Tensor] = given) -> torch.Tensor:
            # a bowl around the gradients, so that a line search has something to go down
            pairs = zip(parameters, given, strict=True)
            for parameter, gradient in zip(parameters, given, strict=True):
                parameter.grad = (parameter - gradient).detach()
            return sum(((p - g) ** 2).sum() / 2 for p, g in pairs).detach()

        optimizer.step(closure) if info.step_requires_closure else optimizer.step()
    return [parameter.detach() for parameter in parameters]


instantiate(TestOptimDb, globals())
