"""Generators: seeds, states, and the calls of PyTorch that reach them."""

from __future__ import annotations

import pytest
import torch


def test_seed_and_initial_seed():
    torch.musa.manual_seed(7)
    assert torch.musa.initial_seed() == 7
    assert torch.musa.seed() == torch.musa.initial_seed()


def test_torch_manual_seed_reaches_every_device():
    torch.manual_seed(123)
    for index in range(torch.musa.device_count()):
        with torch.musa.device(index):
            assert torch.musa.initial_seed() == 123


def test_manual_seed_is_for_the_current_device():
    torch.musa.manual_seed_all(1)
    with torch.musa.device(1):
        torch.musa.manual_seed(2)
    assert torch.musa.initial_seed() == 1
    assert [g.initial_seed() for g in torch.musa.default_generators] == [1, 2]


def test_same_seed_same_numbers():
    torch.musa.manual_seed(0)
    a = torch.rand(1000, device="musa")
    b = torch.rand(1000, device="musa")
    torch.musa.manual_seed(0)
    assert torch.equal(torch.rand(1000, device="musa"), a)
    assert torch.equal(torch.rand(1000, device="musa"), b)
    assert not torch.equal(a, b)


def test_state_round_trip():
    state = torch.musa.get_rng_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.numel() == 16
    a = torch.randn(100, device="musa")
    torch.musa.set_rng_state(state)
    assert torch.equal(torch.randn(100, device="musa"), a)
    states = torch.musa.get_rng_state_all()
    torch.musa.set_rng_state_all(states)
    assert all(torch.equal(a, b) for a, b in zip(states, torch.musa.get_rng_state_all(), strict=True))


def test_own_generator():
    g = torch.Generator("musa:1").manual_seed(5)
    assert g.device == torch.device("musa:1") and g.initial_seed() == 5
    before = torch.musa.get_rng_state(1)
    a = torch.rand(10, generator=g, device="musa:1")
    assert torch.equal(torch.musa.get_rng_state(1), before)
    g.manual_seed(5)
    assert torch.equal(torch.rand(10, generator=g, device="musa:1"), a)
    copy = torch.Generator("musa:1")
    copy.set_state(g.get_state())
    assert torch.equal(torch.rand(10, generator=g, device="musa:1"), torch.rand(10, generator=copy, device="musa:1"))


def test_generator_without_index_is_the_current_device():
    with torch.musa.device(1):
        assert torch.Generator("musa").device == torch.device("musa:1")


def test_clone_and_offset():
    g = torch.Generator("musa").manual_seed(3)
    torch.rand(100, generator=g, device="musa")
    twin = g.clone_state()
    assert twin.initial_seed() == 3
    assert torch.equal(torch.rand(5, generator=g, device="musa"), torch.rand(5, generator=twin, device="musa"))
    g.set_offset(8)
    assert g.get_offset() == 8
    with pytest.raises(RuntimeError, match="multiple of 4"):
        g.set_offset(3)


def test_bad_states():
    g = torch.Generator("musa")
    with pytest.raises(RuntimeError, match="wrong size"):
        g.set_state(torch.zeros(5, dtype=torch.uint8))
    with pytest.raises((RuntimeError, TypeError)):
        g.set_state(torch.zeros(16))


def test_generator_of_another_device():
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device="musa", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.Generator("musa:9")


def test_fork_rng():
    torch.musa.manual_seed(0)
    expected = torch.rand(5, device="musa")
    torch.musa.manual_seed(0)
    with torch.random.fork_rng(devices=[0, 1], device_type="musa"):
        torch.musa.manual_seed(99)
        torch.rand(5, device="musa")
    assert torch.equal(torch.rand(5, device="musa"), expected)


def test_dropout_is_reproducible():
    x = torch.ones(1000, device="musa")
    torch.manual_seed(1)
    a = torch.nn.functional.dropout(x, 0.5)
    torch.manual_seed(1)
    assert torch.equal(torch.nn.functional.dropout(x, 0.5), a)
