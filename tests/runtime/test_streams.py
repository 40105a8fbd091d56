"""Streams: torch.Stream's interface, the pool, and which stream is current."""

from __future__ import annotations

import threading

import pytest
import torch


@pytest.mark.needs("two devices")
def test_default_stream_is_current():
    assert torch.musa.current_stream() == torch.musa.default_stream()
    assert torch.musa.current_stream().musa_stream == 0
    assert torch.musa.default_stream("musa:1").device == torch.device("musa:1")


@pytest.mark.needs("two devices")
def test_new_streams_differ_and_belong_to_their_device():
    a, b = torch.musa.Stream(), torch.musa.Stream()
    assert a != b and a.musa_stream != b.musa_stream != 0
    assert torch.musa.Stream(device="musa:1").device.index == 1
    assert isinstance(a, torch.Stream)


def test_priority():
    assert torch.musa.Stream().priority == 0
    assert torch.musa.Stream(priority=-1).priority < 0


def test_the_pool_wraps_around():
    streams = [torch.musa.Stream() for _ in range(33)]
    assert streams[0] == streams[32]
    assert len(set(streams)) == 32


def test_stream_context():
    s = torch.musa.Stream()
    with torch.musa.stream(s):
        assert torch.musa.current_stream() == s
        assert torch.accelerator.current_stream() == s
        with torch.musa.stream(None):
            assert torch.musa.current_stream() == s
    assert torch.musa.current_stream() == torch.musa.default_stream()


@pytest.mark.needs("two devices")
def test_stream_context_switches_the_device_and_restores_both():
    mine = torch.musa.Stream(device=0)
    torch.musa.set_stream(mine)
    other = torch.musa.Stream(device=1)
    with torch.musa.stream(other):
        assert torch.musa.current_device() == 1
        assert torch.musa.current_stream() == other
        assert torch.musa.current_stream(0) == mine
    assert torch.musa.current_device() == 0
    assert torch.musa.current_stream() == mine
    assert torch.musa.current_stream(1) == torch.musa.default_stream(1)


def test_streams_as_context_managers():
    s = torch.musa.Stream()
    with s:
        assert torch.musa.current_stream() == s
    assert torch.musa.current_stream() == torch.musa.default_stream()


def test_work_on_a_side_stream():
    s = torch.musa.Stream()
    x = torch.ones(1000, device="musa")
    s.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(s):
        y = x + 1
    torch.musa.current_stream().wait_stream(s)
    assert (y * 2).sum().item() == 4000
    s.synchronize()
    assert s.query()


def test_streams_are_per_thread():
    torch.musa.set_stream(torch.musa.Stream())
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.musa.current_stream()))
    thread.start()
    thread.join()
    assert seen == [torch.musa.default_stream()]


def test_external_stream():
    s = torch.musa.Stream()
    same = torch.musa.ExternalStream(s.musa_stream)
    assert same.musa_stream == s.musa_stream
    with torch.musa.stream(same):
        assert torch.ones(3, device="musa").sum().item() == 3


def test_stream_of_a_device_that_is_not_there():
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.musa.Stream(device="musa:7")


def test_no_capture():
    assert torch.musa.is_current_stream_capturing() is False


@pytest.mark.needs("two devices")
def test_synchronize_accepts_every_spelling():
    for device in (None, 0, "musa", "musa:1", torch.device("musa:1")):
        torch.musa.synchronize(device)
    with pytest.raises(ValueError, match="Expected a musa device"):
        torch.musa.synchronize("cpu")
