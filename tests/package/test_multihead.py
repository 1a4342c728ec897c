"""Multi-head attention: splitting and merging, the framework's module as a peer, loops."""

from types import SimpleNamespace

import hypothesis
import oracles
import pytest
import torch
from cases import DTYPES, LAYOUTS, Problem, close, laid_out, largest, problems, untouched
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from attention_book import (
    KeyValueCache,
    MultiHeadAttention,
    causal_mask,
    data,
    length_mask,
    merge_heads,
    split_heads,
)

READABLE_AND_FUSED = pytest.mark.parametrize("fused", [False, True])


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return data.normal(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def on_device(numbers: object) -> Tensor:
    return torch.tensor(numbers, device=data.device)


def multi_head(
    *arguments: int, dtype: torch.dtype = torch.float64, **options: object
) -> MultiHeadAttention:
    """Multi-head attention whose weights are those of every run and every device."""
    module = MultiHeadAttention(*arguments, **options)
    for seed, parameter in enumerate(module.parameters()):
        parameter.data = normal(*parameter.shape, dtype=dtype, seed=seed) / 4
    return module


def unlike(sizes: SimpleNamespace, **options: object) -> MultiHeadAttention:
    """All sizes unlike one another."""
    return multi_head(
        sizes.d_model,
        sizes.heads,
        d_k=sizes.d_k,
        d_v=sizes.d_v,
        query_size=sizes.query_size,
        key_size=sizes.key_size,
        value_size=sizes.value_size,
        **options,
    )


def inputs(sizes: SimpleNamespace, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    return (
        normal(sizes.batch, sizes.queries, sizes.query_size, dtype=dtype),
        normal(sizes.batch, sizes.keys, sizes.key_size, dtype=dtype, seed=1),
        normal(sizes.batch, sizes.keys, sizes.value_size, dtype=dtype, seed=2),
    )


# Splitting and merging


@hypothesis.given(
    shape=st.tuples(*[st.integers(0, 6)] * 3),
    heads=st.integers(1, 6),
    layout=st.sampled_from(LAYOUTS),
    dtype=st.sampled_from(DTYPES),
)
def test_head_h_is_the_hth_slice_of_the_width(
    shape: tuple[int, int, int], heads: int, layout: str, dtype: torch.dtype
) -> None:
    batch, length, size = shape
    x = laid_out(normal(batch, length, heads * size, dtype=dtype), layout)
    with untouched(x):
        by_head = split_heads(x, heads)
        assert by_head.shape == (batch, heads, length, size)
        for head in range(heads):
            assert torch.equal(by_head[:, head], x[..., head * size : (head + 1) * size])
        assert torch.equal(merge_heads(by_head), x)


# Against loops


@READABLE_AND_FUSED
@hypothesis.given(problem=problems(sizes=(3, 4, 5), mask_heads=2))
def test_it_equals_the_loops_head_by_head(fused: bool, problem: Problem) -> None:
    inputs = problem.queries, problem.keys, problem.values
    attention = multi_head(
        *(7, 2),
        dtype=problem.queries.dtype,
        **{"d_k": 3, "d_v": 2, "query_size": 3, "key_size": 4, "value_size": 5},
        bias=True,
        fused=fused,
    )
    with untouched(*problem.tensors()):
        output = problem.call(attention)
    layers = attention.W_q, attention.W_k, attention.W_v, attention.W_o
    weights, truth = oracles.multi_head(inputs, layers, 2, problem.valid_lens, problem.mask)
    # No weight or bias is above 1, and each mapping adds up as many products as its input is wide.
    queries, keys, values = (x.shape[-1] * largest(x) + 1 for x in inputs)
    assert output.dtype == problem.queries.dtype
    close(output, truth, reach=2 * 4 * queries * keys * values)
    if fused:
        assert attention.attention_weights is None
    else:
        assert attention.attention_weights is not None
        close(attention.attention_weights, weights, reach=2 * queries * keys)


# Against the framework's module


def twin(ours: MultiHeadAttention, d_model: int, heads: int, **options: object) -> nn.Module:
    """The framework's module with the same weights."""
    peer = nn.MultiheadAttention(d_model, heads, batch_first=True, **options).double()
    peer.to(data.device)
    bias = peer.in_proj_bias is not None
    with torch.no_grad():
        maps = (ours.W_q, ours.W_k, ours.W_v)
        if peer.in_proj_weight is not None:
            peer.in_proj_weight.copy_(torch.cat([linear.weight for linear in maps]))
        else:
            peer.q_proj_weight.copy_(ours.W_q.weight)
            peer.k_proj_weight.copy_(ours.W_k.weight)
            peer.v_proj_weight.copy_(ours.W_v.weight)
        peer.out_proj.weight.copy_(ours.W_o.weight)
        if bias:
            peer.in_proj_bias.copy_(torch.cat([linear.bias for linear in maps]))
            peer.out_proj.bias.copy_(ours.W_o.bias)
    return peer


@READABLE_AND_FUSED
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("same_sizes", [True, False])
def test_same_weights_same_answer_and_gradients(fused: bool, bias: bool, same_sizes: bool) -> None:
    kdim, vdim = (12, 12) if same_sizes else (17, 19)
    ours = multi_head(12, 3, bias=bias, key_size=kdim, value_size=vdim, fused=fused)
    peer = twin(ours, 12, 3, bias=bias, kdim=kdim, vdim=vdim)
    lens = on_device([2, 7, 4, 1])
    mask = causal_mask(5, 7, device=data.device)
    blocked = ~length_mask(lens, 7).squeeze(1)  # there, True = blocked
    results = []
    for module in (ours, peer):
        arguments = [
            normal(4, 5, 12).requires_grad_(),
            normal(4, 7, kdim, seed=1).requires_grad_(),
            normal(4, 7, vdim, seed=2).requires_grad_(),
        ]
        if module is ours:
            output, weights = ours(*arguments, lens, mask=mask), ours.attention_weights
        else:
            output, weights = peer(
                *arguments, key_padding_mask=blocked, attn_mask=~mask, average_attn_weights=False
            )
        gradients = torch.autograd.grad(output.square().sum(), arguments)
        results.append((output, *gradients))
        if not fused and module is peer:
            assert ours.attention_weights is not None
            close(ours.attention_weights, weights)
    for mine, theirs in zip(*results, strict=True):
        close(mine / 4, theirs / 4)


# Promises


def test_recorded_weights_are_those_of_each_head_before_dropout(sizes: SimpleNamespace) -> None:
    attention = unlike(sizes, dropout=0.9)
    assert attention.attention_weights is None
    attention(*inputs(sizes), on_device([2, 7, 4]))
    recorded = attention.attention_weights
    assert recorded is not None
    assert recorded.shape == (sizes.batch, sizes.heads, sizes.queries, sizes.keys)
    close(recorded.sum(-1), torch.ones(3, 2, 5, dtype=torch.float64))
    assert not torch.allclose(recorded[:, 0], recorded[:, 1])
    assert not recorded.requires_grad
    attention.eval()(*inputs(sizes), on_device([2, 7, 4]))
    assert torch.equal(recorded, attention.attention_weights)


@READABLE_AND_FUSED
def test_dropout_keeps_the_mean_and_rests_in_evaluation(fused: bool) -> None:
    attention = multi_head(6, 3, dropout=0.25, fused=fused)
    x = normal(2, 5, 6)
    still = multi_head(6, 3)(x, x, x)
    close(attention.eval()(x, x, x), still)
    attention.train()
    torch.manual_seed(0)
    runs = torch.stack([attention(x, x, x) for _ in range(400)]).detach()
    assert (runs[0] - runs[1]).abs().max() > 1e-3
    error = (runs.mean(0) - still).abs()
    assert (error < 5 * runs.std(0) / 20 + 1e-9).all()  # 400 draws: a twentieth of the deviation


def test_parameters_have_the_names_of_the_formula(sizes: SimpleNamespace) -> None:
    shapes = {name: tuple(value.shape) for name, value in unlike(sizes).state_dict().items()}
    assert shapes == {
        "W_q.weight": (2 * sizes.d_k, sizes.query_size),
        "W_k.weight": (2 * sizes.d_k, sizes.key_size),
        "W_v.weight": (2 * sizes.d_v, sizes.value_size),
        "W_o.weight": (sizes.d_model, 2 * sizes.d_v),
    }
    with_bias = {name for name in unlike(sizes, bias=True).state_dict() if name.endswith("bias")}
    assert with_bias == {"W_q.bias", "W_k.bias", "W_v.bias", "W_o.bias"}


# Grouped-query and multi-query attention


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("fused", [False, True])
def test_query_heads_share_heads_of_keys_and_values(num_kv_heads: int, fused: bool) -> None:
    module = multi_head(37, 6, num_kv_heads=num_kv_heads, d_k=5, d_v=7, fused=fused)
    queries, keys, values = (normal(2, n, 37, seed=n) for n in (4, 9, 9))
    by_head = [
        split_heads(linear(x), heads)
        for linear, x, heads in [
            (module.W_q, queries, 6),
            (module.W_k, keys, num_kv_heads),
            (module.W_v, values, num_kv_heads),
        ]
    ]
    truth = F.scaled_dot_product_attention(*by_head, enable_gqa=True)
    close(module(queries, keys, values), module.W_o(merge_heads(truth)))


@pytest.mark.parametrize("cached", [False, True])
def test_shared_heads_obey_a_mask_of_each_head_fused_or_not(cached: bool) -> None:
    x = normal(2, 9, 24)
    mask = torch.rand(2, 6, 9, 9, generator=torch.Generator().manual_seed(0)) < 0.4
    mask[0, 2:4, :, 5:] = False  # keys that no head of the second group sees
    outputs = []
    for fused in (False, True):
        module = multi_head(24, 6, num_kv_heads=3, rotary_base=9.0, fused=fused)
        cache = KeyValueCache() if cached else None
        outputs.append(module(x, x, x, mask=mask.to(data.device), causal=True, cache=cache))
    close(*outputs)


def test_each_query_head_uses_the_heads_of_its_own_group() -> None:
    """Head i uses i // 2: keys of group 1 changed, heads 0 and 1 stay as they were."""
    module = multi_head(8, 4, num_kv_heads=2)
    x = normal(1, 5, 8)
    module(x, x, x)
    before = module.attention_weights
    with torch.no_grad():
        module.W_k.weight[2:] += 1
    module(x, x, x)
    changed = (module.attention_weights != before).flatten(2).any(dim=-1)
    assert changed.tolist() == [[False, False, True, True]]


def test_fewer_key_value_heads_have_fewer_parameters() -> None:
    sizes = [multi_head(32, 8, num_kv_heads=heads).W_k.weight.shape[0] for heads in (8, 2, 1)]
    assert sizes == [32, 8, 4]
