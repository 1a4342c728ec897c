"""Masks and the masked softmax, against loops over single numbers."""

import hypothesis
import oracles
import pytest
import torch
from cases import (
    DTYPES,
    LAYOUTS,
    Problem,
    close,
    every_rule,
    laid_out,
    largest,
    problems,
    refuses,
    untouched,
)
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from attention_book import ShapeError, causal_mask, data, length_mask, masked_softmax


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return data.normal(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


def on_device(numbers: object, dtype: torch.dtype | None = None) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=data.device)


# length_mask, causal_mask


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_lengths_may_be_integers_of_any_width(dtype: torch.dtype) -> None:
    assert length_mask(on_device([1, 2], dtype), 2).tolist() == [[[True, False]], [[True, True]]]


def test_no_keys_and_no_examples_are_legal() -> None:
    assert length_mask(on_device([0, 0]), 0).shape == (2, 1, 0)
    assert length_mask(on_device([], torch.int64), 4).shape == (0, 1, 4)


@hypothesis.given(problem=problems().filter(lambda problem: problem.valid_lens is not None))
def test_length_mask_equals_the_loops(problem: Problem) -> None:
    lens = problem.valid_lens
    assert lens is not None
    batch, queries, keys = *problem.queries.shape[:2], problem.keys.shape[1]
    with untouched(lens):
        mask = length_mask(lens, keys)
    assert mask.dtype == torch.bool
    assert mask.shape == (batch, 1 if lens.dim() == 1 else queries, keys)
    assert mask.expand(batch, queries, keys).tolist() == [
        [[oracles.may_attend(b, 0, q, k, lens, None) for k in range(keys)] for q in range(queries)]
        for b in range(batch)
    ]


@hypothesis.given(queries=st.integers(0, 6), keys=st.none() | st.integers(0, 6))
def test_the_last_query_of_a_causal_mask_sees_all_keys(queries: int, keys: int | None) -> None:
    mask = causal_mask(queries, keys, device=data.device)
    keys = queries if keys is None else keys
    assert mask.shape == (queries, keys)
    assert mask.dtype == torch.bool
    assert mask.device.type == data.device.type
    assert mask.tolist() == [
        [key - (keys - queries) <= query for key in range(keys)] for query in range(queries)
    ]
    assert mask[-1:].all()


def test_a_causal_mask_is_square_by_default_and_equals_growing_lengths() -> None:
    growing = length_mask(torch.arange(1, 6).unsqueeze(0), 5)
    assert torch.equal(causal_mask(5), growing[0])


# masked_softmax: the values


def test_the_case_of_the_source_with_a_length_an_example() -> None:
    scores = normal(2, 2, 4)
    weights = masked_softmax(scores, on_device([2, 3]))
    assert (weights[0, :, 2:] == 0).all()
    assert (weights[1, :, 3:] == 0).all()
    assert (weights[0, :, :2] > 0).all()
    assert (weights[1, :, :3] > 0).all()
    close(weights.sum(dim=-1), torch.ones(2, 2))
    close(weights, oracles.weights(scores, torch.tensor([2, 3]), None))


def blocked(scores: Tensor, problem: Problem) -> Tensor:
    """Where the loops give equal scores no weight: the keys that are masked."""
    zeros = torch.zeros(scores.shape)
    return (oracles.weights(zeros, problem.valid_lens, problem.mask) == 0).to(scores.device)


@hypothesis.given(
    problem=problems(heads=(0, 1, 2, 3)), layout=st.sampled_from(LAYOUTS), learns=st.booleans()
)
def test_weights_and_gradients_equal_those_of_the_loops(
    problem: Problem, layout: str, learns: bool
) -> None:
    scores = laid_out(problem.queries @ problem.keys.mT, layout).requires_grad_(learns)
    lens, mask = problem.valid_lens, problem.mask
    with torch.set_grad_enabled(learns), untouched(scores, lens, mask):
        weights = masked_softmax(scores, lens, mask=mask)
    truth = oracles.weights(scores.detach(), lens, mask)
    assert weights.dtype == scores.dtype
    close(weights, truth)
    assert (weights[blocked(scores, problem)] == 0).all()
    if learns:
        upstream = laid_out(torch.ones_like(weights).cumsum(-1), layout)
        (gradient,) = torch.autograd.grad(weights, scores, upstream)
        upstream = upstream.double().cpu()
        expected = truth * (upstream - (truth * upstream).sum(-1, keepdim=True))
        close(gradient, expected, reach=largest(upstream))
        assert (gradient[blocked(scores, problem)] == 0).all()


@pytest.mark.parametrize("heads", [0, 2])
def test_every_kind_of_lengths_and_mask_equals_the_loops(heads: int) -> None:
    scores = normal(3, *[heads] * (heads > 0), 4, 5, dtype=torch.float64)
    for lens, mask in every_rule(3, 4, 5, heads=heads):
        close(masked_softmax(scores, lens, mask=mask), oracles.weights(scores, lens, mask))


def test_the_first_axis_of_a_3d_mask_is_the_batch_also_where_heads_equal_batch() -> None:
    mask = torch.ones(3, 5, 7, dtype=torch.bool, device=data.device)
    mask[1, :, 3:] = False
    weights = masked_softmax(normal(3, 3, 5, 7), mask=mask)
    assert (weights[1, :, :, 3:] == 0).all()
    assert (weights[0] > 0).all()
    assert (weights[:, 1, :, :3] > 0).all()
    assert (weights[2] > 0).all()


# masked_softmax: rows without a key, extreme scores, gradients


def test_a_real_score_below_minus_a_million_keeps_its_weight() -> None:
    scores = torch.full((1, 1, 4), -2e6, device=data.device)
    assert masked_softmax(scores, on_device([2])).tolist() == [[[0.5, 0.5, 0, 0]]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_and_smallest_numbers_of_a_dtype_give_no_nan(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype)
    scores = on_device([[[limits.max, limits.min, 0.0, limits.max]]], dtype).expand(3, 2, 4)
    weights = masked_softmax(scores, on_device([[4, 3], [1, 0], [2, 2]]))
    assert weights.tolist() == [
        [[0.5, 0, 0, 0.5], [1, 0, 0, 0]],
        [[1, 0, 0, 0], [0, 0, 0, 0]],
        [[1, 0, 0, 0], [1, 0, 0, 0]],
    ]
    lowest = masked_softmax(scores.new_full((1, 1, 4), limits.min), on_device([2]))
    assert lowest.tolist() == [[[0.5, 0.5, 0, 0]]]


@pytest.mark.parametrize("heads", [(), (2,)])
def test_gradients_are_those_of_finite_differences(heads: tuple[int, ...]) -> None:
    scores = normal(2, *heads, 3, 4, dtype=torch.float64).requires_grad_()
    lens = on_device([[0, 1, 4], [3, 0, 2]])
    mask = on_device([[True, False, True, True]] * 3)

    def function(scores: Tensor) -> Tensor:
        return masked_softmax(scores, lens, mask=mask)

    assert gradcheck(function, (scores,))
    assert gradgradcheck(function, (scores,))


def test_nothing_is_written_to_a_leaf_or_to_what_backward_needs() -> None:
    leaf = normal(2, 3, 4).requires_grad_()
    lens = on_device([2, 0])
    with untouched(leaf, lens):
        masked_softmax(leaf, lens).sum().backward()
    needed = leaf.exp()  # its backward reads its own output
    with untouched(needed):
        masked_softmax(needed, lens).sum().backward()
    assert leaf.grad is not None
    assert torch.isfinite(leaf.grad).all()


def test_the_result_shares_no_memory_with_the_scores() -> None:
    scores = normal(2, 3, 4)
    before = scores.clone()
    for lens in (None, on_device([4, 4]), on_device([0, 2])):
        masked_softmax(scores, lens).zero_()
        assert torch.equal(scores, before)


# Bad input

LENS = torch.tensor([1, 2, 3])


def test_a_mask_for_another_number_of_heads() -> None:
    with refuses(ShapeError, "mask", "heads", 3, 2):
        masked_softmax(torch.zeros(3, 2, 5, 7), mask=torch.ones(3, 3, 5, 7, dtype=torch.bool))


@pytest.mark.parametrize("num_keys", [2.5, "7", None, True, torch.tensor(7)])
def test_a_number_of_keys_that_is_no_integer(num_keys: object) -> None:
    with refuses(TypeError, "num_keys", type(num_keys).__name__):
        length_mask(LENS, num_keys)


@pytest.mark.parametrize("number", [2.5, "7", True, torch.tensor(7)])
def test_a_causal_mask_of_a_size_that_is_no_integer(number: object) -> None:
    with refuses(TypeError, "num_queries", type(number).__name__):
        causal_mask(number)
    with refuses(TypeError, "num_keys", type(number).__name__):
        causal_mask(5, number)


def test_a_causal_mask_of_a_negative_size() -> None:
    with refuses(ValueError, "num_queries", -1):
        causal_mask(-1)
    with refuses(ValueError, "num_keys", -2):
        causal_mask(5, -2)


def test_a_negative_number_of_keys() -> None:
    with refuses(ValueError, "num_keys", -1):
        length_mask(LENS, -1)


def test_lengths_cost_no_synchronisation() -> None:
    """Seen on tensors without data, of which nothing can be read back."""
    scores = torch.empty(3, 5, 7, device="meta")
    lens = torch.empty(3, dtype=torch.int64, device="meta")
    weights = masked_softmax(scores, lens, mask=causal_mask(5, 7, device="meta"))
    assert weights.shape == (3, 5, 7)
