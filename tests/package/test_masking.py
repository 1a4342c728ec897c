"""Masks and the masked softmax, against loops over single numbers."""

import hypothesis
import oracles
import pytest
import torch
from cases import DTYPES, LAYOUTS, Problem, close, laid_out, largest, problems, refuses, untouched
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from attention_book import ShapeError, causal_mask, data, length_mask, masked_softmax


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return data.normal(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


def on_device(numbers: object, dtype: torch.dtype | None = None) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=data.device)


# length_mask, causal_mask


def test_one_length_an_example_holds_for_all_its_queries() -> None:
    mask = length_mask(on_device([2, 0, 3]), 3)
    assert mask.shape == (3, 1, 3)
    assert mask.tolist() == [[[True, True, False]], [[False] * 3], [[True] * 3]]


def test_one_length_a_query() -> None:
    mask = length_mask(on_device([[1, 3], [2, 0]]), 3)
    assert mask.shape == (2, 2, 3)
    assert mask.sum(dim=-1).tolist() == [[1, 3], [2, 0]]
    assert mask[0, 0].tolist() == [True, False, False]


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


def test_the_case_of_the_source_with_a_length_a_query() -> None:
    scores = normal(2, 2, 4)
    lens = on_device([[1, 3], [2, 4]])
    weights = masked_softmax(scores, lens)
    assert (weights > 0).sum(dim=-1).tolist() == [[1, 3], [2, 4]]
    assert weights[0, 0, 0] == 1
    close(weights, oracles.weights(scores, lens, None))


def test_equal_scores_share_the_weight() -> None:
    weights = masked_softmax(torch.zeros(1, 1, 4, device=data.device), on_device([3]))
    close(weights[0, 0], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0]))


def test_without_mask_it_is_the_softmax_of_the_last_axis() -> None:
    scores = normal(3, 2, 5, 7)
    assert torch.equal(masked_softmax(scores), torch.softmax(scores, dim=-1))


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
    with untouched(scores, lens, mask):
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


@pytest.mark.parametrize("size", [1e4, torch.inf])
@hypothesis.given(problem=problems(heads=(0, 2)), seed=st.integers(0, 2**31))
def test_scores_of_masked_keys_change_nothing(problem: Problem, seed: int, size: float) -> None:
    scores = problem.queries @ problem.keys.mT
    noise = size * torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed))
    changed = torch.where(blocked(scores, problem), noise.to(scores), scores)
    answers = []
    for given in (scores, changed):
        given = given.detach().requires_grad_()
        weights = masked_softmax(given, problem.valid_lens, mask=problem.mask)
        upstream = torch.ones_like(weights).cumsum(-1)
        answers.append((weights, *torch.autograd.grad(weights, given, upstream)))
    for before, after in zip(*answers, strict=True):
        assert torch.equal(before, after)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_infinite_score_of_a_masked_key_harms_no_row(dtype: torch.dtype) -> None:
    """As where products of padding overflow in float16; the second row is empty."""
    scores = on_device([[[0, 0, torch.inf], [-torch.inf, torch.inf, 0]]], dtype).requires_grad_()
    weights = masked_softmax(scores, on_device([[2, 0]]))
    assert weights.tolist() == [[[0.5, 0.5, 0], [0, 0, 0]]]
    (gradient,) = torch.autograd.grad(weights[0, 0, 0], scores)
    assert gradient.tolist() == [[[0.25, -0.25, 0], [0, 0, 0]]]


def test_a_key_must_pass_lengths_and_mask() -> None:
    scores = torch.zeros(2, 1, 4, device=data.device)
    mask = on_device([[True, False, True, True]])
    weights = masked_softmax(scores, on_device([3, 2]), mask=mask)
    assert weights.tolist() == [[[0.5, 0, 0.5, 0]], [[1, 0, 0, 0]]]


def test_true_means_may_attend() -> None:
    weights = masked_softmax(
        torch.zeros(1, 3, 3, device=data.device), mask=causal_mask(3).to(data.device)
    )
    assert (weights[0, 0] == on_device([1.0, 0, 0])).all()


def test_the_first_axis_of_a_3d_mask_is_the_batch_also_where_heads_equal_batch() -> None:
    mask = torch.ones(3, 5, 7, dtype=torch.bool, device=data.device)
    mask[1, :, 3:] = False
    weights = masked_softmax(normal(3, 3, 5, 7), mask=mask)
    assert (weights[1, :, :, 3:] == 0).all()
    assert (weights[0] > 0).all()
    assert (weights[:, 1, :, :3] > 0).all()
    assert (weights[2] > 0).all()


def test_lengths_hold_for_every_head() -> None:
    weights = masked_softmax(normal(2, 2, 3, 4), on_device([1, 4]))
    assert (weights[0, :, :, 1:] == 0).all()
    assert (weights[1] > 0).all()


@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 1), (1, 7), (1, 1, 7), (3, 1, 1), (1, 5, 1), (1, 2, 1, 7), (3, 1, 1, 7)]
)
def test_sizes_of_a_mask_may_be_1(shape: tuple[int, ...]) -> None:
    scores = normal(3, 2, 5, 7, dtype=torch.float64)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.5
    weights = masked_softmax(scores, mask=mask.to(data.device))
    close(weights, oracles.weights(scores, None, mask))


@pytest.mark.parametrize("shape", [(0, 5, 7), (3, 0, 7), (3, 5, 0), (3, 2, 5, 0)])
def test_empty_axes_are_legal(shape: tuple[int, ...]) -> None:
    lens = torch.zeros(shape[0], dtype=torch.int64, device=data.device)
    assert masked_softmax(torch.zeros(shape, device=data.device), lens).shape == shape


# masked_softmax: rows without a key, extreme scores, gradients


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_query_that_may_attend_to_nothing_gets_zero_weights_and_zero_gradients(
    dtype: torch.dtype,
) -> None:
    scores = normal(2, 3, 4, dtype=dtype).requires_grad_()
    mask = torch.ones(3, 4, dtype=torch.bool, device=data.device)
    mask[1] = False
    weights = masked_softmax(scores, on_device([0, 3]), mask=mask)
    (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    assert (weights[0] == 0).all()
    assert (weights[1, 1] == 0).all()
    assert weights[1, 0].sum() > 0.9
    assert torch.isfinite(gradient).all()
    assert (gradient[0] == 0).all()
    assert (gradient[1, 1] == 0).all()
    assert (gradient[1, :, 3] == 0).all()
    assert (gradient[1, 0, :3] != 0).any()


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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lens", [None, [4, 2], [4, 0]])
def test_no_argument_is_written_to_without_gradients(layout: str, lens: list[int] | None) -> None:
    scores = laid_out(normal(2, 3, 4), layout)
    mask = causal_mask(3, 4, device=data.device)
    valid_lens = None if lens is None else on_device(lens)
    with torch.no_grad(), untouched(scores, mask, valid_lens):
        first = masked_softmax(scores, valid_lens, mask=mask)
        masked_softmax(scores, valid_lens)
        masked_softmax(scores)
    with torch.enable_grad():
        second = masked_softmax(scores.clone().requires_grad_(), valid_lens, mask=mask)
    close(first, second)


def test_the_result_shares_no_memory_with_the_scores() -> None:
    scores = normal(2, 3, 4)
    before = scores.clone()
    for lens in (None, on_device([4, 4]), on_device([0, 2])):
        masked_softmax(scores, lens).zero_()
        assert torch.equal(scores, before)


# masked_softmax: compiled


def test_compiled_it_gives_the_same_weights_and_gradients() -> None:
    compiled = torch.compile(masked_softmax, backend="aot_eager", fullgraph=True)
    scores = normal(2, 3, 4, dtype=torch.float64).requires_grad_()
    lens, mask = on_device([3, 0]), causal_mask(3, 4, device=data.device)
    results = []
    for function in (masked_softmax, compiled):
        weights = function(scores, lens, mask=mask)
        (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
        results.append((weights, gradient))
    close(results[1][0], results[0][0])
    close(results[1][1], results[0][1])


# Bad input

SCORES = torch.zeros(3, 5, 7)
LENS = torch.tensor([1, 2, 3])


@pytest.mark.parametrize(
    "function", [lambda n: length_mask(n, 7), lambda n: masked_softmax(SCORES, n)]
)
class TestBadLengths:
    def test_negative(self, function: object) -> None:
        with refuses(ValueError, "valid_lens", -1, "keys", 7):
            function(torch.tensor([1, -1, 3]))

    def test_too_large(self, function: object) -> None:
        with refuses(ValueError, "valid_lens", 8, "keys", 7):
            function(torch.tensor([1, 8, 3]))

    def test_fractional(self, function: object) -> None:
        with refuses(TypeError, "valid_lens", "integers", "torch.float32"):
            function(torch.tensor([1.0, 2.5, 3.0]))

    def test_boolean(self, function: object) -> None:
        with refuses(TypeError, "valid_lens", "integers", "torch.bool"):
            function(torch.tensor([True, False, True]))

    def test_no_tensor(self, function: object) -> None:
        with refuses(TypeError, "valid_lens", "torch.Tensor", "list"):
            function([1, 2, 3])

    def test_three_axes(self, function: object) -> None:
        with refuses(ShapeError, "valid_lens", "(batch)", "(batch, queries)", "(3, 1, 1)"):
            function(LENS[:, None, None])


def test_lengths_for_another_batch() -> None:
    with refuses(ShapeError, "valid_lens", "batch", 2, 3):
        masked_softmax(SCORES, LENS[:2])


def test_a_lone_length_is_not_silently_broadcast() -> None:
    with refuses(ShapeError, "valid_lens", "batch", 1, 3):
        masked_softmax(SCORES, LENS[:1])


def test_lengths_for_another_number_of_queries() -> None:
    with refuses(ShapeError, "valid_lens", "queries", 4, 5):
        masked_softmax(SCORES, torch.ones(3, 4, dtype=torch.int64))
    with refuses(ShapeError, "valid_lens", "queries", 1, 5):
        masked_softmax(SCORES, torch.ones(3, 1, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_that_is_not_boolean(dtype: torch.dtype) -> None:
    with refuses(TypeError, "mask", "boolean", dtype):
        masked_softmax(SCORES, mask=torch.ones(5, 7, dtype=dtype))


@pytest.mark.parametrize(
    ("shape", "pieces"),
    [
        ((5, 6), ("keys", 6, 7)),
        ((4, 7), ("queries", 4, 5)),
        ((2, 5, 7), ("batch", 2, 3)),
        ((3, 7, 5), ("queries", 7, 5)),
        ((7,), (1, "(queries, keys)", "(7)")),
        ((3, 2, 5, 7), ("heads", "(3, 2, 5, 7)")),
    ],
)
def test_a_mask_of_another_shape(shape: tuple[int, ...], pieces: tuple[object, ...]) -> None:
    with refuses(ShapeError, "mask", *pieces):
        masked_softmax(SCORES, mask=torch.ones(shape, dtype=torch.bool))


def test_a_mask_for_another_number_of_heads() -> None:
    with refuses(ShapeError, "mask", "heads", 3, 2):
        masked_softmax(torch.zeros(3, 2, 5, 7), mask=torch.ones(3, 3, 5, 7, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 3, 2, 5, 7)])
def test_scores_of_another_rank(shape: tuple[int, ...]) -> None:
    with refuses(ShapeError, "scores", "(batch, queries, keys)", len(shape)):
        masked_softmax(torch.zeros(shape))


def test_scores_that_are_integers_or_no_tensor() -> None:
    with refuses(TypeError, "scores", "floating-point", "torch.int64"):
        masked_softmax(SCORES.long())
    with refuses(TypeError, "scores", "torch.Tensor", "list"):
        masked_softmax([[[1.0]]])


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
