"""Operators without a kernel: they run on the CPU, and say so."""

from __future__ import annotations

import warnings

import pytest
import torch

# Operators that have no entry in the operator list; should one get its kernel, name another here.
UNLISTED = torch.special.i1e
UNLISTED_NAME = "special_i1e.out"


@pytest.fixture(autouse=True)
def fresh_counts():
    torch.musa.reset_fallback_counts()


def test_result_is_the_cpus_and_calls_are_counted():
    x = torch.linspace(-2, 2, 11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            y = UNLISTED(x.to("musa"))
    assert y.device.type == "musa" and torch.equal(y.cpu(), UNLISTED(x))
    counts = torch.musa.fallback_counts()
    assert sum(count for op, count in counts.items() if op.startswith("special_i1e")) == 3
    torch.musa.reset_fallback_counts()
    assert torch.musa.fallback_counts() == {}


def test_one_warning_for_each_operator(run_python):
    done = run_python(
        """
        import torch
        x = torch.ones(3, device="musa")
        for _ in range(3):
            torch.special.i1e(x)
            torch.special.i0e(x)
        """
    )
    assert done.stderr.count("'special_i1e") == 1
    assert done.stderr.count("'special_i0e") == 1
    assert "runs on the CPU" in done.stderr and "fallback_counts" in done.stderr


def test_forbidden(run_python):
    done = run_python(
        """
        import torch
        x = torch.ones(3, device="musa")
        try:
            torch.special.i1e(x)
        except NotImplementedError as error:
            print(error)
        assert (x + 1).sum().item() == 6  # the device goes on
        assert torch.musa.fallback_counts() == {}
        """,
        TORCH_MUSA_FALLBACK="error",
    )
    assert "'special_i1e" in done.stdout and "TORCH_MUSA_FALLBACK=error" in done.stdout
    assert "musa_functions.yaml" in done.stdout


def test_in_place_and_out_forms():
    x = torch.linspace(0.5, 2, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = torch.empty(0, device="musa")
        torch.special.i1e(x.to("musa"), out=out)
    assert torch.equal(out.cpu(), torch.special.i1e(x))


def test_random_operators_do_not_fall_back():
    with pytest.raises(NotImplementedError, match="draws random numbers"):
        torch.poisson(torch.ones(3, device="musa"))


def test_gradients_flow_through_a_fallback():
    x = torch.linspace(0.5, 2, 5)
    mine, theirs = x.to("musa").requires_grad_(), x.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.special.entr(mine).sum().backward()
        torch.special.entr(theirs).sum().backward()
    assert torch.allclose(mine.grad.cpu(), theirs.grad)
