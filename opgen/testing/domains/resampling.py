"""Pooling, resampling, padding at the edges and their backward operators.

What a backward operator takes comes from a forward pass on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch

from opgen.testing.build import Build
from opgen.testing.case import TensorSpec
from opgen.testing.domains.layers import layer
from opgen.testing.tensors import Numbers

aten = torch.ops.aten
Arguments = dict[str, Any]


def _image(build: Build, spatial: int, least: int = 3, batched: bool = True) -> TensorSpec:
    sizes = [build.size(least, least + 4) for _ in range(spatial)]
    batch = [build.size(1, 2)] if batched and not build.maybe(4) else []
    return build.tensor((*batch, build.size(1, 3), *sizes))


def _spatial_dims(build: Build) -> int:
    return next((dims for dims in (1, 2, 3) if f"{dims}d" in build.op.base), 2)


def _prepare_pool(build: Build) -> Arguments:
    dims = _spatial_dims(build)
    kernel = [build.size(1, 3) for _ in range(dims)]
    made: Arguments = {
        "self": _image(build, dims, least=5),
        "kernel_size": kernel,
        "stride": build.pick([], [build.size(1, 3) for _ in range(dims)]),
        "padding": [build.size(0, k // 2) for k in kernel],
        "ceil_mode": build.flag(),
    }
    if "max_pool" in build.op.base:
        made["dilation"] = [build.size(1, 2) for _ in range(dims)]
    else:
        made["count_include_pad"] = build.flag()
        made["divisor_override"] = build.pick(None, 2)
    return made


def _prepare_max_pool_backward(build: Build) -> Arguments:
    made = _prepare_pool(build)
    forward = getattr(aten, build.op.root.removesuffix("_backward"))
    geometry = [made[name] for name in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")]
    output, indices = forward(made["self"].value, *geometry)
    return {**made, "grad_output": build.tensor(output.shape), "indices": build.lay_out(indices)}


def _prepare_avg_pool_backward(build: Build) -> Arguments:
    made = _prepare_pool(build)
    names = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
    forward = getattr(aten, build.op.root.removesuffix("_backward"))
    output = forward(made["self"].value, *[made[name] for name in names])
    return {**made, "grad_output": build.tensor(output.shape)}


def _prepare_adaptive_pool(build: Build) -> Arguments:
    dims = _spatial_dims(build)
    return {"self": _image(build, dims), "output_size": [build.size(1, 4) for _ in range(dims)]}


def _prepare_adaptive_pool_backward(build: Build) -> Arguments:
    made = _prepare_adaptive_pool(build)
    forward = getattr(aten, build.op.root.removesuffix("_backward"))
    result = forward(made["self"].value, made["output_size"])
    if isinstance(result, tuple):
        output, indices = result
        return {**made, "grad_output": build.tensor(output.shape), "indices": build.lay_out(indices)}
    return {**made, "grad_output": build.tensor(result.shape)}


def _prepare_upsample(build: Build) -> Arguments:
    """Sizes for the forward and the backward operator; a scale only where it agrees with the sizes."""
    dims = _spatial_dims(build)
    x = build.tensor((build.size(1, 2), build.size(1, 3), *(build.size(2, 5) for _ in range(dims))))
    factor = build.pick(2, 1, 3)
    output = [factor * size for size in x.shape[2:]] if build.flag() else [build.size(1, 8) for _ in range(dims)]
    return {
        "self": x,
        "input": x,
        "output_size": output,
        "grad_output": build.tensor((*x.shape[:2], *output)),
        "input_size": list(x.shape),
        "align_corners": build.flag(),
        "scales": None,
        "scales_d": None,
        "scales_h": None,
        "scales_w": None,
        "scale_factors": None,
    }


def _prepare_edge_padding(build: Build) -> Arguments:
    dims = _spatial_dims(build)
    x = _image(build, dims)
    pads = [build.size(0, 2) for _ in range(2 * dims)]
    made: Arguments = {"self": x, "padding": pads}
    if build.op.find("grad_output"):
        forward = getattr(aten, build.op.root.removesuffix("_backward"))
        made["grad_output"] = build.tensor(forward(x.value.double(), pads).shape)
    return made


def _prepare_fold(build: Build) -> Arguments:
    kernel = [build.size(1, 3) for _ in range(2)]
    dilation = [build.size(1, 2) for _ in range(2)]
    padding = [build.size(0, 1) for _ in range(2)]
    stride = [build.size(1, 2) for _ in range(2)]
    x = build.tensor((build.size(1, 2), build.size(1, 2), build.size(5, 7), build.size(5, 7)))
    geometry = {"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
    if build.op.root == "col2im":
        columns = aten.im2col(x.value.float(), kernel, dilation, padding, stride)
        return {"self": build.tensor(columns.shape), "output_size": list(x.shape[2:]), **geometry}
    return {"self": x, **geometry}


def _prepare_grid(build: Build) -> Arguments:
    dims = _spatial_dims(build) if "sampler" in build.op.base else 2
    batch, channels = build.size(1, 2), build.size(1, 2)
    x = build.tensor((batch, channels, *(build.size(2, 4) for _ in range(dims))))
    sizes = [build.size(1, 3) for _ in range(dims)]
    return {
        "input": x,
        "grid": build.tensor((batch, *sizes, dims), of=Numbers(-1.25, 1.25)),
        "grad_output": build.tensor((batch, channels, *sizes)),
        "interpolation_mode": build.pick(0, 1),
        "padding_mode": build.size(0, 2),
        "align_corners": build.flag(),
        "output_mask": [True, True],
    }


TABLE = {
    "max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d": layer(_prepare_pool),
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward": layer(_prepare_max_pool_backward, atomic=True),
    "avg_pool2d_backward avg_pool3d_backward": layer(_prepare_avg_pool_backward),
    # the CPU lays out= anew, whatever its shape
    "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d "
    "adaptive_max_pool3d": layer(_prepare_adaptive_pool, strides=False, dense_out=True),
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_avg_pool3d_backward "
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward": layer(_prepare_adaptive_pool_backward, atomic=True),
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
    "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d "
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa "
    "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward "
    "_upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward "
    "upsample_linear1d_backward upsample_bilinear2d_backward upsample_bicubic2d_backward "
    "upsample_trilinear3d_backward _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward": layer(
        _prepare_upsample, atomic=True
    ),
    "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
    "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward "
    "replication_pad2d_backward replication_pad3d_backward": layer(_prepare_edge_padding, atomic=True),
    "im2col col2im": layer(_prepare_fold),
    "grid_sampler_2d grid_sampler_3d grid_sampler_2d_backward grid_sampler_3d_backward": layer(
        _prepare_grid, atomic=True
    ),
    "channel_shuffle pixel_shuffle": layer(
        lambda b: {"self": b.tensor((2, 4, 3, 3)), "groups": 2, "upscale_factor": 2}
    ),
}
