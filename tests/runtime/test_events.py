"""Events: order between streams, completion, time."""

from __future__ import annotations

import pytest
import torch


def test_unrecorded_event_is_done():
    event = torch.musa.Event()
    assert event.query()
    event.synchronize()
    event.wait()


def test_record_and_wait_across_streams():
    a, b = torch.musa.Stream(), torch.musa.Stream()
    with torch.musa.stream(a):
        x = torch.full((100,), 3.0, device="musa")
        event = a.record_event()
    b.wait_event(event)
    with torch.musa.stream(b):
        assert x.sum().item() == 300
    event.synchronize()
    assert event.query()
    assert isinstance(event, torch.musa.Event)


def test_record_on_the_current_stream_by_default():
    s = torch.musa.Stream()
    event = torch.musa.Event()
    with torch.musa.stream(s):
        event.record()
    event.wait(torch.musa.default_stream())
    s.synchronize()
    assert event.query()


def test_elapsed_time_in_milliseconds():
    start, end = torch.musa.Event(enable_timing=True), torch.musa.Event(enable_timing=True)
    start.record()
    x = torch.ones(256, 256, device="musa")
    for _ in range(20):
        x = x @ x * 1e-3
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 60_000
    assert end.elapsed_time(start) < 0


def test_elapsed_time_needs_timing():
    start, end = torch.musa.Event(), torch.musa.Event()
    start.record()
    end.record()
    with pytest.raises((RuntimeError, ValueError)):
        start.elapsed_time(end)


def test_elapsed_time_needs_records():
    start, end = torch.musa.Event(enable_timing=True), torch.musa.Event(enable_timing=True)
    start.record()
    with pytest.raises((RuntimeError, ValueError)):
        start.elapsed_time(end)


@pytest.mark.needs("two devices")
def test_event_stays_on_its_device():
    event = torch.musa.Event()
    event.record(torch.musa.default_stream(0))
    with pytest.raises(RuntimeError, match="does not match"):
        event.record(torch.musa.default_stream(1))
    event.wait(torch.musa.default_stream(1))  # waiting may cross devices


def test_generic_event():
    event = torch.Event("musa")
    event.record(torch.musa.current_stream())
    event.synchronize()
    assert event.query()
