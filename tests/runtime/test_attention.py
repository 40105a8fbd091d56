"""scaled_dot_product_attention: reaches muDNN where it takes the call, and agrees with the CPU either way."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

FUSED = "_scaled_dot_product_fused_attention_overrideable"
MATH = "_scaled_dot_product_attention_math"
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-9}
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["half", "bfloat16"])

Operands = list[Tensor]


def operands(
    *shape: int, dtype: torch.dtype = torch.float16, keys: int | None = None, values: int | None = None
) -> Any:
    """q, k, v of (N, H, L, E), with as many keys and as wide values as asked for."""
    n, h, length, width = shape or (2, 3, 5, 8)
    k = (n, h, keys or length, width)
    return [torch.randn(s).to(dtype) for s in ((n, h, length, width), k, (*k[:3], values or width))]


def run(
    inputs: Operands, device: str, mask: Tensor | None = None, **options: Any
) -> tuple[Tensor, Operands, list[str]]:
    """The result, the gradients (of the mask, too, where it is no bool) for a fixed cotangent, and what ran."""
    bias = mask is not None and mask.dtype != torch.bool
    leaves = [t.detach().to(device).requires_grad_() for t in (*inputs, *([mask] if bias else []))]
    given = leaves[3] if bias else mask if mask is None else mask.to(device)
    with torch.musa.count_ops() as counts:
        out = F.scaled_dot_product_attention(*leaves[:3], attn_mask=given, **options)
        cotangent = torch.linspace(-1, 1, out.numel()).view(out.shape).to(out.dtype)
        out.backward(cotangent.to(device))
    return out.detach().cpu(), [leaf.grad.cpu() for leaf in leaves], list(counts)


def check(inputs: Operands, fused: bool = True, mask: Tensor | None = None, **options: Any) -> None:
    """Against the CPU in float32 (float64 for itself), which rounds nothing on the way."""
    wide = torch.float64 if inputs[0].dtype == torch.float64 else torch.float32
    wide_mask = mask if mask is None or mask.dtype == torch.bool else mask.to(wide)
    expected, gradients, _ = run([t.to(wide) for t in inputs], "cpu", wide_mask, **options)
    out, found, ran = run(inputs, "musa", mask, **options)
    assert (FUSED in ran, f"{FUSED}_backward" in ran) == (fused, fused), ran
    assert out.dtype == inputs[0].dtype
    for ours, theirs in zip([out, *found], [expected, *gradients], strict=True):
        torch.testing.assert_close(ours.to(wide), theirs, rtol=0, atol=TOLERANCE[inputs[0].dtype] * 2)


@HALVES
@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_reaches_mudnn_and_agrees_with_the_cpu(dtype, causal):
    check(operands(dtype=dtype), is_causal=causal)


@HALVES
def test_bias_and_its_gradient(dtype):
    for shape in ((5, 7), (1, 1, 5, 7), (2, 1, 1, 7), (2, 3, 5, 7), (3, 1, 7), (5, 1), (7,)):
        check(operands(dtype=dtype, keys=7), mask=torch.randn(shape).to(dtype))


def test_bool_masks_and_rows_that_see_nothing():
    mask = torch.rand(2, 1, 5, 7) > 0.4
    mask[0, 0, 2] = False
    check(operands(keys=7), mask=mask)


def test_scale_widths_and_lengths():
    check(operands(), scale=0.7)
    check(operands(keys=9, values=4))
    check(operands(keys=9), is_causal=True)
    check(operands(1, 2, 6, 160))
    check(operands(1, 2, 6, 192, values=128))
    check(operands(1, 1, 1, 1, keys=1))


def test_grouped_heads():
    q, k, v = operands(2, 4, 5, 8)
    check([q, k[:, :2], v[:, :2]], enable_gqa=True)


def test_operands_of_any_strides():
    packed = torch.randn(2, 5, 3, 4, 8).to(torch.float16)  # N, L, three, H, E
    check(list(packed.permute(2, 0, 3, 1, 4).unbind(0)))
    q, k, v = operands()
    check([q.transpose(-1, -2).contiguous().transpose(-1, -2), k[:, :1].expand(-1, 3, -1, -1), v])


def test_a_cotangent_that_is_expanded():
    q, k, v = (t.to("musa").requires_grad_() for t in operands())
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    torch.testing.assert_close(v.grad.sum().cpu().float(), torch.tensor(240.0), rtol=1e-2, atol=0)


@pytest.mark.parametrize(
    "inputs",
    [
        operands(dtype=torch.float32),
        operands(dtype=torch.float64),
        operands(1, 2, 5, 256),
        operands(1, 2, 5, 136),
        operands(2, 3, 0, 8, keys=4),
        [t[0] for t in operands()],
    ],
    ids=["float32", "float64", "256 wide", "136 wide", "no queries", "rank 3"],
)
def test_what_mudnn_does_not_take_stays_on_math(inputs):
    check(inputs, fused=False)


def test_a_mask_of_another_dtype_stays_on_math():
    q, k, v = (t.to("musa") for t in operands())
    bias = torch.randn(5, 5)
    with torch.musa.count_ops() as counts:
        ours = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to("musa"))
    assert FUSED not in counts
    theirs = F.scaled_dot_product_attention(q.cpu(), k.cpu(), v.cpu(), attn_mask=bias)
    torch.testing.assert_close(ours.cpu(), theirs, rtol=0, atol=4e-3)


def test_chips_without_flash_attention_stay_on_math(run_python):
    run_python(
        f"""
        import torch
        q = torch.randn(2, 3, 5, 8).half().to("musa")
        with torch.musa.count_ops() as counts:
            torch.nn.functional.scaled_dot_product_attention(q, q, q)
        assert "{FUSED}" not in counts, counts
        """,
        MUSA_ARCH="mp_21",
    )


def ran(*backends: SDPBackend, dtype: torch.dtype = torch.float16) -> bool:
    q = operands(dtype=dtype)[0].to("musa")
    with sdpa_kernel(list(backends)), torch.musa.count_ops() as counts:
        F.scaled_dot_product_attention(q, q, q)
    return FUSED in counts


def test_the_users_choice_of_backends_holds():
    assert not ran(SDPBackend.MATH)
    assert ran(SDPBackend.OVERRIDEABLE) and ran(SDPBackend.FLASH_ATTENTION)
    assert ran(SDPBackend.MATH, SDPBackend.OVERRIDEABLE)
    with pytest.raises(RuntimeError, match="No viable backend"):
        ran(SDPBackend.OVERRIDEABLE, dtype=torch.float32)
    with pytest.raises(RuntimeError, match="No viable backend"):
        ran(SDPBackend.EFFICIENT_ATTENTION)


def test_forward_mode_and_vmap_stay_on_math():
    q, k, v = (t.to("musa") for t in operands())
    _, tangent = torch.func.jvp(lambda x: F.scaled_dot_product_attention(x, k, v), (q,), (torch.ones_like(q),))
    assert tangent.shape == q.shape
    batched = torch.func.vmap(F.scaled_dot_product_attention)(q[None], k[None], v[None])
    torch.testing.assert_close(batched[0], F.scaled_dot_product_attention(q, k, v), rtol=0, atol=4e-3)


# ---- the operator itself


def fused(*inputs: Tensor, **options: Any) -> Any:
    return torch.ops.aten._scaled_dot_product_fused_attention_overrideable(*inputs, **options)


def test_results_are_those_of_the_schema():
    q, k, v = operands(keys=7)
    out, lse, *starts, max_q, max_k, seed, offset, debug = fused(q.to("musa"), k.to("musa"), v.to("musa"))
    scores = q.float() @ k.float().transpose(-1, -2) / 8**0.5
    torch.testing.assert_close(lse.cpu(), torch.logsumexp(scores, -1))
    assert out.shape == q.shape and starts == [None, None] and debug is None
    assert (max_q, max_k) == (5, 7)
    assert seed.dtype == offset.dtype == torch.int64 and seed.dim() == offset.dim() == 0


def test_the_output_has_the_order_of_query_in_memory():
    q, k, v = (t.to("musa").transpose(1, 2).contiguous().transpose(1, 2) for t in operands(values=4))
    assert fused(q, k, v)[0].transpose(1, 2).is_contiguous()
    assert fused(q, k, k)[0].stride() == q.stride()


def test_nothing_to_attend_to():
    q, k, v = (t.to("musa") for t in operands(keys=4))
    out, lse, *_ = fused(q, k[:, :, :0], v[:, :, :0])
    assert out.eq(0).all().item() and lse.isneginf().all().item()
    assert fused(q[:0], k[:0], v[:0])[0].shape == (0, 3, 5, 8)


def test_refusals_name_the_operator_and_what_is_wrong():
    q, k, v = (t.to("musa") for t in operands())
    with pytest.raises(NotImplementedError, match=f"{FUSED}.*Float"):
        fused(q.float(), k.float(), v.float())
    with pytest.raises(RuntimeError, match="do not fit together"):
        fused(q, k[:1], v[:1])
    with pytest.raises(RuntimeError, match="width 136"):
        fused(*(torch.zeros(1, 1, 2, 136, device="musa", dtype=torch.half) for _ in range(3)))
    with pytest.raises(RuntimeError, match="dropout_p"):
        fused(q, k, v, dropout_p=1.0)
    with pytest.raises(RuntimeError, match="does not broadcast"):
        fused(q, k, v, attn_bias=torch.zeros(4, 5, device="musa", dtype=torch.half))
    with pytest.raises(RuntimeError, match="is_causal"):
        fused(q, k, v, attn_bias=torch.zeros(5, 5, device="musa", dtype=torch.half), is_causal=True)


# ---- dropout


def kept(q: Tensor, p: float, backward: bool = False) -> Tensor:
    """What dropout kept, times 1 / (1 - p): equal weights and values that pick the keys."""
    length = q.size(2)
    value = (
        torch.eye(length, dtype=q.dtype, device="musa").expand(*q.shape[:2], -1, -1).clone().requires_grad_(backward)
    )
    out = F.scaled_dot_product_attention(torch.zeros_like(q), torch.zeros_like(q), value, dropout_p=p)
    if not backward:
        return out * length
    # the gradient for values is the weights' transpose times the cotangent
    out.backward(torch.eye(length, dtype=q.dtype, device="musa").expand_as(out))
    return (out * length).detach(), value.grad.transpose(-1, -2) * length


def test_dropout_follows_the_generator():
    q = torch.zeros(2, 4, 64, 64, dtype=torch.float16, device="musa")
    torch.musa.manual_seed(7)
    first, second = kept(q, 0.25), kept(q, 0.25)
    torch.musa.manual_seed(7)
    assert torch.equal(first, kept(q, 0.25)) and torch.equal(second, kept(q, 0.25))
    assert not torch.equal(first, second)
    # every batch, head and row draws for itself
    flat = first.flatten(0, 2).cpu()
    assert len(torch.unique(flat, dim=0)) == len(flat)
    state = torch.musa.get_rng_state()
    third = kept(q, 0.25)
    torch.musa.set_rng_state(state)
    assert torch.equal(third, kept(q, 0.25))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_its_share_and_the_mean(p):
    torch.musa.manual_seed(3)
    found = kept(torch.zeros(4, 4, 64, 64, dtype=torch.float16, device="musa"), p).float().cpu()
    share = found.ne(0).double().mean().item()
    assert abs(share - (1 - p)) < 5 * (p * (1 - p) / found.numel()) ** 0.5
    torch.testing.assert_close(found[found != 0], torch.full_like(found[found != 0], 1 / (1 - p)), rtol=2e-3, atol=0)


def test_backward_drops_what_forward_dropped():
    torch.musa.manual_seed(5)
    forward, backward = kept(torch.zeros(2, 2, 32, 32, dtype=torch.float16, device="musa"), 0.4, backward=True)
    assert torch.equal(forward != 0, backward != 0)
    assert 0 < forward.ne(0).float().mean().item() < 1


def test_gradients_of_a_dropping_call_agree_with_differences():
    torch.manual_seed(11)
    inputs = [t.to("musa") for t in operands(1, 2, 8, 8)]
    bias = torch.randn(8, 8, dtype=torch.float16, device="musa")
    cotangent = torch.randn(1, 2, 8, 8)

    def loss(*leaves: Tensor) -> Tensor:
        torch.musa.manual_seed(13)
        out = F.scaled_dot_product_attention(*leaves[:3], attn_mask=leaves[3], dropout_p=0.3)
        return (out.float() * cotangent.to("musa")).sum()

    leaves = [t.detach().requires_grad_() for t in (*inputs, bias)]
    loss(*leaves).backward()
    for i, leaf in enumerate(leaves):
        direction = torch.randn(leaf.shape).to(leaf) / 8
        moved = [[t.detach() + s * direction if j == i else t.detach() for j, t in enumerate(leaves)] for s in (-1, 1)]
        difference = (loss(*moved[1]) - loss(*moved[0])).item() / 2
        assert abs(difference - (leaf.grad.float() * direction.float()).sum().item()) < 0.05 + 0.05 * abs(difference)


@pytest.mark.parametrize("mode", ["1", "0"], ids=["blocking", "asynchronous"])
def test_a_captured_training_step_drops_anew_at_each_replay(run_python, mode):
    run_python(
        """
        import torch
        from torch.nn import functional as F
        q, k, v = (torch.randn(2, 2, 16, 16, dtype=torch.float16, device="musa").requires_grad_() for _ in range(3))

        def step():
            for t in (q, k, v):
                t.grad = None
            # twice, so that the graph counts what it draws
            out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3)
            out = F.scaled_dot_product_attention(out, k, v, dropout_p=0.3, is_causal=True)
            out.float().sum().backward()
            return out

        def results(out):
            return [t.detach().clone() for t in (out, q.grad, k.grad, v.grad)]

        torch.musa.manual_seed(21)
        eager = [results(step()) for _ in range(3)]
        side = torch.musa.Stream()
        side.wait_stream(torch.musa.current_stream())
        with torch.musa.stream(side):
            step()
        torch.musa.current_stream().wait_stream(side)
        graph = torch.musa.MUSAGraph()
        with torch.musa.graph(graph):
            out = step()
        torch.musa.manual_seed(21)
        for expected in eager:
            graph.replay()
            for ours, theirs in zip(results(out), expected, strict=True):
                # a GPU adds up gradients in any order
                torch.testing.assert_close(ours, theirs, rtol=1e-2, atol=1e-2)
        assert not torch.equal(eager[0][0], eager[1][0])
        """,
        MUSA_LAUNCH_BLOCKING=mode,
    )


# ---- modules


def test_layers_of_transformers_reach_mudnn_in_training():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True).to("musa", torch.bfloat16).train()
    with torch.musa.count_ops() as counts:
        layer(torch.randn(2, 6, 16).to("musa", torch.bfloat16)).sum().backward()
    assert counts[FUSED] == 1 and counts[f"{FUSED}_backward"] == 1
    assert counts.family(FUSED) == "mudnn"
    assert "CPU fallback 0" in counts.summary()


@pytest.mark.parametrize("padded", [False, True])
def test_multihead_attention_agrees_with_the_cpu(padded):
    torch.manual_seed(1)
    module = nn.MultiheadAttention(16, 2, batch_first=True)
    x = torch.randn(2, 6, 16)
    padding = torch.zeros(2, 6, dtype=torch.bool)
    padding[1, 4:] = padded
    expected = module(x, x, x, key_padding_mask=padding, need_weights=False)[0]
    twin = nn.MultiheadAttention(16, 2, batch_first=True)
    twin.load_state_dict(module.state_dict())
    twin.to("musa", torch.float16)
    half = x.to("musa", torch.float16)
    with torch.musa.count_ops() as counts:
        found = twin(half, half, half, key_padding_mask=padding.to("musa"), need_weights=False)[0]
    assert FUSED in counts
    torch.testing.assert_close(found.float().cpu(), expected, rtol=0, atol=5e-3)


def test_inference_without_gradients_agrees_with_the_cpu():
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(2, 6, 16)
    with torch.no_grad():
        expected = layer(x)
        found = layer.to("musa", torch.float16)(x.to("musa", torch.float16))
    torch.testing.assert_close(found.float().cpu(), expected, rtol=0, atol=1e-2)
