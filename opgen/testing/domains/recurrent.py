"""LSTM and GRU cells, which the CPU has no kernels of: what they compute, in plain PyTorch.

Gates lie side by side in rows of gates * hidden, in the order that torch.nn.LSTM and torch.nn.GRU document for their
weights. The saved results have the layout of PyTorch's CUDA kernels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Build, Domain
from opgen.testing.case import TensorSpec
from opgen.testing.domains.layers import SMALL
from opgen.testing.tensors import FLOATING

Arguments = dict[str, Any]


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _check(gates: int, tensors: list[Tensor], state: Tensor, biases: list[Tensor | None]) -> None:
    wanted = (state.size(0), gates * state.size(1))
    if any(tuple(tensor.shape) != wanted for tensor in tensors):
        raise RuntimeError(f"gates must have sizes {wanted}")
    if len({bias is None for bias in biases}) == 2:
        raise RuntimeError("needs both biases or none")


def _biased(gates: Tensor, bias: Tensor | None) -> Tensor:
    wide = _wide(gates.dtype)
    return gates.to(wide) if bias is None else gates.to(wide) + bias.to(wide)


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """New hidden state, new cell state, activated gates."""
    _check(4, [input_gates, hidden_gates], cx, [input_bias, hidden_bias])
    total = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    i, f, g, o = total.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx.to(total.dtype) + i * g
    saved = torch.cat([i, f, g, o], 1)
    return (o * cy.tanh()).to(cx.dtype), cy.to(cx.dtype), saved.detach().to(cx.dtype)


def lstm_cell_backward(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of the gates, the old cell state and a bias."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    wide = _wide(cx.dtype)
    i, f, g, o = workspace.to(wide).chunk(4, 1)
    of_h = torch.zeros_like(i) if grad_hy is None else grad_hy.to(wide)
    of_c = torch.zeros_like(i) if grad_cy is None else grad_cy.to(wide)
    squashed = cy.to(wide).tanh()
    state = of_c + of_h * o * (1 - squashed**2)
    parts = [
        state * g * i * (1 - i),
        state * cx.to(wide) * f * (1 - f),
        state * i * (1 - g**2),
        of_h * squashed * o * (1 - o),
    ]
    gates = torch.cat(parts, 1).to(cx.dtype)
    return gates, (state * f).to(cx.dtype), gates.sum(0) if has_bias else None


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """New state, and what the gradient needs: reset, update, new, the old state, the new gate's hidden part."""
    _check(3, [input_gates, hidden_gates], hx, [input_bias, hidden_bias])
    from_input = _biased(input_gates, input_bias).chunk(3, 1)
    from_hidden = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    reset, update = (from_input[0] + from_hidden[0]).sigmoid(), (from_input[1] + from_hidden[1]).sigmoid()
    new = (from_input[2] + reset * from_hidden[2]).tanh()
    state = hx.to(new.dtype)
    saved = torch.cat([reset, update, new, state, from_hidden[2]], 1)
    return ((1 - update) * new + update * state).to(hx.dtype), saved.detach().to(hx.dtype)


def gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Gradients of both kinds of gates, the old state, and both biases."""
    wide = _wide(grad_hy.dtype)
    reset, update, new, state, from_hidden = workspace.to(wide).chunk(5, 1)
    grad = grad_hy.to(wide)
    of_new = grad * (1 - update) * (1 - new**2)
    of_update = grad * (state - new) * update * (1 - update)
    of_reset = of_new * from_hidden * reset * (1 - reset)
    of_input = torch.cat([of_reset, of_update, of_new], 1).to(grad_hy.dtype)
    of_hidden = torch.cat([of_reset, of_update, of_new * reset], 1).to(grad_hy.dtype)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, (grad * update).to(grad_hy.dtype), *biases


def _prepare_cell(build: Build, gates: int, state: str) -> Arguments:
    batch, hidden = build.size(0, 4), build.size(1, 5)
    width = gates * hidden
    # one case in twelve does not fit
    wrong = width + 1 if build.maybe(12) else width
    with_bias = build.flag()
    return {
        "input_gates": build.tensor((batch, width), of=SMALL),
        "hidden_gates": build.tensor((batch, wrong), of=SMALL),
        state: build.tensor((batch, hidden), of=SMALL),
        "input_bias": build.tensor((width,), of=SMALL) if with_bias else None,
        "hidden_bias": build.tensor((width,), of=SMALL) if with_bias and not build.maybe(12) else None,
    }


def _values(build: Build, batch: int, hidden: int, gates: int) -> list[Tensor]:
    return [
        build.tensor((batch, width), of=SMALL, expand=False).value for width in (gates * hidden, gates * hidden, hidden)
    ]


def _prepare_lstm_backward(build: Build) -> Arguments:
    batch, hidden = build.size(0, 4), build.size(1, 5)
    input_gates, hidden_gates, cx = _values(build, batch, hidden, 4)
    _, cy, workspace = lstm_cell(input_gates, hidden_gates, cx)

    def gradient() -> TensorSpec | None:
        return None if build.maybe(4) else build.tensor((batch, hidden), of=SMALL)

    return {
        "grad_hy": gradient(),
        "grad_cy": gradient(),
        "cx": build.lay_out(cx),
        "cy": build.lay_out(cy),
        "workspace": build.lay_out(workspace),
        "has_bias": build.flag(),
    }


def _prepare_gru_backward(build: Build) -> Arguments:
    batch, hidden = build.size(0, 4), build.size(1, 5)
    _, workspace = gru_cell(*_values(build, batch, hidden, 3))
    return {
        "grad_hy": build.tensor((batch, hidden), of=SMALL),
        "workspace": build.lay_out(workspace),
        "has_bias": build.flag(),
    }


TABLE = {
    "_thnn_fused_lstm_cell": Domain(
        prepare=lambda build: _prepare_cell(build, 4, "cx"), reference=lstm_cell, dtypes=FLOATING, accumulates=True
    ),
    "_thnn_fused_lstm_cell_backward_impl": Domain(
        prepare=_prepare_lstm_backward, reference=lstm_cell_backward, dtypes=FLOATING, accumulates=True
    ),
    "_thnn_fused_gru_cell": Domain(
        prepare=lambda build: _prepare_cell(build, 3, "hx"), reference=gru_cell, dtypes=FLOATING, accumulates=True
    ),
    "_thnn_fused_gru_cell_backward": Domain(
        prepare=_prepare_gru_backward, reference=gru_cell_backward, dtypes=FLOATING, accumulates=True
    ),
}
