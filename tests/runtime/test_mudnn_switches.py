"""torch.backends.mudnn."""

from __future__ import annotations


def test_tf32_is_off_by_default_and_switchable(run_python):
    # In a process of its own: PyTorch's test machinery, which other tests import, forbids assigning flags for good.
    run_python(
        """
        import torch, torch_musa
        device_says = torch_musa._MUSAC._get_allow_tf32
        flags = torch.backends.mudnn
        assert flags.allow_tf32 is False and not device_says()
        with flags.flags(allow_tf32=True):
            assert flags.allow_tf32 and device_says()
        assert flags.allow_tf32 is False and not device_says()
        flags.allow_tf32 = True
        assert device_says()
        """
    )


def test_version():
    import torch.backends.mudnn as mudnn

    assert mudnn.is_available() and mudnn.version() >= 3000
