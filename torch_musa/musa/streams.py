"""Streams and events: torch.Stream and torch.Event, with the constructors and extras of torch.cuda's."""

from __future__ import annotations

from typing import Any

import torch

from torch_musa import _backend
from torch_musa.musa._utils import Device, _get_device_index
from torch_musa.musa.device import device as device_context

_C = _backend.extension()


class Stream(torch.Stream):
    """A queue of work on one device.

    Args:
        device: the device (default: the current one).
        priority: 0, or negative for a stream whose work runs ahead of others'.
        stream_id, device_index, device_type: an existing stream, as `pack` of another Stream names it.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Stream:
        if kwargs:
            return super().__new__(cls, **kwargs)
        index = _get_device_index(device, optional=True)
        return super().__new__(cls, torch.device(_backend.DEVICE, index), priority=priority)

    def _packed(self) -> tuple[int, int, int]:
        return self.stream_id, self.device_index, self.device_type

    @property
    def musa_stream(self) -> int:
        """The runtime's handle (musaStream_t) as an integer; 0 is the device's default stream."""
        return int(_C._stream_handle(*self._packed()))

    @property
    def priority(self) -> int:
        """0, or negative for a stream whose work runs ahead of others'."""
        return int(_C._stream_priority(*self._packed()))

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Records `event` (default: a new one) after the work enqueued so far, and returns it."""
        if event is None:
            event = Event()
        event.record(self)
        return event

    def __repr__(self) -> str:
        return f"<torch.musa.Stream device={self.device} musa_stream={self.musa_stream:#x}>"


class ExternalStream(Stream):
    """A stream made elsewhere, given by its handle. It must outlive this object."""

    def __new__(cls, stream_ptr: int, device: Device = None, **kwargs: Any) -> ExternalStream:
        packed = _C._external_stream(stream_ptr, _get_device_index(device, optional=True))
        return super().__new__(cls, **_named(packed))  # type: ignore[return-value]


class Event(torch.Event):
    """A marker in a stream.

    Args:
        enable_timing: whether elapsed_time may be asked of it.
        blocking: whether `synchronize` sleeps instead of spinning.
        interprocess: not supported yet.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        return super().__new__(
            cls, _backend.DEVICE, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )

    def wait(self, stream: torch.Stream | None = None) -> None:
        """Makes later work on `stream` (default: the current one) wait for the event."""
        super().wait(current_stream() if stream is None else stream)

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Milliseconds from this event to `end_event`; both must be recorded, with timing, and have completed."""
        # torch.Event's own method refuses subclasses as its argument.
        return float(_C._event_elapsed_time(self.event_id, end_event.event_id))

    def record(self, stream: torch.Stream | None = None) -> None:
        """Records the event in `stream` (default: the current one)."""
        super().record(current_stream() if stream is None else stream)


def _named(packed: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(("stream_id", "device_index", "device_type"), packed, strict=True))


def current_stream(device: Device = None) -> Stream:
    """The calling thread's stream on `device` (default: the current device)."""
    return Stream(**_named(_C._current_stream(_get_device_index(device, optional=True))))


def default_stream(device: Device = None) -> Stream:
    """The default stream of `device` (default: the current device)."""
    return Stream(**_named(_C._default_stream(_get_device_index(device, optional=True))))


def set_stream(stream: torch.Stream | None) -> None:
    """Makes `stream` the calling thread's stream, and its device current. None changes nothing."""
    if stream is None:
        return
    _C._set_device(stream.device_index)
    _C._set_stream(stream.stream_id, stream.device_index, stream.device_type)


class StreamContext:
    """Makes a stream, and its device, current inside a block; see `stream`."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._device = device_context(self.stream.device_index)
        self._before = current_stream(self.stream.device_index)
        self._device.__enter__()
        set_stream(self.stream)

    def __exit__(self, *exc_info: object) -> None:
        if self.stream is None:
            return
        set_stream(self._before)
        self._device.__exit__(*exc_info)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context manager: work inside goes to `stream`. None changes nothing."""
    return StreamContext(stream)
