"""Layer normalisation and the self-attention block, against the framework and against loops."""

import copy
from typing import Any

import hypothesis
import oracles
import pytest
import torch
from cases import DTYPES, LAYOUTS, Problem, close, laid_out, largest, problems, refuses, untouched
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn import functional as F

from attention_book import LayerNorm, SelfAttentionBlock, ShapeError, causal_mask, data


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return data.normal(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def on_device(numbers: object) -> Tensor:
    return torch.tensor(numbers, device=data.device)


def block(*arguments: Any, dtype: torch.dtype = torch.float64, **options: Any) -> Any:
    """A block whose weights are those of every run and every device."""
    module = SelfAttentionBlock(*arguments, **options)
    for seed, parameter in enumerate(module.parameters()):
        parameter.data = normal(*parameter.shape, dtype=dtype, seed=seed) / 2
    return module


# LayerNorm


@pytest.mark.parametrize("shape", [(3, 11), (3, 5, 11)])
@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.5])
def test_layer_norm_is_that_of_the_framework(shape: tuple[int, ...], eps: float) -> None:
    norm = LayerNorm(11, eps).double().to(data.device)
    norm.weight.data, norm.bias.data = normal(11), normal(11, seed=1)
    x = normal(*shape, seed=2) * 3 + 7
    with untouched(x):
        close(norm(x), F.layer_norm(x, (11,), norm.weight, norm.bias, eps))


@hypothesis.given(
    shape=st.lists(st.integers(0, 6), min_size=1, max_size=2),
    size=st.integers(1, 6),
    eps=st.sampled_from([1e-12, 1e-5, 0.5]),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    seed=st.integers(0, 2**31),
)
def test_layer_norm_equals_the_loops(
    shape: list[int], size: int, eps: float, dtype: torch.dtype, layout: str, seed: int
) -> None:
    norm = LayerNorm(size, eps).to(dtype).to(data.device)
    norm.weight.data, norm.bias.data = normal(size, dtype=dtype), normal(size, dtype=dtype, seed=1)
    x = laid_out(normal(*shape, size, dtype=dtype, seed=seed), layout)
    with untouched(x):
        result = norm(x)
    assert result.dtype == dtype
    # What the mean loses by rounding weighs as much more as a row's deviation is smaller.
    deviation = (x.double() - x.double().mean(dim=-1, keepdim=True)).square().mean(dim=-1)
    reach = 3 * largest(x) * largest((deviation + eps).rsqrt())
    close(result, oracles.layer_norm(x, norm.weight, norm.bias, eps), reach=reach)


def test_layer_norm_starts_as_mean_0_and_variance_1_with_epsilon_inside_the_root() -> None:
    x = normal(5, 64)
    result = LayerNorm(64).double().to(data.device)(x)
    close(result.mean(-1), torch.zeros(5, dtype=torch.float64))
    close(result.var(-1, correction=0), torch.ones(5, dtype=torch.float64))
    # A variance as small as ε shows where ε stands: 1/√(v + ε), not 1/(√v + ε).
    small = torch.tensor([[1e-6, -1e-6]], dtype=torch.float64, device=data.device)
    close(LayerNorm(2).double().to(data.device)(small)[0, 0], torch.tensor(0.5).double().sqrt())
    assert LayerNorm(2).eps == 1e-12


def test_layer_norm_of_equal_numbers_is_zero() -> None:
    for dtype in DTYPES:
        norm = LayerNorm(4).to(dtype).to(data.device)
        assert (norm(torch.full((2, 4), 3.0, dtype=dtype, device=data.device)) == 0).all()


def test_layer_norm_gradients_are_those_of_finite_differences() -> None:
    norm = LayerNorm(4).double().to(data.device)
    x = normal(2, 3, 4).requires_grad_()
    assert gradcheck(lambda x, *parameters: norm(x), (x, *norm.parameters()))


def test_layer_norm_refuses_another_size() -> None:
    with refuses(ShapeError, "LayerNorm", "x", "size", 5, 4):
        LayerNorm(4)(torch.zeros(2, 3, 5))
    with refuses(TypeError, "x", "torch.int64"):
        LayerNorm(4)(torch.zeros(2, 3, 4, dtype=torch.int64))
    with refuses(ValueError, "size", 0):
        LayerNorm(0)
    with refuses(ValueError, "eps", 0, -1e-5):
        LayerNorm(4, -1e-5)
    with refuses(TypeError, "eps", "str"):
        LayerNorm(4, "small")


# SelfAttentionBlock


def twin(ours: SelfAttentionBlock) -> nn.Module:
    """The framework's attention with the block's weights."""
    size = ours.query.in_features
    peer = nn.MultiheadAttention(size, ours.num_heads, batch_first=True).double().to(data.device)
    with torch.no_grad():
        maps = (ours.query, ours.key, ours.value)
        peer.in_proj_weight.copy_(torch.cat([linear.weight for linear in maps]))
        peer.in_proj_bias.copy_(torch.cat([linear.bias for linear in maps]))
        peer.out_proj.weight.copy_(ours.dense.weight)
        peer.out_proj.bias.copy_(ours.dense.bias)
    return peer


@hypothesis.given(problem=problems(sizes=(4, 4, 4), mask_heads=2, square=True))
def test_it_equals_the_loops(problem: Problem) -> None:
    x, lens, mask = problem.queries, problem.valid_lens, problem.mask
    ours = block(4, 2, dtype=x.dtype, eps=0.1)
    with untouched(x, lens, mask):
        output = ours(x, lens, mask=mask)
    layers = ours.query, ours.key, ours.value, ours.dense
    weights, update = oracles.multi_head((x, x, x), layers, 2, lens, mask)
    truth = oracles.layer_norm(
        x.double() + update, ours.layer_norm.weight, ours.layer_norm.bias, 0.1
    )
    assert output.dtype == x.dtype
    # No weight or bias is above 2, and each mapping adds up four products.
    mapped = 2 * (4 * largest(x) + 1)
    close(ours.attention_weights, weights, reach=2 * mapped**2)
    close(output, truth, reach=2 * mapped**2 * 8 * mapped / 0.1**0.5)


@pytest.mark.parametrize("causal", [False, True])
def test_same_weights_same_answer_as_attention_residual_and_norm(causal: bool) -> None:
    ours = block(12, 3)
    peer = twin(ours)
    lens = on_device([7, 4, 1])
    blocked = torch.arange(7, device=data.device) >= lens[:, None]
    mask = causal_mask(7, device=data.device) if causal else None
    x = normal(3, 7, 12)
    with untouched(x, lens, mask):
        output = ours(x, lens, mask=mask)
    attended, weights = peer(
        x,
        x,
        x,
        key_padding_mask=blocked,
        attn_mask=None if mask is None else ~mask,
        average_attn_weights=False,
    )
    norm = ours.layer_norm
    close(output, F.layer_norm(x + attended, (12,), norm.weight, norm.bias, 1e-12))
    close(ours.attention_weights, weights)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_position_that_may_attend_to_nothing_keeps_what_it_was(dtype: torch.dtype) -> None:
    ours = block(12, 3, dtype=dtype)
    x = normal(2, 5, 12, dtype=dtype).requires_grad_()
    output = ours(x, on_device([0, 3]))
    assert output.dtype == dtype
    close(output[0], ours.layer_norm(x[0] + ours.dense.bias))
    output.square().sum().backward()
    for tensor in (x, *ours.parameters()):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()


def test_the_order_of_the_positions_does_not_matter() -> None:
    ours, x = block(12, 3), normal(2, 5, 12)
    order = [3, 0, 4, 2, 1]
    close(ours(x[:, order]), ours(x)[:, order])


def test_both_dropouts_work_in_training_alone() -> None:
    x = normal(2, 5, 12)
    still = block(12, 3)(x)
    for options in ({"attention_dropout": 0.5}, {"hidden_dropout": 0.5}):
        ours = block(12, 3, **options)
        torch.manual_seed(0)
        assert not torch.allclose(ours(x), ours(x))
        close(ours.eval()(x), still)
        close(ours.attention_weights.sum(-1), torch.ones(2, 3, 5, dtype=torch.float64))


def test_hidden_dropout_drops_the_update_and_never_the_input() -> None:
    ours, x = block(12, 3, hidden_dropout=1.0), normal(2, 5, 12)
    close(ours(x), ours.layer_norm(x))


def test_gradients_are_those_of_finite_differences() -> None:
    ours = block(4, 2)
    x = normal(2, 3, 4).requires_grad_()
    lens = on_device([2, 0])
    assert gradcheck(lambda x, *parameters: ours(x, lens), (x, *ours.parameters()))


def test_copies_and_saved_states_give_the_same_answer() -> None:
    ours, x = block(12, 3), normal(2, 5, 12)
    output = ours(x)
    close(copy.deepcopy(ours)(x), output)
    loaded = SelfAttentionBlock(12, 3).double().to(data.device)
    loaded.load_state_dict(ours.state_dict())
    close(loaded(x), output)
    parts = {name.split(".")[0] for name in ours.state_dict()}
    assert parts == {"query", "key", "value", "dense", "layer_norm"}


def test_compiled_it_gives_the_same_answer() -> None:
    ours, x = block(12, 3), normal(2, 5, 12)
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    lens = on_device([2, 0])
    close(compiled(x, lens), ours(x, lens))


def test_a_hidden_size_that_is_no_multiple_of_the_heads() -> None:
    with refuses(ValueError, "hidden_size", 10, "num_heads", 3):
        SelfAttentionBlock(10, 3)


def test_options_out_of_range() -> None:
    for name in ("attention_dropout", "hidden_dropout"):
        with refuses(ValueError, name, 0, 1, 1.5):
            SelfAttentionBlock(12, 3, **{name: 1.5})
    with refuses(ValueError, "num_heads", 0):
        SelfAttentionBlock(12, 0)
    with refuses(TypeError, "hidden_size", "float"):
        SelfAttentionBlock(12.0, 3)


def test_calls_that_do_not_fit() -> None:
    ours, x = SelfAttentionBlock(12, 3), torch.zeros(2, 5, 12)
    with refuses(ShapeError, "SelfAttentionBlock", "x", "d_model", 8, 12):
        ours(x[..., :8])
    with refuses(ShapeError, "x", "(5, 12)"):
        ours(x[0])
    with refuses(TypeError, "x", "torch.float64", "torch.float32"):
        ours(x.double())
    with refuses(ShapeError, "valid_lens", "batch", 3, 2):
        ours(x, torch.tensor([1, 2, 3]))
    with refuses(ValueError, "valid_lens", 6, 5):
        ours(x, torch.tensor([1, 6]))
    with refuses(ShapeError, "mask", "length", 4, 5):
        ours(x, mask=torch.ones(4, 4, dtype=torch.bool))
