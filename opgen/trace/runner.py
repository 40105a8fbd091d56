"""Runs a script as `python script.py` would, counting its operators; executed by `opgen trace` in a process of its own.

    python -m opgen.trace.runner REPORT DEVICE (script|module) TARGET [ARGUMENT ...]

The script finds itself as `__main__`, with its own arguments and folder on the path. Exit status, exceptions and
output are the script's. When it ends, by whatever exception, REPORT is written; a process that it forks writes none.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from opgen.trace.calls import Calls, Trace

__all__ = ["NO_DEVICE", "NO_MODULE", "main"]

NO_DEVICE = 97
"""Exit status where the device is not there; REPORT then says why."""

NO_MODULE = 96
"""Exit status where there is no module of that name; REPORT then says what is missing."""

_BLOCKING = "MUSA_LAUNCH_BLOCKING"


def main(arguments: list[str]) -> None:
    """Run what the arguments say and leave as it leaves."""
    report, device, kind, target, *rest = arguments
    owner = os.getpid()
    module = _device_module(device, report)
    sys.argv = [target, *rest]
    sys.path[0] = str(Path.cwd()) if kind == "module" else str(Path(target).resolve().parent)
    missing = _missing(target) if kind == "module" else None
    if missing is not None:
        Path(report).write_text(missing, encoding="utf-8")
        raise SystemExit(NO_MODULE)
    error: BaseException | None = None
    started = time.perf_counter()
    with module.count_ops() as counts:
        try:
            if kind == "module":
                runpy.run_module(target, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(target, run_name="__main__")
            _join_threads()
        except BaseException as caught:
            error = caught
    seconds = time.perf_counter() - started
    if os.getpid() == owner:
        Path(report).write_text(_trace(counts, seconds, error).to_json(), encoding="utf-8")
    _leave(error)


def _missing(name: str) -> str | None:
    """What `python -m name` would lack; None where it finds something, or fails in another way, which it then shows."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            main = importlib.util.find_spec(f"{name}.__main__")
            return None if main is not None else f"'{name}' is a package without a module __main__ to run"
    except ModuleNotFoundError as error:
        own = error.name is not None and f"{name}.".startswith(f"{error.name}.")
        return f"no module named '{error.name}'" if own else None
    except Exception:
        return None
    return f"no module named '{name}'" if spec is None else None


def _device_module(device: str, report: str) -> Any:
    """torch's module for the device, which its backend registers when torch is imported."""
    import torch

    module = getattr(torch, device, None)
    if not hasattr(module, "count_ops"):
        try:
            torch.empty(0, device=device)
            why = f"torch.{device} cannot count operators"
        except Exception as caught:
            why = str(caught).splitlines()[0]
        Path(report).write_text(why, encoding="utf-8")
        raise SystemExit(NO_DEVICE)
    return module


def _trace(counts: Any, seconds: float, error: BaseException | None) -> Trace:
    import torch

    failed = error is not None and not isinstance(error, SystemExit)
    return Trace(
        torch=str(torch.__version__),
        seconds=seconds,
        blocking=os.environ.get(_BLOCKING, "1") != "0",
        ops={
            op: Calls(
                calls=counts[op],
                seconds=counts.seconds(op),
                family=counts.family(op),
                on_cpu=counts.fallbacks(op),
                dtypes={str(dtype).removeprefix("torch."): calls for dtype, calls in counts.dtypes(op).items()},
            )
            for op in counts
        },
        error=f"{type(error).__name__}: {error}" if failed else None,
    )


def _join_threads() -> None:
    """Wait for the threads that the interpreter would wait for: what they do belongs to the script."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _leave(error: BaseException | None) -> None:
    """End as the interpreter ends a script that raised this."""
    if error is None:
        return
    if isinstance(error, SystemExit):
        raise error
    trace = _own(error.__traceback__)
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _own(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the script's first frame on; None where it has none (a syntax error)."""
    here = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in here:
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    main(sys.argv[1:])
