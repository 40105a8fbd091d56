"""Runs one call on the device and on the CPU, and says in what they differ."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from judge.samples import SEED, Call, copy_to, flatten, seed

# Every device has to have these; any other dtype it may refuse by name.
ESSENTIAL = (torch.float32, torch.int64, torch.bool)
_LACKS = (
    "not implemented for",
    "not supported for",
    "does not support",
    "unsupported dtype",
    "not support",
    "no tensors of dtype",
)
# Group norm of what is dense in no memory format; the statistics of a batch norm in out= tensors of a wrong shape.
_CPU_LIMITS = ("Expected X.is_contiguous(memory_format) to be true", "TensorAccessor expected")
_RESIZED = "resized since it had shape"


@dataclass
class Ran:
    """The operators that the device was seen to run, and those of them that went through the CPU."""

    families: dict[str, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    on_cpu: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def watch(self, device: str) -> Iterator[None]:
        """Counts what runs inside the block, on a device that counts."""
        module = getattr(torch, device.partition(":")[0], None)
        if not hasattr(module, "count_ops"):
            yield
            return
        before = Counter(module.fallback_counts())
        with module.count_ops() as counts:
            yield
        self.calls.update(dict(counts))
        self.families.update({op: counts.family(op) for op in counts})
        self.on_cpu.update(Counter(module.fallback_counts()) - before)

    def broken_claims(self, registered: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Operators that have a kernel of the device's by the list, and ran on the CPU without it."""
        return [op for op in self.on_cpu if registered.get(op, {}).get("family", "cpu_fallback") != "cpu_fallback"]


@dataclass(frozen=True)
class Answer:
    """What a call did: its result or its error, and whether it warned about an out= tensor that it resized."""

    result: Any = None
    error: Exception | None = None
    warned: bool = False


def answer(call: Callable[[], Any], device: str, ran: Ran | None = None) -> Answer:
    """Calls, waits for the device, and keeps the error."""
    seed(device)
    kind = device.partition(":")[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with ran.watch(device) if ran else nullcontext():
                result = call()
                if kind != "cpu":
                    getattr(torch, kind).synchronize()
        except Exception as error:
            return Answer(error=error)
    return Answer(result=result, warned=any(_RESIZED in str(warning.message) for warning in caught))


def lacks(error: Exception | None, required: bool = False) -> bool:
    """True when a device says that it does not do a dtype, and may say so."""
    if required or not isinstance(error, (RuntimeError, NotImplementedError, TypeError)):
        return False
    return any(text in str(error).lower() for text in _LACKS)


def limit_of_cpu(error: Exception | None) -> bool:
    """True when the CPU's kernel, and not the operator, is the reason for its refusal."""
    return any(text in str(error) for text in _CPU_LIMITS)


def describe(error: Exception | None) -> str:
    """The type and first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}" if error else "no error"


def differences(test: Any, wanted: Any, got: Any, device: str, tolerance: tuple[float, float] | None) -> list[str]:
    """How a result on ``device`` differs from the CPU's, form first; compared by PyTorch's own assertEqual."""
    wanted_leaves, got_leaves = flatten(wanted), flatten(got)
    if len(wanted_leaves) != len(got_leaves):
        return [f"returns {len(got_leaves)} results, the CPU returns {len(wanted_leaves)}"]
    problems = forms(wanted_leaves, got_leaves, device)
    if problems:
        return problems
    for wanted_leaf, got_leaf in zip(wanted_leaves, got_leaves, strict=True):
        text = _unequal(test, wanted_leaf, got_leaf, tolerance)
        if text:
            problems.append(text)
    return problems


def forms(wanted: list[Any], got: list[Any], device: str) -> list[str]:
    """Differences in type, dtype, shape and device."""
    problems = []
    for wanted_leaf, got_leaf in zip(wanted, got, strict=True):
        if type(wanted_leaf) is not type(got_leaf):
            problems.append(f"returns a {type(got_leaf).__name__}, the CPU a {type(wanted_leaf).__name__}")
        elif isinstance(wanted_leaf, Tensor):
            if got_leaf.dtype != wanted_leaf.dtype:
                problems.append(f"has dtype {got_leaf.dtype}, on the CPU {wanted_leaf.dtype}")
            if got_leaf.shape != wanted_leaf.shape:
                problems.append(f"has shape {tuple(got_leaf.shape)}, on the CPU {tuple(wanted_leaf.shape)}")
            if got_leaf.device.type != device.partition(":")[0]:
                problems.append(f"is on {got_leaf.device}, not on {device}")
    return problems


def _unequal(test: Any, wanted: Any, got: Any, tolerance: tuple[float, float] | None) -> str:
    if isinstance(wanted, torch.Generator):
        return ""
    wanted, got = (leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf for leaf in (wanted, got))
    atol, rtol = tolerance or (None, None)
    try:
        test.assertEqual(got, wanted, atol=atol, rtol=rtol, exact_device=False)
    except AssertionError as difference:
        lines = [line.strip() for line in str(difference).splitlines() if line.strip()]
        return "has wrong values: " + "; ".join(lines[:4])
    return ""


def is_as_near(wanted: Any, got: Any, exact: Any) -> bool:
    """True when the device's floating results are no further from those in double precision than the CPU's are.

    PyTorch's tolerances are for one rounding. Where several add up, or terms cancel, two right kernels that round at
    other places are further apart than that; a wrong one is far from the exact result. Four times the CPU's largest
    error is as near; other results have to be equal.
    """
    leaves = [flatten(result) for result in (wanted, got, exact)]
    if len({len(found) for found in leaves}) != 1:
        return False
    return all(_near(*three) for three in zip(*leaves, strict=True))


def _near(wanted: Any, got: Any, exact: Any) -> bool:
    if not all(isinstance(leaf, Tensor) and leaf.layout == torch.strided for leaf in (wanted, got, exact)):
        return type(wanted) is type(got) and not isinstance(wanted, Tensor) and wanted == got
    wanted, got, exact = (leaf.detach().cpu() for leaf in (wanted, got, exact))
    if not (wanted.is_floating_point() or wanted.is_complex()):
        return torch.equal(wanted, got)
    if wanted.shape != exact.shape:
        return False
    wanted, got = wanted.to(exact.dtype), got.to(exact.dtype)
    told_apart = ~(torch.isclose(wanted, got, rtol=0, atol=0, equal_nan=True))
    if not all(bool(torch.isfinite(leaf[told_apart]).all()) for leaf in (wanted, got, exact)):
        return False
    finite = torch.isfinite(wanted) & torch.isfinite(exact)
    error_of_cpu = (wanted - exact).abs()[finite]
    return bool((got - exact).abs()[told_apart].max() <= 4 * error_of_cpu.max()) if told_apart.any() else True


class _Draws(TorchDispatchMode):
    """Sees whether anything draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found = self.found or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def is_random(make: Callable[[], Any]) -> bool:
    """True when the call draws random numbers on the CPU: a device has a sequence of its own.

    Asked of the dispatcher, since many OpInfos seed the generator themselves and give the same numbers each time.
    """
    with warnings.catch_warnings(), _Draws() as draws:
        warnings.simplefilter("ignore")
        try:
            make()
        except Exception:
            return False
    return draws.found


def tolerance_of(op: Any, device: str, dtype: torch.dtype | None) -> tuple[float, float] | None:
    """(atol, rtol) of the OpInfo where it states any for tests that compare values; None means the dtype's own."""
    from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride
    from torch.testing._internal.opinfo.core import DecorateInfo

    found: list[tuple[float, float]] = []
    for info in op.decorators:
        if not isinstance(info, DecorateInfo) or info.cls_name not in (None, "TestCommon"):
            continue
        if info.test_name not in (None, "test_compare_cpu", "test_noncontiguous_samples", "test_out"):
            continue
        if info.device_type not in (None, "cuda", device) or (info.dtypes is not None and dtype not in info.dtypes):
            continue
        for decorator in info.decorators:
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                found.append((decorator.d[dtype].atol, decorator.d[dtype].rtol))
            elif isinstance(decorator, precisionOverride) and dtype in decorator.d:
                found.append((decorator.d[dtype], 0.0))
    if not found or dtype is None:
        return None
    from torch.testing._comparison import default_tolerances

    rtol, atol = default_tolerances(dtype)
    return max(atol, *(a for a, _ in found)), max(rtol, *(r for _, r in found))


def gradients(function: Callable[..., Any], call: Call) -> list[Tensor | None]:
    """Gradients of all leaves; empty when nothing depends on them."""
    return pull_back(flatten(call.differentiable(call(function))), call.leaves())


def pull_back(results: list[Any], leaves: list[Tensor]) -> list[Tensor | None]:
    """Gradients of the leaves for cotangents that are the same on every device; empty when nothing depends on them."""
    results = [leaf for leaf in results if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not results or not leaves:
        return []
    generator = torch.Generator().manual_seed(SEED)
    cotangents = [copy_to(_cotangent(result, generator), str(result.device)) for result in results]
    return list(torch.autograd.grad(results, leaves, cotangents, allow_unused=True))


def _cotangent(result: Tensor, generator: torch.Generator) -> Tensor:
    # on bfloat16's grid: the same numbers in every dtype
    shape = (*result.shape, 2) if result.is_complex() else result.shape
    drawn = torch.randn(shape, generator=generator).bfloat16().float()
    return (torch.view_as_complex(drawn) if result.is_complex() else drawn).to(result.dtype)
