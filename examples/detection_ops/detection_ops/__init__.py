"""Operators of object detectors: non-maximum suppression, RoI align, deformable sampling.

A package as a third party would have it: CUDA sources, a CPU reference, and a setup.py that also builds for MUSA.
"""

from __future__ import annotations

import torch
from torch import Tensor

from detection_ops import _C  # noqa: F401  (registers the operators)

__all__ = ["deform_sample", "nms", "roi_align"]


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Indices (int64) of the boxes that stay, best score first.

    boxes: [n, 4] as x1, y1, x2, y2; scores: [n]. A box goes where it overlaps one that stays by more than `threshold`
    (intersection over union).
    """
    return torch.ops.detection_ops.nms(boxes, scores, threshold)


class _RoiAlign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, image, rois, scale, size, ratio):
        ctx.save_for_backward(rois)
        ctx.arguments = (image.shape, scale, ratio)
        return torch.ops.detection_ops.roi_align(image, rois, scale, *size, ratio)

    @staticmethod
    def backward(ctx, grad):
        (rois,) = ctx.saved_tensors
        shape, scale, ratio = ctx.arguments
        return torch.ops.detection_ops.roi_align_backward(grad, rois, shape, scale, ratio), None, None, None, None


def roi_align(image: Tensor, rois: Tensor, size: tuple[int, int], scale: float = 1.0, ratio: int = 2) -> Tensor:
    """[k, c, *size]: regions of `image` ([n, c, h, w]), each cell the mean of ratio x ratio samples. Differentiable in
    `image`. rois: [k, 5] as image number, x1, y1, x2, y2, in coordinates that `scale` turns into pixels."""
    return _RoiAlign.apply(image, rois, scale, size, ratio)


def deform_sample(image: Tensor, offset: Tensor, kernel: int, padding: int = 0, stride: int = 1) -> Tensor:
    """[n, c * kernel^2, oh, ow]: what each tap of a convolution would read from `image` ([n, c, h, w]), moved by
    `offset` ([n, 2 * kernel^2, oh, ow], y before x). With offset 0 that is `unfold`."""
    return torch.ops.detection_ops.deform_sample(image, offset, kernel, padding, stride)
