"""torch.musa.MemPool and use_mem_pool: memory that nobody else is served from."""

from __future__ import annotations

import gc
import threading

import pytest
import torch

MIB = 2**20
pytestmark = pytest.mark.needs("cache")


@pytest.fixture(autouse=True)
def clean_slate():
    gc.collect()
    torch.musa.synchronize()
    torch.musa.empty_cache()


def test_a_pool_serves_the_block_and_nobody_else():
    pool = torch.musa.MemPool()
    with torch.musa.use_mem_pool(pool):
        x = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    address = x.data_ptr()
    del x
    y = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
    assert y.data_ptr() != address
    with torch.musa.use_mem_pool(pool):
        assert torch.empty(3 * MIB, dtype=torch.uint8, device="musa").data_ptr() == address


def test_small_blocks_do_not_leave_the_pool_either():
    pool = torch.musa.MemPool()
    with torch.musa.use_mem_pool(pool):
        x = torch.ones(8, device="musa")
    address = x.data_ptr()
    del x
    assert torch.ones(8, device="musa").data_ptr() != address


def test_pools_are_told_apart_and_counted():
    one, two = torch.musa.MemPool(), torch.musa.MemPool()
    assert one.id != two.id and one.use_count() == 1
    with torch.musa.use_mem_pool(one):
        assert (one.use_count(), two.use_count()) == (2, 1)
        a = torch.empty(2 * MIB, dtype=torch.uint8, device="musa")
        with torch.musa.use_mem_pool(two):
            b = torch.empty(2 * MIB, dtype=torch.uint8, device="musa")
        places = (a.data_ptr(), b.data_ptr())
        del a, b
        assert torch.empty(2 * MIB, dtype=torch.uint8, device="musa").data_ptr() == places[0]
        with torch.musa.use_mem_pool(two):
            assert torch.empty(2 * MIB, dtype=torch.uint8, device="musa").data_ptr() == places[1]
    assert one.use_count() == 1


def test_memory_goes_back_with_the_pool():
    before = torch.musa.memory_reserved()
    pool = torch.musa.MemPool()
    with torch.musa.use_mem_pool(pool):
        kept = torch.full((MIB,), 7, dtype=torch.uint8, device="musa")
        torch.empty(20 * MIB, dtype=torch.uint8, device="musa")
    torch.musa.empty_cache()
    assert torch.musa.memory_reserved() - before == 22 * MIB, "it is the pool's while there is one"
    del pool
    assert torch.musa.memory_reserved() - before == 2 * MIB, "a tensor keeps its segment"
    assert kept.min().item() == 7
    del kept
    torch.musa.empty_cache()
    assert torch.musa.memory_reserved() == before


def test_only_the_calling_thread_allocates_there():
    pool = torch.musa.MemPool()
    with torch.musa.use_mem_pool(pool):
        x = torch.empty(3 * MIB, dtype=torch.uint8, device="musa")
        address = x.data_ptr()
        del x
        other = []
        thread = threading.Thread(
            target=lambda: other.append(torch.empty(3 * MIB, dtype=torch.uint8, device="musa").data_ptr())
        )
        thread.start()
        thread.join()
    assert other != [address]


def test_the_block_ends_where_it_raises():
    pool = torch.musa.MemPool()
    with pytest.raises(KeyError), torch.musa.use_mem_pool(pool):
        raise KeyError
    assert pool.use_count() == 1


def test_a_graph_may_use_a_pool():
    pool = torch.musa.MemPool()
    x = torch.ones(MIB, device="musa")
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph, pool=pool.id):
        y = x + 1
    assert graph.pool() == pool.id and pool.use_count() == 2
    graph.replay()
    assert y.sum().item() == 2 * MIB
    del graph
    assert pool.use_count() == 1


@pytest.mark.needs("two devices")
def test_a_pool_on_the_other_device():
    with torch.musa.device(1):
        pool = torch.musa.MemPool()
    with torch.musa.use_mem_pool(pool, device=1):
        x = torch.empty(3 * MIB, dtype=torch.uint8, device="musa:1")
        elsewhere = torch.empty(3 * MIB, dtype=torch.uint8, device="musa:0")
    address = x.data_ptr()
    del x, elsewhere
    assert torch.empty(3 * MIB, dtype=torch.uint8, device="musa:1").data_ptr() != address


def test_a_segment_that_is_not_split_serves_one_tensor():
    pool = torch.musa.MemPool(no_split=True)
    before = torch.musa.memory_reserved()
    with torch.musa.use_mem_pool(pool):
        pair = [torch.empty(8, device="musa") for _ in range(2)]
    assert torch.musa.memory_reserved() - before == 4 * MIB
    assert pair[0].data_ptr() != pair[1].data_ptr()


def test_a_pool_for_the_worst_serves_others_when_the_device_is_full(run_python):
    run_python(
        """
        import torch
        pool = torch.musa.MemPool(use_on_oom=True)
        reserved = torch.musa.MemPool()
        for each in (pool, reserved):
            with torch.musa.use_mem_pool(each):
                torch.empty(24 << 20, dtype=torch.uint8, device="musa")
        last = torch.empty(20 << 20, dtype=torch.uint8, device="musa")  # 16 MiB are left of 64
        try:
            torch.empty(20 << 20, dtype=torch.uint8, device="musa")
        except torch.OutOfMemoryError:
            print("full")
        """,
        TORCH_MUSA_HOST_MEMORY="64",
    )


def test_an_allocator_of_ones_own_is_refused():
    with pytest.raises(NotImplementedError, match="runtime"):
        torch.musa.MemPool(allocator=object())
