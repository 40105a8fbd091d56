"""make_graphed_callables: parts of a network whose forward and backward passes are graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from torch_musa.musa.device import synchronize
from torch_musa.musa.graphs import MUSAGraph, PoolHandle, graph, graph_pool_handle
from torch_musa.musa.streams import Stream, stream

Graphable = torch.nn.Module | Callable[..., Any]
Tensors = tuple[torch.Tensor, ...]
MaybeTensors = tuple[torch.Tensor | None, ...]


@dataclass(frozen=True)
class _Subject:
    """A callable, the tensors it was sampled with, and those that its graphs read: arguments, then parameters."""

    call: Graphable
    args: tuple[Any, ...]
    user_inputs: Tensors
    parameters: Tensors

    @property
    def inputs(self) -> Tensors:
        return self.user_inputs + self.parameters


@dataclass(frozen=True)
class _Forward:
    graph: MUSAGraph
    outputs: Tensors
    spec: Any


@dataclass(frozen=True)
class _Backward:
    graph: MUSAGraph
    output_gradients: MaybeTensors
    input_gradients: MaybeTensors


def _subject(call: Graphable, args: tuple[Any, ...]) -> _Subject:
    leaves = tuple(pytree.tree_leaves(args))
    if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise TypeError("make_graphed_callables: sample_args may contain tensors only")
    if not isinstance(call, torch.nn.Module):
        return _Subject(call, args, leaves, ())
    if call._backward_hooks or call._forward_hooks or call._forward_pre_hooks:
        raise RuntimeError(
            "make_graphed_callables: the module has hooks, which a graph would not call. Register them afterwards"
        )
    if any(buffer.requires_grad for buffer in call.buffers()):
        raise RuntimeError("make_graphed_callables: a module's buffers may not require gradients, only parameters")
    return _Subject(call, args, leaves, tuple(call.parameters()))


def _gradients(
    outputs: Sequence[torch.Tensor], inputs: Tensors, seeds: Sequence[torch.Tensor | None], allow_unused: bool
) -> Tensors:
    """Gradients of those outputs that have any, by those inputs that take any."""
    wanted = tuple(tensor for tensor in inputs if tensor.requires_grad)
    pairs = [(output, seed) for output, seed in zip(outputs, seeds, strict=True) if seed is not None]
    if not wanted or not pairs:
        return ()
    return torch.autograd.grad(
        outputs=tuple(output for output, _ in pairs),
        inputs=wanted,
        grad_outputs=tuple(seed for _, seed in pairs),
        only_inputs=True,
        allow_unused=allow_unused,
    )


def _empty_seeds(outputs: Sequence[torch.Tensor]) -> MaybeTensors:
    return tuple(torch.empty_like(output) if output.requires_grad else None for output in outputs)


def _warm_up(subjects: Sequence[_Subject], iterations: int, allow_unused: bool) -> None:
    synchronize()
    with stream(Stream()):
        for subject in subjects:
            for _ in range(iterations):
                outputs = pytree.tree_leaves(subject.call(*subject.args))
                _gradients(outputs, subject.inputs, _empty_seeds(outputs), allow_unused)
    synchronize()


def _capture_forward(subject: _Subject, pool: PoolHandle) -> _Forward:
    captured = MUSAGraph()
    with graph(captured, pool=pool):
        result = subject.call(*subject.args)
    outputs, spec = pytree.tree_flatten(result)
    return _Forward(captured, tuple(outputs), spec)


def _capture_backward(subject: _Subject, forward: _Forward, pool: PoolHandle, allow_unused: bool) -> _Backward:
    seeds = _empty_seeds(forward.outputs)
    captured = MUSAGraph()
    gradients: Tensors = ()
    if any(seed is not None for seed in seeds) and any(tensor.requires_grad for tensor in subject.inputs):
        with graph(captured, pool=pool):
            gradients = _gradients(forward.outputs, subject.inputs, seeds, allow_unused)
    # A place for every input, those without gradient included: what a backward pass returns.
    given = iter(gradients)
    by_input = tuple(next(given, None) if tensor.requires_grad else None for tensor in subject.inputs)
    return _Backward(captured, seeds, by_input)


def _replayed(subject: _Subject, forward: _Forward, backward: _Backward) -> Callable[..., Any]:
    """A function of the user's arguments that replays the graphs, forward now and backward when gradients flow."""
    # Without what autograd kept of the capture: it would hold on to the streams of then.
    static_outputs = tuple(output.detach() for output in forward.outputs)
    differentiable = tuple(output.requires_grad for output in forward.outputs)
    forward_graph, spec = forward.graph, forward.spec

    class Graphed(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            for place, given in zip(subject.user_inputs, inputs, strict=False):
                if place.data_ptr() != given.data_ptr():
                    place.copy_(given)
            forward_graph.replay()
            outputs = tuple(output.detach() for output in static_outputs)
            context.mark_non_differentiable(
                *(output for output, wanted in zip(outputs, differentiable, strict=True) if not wanted)
            )
            return outputs

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context: Any, *gradients: torch.Tensor) -> MaybeTensors:
            for place, given in zip(backward.output_gradients, gradients, strict=True):
                if place is not None and place.data_ptr() != given.data_ptr():
                    place.copy_(given)
            backward.graph.replay()
            # As they are, with our own reference to each: what accumulates gradients then copies them instead of
            # taking them over, for the next replay writes here again.
            return backward.input_gradients

    def call(*args: Any) -> Any:
        outputs = Graphed.apply(*pytree.tree_leaves(args), *subject.parameters)  # type: ignore[no-untyped-call]
        return pytree.tree_unflatten(outputs, spec)

    return call


def _installed(call: Graphable, graphed: Callable[..., Any]) -> Graphable:
    """`graphed` in the place of what it was made of: a module keeps its identity, and its other mode of training."""
    if not isinstance(call, torch.nn.Module):
        return graphed
    captured_in_training, eager = call.training, call.forward

    def forward(*args: Any, **keywords: Any) -> Any:
        if call.training == captured_in_training:
            return graphed(*args, **keywords)
        return eager(*args, **keywords)

    call.forward = forward
    return call


def make_graphed_callables(
    callables: Graphable | tuple[Graphable, ...],
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolHandle | None = None,
) -> Any:
    """Functions or modules whose forward and backward passes replay graphs; they take the originals' place.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will run.
        sample_args: its arguments (for a tuple, a tuple of arguments for each), tensors only. Later calls must pass
            tensors of the same shapes, dtypes and requires_grad.
        num_warmup_iters: runs on a stream of their own before the capture.
        allow_unused_input: whether an input may have no part in the outputs.
        pool: the memory pool of all the graphs (default: one of their own).

    Returns:
        The graphed callable, or a tuple of them. A module is changed in place and returned; in its other mode (eval
        where it was captured in training) it runs as before.

    Raises:
        RuntimeError: with autocast's cache on, for a module with hooks, or with buffers that require gradients.
        TypeError: an argument that is no tensor.
    """
    if torch.is_autocast_enabled("musa") and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables: autocast's cache would hand out tensors of the capture. Set cache_enabled=False"
        )
    single = not isinstance(callables, tuple)
    calls: tuple[Graphable, ...] = (callables,) if not isinstance(callables, tuple) else callables
    all_args = (sample_args,) if single else sample_args
    subjects = [_subject(call, args) for call, args in zip(calls, all_args, strict=True)]
    pool = graph_pool_handle() if pool is None else pool

    _warm_up(subjects, num_warmup_iters, allow_unused_input)
    # The graphs share their memory, so they are captured in the order in which they will run: forward passes, then
    # backward passes from the last to the first.
    forwards = [_capture_forward(subject, pool) for subject in subjects]
    backwards = [
        _capture_backward(subject, forward, pool, allow_unused_input)
        for subject, forward in zip(reversed(subjects), reversed(forwards), strict=True)
    ]
    graphed = tuple(
        _installed(subject.call, _replayed(subject, forward, backward))
        for subject, forward, backward in zip(subjects, forwards, reversed(backwards), strict=True)
    )
    return graphed[0] if single else graphed
