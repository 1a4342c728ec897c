"""Layer normalisation and the self-attention block, against the framework and against loops."""

from typing import Any

import hypothesis
import oracles
import pytest
import torch
from cases import DTYPES, LAYOUTS, Problem, close, laid_out, largest, problems, untouched
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional as F

from attention_book import LayerNorm, SelfAttentionBlock, data


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


# SelfAttentionBlock


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


def test_a_saved_state_has_these_names() -> None:
    parts = {name.split(".")[0] for name in block(12, 3).state_dict()}
    assert parts == {"query", "key", "value", "dense", "layer_norm"}
