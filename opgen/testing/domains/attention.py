"""Attention as a backend of its own takes it, without dropout: that is random and tested by name.

The CPU has no such kernel; what it should give is composed here, in float32 as fused kernels compute.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from opgen.testing.build import Build, Domain
from opgen.testing.case import TensorSpec
from opgen.testing.domains.layers import SMALL

Arguments = dict[str, Any]
_HALVES = (torch.float16, torch.bfloat16)


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-1, -2) * scale
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    if bias is None:
        return scores
    return scores.masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else scores + bias


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    """aten::_scaled_dot_product_fused_attention_overrideable without dropout. Shapes as Build made them."""
    groups = query.shape[1] // key.shape[1]
    q, k, v = query.float(), key.float().repeat_interleave(groups, 1), value.float().repeat_interleave(groups, 1)
    scores = _scores(q, k, attn_bias, is_causal, scale)
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - lse.unsqueeze(-1)).masked_fill(lse.isneginf().unsqueeze(-1), 0)
    seed = torch.zeros((), dtype=torch.int64)
    return (weights @ v).to(query.dtype), lse, None, None, query.shape[2], key.shape[2], seed, seed.clone(), None


def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    grad_input_mask: list[bool],
    out: Tensor,
    logsumexp: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Tensor,
    philox_offset: Tensor,
    *,
    scale: float | None = None,
) -> Any:
    """Its gradients by autograd: of query, key and value always, of the bias where it is asked for."""
    wanted = grad_input_mask[3] and attn_bias is not None and attn_bias.dtype != torch.bool
    q, k, v = (t.detach().float().requires_grad_() for t in (query, key, value))
    bias = attn_bias.detach().float().requires_grad_() if wanted and attn_bias is not None else attn_bias
    with torch.enable_grad():
        recomputed = attention(q, k, v, bias, 0.0, is_causal, scale=scale)[0]
    asked = [q, k, v, *([bias] if wanted and bias is not None else [])]
    gradients = torch.autograd.grad(recomputed, asked, grad_out.float())
    return tuple(g.to(query.dtype) for g in gradients) + (() if wanted else (None,))


def _prepare_attention(build: Build) -> Arguments:
    """(N, H, L, E) with a bias that broadcasts, a causal mask, or neither."""
    batch, groups, queries, width = build.size(1, 3), build.size(1, 3), build.size(1, 5), build.pick(8, 1, 4, 7)
    heads = groups * build.pick(1, 1, 2)
    keys, values = build.pick(queries, build.size(1, 6)), build.pick(width, width, 5)
    kind = build.pick("none", "causal", "bias", "mask")
    shape = build.pick((queries, keys), (batch, heads, queries, keys), (batch, 1, 1, keys), (heads, queries, 1))
    bias = None
    if kind == "bias":
        bias = build.tensor(shape)
    elif kind == "mask":
        bias = build.tensor(shape, torch.bool)
    return {
        "query": build.tensor((batch, heads, queries, width)),
        "key": build.tensor((batch, groups, keys, width)),
        "value": build.tensor((batch, groups, keys, values)),
        "attn_bias": bias,
        "dropout_p": 0.0,
        "is_causal": kind == "causal",
        "return_debug_mask": False,
        "scale": build.pick(None, None, 0.5),
    }


def _prepare_attention_backward(build: Build) -> Arguments:
    made = _prepare_attention(build)
    bias = made["attn_bias"]
    query, key, value = (made[name].value for name in ("query", "key", "value"))
    given = None if bias is None else bias.value
    out, lse, *_ = attention(query, key, value, given, is_causal=made["is_causal"], scale=made["scale"])
    differentiable = bias is not None and bias.value.dtype != torch.bool
    seed = torch.zeros((), dtype=torch.int64)
    return {
        **made,
        "grad_out": build.tensor(out.shape, of=SMALL),
        "grad_input_mask": [True, True, True, differentiable and build.flag()],
        "out": TensorSpec.of(out),
        "logsumexp": TensorSpec.of(lse),
        "cum_seq_q": None,
        "cum_seq_k": None,
        "max_q": query.shape[2],
        "max_k": key.shape[2],
        "philox_seed": TensorSpec.of(seed),
        "philox_offset": TensorSpec.of(seed),
    }


TABLE = {
    # private: what dropout drew, of the results that are there
    "_scaled_dot_product_fused_attention_overrideable": Domain(
        prepare=_prepare_attention,
        numbers=SMALL,
        accumulates=True,
        dtypes=_HALVES,
        reference=attention,
        private=frozenset({4, 5}),
    ),
    "_scaled_dot_product_fused_attention_overrideable_backward": Domain(
        prepare=_prepare_attention_backward,
        numbers=SMALL,
        accumulates=True,
        dtypes=_HALVES,
        reference=attention_backward,
        atomic=True,
    ),
}
