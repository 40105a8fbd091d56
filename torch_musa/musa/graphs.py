"""Graphs: work that is captured once and replayed, with torch.cuda's names and rules."""

from __future__ import annotations

import gc
from types import TracebackType
from typing import ClassVar

import torch

from torch_musa import _backend
from torch_musa.musa.device import current_device, synchronize
from torch_musa.musa.memory import _host_empty_cache, empty_cache
from torch_musa.musa.streams import Stream, StreamContext

_C = _backend.extension()

PoolHandle = tuple[int, int]


def is_current_stream_capturing() -> bool:
    """Whether a graph of the current stream's work is being captured. False, and no more, before the first use."""
    return bool(_C._is_current_stream_capturing())


def graph_pool_handle() -> PoolHandle:
    """A token for a memory pool that graphs may share: pass it as `pool` to their captures."""
    return _C._graph_pool_handle()  # type: ignore[no-any-return]


class MUSAGraph(_C._MUSAGraph):  # type: ignore[name-defined, misc]
    """Work of a stream, captured once and replayed any number of times at the same addresses.

    What is allocated inside the capture comes from a private memory pool, which lives as long as the graph (or as any
    other that shares it) and goes back to the device with `torch.musa.empty_cache` after that. Copy new inputs into
    the tensors that the capture read, and read results from those it wrote. Random operators draw fresh numbers on
    each replay: those that they would have drawn if they had run instead of the graph.

    Args:
        keep_graph: keep the captured graph for `raw_musa_graph`; the first replay, or `instantiate`, makes it ready.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        super().__init__(keep_graph)

    def capture_begin(self, pool: PoolHandle | None = None, capture_error_mode: str = "global") -> None:
        """Captures what the current stream is given from now on. Most programs use `torch.musa.graph` instead.

        Args:
            pool: share this pool, of `graph_pool_handle()` or another graph's `pool()`. The graphs must then be
                replayed in the order of their captures, never at the same time.
            capture_error_mode: whose unsafe calls (an allocation outside the graph) are errors meanwhile: "global",
                every thread's; "thread_local", the capturing thread's; "relaxed", nobody's.

        Raises:
            RuntimeError: on the default stream, or when this object holds a graph.
        """
        super().capture_begin(pool=pool, capture_error_mode=capture_error_mode)

    def capture_end(self) -> None:
        """Ends the capture.

        Raises:
            RuntimeError: something that may not be done during a capture has invalidated it. Stream and memory are
                as before the capture, and another one may begin.
        """
        super().capture_end()

    def instantiate(self) -> None:
        """Makes a graph that was captured with keep_graph=True ready for replay."""
        super().instantiate()

    def replay(self) -> None:
        """Enqueues the graph's work on the current stream."""
        super().replay()

    def reset(self) -> None:
        """Forgets the graph and leaves its pool; the object may capture again."""
        super().reset()

    def pool(self) -> PoolHandle:
        """The token of this graph's pool, for other graphs to share."""
        return super().pool()  # type: ignore[no-any-return]

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Accepted for code that was written for torch.cuda: every musa generator that draws in a capture is known."""
        super().register_generator_state(generator)

    def enable_debug_mode(self) -> None:
        """Keeps what `debug_dump` shows; call it before the capture."""
        super().enable_debug_mode()

    def debug_dump(self, debug_path: str) -> None:
        """Writes the graph's nodes and their types to a Graphviz file."""
        super().debug_dump(str(debug_path))

    def raw_musa_graph(self) -> int:
        """The runtime's musaGraph_t; needs keep_graph=True."""
        return int(super().raw_musa_graph())

    def raw_musa_graph_exec(self) -> int:
        """The runtime's musaGraphExec_t; 0 before it is instantiated."""
        return int(super().raw_musa_graph_exec())


class graph:
    """Context manager: the work inside is captured into `musa_graph` instead of being run.

    >>> g = torch.musa.MUSAGraph()
    >>> with torch.musa.graph(g):
    ...     y = model(x)
    >>> x.copy_(batch)
    >>> g.replay()  # y holds the result for the batch

    Run the work a few times on another stream before (kernels are loaded and workspaces made then). Inside, whatever
    waits for the device (item(), cpu(), synchronize) raises and invalidates the capture.

    Args:
        musa_graph: the graph.
        pool, capture_error_mode: as MUSAGraph.capture_begin takes them.
        stream: the stream of the capture (default: one that is kept for that).
    """

    _streams: ClassVar[dict[int, Stream]] = {}

    def __init__(
        self,
        musa_graph: MUSAGraph,
        pool: PoolHandle | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if stream is None:
            device = current_device()
            stream = self._streams.get(device) or self._streams.setdefault(device, Stream(device))
        self.musa_graph = musa_graph
        self.capture_stream = stream
        self._pool = pool
        self._mode = capture_error_mode
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        synchronize(self.capture_stream.device_index)
        if getattr(torch.compiler.config, "force_cudagraph_gc", False):
            gc.collect()
        # What is cached is of no use to the graph, whose memory is its own.
        empty_cache()
        _host_empty_cache()
        self._context.__enter__()
        try:
            self.musa_graph.capture_begin(pool=self._pool, capture_error_mode=self._mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.musa_graph.capture_end()
        except RuntimeError:
            # An error inside says what broke the capture; that it is broken is only the consequence.
            if error is None:
                raise
        finally:
            self._context.__exit__(kind, error, traceback)
