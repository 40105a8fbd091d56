"""The current device."""

from __future__ import annotations

import os
import threading

import pytest
import torch


@pytest.mark.needs("two devices")
def test_two_devices_by_default():
    assert torch.musa.device_count() == 2
    assert torch.accelerator.device_count() == 2


@pytest.mark.needs("two devices")
def test_set_device_accepts_every_spelling():
    for spelling in (1, "musa:1", torch.device("musa:1"), torch.device("musa", 1)):
        torch.musa.set_device(0)
        torch.musa.set_device(spelling)
        assert torch.musa.current_device() == 1
        assert torch.empty(1, device="musa").device.index == 1


@pytest.mark.needs("two devices")
def test_device_context_restores_also_after_an_error():
    with pytest.raises(KeyError), torch.musa.device(1):
        assert torch.musa.current_device() == 1
        raise KeyError
    assert torch.musa.current_device() == 0


@pytest.mark.needs("two devices")
def test_device_of():
    with torch.musa.device_of(torch.ones(1, device="musa:1")):
        assert torch.musa.current_device() == 1
    with torch.musa.device_of(torch.ones(1)):
        assert torch.musa.current_device() == 0


@pytest.mark.needs("two devices")
def test_ops_run_on_the_device_of_their_operands():
    x = torch.arange(4.0, device="musa:1")
    y = x + x
    assert y.device.index == 1 and torch.musa.current_device() == 0
    assert y.tolist() == [0, 2, 4, 6]


@pytest.mark.needs("two devices")
def test_accelerator_api():
    torch.accelerator.set_device_index(1)
    assert torch.musa.current_device() == 1
    torch.accelerator.synchronize()
    assert torch.accelerator.current_device_index() == 1


@pytest.mark.needs("two devices")
def test_each_thread_has_its_own_device():
    torch.musa.set_device(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.musa.current_device()))
    thread.start()
    thread.join()
    assert seen == [0] and torch.musa.current_device() == 1


@pytest.mark.parametrize("beyond", [0, 97])
def test_index_out_of_range(beyond):
    devices = torch.musa.device_count()
    index = devices + beyond
    with pytest.raises(RuntimeError, match=rf"invalid device ordinal: musa:{index}\. There are {devices} musa devices"):
        torch.empty(1, device=f"musa:{index}")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.musa.set_device(index)
    with pytest.raises(RuntimeError, match="invalid device ordinal"), torch.musa.device(index):
        pass
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1).to(f"musa:{index}")
    assert torch.musa.current_device() == 0
    assert torch.ones(2, device="musa").sum().item() == 2  # the device is as usable as before


def test_wrong_kind_of_device():
    with pytest.raises(ValueError, match="Expected a musa device, but got: cpu"):
        torch.musa.set_device("cpu")
    with pytest.raises(ValueError, match="specified index"):
        torch.musa.set_device("musa")
    with pytest.raises(TypeError):
        torch.musa.set_device(1.5)


@pytest.mark.needs("two devices")
def test_properties():
    properties = torch.musa.get_device_properties(1)
    assert properties.name == torch.musa.get_device_name("musa:1")
    assert (properties.major, properties.minor) == torch.musa.get_device_capability()
    assert properties.total_memory == torch.musa.mem_get_info(1)[1]
    assert properties.warp_size in (32, 128)
    assert properties.name in repr(properties)
    assert torch.musa.target() == os.environ.get("TORCH_MUSA_TARGET", "host")


@pytest.mark.parametrize(("arch", "bf16"), [("mp_21", False), ("mp_22", True), ("mp_31", True)])
def test_bfloat16_depends_on_the_architecture(run_python, arch, bf16):
    run_python(
        f"""
        import torch
        assert torch.musa.is_bf16_supported() is {bf16}
        assert (torch.bfloat16 in torch.musa.get_amp_supported_dtype()) is {bf16}
        """,
        MUSA_ARCH=arch,
    )


@pytest.mark.needs("two devices")
def test_peer_access():
    assert torch.musa.can_device_access_peer(0, 1)
    assert torch.musa.can_device_access_peer("musa:0", torch.device("musa:1"))


def test_number_of_devices_follows_the_toolkit(run_python):
    run_python(
        "import torch; assert torch.musa.device_count() == 5; torch.ones(1, device='musa:4')",
        TORCH_MUSA_HOST_DEVICES="5",
    )


def test_no_device_at_all(run_python):
    done = run_python(
        """
        import torch
        assert not torch.musa.is_available() and not torch.accelerator.is_available()
        assert torch.ones(2).sum().item() == 2
        torch.manual_seed(0)
        torch.ones(1, device="musa")
        """,
        check=False,
        TORCH_MUSA_HOST_DEVICES="0",
    )
    assert done.returncode == 1
    assert "Error" in done.stderr.strip().splitlines()[-1] or "Error" in done.stderr


def test_capability_lists_dtypes():
    dtypes = torch.accelerator.get_device_capability("musa:0")["supported_dtypes"]
    assert {torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64} <= set(dtypes)
