"""Every operator that kernels of our own compute, with a few small operands each: what compute-sanitizer looks at.

    compute-sanitizer --error-exitcode 9 --tool racecheck python tests/gpu/sanitize.py \\
        [--cases N] [--seconds S] [--only TEXT] [--part I/N]

Those are the operators of kernels/ported, and the few for which muDNN's stand-in has a kernel (sdk/cuda/mudnn/*.cu).

Whether values are right is for tests/ops; here a wrong one is a line of output. Exit code: 2 where an operator could
not be run at all; else 0, and the sanitizer has its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import torch

import torch_musa  # noqa: F401  (says what to do when nothing is built)
from opgen.testing import check_overload

STAND_INS = (
    *("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "abs.out", "relu", "sum.dim_IntList", "mean.dim"),
    *("add.out", "add_.Tensor", "sub.out", "native_dropout", "native_dropout_backward"),
)
"""Overloads whose kernel is a .cu of the stand-in, or one of kernels/ported for some of their operands."""


def dropouts() -> None:
    """Ends and beginnings that no pack of elements fits, in every type; sums of two widths."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for start, count in ((0, 1), (0, 17), (1, 1000), (3, 4099), (0, 70_000)):
            x = torch.ones(start + count, dtype=dtype, device="musa")[start:]
            out, mask = torch.native_dropout(x, 0.3, True)
            torch.ops.aten.native_dropout_backward(out, mask, 2.0)
            x + torch.ones(start + count, device="musa")[start:]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=3, help="operands tried of each overload")
    parser.add_argument("--seconds", type=float, default=3600, help="after which the rest is left out, and counted")
    parser.add_argument("--only", default="", metavar="TEXT", help="overloads whose name contains it")
    parser.add_argument(
        "--part", default=(1, 1), metavar="I/N", type=_part, help="the I-th of N parts, for several GPUs"
    )
    arguments = parser.parse_args(words)
    end = time.monotonic() + arguments.seconds
    table = torch.musa.op_table()
    names = [op for op in sorted(table) if table[op].get("family") == "ported" or op in STAND_INS]
    first, step = arguments.part
    ours = [op for op in names if arguments.only in op][first - 1 :: step]
    done, differ, broken = 0, 0, 0
    for op in ours:
        if time.monotonic() > end:
            break
        try:
            check_overload(op, count=arguments.cases, shrink=False)
        except (AssertionError, LookupError) as error:
            differ += 1
            print(f"{op}: {str(error).splitlines()[0]}", flush=True)
        except RuntimeError as error:
            broken += 1
            print(f"{op}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
        done += 1
    if first == 1 and arguments.only in "dropout":
        dropouts()
    torch.musa.synchronize()
    left = len(ours) - done
    print(f"{done} overloads run, {differ} gave other values, {broken} did not run, {left} left for lack of time")
    return 2 if broken or not done else 0


def _part(text: str) -> tuple[int, int]:
    first, _, count = text.partition("/")
    if not (first.isdecimal() and count.isdecimal() and 1 <= int(first) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r}: the second of four parts is 2/4")
    return int(first), int(count)


if __name__ == "__main__":
    sys.exit(main())
