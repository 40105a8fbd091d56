"""The caching allocator: rounding, reuse, statistics, and running out of memory."""

from __future__ import annotations

import gc

import pytest
import torch

MIB = 2**20

pytestmark = pytest.mark.needs("cache")


@pytest.fixture(autouse=True)
def clean_slate():
    gc.collect()
    torch.musa.synchronize()
    torch.musa.empty_cache()
    torch.musa.reset_peak_memory_stats()


@pytest.fixture
def own_segments():
    """What the test counts is all there is: a tensor of an earlier test may keep a segment with room in it alive."""
    with torch.musa.use_mem_pool(torch.musa.MemPool()):
        yield


def test_sizes_are_rounded_to_512_bytes():
    before = torch.musa.memory_allocated()
    x = torch.empty(1, device="musa")
    assert torch.musa.memory_allocated() - before == 512
    y = torch.empty(513, dtype=torch.uint8, device="musa")
    assert torch.musa.memory_allocated() - before == 512 + 1024
    del x, y
    assert torch.musa.memory_allocated() == before


def test_small_requests_share_a_segment(own_segments):
    before = torch.musa.memory_reserved()
    tensors = [torch.empty(1000, device="musa") for _ in range(100)]
    assert torch.musa.memory_reserved() - before == 2 * MIB
    del tensors


def test_segment_of_a_large_request(own_segments):
    before = torch.musa.memory_reserved()
    x = torch.empty(11 * MIB, dtype=torch.uint8, device="musa")
    assert torch.musa.memory_reserved() - before == 12 * MIB
    del x
    y = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    assert torch.musa.memory_reserved() - before == 12 * MIB  # cut from the cached one
    del y


def test_freed_memory_is_reused_and_merged(own_segments):
    a = torch.empty(4 * MIB, dtype=torch.uint8, device="musa")
    b = torch.empty(4 * MIB, dtype=torch.uint8, device="musa")
    address = a.data_ptr()
    reserved = torch.musa.memory_reserved()
    assert b.data_ptr() == address + 4 * MIB
    del a, b
    c = torch.empty(8 * MIB, dtype=torch.uint8, device="musa")
    assert c.data_ptr() == address
    assert torch.musa.memory_reserved() == reserved


def test_blocks_stay_on_their_stream():
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    address = x.data_ptr()
    del x
    with torch.musa.stream(torch.musa.Stream()):
        y = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
        assert y.data_ptr() != address
    z = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    assert z.data_ptr() == address


def test_record_stream_keeps_the_block_until_the_stream_is_through():
    side = torch.musa.Stream()
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    address = x.data_ptr()
    x.record_stream(side)
    del x
    side.synchronize()
    y = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    assert y.data_ptr() == address  # the event has passed, so the block is back


def test_record_stream_on_the_own_stream_changes_nothing():
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    x.record_stream(torch.musa.current_stream())
    address = x.data_ptr()
    del x
    assert torch.empty(3 * MIB, dtype=torch.uint8, device="musa").data_ptr() == address


def test_empty_cache_gives_memory_back():
    x = torch.empty(30 * MIB, dtype=torch.uint8, device="musa")
    del x
    free_before, total = torch.musa.mem_get_info()
    reserved = torch.musa.memory_reserved()
    torch.musa.empty_cache()
    assert torch.musa.memory_reserved() <= reserved - 30 * MIB
    assert torch.musa.mem_get_info()[0] >= free_before + 30 * MIB
    assert torch.musa.mem_get_info()[1] == total


def test_peaks_and_their_reset():
    before = torch.musa.memory_allocated()
    x = torch.empty(5 * MIB, dtype=torch.uint8, device="musa")
    del x
    assert torch.musa.max_memory_allocated() >= before + 5 * MIB
    assert torch.musa.max_memory_reserved() >= 5 * MIB
    torch.musa.reset_peak_memory_stats()
    assert torch.musa.max_memory_allocated() == before


@pytest.mark.needs("two devices")
def test_devices_are_counted_apart():
    before = torch.musa.memory_allocated(0)
    x = torch.empty(1, device="musa:1")
    assert torch.musa.memory_allocated(0) == before
    assert torch.musa.memory_allocated("musa:1") >= 512
    del x


def test_statistics_have_pytorchs_names():
    x = torch.empty(1, device="musa")
    stats = torch.musa.memory_stats()
    for what in ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes"):
        for pool in ("all", "small_pool", "large_pool"):
            for metric in ("current", "peak", "allocated", "freed"):
                assert stats[f"{what}.{pool}.{metric}"] >= 0
    assert stats["allocation.all.current"] == stats["active.all.current"] >= 1
    assert stats["requested_bytes.all.current"] >= x.nbytes
    assert stats["num_ooms"] == 0
    torch.musa.reset_accumulated_memory_stats()
    assert torch.musa.memory_stats()["allocation.all.allocated"] == 0


def test_accelerator_memory_api():
    x = torch.empty(1000, device="musa")
    assert torch.accelerator.memory_allocated() == torch.musa.memory_allocated() >= x.nbytes
    assert torch.accelerator.memory_reserved() == torch.musa.memory_reserved()
    assert torch.accelerator.max_memory_allocated() == torch.musa.max_memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.empty_cache()


@pytest.mark.skipif(not hasattr(torch.accelerator, "get_memory_info"), reason="added to PyTorch after 2.9")
def test_accelerator_memory_info():
    assert torch.accelerator.get_memory_info() == torch.musa.mem_get_info()


def test_summary_is_readable():
    x = torch.empty(MIB, device="musa")
    text = torch.musa.memory_summary()
    assert "musa:0" in text and "allocated" in text and "retries" in text
    del x


def test_zero_bytes_take_no_memory():
    before = torch.musa.memory_allocated()
    x = torch.empty(0, 5, device="musa")
    assert x.data_ptr() == 0 and x.device.type == "musa"
    assert torch.musa.memory_allocated() == before


@pytest.mark.needs("two devices")
def test_out_of_memory_is_pytorchs_error_and_the_device_goes_on(run_python):
    run_python(
        """
        import re
        import torch

        MIB = 2**20
        kept = torch.ones(10 * MIB // 4, device="musa")
        try:
            torch.empty(100 * MIB, dtype=torch.uint8, device="musa")
        except torch.OutOfMemoryError as error:
            text = str(error)
        assert re.fullmatch(
            r"MUSA out of memory\\. Tried to allocate 100\\.00 MiB\\. "
            r"GPU 0 has a total capacity of 64\\.00 MiB of which \\d+\\.\\d\\d MiB is free\\. "
            r"Of the allocated memory 10\\.00 MiB is allocated by PyTorch, "
            r"and .* is reserved by PyTorch but unallocated\\.(.|\\n)*", text), text
        assert torch.musa.memory_stats()["num_ooms"] == 1
        assert kept.sum().item() == 10 * MIB // 4
        assert torch.ones(3, device="musa").sum().item() == 3
        assert torch.ones(3, device="musa:1").sum().item() == 3
        """,
        TORCH_MUSA_HOST_MEMORY="64",
    )


def test_cached_memory_is_given_up_before_failing(run_python):
    run_python(
        """
        import torch

        MIB = 2**20
        for size in (20, 24, 40, 44):  # each alone fits, together with what the others left cached they would not
            x = torch.empty(size * MIB, dtype=torch.uint8, device="musa")
            del x
        assert torch.musa.memory_stats()["num_alloc_retries"] >= 1
        assert torch.musa.memory_stats()["num_ooms"] == 0
        """,
        TORCH_MUSA_HOST_MEMORY="64",
    )


def test_absurd_sizes():
    with pytest.raises(torch.OutOfMemoryError, match="more than 1EB"):
        torch.empty(2**61, dtype=torch.uint8, device="musa")
    with pytest.raises(RuntimeError, match="overflow"):
        torch.empty(2**62, 2**62, device="musa")
    assert torch.ones(2, device="musa").sum().item() == 2
