"""The package's own tests: the device against the CPU, and the CPU against definitions.

`DETECTION_DEVICE=cuda pytest` for another device than musa.
"""

from __future__ import annotations

import os

import pytest
import torch
from detection_ops import deform_sample, nms, roi_align

DEVICE = os.environ.get("DETECTION_DEVICE", "musa")
DTYPES = [torch.float32, torch.float64]


def boxes_and_scores(count: int, dtype: torch.dtype, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(count, 2, generator=generator, dtype=dtype) * 40
    sizes = 4 + torch.rand(count, 2, generator=generator, dtype=dtype) * 20
    return torch.cat([corners, corners + sizes], 1), torch.rand(count, generator=generator, dtype=dtype)


def regions(count: int, images: int, dtype: torch.dtype) -> torch.Tensor:
    boxes, _ = boxes_and_scores(count, dtype, seed=3)
    return torch.cat([torch.arange(count).remainder(images).to(dtype)[:, None], boxes - 5], 1)


def test_the_manuals_boxes() -> None:
    """The boxes of the chapter on extensions: the third overlaps the second, the fourth none."""
    boxes = torch.tensor([[6.0, 3, 8, 7], [3, 6, 9, 11], [3, 7, 10, 12], [1, 4, 13, 7]])
    scores = torch.tensor([0.6, 0.9, 0.7, 0.2])
    for device in ("cpu", DEVICE):
        assert nms(boxes.to(device), scores.to(device), 0.3).tolist() == [1, 0, 3]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 300])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_nms(count: int, threshold: float, dtype: torch.dtype) -> None:
    boxes, scores = boxes_and_scores(count, dtype)
    expected = nms(boxes, scores, threshold)
    got = nms(boxes.to(DEVICE), scores.to(DEVICE), threshold)
    assert got.device.type == DEVICE and got.dtype == torch.int64
    assert got.tolist() == expected.tolist()


def test_nms_of_equal_scores_keeps_the_first() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10]]).repeat(5, 1)
    assert nms(boxes.to(DEVICE), torch.ones(5, device=DEVICE), 0.5).tolist() == [0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("ratio", [1, 2, 3])
def test_roi_align(count: int, ratio: int, dtype: torch.dtype) -> None:
    image = torch.randn(2, 3, 17, 13, dtype=dtype, generator=torch.Generator().manual_seed(1))
    rois = regions(count, 2, dtype)
    expected = roi_align(image, rois, (4, 5), 0.4, ratio)
    got = roi_align(image.to(DEVICE), rois.to(DEVICE), (4, 5), 0.4, ratio)
    torch.testing.assert_close(got.cpu(), expected, atol=1e-5, rtol=1e-4)


def test_roi_align_of_a_whole_ramp_is_the_ramp() -> None:
    ramp = torch.arange(8.0).repeat(8, 1)[None, None]
    rois = torch.tensor([[0.0, 2, 2, 6, 6]])
    for device in ("cpu", DEVICE):
        got = roi_align(ramp.to(device), rois.to(device), (2, 2), 1.0, 1)
        torch.testing.assert_close(got.cpu()[0, 0, 0], torch.tensor([2.5, 4.5]))


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_the_gradient_of_roi_align(device: str) -> None:
    image = torch.randn(1, 2, 6, 5, dtype=torch.float64).to(device).requires_grad_()
    rois = torch.tensor([[0.0, 0.3, 0.6, 4.2, 5.1], [0.0, -2, 1, 3, 9]], dtype=torch.float64).to(device)
    # Sums into one pixel have no fixed order on a device.
    assert torch.autograd.gradcheck(lambda x: roi_align(x, rois, (2, 3)), image, nondet_tol=1e-9)


def test_gradients_of_both_sides_agree() -> None:
    image = torch.randn(2, 3, 17, 13)
    rois = regions(7, 2, torch.float32)
    grads = []
    for device in ("cpu", DEVICE):
        leaf = image.clone().to(device).requires_grad_()
        roi_align(leaf, rois.to(device), (4, 5), 0.4).square().sum().backward()
        grads.append(leaf.grad.cpu())
    torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stride, padding", [(1, 0), (2, 1)])
def test_deform_sample(stride: int, padding: int, dtype: torch.dtype) -> None:
    image = torch.randn(2, 3, 9, 8, dtype=dtype)
    out = [(size + 2 * padding - 3) // stride + 1 for size in (9, 8)]
    offset = 2 * torch.randn(2, 18, *out, dtype=dtype)
    expected = deform_sample(image, offset, 3, padding, stride)
    got = deform_sample(image.to(DEVICE), offset.to(DEVICE), 3, padding, stride)
    torch.testing.assert_close(got.cpu(), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_without_offsets_deform_sample_is_unfold(device: str) -> None:
    image = torch.randn(2, 3, 9, 8)
    got = deform_sample(image.to(device), torch.zeros(2, 18, 7, 6, device=device), 3)
    expected = torch.nn.functional.unfold(image, 3).reshape(2, 27, 7, 6)
    torch.testing.assert_close(got.cpu(), expected)


def test_tensors_elsewhere_are_refused() -> None:
    boxes, scores = boxes_and_scores(3, torch.float32)
    with pytest.raises(RuntimeError, match=r"must be on the device|same device"):
        nms(boxes.to(DEVICE), scores, 0.5)
