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


@pytest.mark.needs("two devices")
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


@pytest.mark.needs("two devices")
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


@pytest.mark.needs("two devices")
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


@pytest.mark.needs("two devices")
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


DRAWS = """
    import hashlib, torch
    torch.musa.manual_seed_all(11)
    digest = hashlib.sha256()
    for draw in (
        lambda: torch.rand(100_003, device="musa"),
        lambda: torch.randn(100_003, device="musa"),
        lambda: torch.randint(0, 1000, (50_001,), device="musa"),
        lambda: torch.empty(70_001, device="musa").exponential_(),
        lambda: torch.bernoulli(torch.full((70_001,), 0.3, device="musa")),
        lambda: torch.nn.functional.dropout(torch.ones(90_001, device="musa"), 0.4),
        lambda: torch.randperm(10_007, device="musa"),
        lambda: torch.rand(3, device="musa:1"),
    ):
        digest.update(draw().cpu().numpy().tobytes())
    print(digest.hexdigest(), torch.musa.get_rng_state().tolist())
"""


@pytest.mark.parametrize("mode", ["1", "0"])
@pytest.mark.needs("two devices")
def test_the_stream_does_not_depend_on_the_number_of_host_threads(run_python, mode):
    results = {
        run_python(DRAWS, OMP_NUM_THREADS=threads, MUSA_LAUNCH_BLOCKING=mode).stdout for threads in ("1", "3", "8")
    }
    assert len(results) == 1


def test_an_offset_says_where_the_stream_goes_on():
    g = torch.Generator("musa").manual_seed(9)
    torch.rand(1000, generator=g, device="musa")
    offset = g.get_offset()
    assert offset > 0 and offset % 4 == 0
    expected = torch.randn(1000, generator=g, device="musa")
    again = torch.Generator("musa").manual_seed(9)
    again.set_offset(offset)
    assert torch.equal(torch.randn(1000, generator=again, device="musa"), expected)


def test_manual_seed_all_reaches_every_device():
    torch.musa.manual_seed_all(77)
    first = [torch.rand(20, device=f"musa:{i}").cpu() for i in range(torch.musa.device_count())]
    assert all(g.initial_seed() == 77 for g in torch.musa.default_generators)
    assert all(torch.equal(first[0], other) for other in first)
    torch.musa.seed_all()
    assert len({g.initial_seed() for g in torch.musa.default_generators}) == 1
    assert torch.musa.initial_seed() != 77


def test_threads_share_a_generator_without_drawing_twice():
    from concurrent.futures import ThreadPoolExecutor

    torch.musa.manual_seed(5)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: tuple(torch.rand(8, device="musa").tolist()), range(64)))
    assert len(set(drawn)) == 64
    torch.musa.manual_seed(5)
    assert {tuple(torch.rand(8, device="musa").tolist()) for _ in range(64)} == set(drawn)


@pytest.mark.needs("two devices")
def test_fork_rng_gives_every_device_its_state_back_whatever_happens():
    torch.musa.manual_seed_all(4)
    torch.rand(7, device="musa:1")
    before = torch.musa.get_rng_state_all()
    with pytest.raises(KeyError), torch.random.fork_rng(devices=[0, 1], device_type="musa"):
        torch.manual_seed(1)
        torch.rand(3, device="musa:0")
        torch.rand(3, device="musa:1")
        raise KeyError
    assert all(torch.equal(a, b) for a, b in zip(before, torch.musa.get_rng_state_all(), strict=True))
    with torch.random.fork_rng(devices=[0, 1], device_type="musa", enabled=False):
        torch.rand(3, device="musa:0")
    assert not torch.equal(before[0], torch.musa.get_rng_state(0))


@pytest.mark.parametrize("device", [1, "musa:1", torch.device("musa:1")])
@pytest.mark.needs("two devices")
def test_a_state_is_that_of_the_device_named(device):
    torch.musa.manual_seed_all(8)
    state = torch.musa.get_rng_state(device)
    other = torch.musa.get_rng_state(0)
    expected = torch.rand(9, device="musa:1")
    torch.musa.set_rng_state(state, device)
    assert torch.equal(torch.rand(9, device="musa:1"), expected)
    assert torch.equal(torch.musa.get_rng_state(0), other)


def test_a_state_goes_through_a_file_and_another_process(run_python, tmp_path):
    torch.musa.manual_seed(21)
    torch.randn(1000, device="musa")
    torch.save(torch.musa.get_rng_state(), tmp_path / "state.pt")
    expected = torch.rand(3, device="musa").tolist()
    done = run_python(
        """
        import torch
        torch.musa.set_rng_state(torch.load("state.pt"))
        print(torch.rand(3, device="musa").tolist())
        """
    )
    assert done.stdout.strip() == str(expected)


def test_seeds_of_64_bits_and_negative_ones():
    draws = {}
    for seed in (0, 1, 2**32, 2**63, 2**64 - 1):
        torch.musa.manual_seed(seed)
        assert torch.musa.initial_seed() == seed
        draws[seed] = tuple(torch.rand(4, device="musa").tolist())
    assert len(set(draws.values())) == len(draws)
    torch.musa.manual_seed(-1)
    assert tuple(torch.rand(4, device="musa").tolist()) == draws[2**64 - 1]


def test_a_process_that_sets_no_seed_gets_numbers_of_its_own(run_python):
    code = "import torch; print(torch.rand(4, device='musa').tolist(), torch.musa.initial_seed())"
    assert len({run_python(code).stdout for _ in range(2)}) == 2
