"""Every OpInfo of PyTorch's op_db on the device, against the CPU with the same samples."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, gradcheck

from judge.case import Case, about_ops, instantiate, name_of, told
from judge.samples import Call, call_of, calls, flatten, map_leaves, samples, seed, widen
from judge.verdict import (
    ESSENTIAL,
    answer,
    describe,
    differences,
    gradients,
    is_as_near,
    is_random,
    lacks,
    limit_of_cpu,
    tolerance_of,
)


class TestOpDb(TestCase):
    @about_ops("forward", op_db)
    def test_forward(self, case: Case, op: Any, dtype: torch.dtype) -> None:
        for call in calls(op, case.device, dtype):
            compare_call(self, case, op, dtype, op, call)

    @about_ops("noncontiguous", op_db)
    def test_noncontiguous(self, case: Case, op: Any, dtype: torch.dtype) -> None:
        for sample in samples(op, case.device, dtype):
            spread = answer(sample.noncontiguous, case.device)
            if spread.error:
                case.note(f"PyTorch cannot make it non-contiguous: {describe(spread.error)}")
            else:
                compare_call(self, case, op, dtype, op, call_of(spread.result))

    @about_ops("inplace", op_db)
    def test_inplace(self, case: Case, op: Any, dtype: torch.dtype) -> None:
        inplace = op.get_inplace()

        def write(input: Any, *args: Any, **kwargs: Any) -> Any:
            result = inplace(input, *args, **kwargs)
            return result, input, result is input

        for call in calls(op, case.device, dtype):
            compare_call(self, case, op, dtype, write, call)

    @about_ops("out", op_db)
    def test_out(self, case: Case, op: Any, dtype: torch.dtype) -> None:
        for call in calls(op, case.device, dtype):
            plain = answer(lambda call=call: call.copy("cpu")(op), "cpu")
            wanted = flatten(plain.result)
            if plain.error or not wanted or not all(isinstance(leaf, Tensor) for leaf in wanted):
                case.note("the CPU returns no tensors")
                continue
            alone = isinstance(plain.result, Tensor)
            for name, make in OUT_FORMS.items():
                write = writes_out(op, wanted, make, alone)
                exact = writes_out(op, [map_leaves(widen, leaf) for leaf in wanted], make, alone)
                right = (wanted, [True] * len(wanted), [True] * len(wanted))
                compare_call(self, case, op, dtype, write, call, f"out= {name}", exact, right)

    @about_ops("errors", op_db)
    def test_errors(self, case: Case, op: Any, dtype: None) -> None:
        seed(case.device)
        twins = None
        for position, wrong in enumerate(op.error_inputs_func(op, case.device)):
            call = call_of(wrong.sample_input)
            problem = refuses(op, wrong, call, case.device, case)
            if problem:
                # what the CPU does not refuse either, or with other words, is not the device's fault
                twins = twins or list(op.error_inputs_func(op, "cpu"))
                twin = twins[position] if position < len(twins) else wrong
                if refuses(op, twin, call_of(twin.sample_input).copy("cpu"), "cpu"):
                    case.note(f"the CPU, too, {problem}")
                    continue
            case.add([problem] if problem else [], call.summary)

    @about_ops("gradients", op_db)
    def test_gradients(self, case: Case, op: Any, dtype: torch.dtype) -> None:
        for call in calls(op, case.device, dtype, requires_grad=True):
            if call.leaves():
                compare_call(self, case, op, dtype, None, call)

    @about_ops("gradcheck", op_db)
    def test_gradcheck(self, case: Case, op: Any, dtype: torch.dtype) -> None:
        # the smallest sample that has something to differentiate: the device's derivatives were compared above
        found = [call for call in calls(op, case.device, dtype, requires_grad=True) if call.leaves()]
        found = [call for call in found if any(leaf.numel() for leaf in call.leaves())]
        for call in sorted(found, key=lambda call: sum(leaf.numel() for leaf in call.leaves()))[:1]:
            on_device = answer(lambda call=call: check_gradients(op, call.copy(case.device)), case.device, case.ran)
            if on_device.error and lacks(on_device.error):
                case.unsupported(on_device.error)
            elif on_device.error and answer(lambda call=call: check_gradients(op, call.copy("cpu")), "cpu").error:
                case.note("gradcheck refuses this sample on the CPU, too")
            else:
                case.add([told(on_device)] if on_device.error else [], call.summary)

    @about_ops("dtypes", op_db)
    def test_dtypes(self, case: Case, op: Any, dtype: None) -> None:
        claimed = op.supported_dtypes("cuda")
        supported, refused = [], {}
        for claim in sorted(claimed, key=str):
            sample = next(iter(calls(op, case.device, claim)), None)
            if sample is None:
                continue
            on_device = answer(lambda sample=sample: sample(op), case.device, case.ran)
            if on_device.error is None:
                supported.append(name_of(claim))
            else:
                refused[name_of(claim)] = describe(on_device.error)
            wrong = on_device.error and is_required(op, claim) and claim in op.supported_dtypes("cpu")
            case.add([f"refuses {claim}: {describe(on_device.error)}"] if wrong else [])
        case.details["dtypes"] = {"supported": supported, "refused": refused}


def is_required(op: Any, dtype: torch.dtype) -> bool:
    """True for the dtypes that no device may refuse, where CUDA has them, too."""
    return dtype in ESSENTIAL and dtype in op.supported_dtypes("cuda")


def compare_call(
    test: Any,
    case: Case,
    op: Any,
    dtype: torch.dtype,
    function: Callable[..., Any] | None,
    call: Call,
    about: str = "",
    exact: Callable[..., Any] | None = None,
    right: Any = None,
) -> None:
    """One sample on both sides; without a function, its gradients. Closes one sample of the case.

    ``exact`` is the function for double precision, where it is another one. ``right`` is right, too: some of the
    CPU's kernels take an out= tensor for a dense one, and what they should have written is known without it.
    """

    def ask(there: Call, function: Callable[..., Any] | None) -> Any:
        return gradients(op, there) if function is None else there(function)

    def make(device: str) -> Any:
        return ask(call.copy(device), function)

    about = f"{about} {call.summary}".strip()
    if not call.names(case.device):
        case.note("the sample is about no device")
        return
    on_cpu = answer(lambda: make("cpu"), "cpu")
    if on_cpu.error and lacks(on_cpu.error):
        case.note(f"the CPU lacks the dtype: {describe(on_cpu.error)}")
        return
    if on_cpu.error and limit_of_cpu(on_cpu.error):
        case.note(f"the CPU cannot: {describe(on_cpu.error)}")
        return
    on_device = answer(lambda: make(case.device), case.device, case.ran)
    if on_device.error and not on_cpu.error and lacks(on_device.error, is_required(op, dtype)):
        case.unsupported(on_device.error)
        return
    if on_cpu.error or on_device.error:
        same = type(on_cpu.error) is type(on_device.error)
        case.add([] if same else [f"{told(on_device)}, the CPU {told(on_cpu)}"], about)
        return
    if function is None and not on_cpu.result and not on_device.result:
        case.note("nothing depends on an input")
        return
    tolerance = tolerance_of(op, case.device, dtype)
    home = case.device if function is None else call.home(case.device)
    found = differences(test, on_cpu.result, on_device.result, home, tolerance)
    if found and all(text.startswith("has wrong values") for text in found):
        if getattr(op, "has_nondeterministic_output", False) or op.name in UNINITIALISED:
            found = []
            case.note("promises no values", closes=False)
        elif is_random(lambda: make("cpu")):
            found = []
            case.note("draws random numbers", closes=False)
        elif right and not differences(test, right, on_device.result, home, tolerance):
            found = []
            case.note("the CPU writes something else into an out= tensor of that layout", closes=False)
        elif is_as_near(
            on_cpu.result, on_device.result, answer(lambda: ask(call.widened(), exact or function), "cpu").result
        ):
            found = []
            case.details["rounding"] = case.details.get("rounding", 0) + 1
    # several of the CPU's kernels resize an out= tensor without the warning that PyTorch promises
    if on_cpu.warned and not on_device.warned:
        found.append("does not warn about the resized out= tensor")
    case.add(found, about)


# What these return is memory as it was found; newer releases say so in the OpInfo (has_nondeterministic_output).
UNINITIALISED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_")


def check_gradients(op: Any, call: Call) -> bool:
    """Numerical against analytical gradients of one call, along a random direction."""
    leaves = call.leaves()

    def function(*given: Tensor) -> Any:
        replaced = dict(zip(map(id, leaves), given, strict=True))
        swap = lambda value: replaced.get(id(value), value)  # noqa: E731
        arguments = [map_leaves(swap, part) for part in (call.input, list(call.args), call.kwargs)]
        result = op.gradcheck_wrapper(op, arguments[0], *arguments[1], **arguments[2])
        return tuple(leaf for leaf in flatten(call.differentiable(result)) if isinstance(leaf, Tensor))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(gradcheck(function, leaves, fast_mode=True, nondet_tol=op.gradcheck_nondet_tol))


def refuses(op: Any, wrong: Any, call: Call, device: str, case: Case | None = None) -> str:
    """Empty when the call raises what PyTorch's ErrorInput says it raises."""
    got = answer(lambda: call(op), device, case.ran if case else None)
    if got.error is None:
        return f"accepts what has to raise {wrong.error_type.__name__}"
    if not isinstance(got.error, wrong.error_type):
        return f"raises {describe(got.error)}, and not {wrong.error_type.__name__}"
    if not re.search(wrong.error_regex, str(got.error)):
        return f"raises {describe(got.error)}, which does not match {wrong.error_regex!r}"
    return ""


def _strided(like: Tensor) -> Tensor:
    return torch.zeros((*like.shape, 2), dtype=like.dtype)[..., 0]


def _narrow(like: Tensor) -> Tensor:
    return torch.zeros(like.shape, dtype=torch.bool if not like.dtype.is_floating_point else torch.int64)


OUT_FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "fresh": lambda like: torch.zeros(like.shape, dtype=like.dtype),
    "strided": _strided,
    "empty": lambda like: torch.zeros(0, dtype=like.dtype),
    "of a wrong shape": lambda like: torch.zeros((*like.shape, 1, 3), dtype=like.dtype),
    "of a dtype that cannot hold the result": _narrow,
}


def writes_out(op: Any, wanted: list[Tensor], make: Callable[[Tensor], Tensor], alone: bool) -> Callable[..., Any]:
    """Calls the operator with out= tensors made on the CPU and moved to where the call's tensors are.

    Returns what was written, whether that is what the operator returned, and whether it stayed where and as it was.
    """

    def write(input: Any, *args: Any, **kwargs: Any) -> Any:
        homes = [leaf.device for leaf in flatten((input, args, kwargs)) if isinstance(leaf, Tensor)]
        home = homes[0] if homes else torch.device(kwargs.get("device", "cpu"))
        outs = [make(like) for like in wanted]
        outs = [torch.empty_strided(o.shape, o.stride(), dtype=o.dtype, device=home).copy_(o) for o in outs]
        before = [(out.shape, (out.stride(), out.data_ptr())) for out in outs]
        returned = flatten(op(input, *args, **kwargs, out=outs[0] if alone else tuple(outs)))
        places = zip(outs, before, strict=True)
        kept = [
            not out.numel() or out.shape != shape or (out.stride(), out.data_ptr()) == place
            for out, (shape, place) in places
        ]
        return outs, [got is out for got, out in zip(returned, outs, strict=True)], kept

    return write


instantiate(TestOpDb, globals())
