"""torch.backends.mudnn."""

from __future__ import annotations

import torch

import torch_musa


def test_tf32_is_off_by_default_and_switchable():
    assert torch.backends.mudnn.allow_tf32 is False
    with torch.backends.mudnn.flags(allow_tf32=True):
        assert torch.backends.mudnn.allow_tf32 and torch_musa._MUSAC._get_allow_tf32()
    assert torch.backends.mudnn.allow_tf32 is False
    torch.backends.mudnn.allow_tf32 = True
    try:
        assert torch_musa._MUSAC._get_allow_tf32()
    finally:
        torch.backends.mudnn.allow_tf32 = False


def test_version():
    import torch.backends.mudnn as mudnn

    assert mudnn.is_available() and mudnn.version() >= 3000
