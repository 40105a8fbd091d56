"""Every module of PyTorch's module_db on the device, against the CPU with the same parameters and inputs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase

from judge import plan
from judge.case import Case, instantiate, judging, kind_of, name_of, told
from judge.samples import Call, flatten, seed
from judge.skips import Subject
from judge.verdict import ESSENTIAL, answer, differences, is_random, lacks, pull_back


def about_modules(kind: str) -> Any:
    """Makes a method one test for each module, dtype and mode; it gets `Case`, the ModuleInfo, dtype and mode."""
    wanted = [info for info in module_db if plan.current.wants([info.name])]

    def decorate(method: Any) -> Any:
        def test(self: Any, device: str, dtype: torch.dtype, module_info: Any, training: bool) -> None:
            name = module_info.name
            with judging(Case(Subject("module_db", name, kind, name_of(dtype)), kind_of(device))) as case:
                method(self, case, module_info, dtype, training)

        test.__name__ = method.__name__
        return modules(wanted)(test) if wanted else None

    return decorate


class TestModuleDb(TestCase):
    @about_modules("forward")
    def test_module_forward(self, case: Case, info: Any, dtype: torch.dtype, training: bool) -> None:
        for made in inputs(info, case.device, dtype, training):
            compare_runs(self, case, made, dtype, training, backward=False)

    @about_modules("gradients")
    def test_module_gradients(self, case: Case, info: Any, dtype: torch.dtype, training: bool) -> None:
        for made in inputs(info, case.device, dtype, training, requires_grad=True):
            compare_runs(self, case, made, dtype, training, backward=True)

    @about_modules("state")
    def test_module_state(self, case: Case, info: Any, dtype: torch.dtype, training: bool) -> None:
        """Moving there and back, saving and loading keep every parameter and buffer."""
        for made in inputs(info, case.device, dtype, training):
            at_home = build(made, "cpu", dtype)
            if any(torch.nn.parameter.is_lazy(tensor) for tensor in tensors_of(at_home).values()):
                case.note("lazy parameters have no values yet")
                continue
            moved = answer(lambda at_home=at_home: copy.deepcopy(at_home).to(case.device), case.device, case.ran)
            if moved.error:
                case.add([f"cannot be moved: {told(moved)}"], made.summary)
                continue
            found = differences(self, tensors_of(at_home), tensors_of(moved.result), case.device, None)
            fresh = build(made, case.device, dtype)
            fresh.load_state_dict(at_home.state_dict())
            found += differences(self, dict(at_home.state_dict()), dict(fresh.state_dict()), case.device, None)
            back = copy.deepcopy(moved.result).cpu()
            found += differences(self, tensors_of(at_home), tensors_of(back), "cpu", None)
            case.add(found, made.summary)


class Made:
    """A module's constructor arguments and those of its forward call, on the device they were made for."""

    def __init__(self, info: Any, module_input: Any) -> None:
        self.cls = info.module_cls
        constructor, forward = module_input.constructor_input, module_input.forward_input
        self.constructor = Call(None, constructor.args, constructor.kwargs)
        self.forward = Call(None, forward.args, forward.kwargs) if forward is not None else None
        self.summary = f"{info.name}: {module_input.desc or 'plain'}"


def inputs(
    info: Any, device: str, dtype: torch.dtype, training: bool, *, requires_grad: bool = False
) -> Iterator[Made]:
    """The module's inputs as PyTorch's database makes them."""
    seed(device)
    made = info.module_inputs_func(info, device=device, dtype=dtype, requires_grad=requires_grad, training=training)
    for module_input in plan.current.chosen(made):
        yield Made(info, module_input)


def build(made: Made, device: str, dtype: torch.dtype) -> torch.nn.Module:
    """The module with parameters that are the same on every device."""
    seed("cpu")
    there = made.constructor.copy("cpu")
    module = made.cls(*there.args, **there.kwargs)
    return module.to(dtype).to(device)


def tensors_of(module: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def compare_runs(test: Any, case: Case, made: Made, dtype: torch.dtype, training: bool, *, backward: bool) -> None:
    """One input on both sides: results and buffers, or gradients. Closes one sample of the case."""
    if made.forward is None:
        case.note("has no forward input")
        return

    def run(device: str) -> Any:
        module = build(made, device, dtype).train(training)
        there = made.forward.copy(device)
        seed(device)
        result = module(*there.args, **there.kwargs)
        if not backward:
            return result, dict(module.named_buffers())
        return pull_back(
            flatten(result), [leaf for leaf in (*module.parameters(), *there.leaves()) if leaf.requires_grad]
        )

    on_cpu = answer(lambda: run("cpu"), "cpu")
    if on_cpu.error and lacks(on_cpu.error):
        case.note("the CPU lacks the dtype")
        return
    on_device = answer(lambda: run(case.device), case.device, case.ran)
    if on_device.error and not on_cpu.error and lacks(on_device.error, dtype in ESSENTIAL):
        case.unsupported(on_device.error)
    elif on_cpu.error or on_device.error:
        same = type(on_cpu.error) is type(on_device.error)
        case.add([] if same else [f"{told(on_device)}, the CPU {told(on_cpu)}"], made.summary)
    elif backward and not on_cpu.result and not on_device.result:
        case.note("has nothing to differentiate")
    else:
        found = differences(test, on_cpu.result, on_device.result, case.device, None)
        if found and all("wrong values" in text for text in found) and is_random(lambda: run("cpu")):
            found = []
            case.note("draws random numbers", closes=False)
        case.add(found, made.summary)


instantiate(TestModuleDb, globals())
