"""The process that alone.py starts: python -m side_by_side.native DEVICE. Ends with its standard input."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from side_by_side.cases import FULL, TINY, all_cases
from side_by_side.explain import launched
from side_by_side.measure import Call, Side, exact, take_steps


class Native:
    """What it can be asked to do, by name."""

    def __init__(self, device: str) -> None:
        self.side = Side(device)
        self.cases = {case.key: case for case in all_cases(TINY if device == "cpu" else FULL)}
        self.call: Call | None = None

    def begin(self, case: str) -> None:
        self.call = self.cases[case].call(self.side.device)

    def first(self) -> float:
        return float(self._call()())  # type: ignore[arg-type]

    def sample(self, count: int) -> float:
        return take_steps(self.side, self._call(), count)

    def explain(self, case: str, most: int | None) -> dict[str, Any]:
        found = launched(self.cases[case], self.side, most)
        self.end()
        return asdict(found)

    def end(self) -> None:
        self.call = None
        gc.collect()
        self.side.synchronize()
        self.side.release()

    def _call(self) -> Call:
        if self.call is None:
            raise RuntimeError("no case was begun")
        return self.call


def answer(native: Native, request: dict[str, Any]) -> dict[str, Any]:
    do: Callable[..., Any] = getattr(native, request.pop("do"))
    try:
        return {"is": do(**request)}
    except Exception as error:
        return {"failed": " ".join(str(error).split()) or type(error).__name__}


def main(device: str) -> None:
    # What libraries print must not come between the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    exact()
    if device == "cpu":
        torch.set_num_threads(1)  # as side_by_side.worker
    native = Native(device)
    for line in sys.stdin:
        print(json.dumps(answer(native, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
