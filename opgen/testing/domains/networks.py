"""Convolution, normalisation, losses, optimizers and their backward operators.

What a backward operator takes comes from a forward pass on the CPU.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Build, Domain
from opgen.testing.case import TensorSpec
from opgen.testing.domains.layers import SMALL, layer
from opgen.testing.rules import index_tensor, one_of, real_dtype
from opgen.testing.tensors import FLOATING, Numbers

aten = torch.ops.aten
Arguments = dict[str, Any]

# convolution


def _prepare_convolution(build: Build) -> Arguments:
    """One to three spatial dims, groups, strides, dilations, transposed; kernels that fit into the padded input."""
    spatial = build.pick(2, 2, 1, 3)
    transposed = build.maybe(4)
    groups = build.pick(1, 1, 2, 3)
    depthwise = groups > 1 and build.flag()
    per_group_in, per_group_out = (1 if depthwise else build.size(1, 3)), build.size(1, 3)
    channels_in, channels_out = groups * per_group_in, groups * per_group_out
    kernel = [build.size(1, 3) for _ in range(spatial)]
    stride = [build.size(1, 2) for _ in range(spatial)]
    padding = [build.size(0, 2) for _ in range(spatial)]
    dilation = [build.size(1, 2) for _ in range(spatial)]
    extents = [d * (k - 1) + 1 + build.size(0, 3) for d, k in zip(dilation, kernel, strict=True)]
    output_padding = [0] * spatial
    if transposed:
        output_padding = [build.size(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)]
        padding = [min(p, (d * (k - 1)) // 2) for p, d, k in zip(padding, dilation, kernel, strict=True)]
    batch = 0 if build.maybe(20) else build.size(1, 2)
    weight_shape = [channels_in, per_group_out] if transposed else [channels_out, per_group_in]
    made: Arguments = {
        "input": build.tensor((batch, channels_in, *extents), of=SMALL),
        "weight": build.tensor((*weight_shape, *kernel), of=SMALL),
        "bias": build.tensor((channels_out,)) if build.flag() else None,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "transposed": transposed,
        "output_padding": output_padding,
        "groups": groups,
    }
    return made


def _prepare_convolution_backward(build: Build) -> Arguments:
    made = _prepare_convolution(build)
    arguments = (made[name] for name in ("stride", "padding", "dilation", "transposed", "output_padding", "groups"))
    output = aten.convolution(made["input"].value, made["weight"].value, None, *arguments)
    made["grad_output"] = build.tensor(output.shape, of=SMALL)
    made["bias_sizes"] = [output.shape[1]]
    made["output_mask"] = _output_mask(build)
    return made


def _output_mask(build: Build) -> list[bool]:
    return [not build.maybe(5), not build.maybe(5), not build.maybe(5)]


def convolution_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, *geometry: Any, output_mask: Any = None, **rest: Any
) -> Any:
    """aten::convolution_backward with the arguments of convolution_backward_overrideable, which has no bias sizes.

    Some of the CPU's kernels return gradients that nobody asked for.
    """
    if output_mask is None:
        *geometry, output_mask = geometry  # type: ignore[assignment]
    gradients = aten.convolution_backward(
        grad_output, input, weight, [grad_output.shape[1]], *geometry, output_mask, **rest
    )
    return tuple(gradient if wanted else None for gradient, wanted in zip(gradients, output_mask, strict=True))


def convolution_backward_asked(*arguments: Any, output_mask: Any = None) -> Any:
    """aten::convolution_backward, less the gradients that nobody asked for."""
    if output_mask is None:
        *arguments, output_mask = arguments  # type: ignore[assignment]
    gradients = aten.convolution_backward(*arguments, output_mask)
    return tuple(gradient if wanted else None for gradient, wanted in zip(gradients, output_mask, strict=True))


# normalisation


def _prepare_batch_norm(build: Build) -> Arguments:
    channels = build.size(1, 4)
    shape = (build.size(2, 4), channels, *(build.size(1, 4) for _ in range(build.pick(2, 0, 1, 3))))
    # without running statistics there is nothing but the batch to normalise by
    training = build.flag() or (build.op.find("running_mean") is None)
    tracked = not training or build.flag()
    affine = build.pick(True, True, False)
    # the CPU's kernel takes half-precision inputs with parameters in float32, as autocast does
    parameter = torch.float32 if build.dtype in (torch.float16, torch.bfloat16) and build.flag() else build.dtype
    positive = Numbers(0.5, 2)
    return {
        "input": build.tensor(shape),
        "weight": build.tensor((channels,), parameter) if affine else None,
        "bias": build.tensor((channels,), parameter) if affine else None,
        "running_mean": TensorSpec.of(build.tensor((channels,), parameter).value) if tracked else None,
        "running_var": TensorSpec.of(build.tensor((channels,), parameter, positive).value) if tracked else None,
        "training": training,
        "momentum": 0.1,
        "eps": 1e-3,
    }


def _prepare_batch_norm_backward(build: Build) -> Arguments:
    made = _prepare_batch_norm(build)
    tensors = {name: spec.value.clone() if isinstance(spec, TensorSpec) else spec for name, spec in made.items()}
    _, mean, invstd = aten.native_batch_norm(*tensors.values())
    return {
        **made,
        "grad_out": build.tensor(made["input"].shape),
        "save_mean": TensorSpec.of(mean),
        "save_invstd": TensorSpec.of(invstd),
        "train": made["training"],
        "update": made["training"],
        "save_var": TensorSpec.of(invstd),
        "reserve": TensorSpec.of(torch.empty(0, dtype=torch.uint8)),
        "output_mask": _output_mask(build),
    }


def _prepare_updated_backward(build: Build) -> Arguments:
    """batch_norm_backward insists on a weight."""
    made = _prepare_batch_norm_backward(build)
    channels = made["input"].shape[1]
    return {**made, "weight": made["weight"] or build.tensor((channels,), made["save_mean"].dtype)}


def _prepare_batch_norm_update(build: Build) -> Arguments:
    """Always training, always with running statistics."""
    made = _prepare_batch_norm(build)
    for name, of in (("running_mean", SMALL), ("running_var", Numbers(0.5, 2))):
        made[name] = TensorSpec.of(build.tensor((made["input"].shape[1],), made["input"].dtype, of).value)
    return made


def _prepare_batch_norm_out(build: Build) -> Arguments:
    update = build.op.base == "_batch_norm_with_update"
    made = _prepare_batch_norm_update(build) if update else _prepare_batch_norm(build)
    return {**made, "input": TensorSpec.of(made["input"].value)}


def _prepare_layer_norm(build: Build) -> Arguments:
    count = build.size(1, len(build.shape))
    normalized = list(build.shape[-count:])
    affine = build.pick(True, True, False)
    return {
        "input": build.tensor(build.shape),
        "normalized_shape": normalized,
        "weight": build.tensor(normalized) if affine else None,
        "bias": build.tensor(normalized) if affine else None,
        "eps": 1e-3,
    }


def _prepare_rms_norm(build: Build) -> Arguments:
    made = _prepare_layer_norm(build)
    return {**made, "eps": build.pick(1e-3, None)}


def _prepare_layer_norm_backward(build: Build) -> Arguments:
    made = _prepare_layer_norm(build)
    x = made["input"].value
    _, mean, rstd = aten.native_layer_norm(x, made["normalized_shape"], None, None, made["eps"])
    return {
        **made,
        "grad_out": build.tensor(build.shape),
        "mean": TensorSpec.of(mean),
        "rstd": TensorSpec.of(rstd),
        "output_mask": _output_mask(build),
    }


def _prepare_group_norm(build: Build) -> Arguments:
    groups, per_group = build.size(1, 3), build.size(1, 3)
    spatial = [build.size(1, 4) for _ in range(build.size(0, 2))]
    batch, channels = build.size(1, 3), groups * per_group
    affine = build.pick(True, True, False)
    # the CPU's kernel takes weight and bias for dense ones
    weight, bias = (TensorSpec.of(build.tensor((channels,)).value) if affine else None for _ in range(2))
    # and up to torch 2.13 it refuses an input with gaps, which later ones take
    layout = torch.channels_last if len(spatial) == 2 and build.maybe(3) else torch.contiguous_format
    x = build.tensor((batch, channels, *spatial)).value.contiguous(memory_format=layout)
    return {
        "input": TensorSpec.of(x),
        "weight": weight,
        "bias": bias,
        "N": batch,
        "C": channels,
        "HxW": math.prod(spatial),
        "group": groups,
        "eps": 1e-3,
    }


def _prepare_group_norm_backward(build: Build) -> Arguments:
    made = _prepare_group_norm(build)
    x = made["input"].value.contiguous()
    _, mean, rstd = aten.native_group_norm(x, None, None, made["N"], made["C"], made["HxW"], made["group"], made["eps"])
    made["input"] = TensorSpec.of(x)
    return {
        **made,
        "grad_out": TensorSpec.of(build.tensor(x.shape).value),
        "mean": TensorSpec.of(mean),
        "rstd": TensorSpec.of(rstd),
        "output_mask": _output_mask(build),
    }


# losses


def _prepare_nll(build: Build) -> Arguments:
    dtype = real_dtype(build.dtype)
    classes = build.size(2, 5)
    image = "2d" in build.op.base
    batch = build.size(1, 4)
    places = (batch, build.size(1, 3), build.size(1, 3)) if image else ((batch,) if not build.maybe(5) else ())
    shape = (batch, classes, *places[1:]) if places else (classes,)
    reduction = build.size(0, 2)
    ignore = build.pick(-100, 1)
    target = index_tensor(build, places, classes)
    weight = build.tensor((classes,), dtype, Numbers(0.5, 2)) if build.flag() else None
    # the backward operator for images wants a gradient of contiguous strides, and gives it those of self
    x = TensorSpec.of(build.tensor(shape, dtype).value) if image else build.tensor(shape, dtype)
    made: Arguments = {"self": x, "target": target, "weight": weight, "reduction": reduction, "ignore_index": ignore}
    if build.op.find("grad_output"):
        forward = getattr(aten, build.op.root.removesuffix("_backward") + "_forward")
        output, total = forward(x.value, target.value, weight and weight.value, reduction, ignore)
        made["grad_output"] = build.tensor(output.shape, dtype)
        made["total_weight"] = TensorSpec.of(total)
    return made


def _prepare_glu(build: Build) -> Arguments:
    dim = build.dim(len(build.shape))
    half = list(build.shape)
    whole = list(build.shape)
    whole[dim] *= 2
    made: Arguments = {name: build.tensor(half) for name in ("glu", "grad_output", "grad_glu", "dgrad_glu")}
    made.update({name: build.tensor(whole) for name in ("self", "x", "dx", "grad_x")})
    if build.op.base == "glu_jvp":
        made["glu"] = build.lay_out(aten.glu(made["x"].value, dim))
    return {**made, "dim": dim}


# attention, optimizers


def _prepare_optimizer(build: Build) -> Arguments:
    """Lists of parameters with their state, as the fused optimizers take them."""
    count = build.size(1, 3)
    shapes = [tuple(build.size(1, 4) for _ in range(build.size(0, 2))) for _ in range(count)]

    def state(of: Numbers = SMALL) -> list[TensorSpec]:
        return [TensorSpec.of(build.tensor(shape, of=of).value) for shape in shapes]

    positive = Numbers(0.5, 2)
    amsgrad = build.flag() and build.op.find("max_exp_avg_sqs") is not None
    steps = [TensorSpec.of(torch.tensor(float(build.size(1, 9)))) for _ in range(count)]
    momentum = build.pick(0.0, 0.5)
    return {
        "self": state(),
        "grads": state(),
        "exp_avgs": state(),
        "exp_avg_sqs": state(positive),
        "max_exp_avg_sqs": state(positive) if amsgrad else [],
        "state_sums": state(positive),
        "state_steps": steps,
        "momentum_buffer_list": state() if momentum else [],
        "lr": 0.125 if (lr := build.op.find("lr")) is None or not lr.tensor else TensorSpec.of(torch.tensor(0.125)),
        "beta1": 0.5,
        "beta2": 0.75,
        "weight_decay": build.pick(0.0, 0.25),
        "eps": 1e-3,
        "momentum": momentum,
        "dampening": 0.0,
        "lr_decay": 0.0,
        "amsgrad": amsgrad,
        "nesterov": False,
        "maximize": build.flag(),
        "is_first_step": False,
        "grad_scale": None,
        "found_inf": None,
    }


_RUNNING = frozenset({"running_mean", "running_var"})


TABLE = {
    "convolution_overrideable": Domain(
        prepare=_prepare_convolution,
        numbers=SMALL,
        accumulates=True,
        dtypes=FLOATING,
        reference=aten.convolution.default,
    ),
    "convolution _convolution": layer(_prepare_convolution),
    "convolution_backward": layer(_prepare_convolution_backward, reference=convolution_backward_asked),
    "convolution_backward.out": layer(_prepare_convolution_backward),
    "convolution_backward_overrideable": layer(_prepare_convolution_backward, reference=convolution_backward),
    "native_batch_norm _native_batch_norm_legit batch_norm": layer(_prepare_batch_norm, mutates=_RUNNING),
    "_batch_norm_with_update _batch_norm_with_update_functional": layer(_prepare_batch_norm_update, mutates=_RUNNING),
    # the CPU's out= forms read half-precision statistics as float32, past their end, and every input as a dense one
    "_batch_norm_with_update.out native_batch_norm.out _native_batch_norm_legit.out "
    "_native_batch_norm_legit.no_stats_out": Domain(
        prepare=_prepare_batch_norm_out,
        numbers=SMALL,
        accumulates=True,
        dtypes=(torch.float32, torch.float64),
        mutates=_RUNNING,
        trusts_out=True,
    ),
    "native_batch_norm_backward": layer(_prepare_batch_norm_backward),
    "batch_norm_backward": layer(_prepare_updated_backward),
    "_fused_rms_norm": layer(_prepare_rms_norm, ranks=(1, 4), least_size=1),
    "native_layer_norm": layer(_prepare_layer_norm, ranks=(1, 4), least_size=1),
    "native_layer_norm_backward": layer(_prepare_layer_norm_backward, ranks=(1, 4), least_size=1),
    "native_group_norm": layer(_prepare_group_norm),
    "native_group_norm_backward": layer(_prepare_group_norm_backward),
    "nll_loss_forward nll_loss2d_forward nll_loss_backward": layer(_prepare_nll, atomic=True),
    "nll_loss2d_backward": layer(_prepare_nll, dense_out=True),
    "glu glu_backward glu_jvp glu_backward_jvp": layer(_prepare_glu, ranks=(1, 3)),
    "_fused_adam _fused_adamw _fused_sgd _fused_adagrad": layer(_prepare_optimizer),
    "_weight_norm_interface": layer(
        lambda b: {"v": b.tensor((3, 4)), "g": b.tensor((3, 1)), "dim": one_of(0)(b, b.op.inputs[0])}
    ),
}
