"""Graphs: what a replay computes is what eager execution would have computed, at the addresses of the capture."""

from __future__ import annotations

import copy
import gc
from contextlib import suppress

import pytest
import torch
from torch import nn

MIB = 2**20
BOTH_MODES = pytest.mark.parametrize("mode", ["1", "0"], ids=["blocking", "asynchronous"])


def captured(work, **options):
    """A graph of `work`, which ran once before on another stream, and its result."""
    side = torch.musa.Stream()
    side.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(side):
        work()
    torch.musa.current_stream().wait_stream(side)
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph, **options):
        result = work()
    return graph, result


def test_a_replay_reads_and_writes_the_tensors_of_the_capture():
    x = torch.zeros(1000, device="musa")
    graph, y = captured(lambda: (x * 2 + 1).relu())
    address = y.data_ptr()
    for value in (3.0, -5.0, 0.25):
        x.fill_(value)
        graph.replay()
        assert torch.equal(y.cpu(), torch.full((1000,), max(0.0, value * 2 + 1)))
        assert y.data_ptr() == address


def test_a_replay_of_operators_on_lists_keeps_the_addresses_and_numbers_of_the_capture():
    params, moments = [[torch.zeros(size, device="musa") for size in (3, 70, 1)] for _ in range(2)]

    def work():
        torch._foreach_add_(moments, 1.0)
        torch._foreach_addcdiv_(params, moments, moments, [1.0, 2.0, 3.0])
        return torch._foreach_mul(params, 2.0)

    graph, doubled = captured(work)
    for tensor in (*params, *moments):
        tensor.zero_()
    for _ in range(3):
        graph.replay()
    assert [tensor.unique().tolist() for tensor in params] == [[3.0], [6.0], [9.0]]
    assert [tensor.unique().tolist() for tensor in moments] == [[3.0]] * 3
    assert [tensor.unique().tolist() for tensor in doubled] == [[6.0], [12.0], [18.0]]


def test_nothing_runs_during_the_capture():
    x = torch.zeros(10, device="musa")
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        assert torch.musa.is_current_stream_capturing()
        x.add_(1)
    assert not torch.musa.is_current_stream_capturing()
    assert x.sum().item() == 0
    graph.replay()
    graph.replay()
    assert x.sum().item() == 20


TRAINING = """
    import copy, os, torch
    from torch import nn
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Dropout(0.4), nn.Linear(36, 10)).to("musa")
    twin = copy.deepcopy(net)
    data = torch.randn(12, 16, 1, 8, 8, device="musa")
    target = torch.randint(0, 10, (12, 16), device="musa")

    def step(model, optimizer, x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def start(model):
        for parameter in model.parameters():
            parameter.grad = None
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    x, y = data[0].clone(), target[0].clone()
    optimizer = start(net)
    kept = copy.deepcopy(net.state_dict())
    side = torch.musa.Stream()
    side.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(side):
        for _ in range(2):
            step(net, optimizer, x, y)
    torch.musa.current_stream().wait_stream(side)
    momentum = [state["momentum_buffer"] for state in optimizer.state.values()]
    graph = torch.musa.MUSAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.musa.graph(graph):
        loss = step(net, optimizer, x, y)
    with torch.no_grad():
        for name, value in net.state_dict().items():
            value.copy_(kept[name])
        for buffer in momentum:
            buffer.zero_()

    torch.musa.manual_seed(7)
    replayed = []
    for i in range(12):
        x.copy_(data[i])
        y.copy_(target[i])
        graph.replay()
        replayed.append(loss.item())
    after = torch.rand(4, device="musa")

    other = start(twin)
    torch.musa.manual_seed(7)
    eager = [step(twin, other, data[i], target[i]).item() for i in range(12)]
    assert eager == replayed, (eager, replayed)
    assert len(set(replayed)) == 12
    for a, b in zip(net.state_dict().values(), twin.state_dict().values()):
        assert torch.equal(a, b)
    assert torch.equal(after, torch.rand(4, device="musa")), "the generators stand at the same place"
    print("equal", flush=True)
    os._exit(0)
"""


@BOTH_MODES
def test_a_training_step_replays_as_it_runs_eagerly_dropout_included(run_python, mode):
    assert run_python(TRAINING, MUSA_LAUNCH_BLOCKING=mode).stdout == "equal\n"


def test_an_optimizer_that_counts_steps_on_the_device_is_captured_with_them():
    results = []
    for captures in (False, True):
        torch.manual_seed(2)
        net = nn.Linear(5, 1).to("musa")
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1, capturable=True)
        data = torch.randn(9, 4, 5, device="musa")
        x = data[0].clone()

        def step(net=net, optimizer=optimizer, x=x):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()

        if not captures:
            for batch in data:
                x.copy_(batch)
                step()
        else:
            side = torch.musa.Stream()
            side.wait_stream(torch.musa.current_stream())
            with torch.musa.stream(side):
                step()  # the first batch: the optimizer makes its state
            torch.musa.current_stream().wait_stream(side)
            graph = torch.musa.MUSAGraph()
            optimizer.zero_grad()
            with torch.musa.graph(graph):
                step()
            for batch in data[1:]:
                x.copy_(batch)
                graph.replay()
        results.append([value.cpu() for value in net.state_dict().values()])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.needs("host")  # a card is lost after an index that is out of range
def test_an_error_of_a_replay_is_raised_and_the_next_one_works(run_python):
    run_python(
        """
        import torch
        x = torch.arange(12.0, device="musa").view(4, 3)
        index = torch.zeros(2, dtype=torch.int64, device="musa")
        graph = torch.musa.MUSAGraph()
        with torch.musa.graph(graph):
            y = x.index_select(0, index)
        index.fill_(17)
        try:
            graph.replay()
        except Exception as error:
            print("refused", error)
        else:
            raise SystemExit("index 17 of 4 was accepted")
        index.fill_(3)
        graph.replay()
        assert y.tolist() == [[9.0, 10.0, 11.0]] * 2
        """,
        MUSA_LAUNCH_BLOCKING="1",  # otherwise it is found out later, and sticks
    )


RANDOM = {
    "rand": lambda: torch.rand(1001, device="musa"),
    "randn double": lambda: torch.randn(1001, device="musa", dtype=torch.float64),
    "randint": lambda: torch.randint(0, 9, (1001,), device="musa"),
    "bernoulli": lambda: torch.bernoulli(torch.full((1001,), 0.3, device="musa")),
    "exponential": lambda: torch.empty(1001, device="musa").exponential_(),
    "dropout": lambda: nn.functional.dropout(torch.ones(1001, device="musa"), 0.5),
    "randperm": lambda: torch.randperm(1001, device="musa"),
    "multinomial": lambda: torch.multinomial(torch.arange(1.0, 51, device="musa"), 40, replacement=True),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_go_on_from_replay_to_replay_as_eagerly(name):
    draw = RANDOM[name]
    graph, (first, second) = captured(lambda: (draw(), draw()))
    torch.musa.manual_seed(3)
    replayed = []
    for _ in range(3):
        graph.replay()
        replayed += [first.clone(), second.clone(), torch.rand(5, device="musa")]
    torch.musa.manual_seed(3)
    eager = []
    for _ in range(3):
        eager += [draw(), draw(), torch.rand(5, device="musa")]
    assert all(torch.equal(a, b) for a, b in zip(replayed, eager, strict=True))
    assert not torch.equal(replayed[0], replayed[3])


def test_a_generator_of_ones_own_is_known_to_the_graph():
    own = torch.Generator("musa").manual_seed(5)
    x = torch.empty(100, device="musa")
    graph = torch.musa.MUSAGraph()
    graph.register_generator_state(own)
    with torch.musa.graph(graph):
        x.uniform_(generator=own)
    before = torch.musa.get_rng_state()
    own.manual_seed(6)
    graph.replay()
    assert torch.equal(x, torch.empty(100, device="musa").uniform_(generator=torch.Generator("musa").manual_seed(6)))
    assert torch.equal(torch.musa.get_rng_state(), before)
    with pytest.raises((RuntimeError, TypeError)):
        graph.register_generator_state(torch.Generator())


def test_the_state_of_a_generator_is_out_of_reach_during_a_capture():
    graph = torch.musa.MUSAGraph()
    x = torch.zeros(4, device="musa")
    with torch.musa.graph(graph):
        x.uniform_()
        for call in (torch.musa.get_rng_state, lambda: torch.musa.manual_seed(12345)):
            with pytest.raises(RuntimeError, match="captured"):
                call()
    graph.replay()


def test_memory_of_a_capture_is_not_handed_to_others():
    x = torch.ones(300_000, device="musa")

    def work():
        a = x + 1  # freed in the capture; each replay writes it again
        b = a * 2
        del a
        return b

    graph, y = captured(work)
    others = [torch.full((300_000,), float(i), device="musa") for i in range(40)]
    graph.replay()
    assert all(torch.equal(other, torch.full_like(other, i)) for i, other in enumerate(others))
    assert torch.equal(y, torch.full_like(y, 4))


@pytest.mark.needs("cache")
def test_memory_freed_in_a_capture_serves_the_same_capture_again():
    x = torch.ones(3 * MIB, dtype=torch.uint8, device="musa")
    graph = torch.musa.MUSAGraph()
    addresses = []
    with torch.musa.graph(graph):
        for _ in range(10):
            y = x + 1
            addresses.append(y.data_ptr())
            del y
    assert len(set(addresses)) == 1


@pytest.mark.needs("cache")
def test_memory_goes_back_when_the_graph_is_gone():
    gc.collect()
    torch.musa.empty_cache()
    before = torch.musa.memory_reserved()
    free = torch.musa.mem_get_info()[0]
    x = torch.ones(1, device="musa")
    graph, y = captured(lambda x=x: x.expand(8 * MIB) + 1)
    torch.musa.empty_cache()
    held = torch.musa.memory_reserved()
    assert held - before >= 32 * MIB, "empty_cache leaves a living graph's memory alone"
    del y
    torch.musa.empty_cache()
    assert torch.musa.memory_reserved() == held
    graph.replay()
    torch.musa.synchronize()
    del graph, x
    torch.musa.empty_cache()
    assert torch.musa.memory_reserved() == before
    assert torch.musa.mem_get_info()[0] >= free


def test_a_tensor_outlives_the_graph_that_made_it():
    x = torch.full((1000,), 2.0, device="musa")
    graph, y = captured(lambda: x * 3)
    graph.replay()
    del graph
    torch.musa.empty_cache()
    torch.full((1000,), -1.0, device="musa")
    assert torch.equal(y.cpu(), torch.full((1000,), 6.0))


@pytest.mark.needs("cache")
def test_a_full_device_takes_back_what_dead_graphs_hold(run_python):
    run_python(
        """
        import torch
        x = torch.ones(1, device="musa")
        for _ in range(10):  # 24 MiB each, on 64
            graph = torch.musa.MUSAGraph()
            with torch.musa.graph(graph):
                y = x.expand(6 << 20) + 1
            graph.replay()
            torch.musa.synchronize()
            del graph, y
            big = torch.empty(40 << 20, dtype=torch.uint8, device="musa")
            del big
        """,
        TORCH_MUSA_HOST_MEMORY="64",
    )


@pytest.mark.needs("cache")
def test_graphs_share_a_pool():
    pool = torch.musa.graph_pool_handle()
    gc.collect()
    torch.musa.empty_cache()
    before = torch.musa.memory_reserved()
    x = torch.ones(12 * MIB, dtype=torch.uint8, device="musa")
    graphs = []
    result = torch.zeros(3, device="musa")
    for i in range(3):

        def work(i=i, x=x):
            y = x + i  # 12 MiB that the next graph may use as well: they run in order
            result[i] = y[0].float()

        graphs.append(captured(work, pool=pool)[0])
        assert graphs[-1].pool() == pool
    torch.musa.empty_cache()
    assert torch.musa.memory_reserved() - before <= (12 + 2) * MIB + (12 + 2) * MIB
    for graph in graphs:
        graph.replay()
    assert result.tolist() == [1.0, 2.0, 3.0]
    del graphs[0]
    torch.musa.empty_cache()
    x.fill_(9)
    for graph in graphs:
        graph.replay()
    assert result.tolist() == [1.0, 10.0, 11.0]
    del graphs, graph, x, work
    torch.musa.empty_cache()
    assert torch.musa.memory_reserved() <= before + 2 * MIB


def test_a_second_stream_takes_part_in_the_capture():
    x = torch.ones(1000, device="musa")
    side = torch.musa.Stream()
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        here = torch.musa.current_stream()
        a = x + 1
        side.wait_stream(here)
        with torch.musa.stream(side):
            b = a * 10
            a.record_stream(side)
        here.wait_stream(side)
        c = b + a
        del a
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        assert torch.equal(c.cpu(), torch.full((1000,), (value + 1) * 11))


FORBIDDEN = {
    "item": lambda x: x.sum().item(),
    "cpu": lambda x: x.cpu(),
    "print": lambda x: repr(x),
    "from the host": lambda x: x.copy_(torch.zeros(4)),
    "tensor": lambda x: torch.tensor([1.0], device="musa"),
    "nonzero": lambda x: x.nonzero(),
    "synchronize": lambda x: torch.musa.synchronize(),
    "stream.synchronize": lambda x: torch.musa.current_stream().synchronize(),
    "stream.query": lambda x: torch.musa.current_stream().query(),
    "default stream": lambda x: torch.musa.default_stream().wait_stream(torch.musa.current_stream()),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_may_not_be_done_raises_breaks_the_capture_and_nothing_else(name):
    x = torch.ones(4, device="musa")
    graph = torch.musa.MUSAGraph()
    with pytest.raises(RuntimeError, match=r"apture|capturing"), torch.musa.graph(graph):
        FORBIDDEN[name](x + 1)
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    assert not torch.musa.is_current_stream_capturing()
    assert (x + 1).sum().item() == 8
    with torch.musa.graph(graph):
        y = x * 5
    graph.replay()
    assert y.sum().item() == 20


def test_a_capture_that_was_broken_and_went_on_says_so_at_its_end():
    x = torch.ones(4, device="musa")
    graph = torch.musa.MUSAGraph()
    with pytest.raises(RuntimeError, match="invalidated"), torch.musa.graph(graph), suppress(RuntimeError):
        x.sum().item()
    assert x.sum().item() == 4


def test_emptying_the_cache_is_refused_and_leaves_the_capture_as_it_is():
    x = torch.ones(4, device="musa")
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        with pytest.raises(RuntimeError, match="while a graph is being captured"):
            torch.musa.empty_cache()
        y = x + 1
    graph.replay()
    assert y.sum().item() == 8


def test_an_error_of_python_in_a_capture_is_the_one_that_is_seen():
    with pytest.raises(KeyError), torch.musa.graph(torch.musa.MUSAGraph()):
        torch.ones(3, device="musa").sum().add_({}["missing"])
    assert not torch.musa.is_current_stream_capturing()


def test_misuse_of_a_graph():
    graph = torch.musa.MUSAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.pool()
    with pytest.raises(RuntimeError, match="not being captured"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    with pytest.raises(ValueError, match="thread_local"):
        graph.capture_begin(capture_error_mode="lenient")
    x = torch.ones(3, device="musa")
    with torch.musa.graph(graph):
        x.add_(1)
    with pytest.raises(RuntimeError, match="already owns a captured graph"), torch.musa.graph(graph):
        pass
    assert torch.musa.current_stream() == torch.musa.default_stream()
    graph.reset()
    with torch.musa.graph(graph):
        x.add_(10)
    graph.replay()
    assert x.tolist() == [11.0] * 3


def test_an_empty_graph_warns():
    with pytest.warns(UserWarning, match="empty"), torch.musa.graph(torch.musa.MUSAGraph()):
        pass


def test_a_graph_may_be_kept_and_looked_at(tmp_path):
    graph = torch.musa.MUSAGraph(keep_graph=True)
    x = torch.ones(3, device="musa")
    with torch.musa.graph(graph):
        x.add_(1)
    assert graph.raw_musa_graph() != 0 and graph.raw_musa_graph_exec() == 0
    graph.replay()
    assert graph.raw_musa_graph_exec() != 0 and x.tolist() == [2.0] * 3
    graph.debug_dump(tmp_path / "graph.dot")
    assert "kernel" in (tmp_path / "graph.dot").read_text()
    with pytest.raises(RuntimeError, match="keep_graph"):
        torch.musa.MUSAGraph().raw_musa_graph()


def test_an_abandoned_capture_ends_with_its_graph():
    stream = torch.musa.Stream()
    with torch.musa.stream(stream):
        graph = torch.musa.MUSAGraph()
        graph.capture_begin()
        torch.ones(3, device="musa")
        del graph
        gc.collect()
        assert not torch.musa.is_current_stream_capturing()
        assert torch.ones(3, device="musa").sum().item() == 3


@pytest.mark.parametrize("device", [0, pytest.param(1, marks=pytest.mark.needs("two devices"))])
def test_graphs_belong_to_a_device(device):
    with torch.musa.device(device):
        x = torch.ones(5, device="musa")
        graph, y = captured(lambda: x * 2 + torch.rand(5, device="musa").ge(2))
    graph.replay()  # whatever device is current
    torch.musa.synchronize(device)
    assert y.device.index == device and y.tolist() == [2.0] * 5


def test_another_thread_may_work_meanwhile_where_the_mode_allows_it(run_python):
    run_python(
        """
        import threading, torch
        x = torch.ones(5, device="musa")
        torch.rand(1, device="musa")
        graph = torch.musa.MUSAGraph()
        result = []
        def work():
            with torch.musa.stream(torch.musa.Stream()):
                y = torch.ones(20 << 20, dtype=torch.uint8, device="musa")  # a segment of its own
                torch.rand(3, device="musa")
                result.append(int(y.sum().item()))
        with torch.musa.graph(graph, capture_error_mode="thread_local"):
            y = x + 1
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            z = y * 2
        assert result == [20 << 20], result
        graph.replay()
        assert z.tolist() == [4.0] * 5
        """
    )


def test_graphs_without_the_caching_allocator(run_python):
    run_python(
        """
        import torch
        x = torch.ones(1000, device="musa")
        graph = torch.musa.MUSAGraph()
        with torch.musa.graph(graph):
            y = ((x + 1) * 2 - 3).relu()
        others = [torch.zeros(1000, device="musa") for _ in range(5)]
        x.fill_(5)
        graph.replay()
        assert y.sum().item() == 9000 and all(o.sum().item() == 0 for o in others)
        """,
        PYTORCH_NO_MUSA_MEMORY_CACHING="1",
    )


@pytest.mark.skipif(not hasattr(torch.accelerator, "Graph"), reason="torch.accelerator.Graph came with PyTorch 2.12")
def test_torch_accelerator_graph_is_this_devices():
    x = torch.zeros(100, device="musa")
    graph = torch.accelerator.Graph()
    with torch.Stream("musa"), graph:
        x.add_(torch.rand(100, device="musa"))
    torch.musa.manual_seed(2)
    graph.replay()
    torch.musa.manual_seed(2)
    torch.musa.synchronize()
    assert torch.equal(x, torch.rand(100, device="musa"))


# ---- make_graphed_callables


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)).to("musa")


def train(call, parameters, batches, accumulate=1):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    losses = []
    for i, batch in enumerate(batches):
        loss = call(batch).square().mean()
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_graphed_module_trains_as_the_module_does(accumulate):
    batches = torch.randn(8, 5, 6, device="musa")
    eager = network()
    expected = train(eager, eager.parameters(), batches, accumulate)
    net = network()
    graphed = torch.musa.make_graphed_callables(net, (batches[0].clone(),))
    assert graphed is net
    assert train(graphed, net.parameters(), batches, accumulate) == expected
    net.eval()
    eager.eval()
    odd = torch.randn(2, 6, device="musa")  # another shape: in the other mode the module itself runs
    assert torch.equal(net(odd), eager(odd))


def test_graphed_functions_in_a_row_and_gradients_of_inputs():
    def first(x, w):
        return (x * w).sin()

    def second(x):
        return x.exp(), x.detach() + 1

    x = torch.randn(7, device="musa", requires_grad=True)
    w = torch.randn(7, device="musa")
    hidden = torch.randn(7, device="musa", requires_grad=True)
    one, two = torch.musa.make_graphed_callables((first, second), ((x, w), (hidden,)))
    for _ in range(3):
        a = torch.randn(7, device="musa", requires_grad=True)
        b = torch.randn(7, device="musa")
        value, plain = two(one(a, b))
        value.sum().backward()
        twin = a.detach().clone().requires_grad_()
        expected, expected_plain = second(first(twin, b))
        expected.sum().backward()
        assert torch.equal(value, expected) and torch.equal(plain, expected_plain)
        assert not plain.requires_grad
        torch.testing.assert_close(a.grad, twin.grad)


def test_what_cannot_be_graphed_is_refused():
    x = torch.ones(2, 6, device="musa")
    with pytest.raises(TypeError, match="tensors only"):
        torch.musa.make_graphed_callables(lambda a, n: a * n, (x, 3))
    hooked = network()
    hooked.register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="hooks"):
        torch.musa.make_graphed_callables(hooked, (x,))
    with (
        torch.autocast("musa", dtype=torch.float16),
        pytest.raises(RuntimeError, match="cache_enabled"),
    ):
        torch.musa.make_graphed_callables(network(), (x,))


def test_a_deep_copy_of_training_state_is_not_needed_for_a_second_graph():
    # Two graphs of one network, one for each batch size, with a pool in common.
    net = network().eval()
    pool = torch.musa.graph_pool_handle()
    sizes = {}
    with torch.no_grad():
        for size in (2, 8):
            place = torch.zeros(size, 6, device="musa")
            sizes[size] = (*captured(lambda place=place: net(place), pool=pool), place)
        for size in (8, 2, 8):
            graph, out, place = sizes[size]
            batch = torch.randn(size, 6, device="musa")
            place.copy_(batch)
            graph.replay()
            assert torch.equal(out, copy.deepcopy(net)(batch))
