"""A sample of the operators under each profile of the stand-in; `make profiles` runs them all, and tests/runtime.

A profile is what a card may be like or how strictly the stand-in watches: an older chip, work that runs later, device
memory out of bounds for the host. Each is a matter of the whole process, so each has one of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"

# One or two operators of each family that a limit, a stream or a stray access can touch.
SAMPLE = (
    *("add.Tensor", "sub_.Tensor", "mul.out", "div.Tensor_mode", "pow.Tensor_Scalar", "exp", "gelu", "lt.Scalar"),
    *("logical_not.out", "bitwise_and.Tensor", "where.self", "clamp", "lerp.Scalar", "addcmul"),
    *("sum.dim_IntList", "prod", "max.dim", "argmax", "var.correction", "any.dim", "cumsum", "_softmax"),
    *("mm", "addmm.out", "bmm", "baddbmm", "dot", "convolution", "max_pool2d_with_indices", "avg_pool2d"),
    *("native_batch_norm", "native_layer_norm", "native_group_norm", "nll_loss_forward"),
    *(
        "sort.stable",
        "topk",
        "gather",
        "scatter.src",
        "index.Tensor",
        "_index_put_impl_",
        "masked_fill.Scalar",
        "nonzero",
    ),
    *("cat", "index_copy", "roll", "triu", "arange.start_out", "uniform_", "_to_copy", "_local_scalar_dense"),
)


def environments() -> dict[str, dict[str, str]]:
    """Profile -> its environment, as the Makefile's target `profiles` sets it."""
    found = re.findall(r"^PROFILE_(\w+) := (.+)$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: dict(pair.split("=", 1) for pair in text.split()) for name, text in found}


def test_the_profiles_are_the_older_chips_and_the_ways_to_watch() -> None:
    assert set(environments()) == {"mp_21", "mp_22", "asynchronous", "protected", "one_device"}


# What only the stand-in on the host can be told. On a GPU calls return at once anyway, memory is out of bounds, and
# devices are counted.
HOSTS_OWN = ("asynchronous", "protected", "one_device")


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(profile, marks=pytest.mark.needs("host") if profile in HOSTS_OWN else ())
        for profile in sorted(environments())
    ],
)
def test_a_sample_of_the_operators_agrees_with_the_cpu_under_the_profile(profile: str) -> None:
    script = f"""
        import torch
        from opgen.testing import check_overload

        torch.set_num_threads(1)
        sample = {SAMPLE!r}
        for op in sample:
            check_overload(op, device="musa", count=4, shrink=False)
        print(len(sample), "agree")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "MUDNN_LOG_LEVEL": "FATAL", **environments()[profile]},
        cwd=MAKEFILE.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == f"{len(SAMPLE)} agree\n", done.stdout + done.stderr
