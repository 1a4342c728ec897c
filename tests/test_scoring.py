"""Scoring functions, pair by pair in loops, and the identities between them."""

import math

import hypothesis
import oracles
import pytest
import torch
from cases import DTYPES, LAYOUTS, Problem, close, laid_out, problems, refuses, untouched
from torch import Tensor
from torch.autograd import gradcheck

from attention_book import (
    ShapeError,
    additive_scores,
    bilinear_scores,
    data,
    distance_scores,
    dot_product_scores,
    scaled_dot_product_scores,
)


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return data.normal(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def distance(query: list[float], key: list[float]) -> float:
    return -0.5 * math.fsum((x - y) ** 2 for x, y in zip(query, key, strict=True))


def scaled(query: list[float], key: list[float]) -> float:
    return oracles.dot(query, key) / math.sqrt(len(query))


@hypothesis.given(problem=problems(heads=(0, 3)))
@pytest.mark.parametrize(
    ("function", "truth"),
    [
        (dot_product_scores, oracles.dot),
        (scaled_dot_product_scores, scaled),
        (distance_scores, distance),
    ],
)
def test_scores_equal_those_of_the_loops(function: object, truth: object, problem: Problem) -> None:
    with untouched(problem.queries, problem.keys):
        scores = function(problem.queries, problem.keys)  # type: ignore[operator]
    close(scores, oracles.scores(problem.queries, problem.keys, truth))


@hypothesis.given(problem=problems(heads=(0, 3), sizes=(3, 4, 1)))
def test_bilinear_scores_equal_those_of_the_loops(problem: Problem) -> None:
    W = normal(3, 4)

    def bilinear(query: list[float], key: list[float]) -> float:
        rows = zip(query, W.tolist(), strict=True)
        return math.fsum(q * w * k for q, row in rows for w, k in zip(row, key, strict=True))

    with untouched(problem.queries, problem.keys, W):
        scores = bilinear_scores(problem.queries, problem.keys, W)
    close(scores, oracles.scores(problem.queries, problem.keys, bilinear))


@hypothesis.given(problem=problems(heads=(0, 3), sizes=(3, 4, 1)))
def test_additive_scores_equal_those_of_the_loops(problem: Problem) -> None:
    W_q, W_k, w_v = normal(5, 3), normal(5, 4, seed=1), normal(5, seed=2)

    def additive(query: list[float], key: list[float]) -> float:
        hidden = zip(W_q.tolist(), W_k.tolist(), w_v.tolist(), strict=True)
        return math.fsum(
            v * math.tanh(oracles.dot(q, query) + oracles.dot(k, key)) for q, k, v in hidden
        )

    with untouched(problem.queries, problem.keys, W_q, W_k, w_v):
        scores = additive_scores(problem.queries, problem.keys, W_q, W_k, w_v)
    close(scores, oracles.scores(problem.queries, problem.keys, additive))


def test_the_scale_can_be_chosen() -> None:
    queries, keys = normal(2, 3, 4), normal(2, 5, 4, seed=1)
    products = dot_product_scores(queries, keys)
    close(scaled_dot_product_scores(queries, keys), products / 2)
    close(scaled_dot_product_scores(queries, keys, 1.0), products)
    close(scaled_dot_product_scores(queries, keys, scale=0.25), products / 4)
    assert (scaled_dot_product_scores(queries, keys, 0.0) == 0).all()


def test_distance_is_the_dot_product_less_half_the_squared_lengths() -> None:
    queries, keys = normal(2, 3, 4), normal(2, 5, 4, seed=1)
    lengths = queries.square().sum(-1)[:, :, None] + keys.square().sum(-1)[:, None, :]
    close(distance_scores(queries, keys), dot_product_scores(queries, keys) - lengths / 2)


def test_bilinear_with_the_identity_is_the_dot_product() -> None:
    queries, keys = normal(2, 3, 4), normal(2, 5, 4, seed=1)
    identity = torch.eye(4, dtype=torch.float64, device=data.device)
    close(bilinear_scores(queries, keys, identity), dot_product_scores(queries, keys))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout(dtype: torch.dtype, layout: str) -> None:
    queries = laid_out(normal(3, 5, 11, dtype=dtype), layout)
    keys = laid_out(normal(3, 7, 11, dtype=dtype, seed=1), layout)
    weights = [normal(*shape, dtype=dtype) / 4 for shape in [(2, 11), (2, 11), (2,), (11, 11)]]
    in_float64 = [tensor.double() for tensor in (queries, keys, *weights)]
    for function, more in [
        (scaled_dot_product_scores, slice(0, 0)),
        (additive_scores, slice(2, 5)),
        (bilinear_scores, slice(5, 6)),
    ]:
        scores = function(queries, keys, *[queries, keys, *weights][more])
        assert scores.dtype == dtype
        truth = function(*in_float64[:2], *in_float64[more])
        close(scores / 4, truth / 4)
    # Half precision keeps three digits of a squared distance of about 20.
    close(distance_scores(queries, keys) / 32, distance_scores(*in_float64[:2]) / 32, dtype)


def test_gradients_are_those_of_finite_differences() -> None:
    queries, keys = normal(2, 3, 4), normal(2, 5, 4, seed=1)
    more = normal(6, 4), normal(6, 4, seed=3), normal(6)
    for function, arguments in [
        (scaled_dot_product_scores, (queries, keys)),
        (distance_scores, (queries, keys)),
        (bilinear_scores, (queries, keys, normal(4, 4))),
        (additive_scores, (queries, keys, *more)),
    ]:
        assert gradcheck(function, [argument.clone().requires_grad_() for argument in arguments])


@pytest.mark.parametrize("function", [scaled_dot_product_scores, distance_scores])
def test_mapped_over_a_further_axis(function: object) -> None:
    queries, keys = normal(7, 2, 3, 4), normal(7, 2, 5, 4, seed=1)
    mapped = torch.vmap(function)(queries, keys)  # type: ignore[arg-type]
    one_by_one = [function(q, k) for q, k in zip(queries, keys, strict=True)]  # type: ignore[operator]
    close(mapped, torch.stack(one_by_one))


# Bad input

QUERIES, KEYS = torch.zeros(3, 5, 11), torch.zeros(3, 7, 11)
SAME_SIZE = pytest.mark.parametrize(
    "function", [dot_product_scores, scaled_dot_product_scores, distance_scores]
)


@SAME_SIZE
def test_queries_and_keys_of_unlike_sizes(function: object) -> None:
    with refuses(ShapeError, "keys", "size", 13, 11):
        function(QUERIES, torch.zeros(3, 7, 13))  # type: ignore[operator]


@SAME_SIZE
def test_a_lone_batch_is_not_silently_broadcast(function: object) -> None:
    with refuses(ShapeError, "keys", "batch", 1, 3):
        function(QUERIES, KEYS[:1])  # type: ignore[operator]
    with refuses(ShapeError, "keys", "batch", 3, 1):
        function(QUERIES[:1], KEYS)  # type: ignore[operator]


@SAME_SIZE
def test_ranks_that_do_not_fit(function: object) -> None:
    with refuses(ShapeError, "queries", "(5, 11)", 2):
        function(QUERIES[0], KEYS[0])  # type: ignore[operator]
    with refuses(ShapeError, "keys", "queries", 4, 3):
        function(QUERIES, KEYS[:, None])  # type: ignore[operator]


@SAME_SIZE
def test_dtypes_that_do_not_fit(function: object) -> None:
    with refuses(TypeError, "keys", "queries", "torch.float64", "torch.float32"):
        function(QUERIES, KEYS.double())  # type: ignore[operator]
    with refuses(TypeError, "queries", "torch.int64"):
        function(QUERIES.long(), KEYS.long())  # type: ignore[operator]


def test_vectors_of_size_0_have_no_scale() -> None:
    with refuses(ShapeError, "size", 0):
        scaled_dot_product_scores(torch.zeros(3, 5, 0), torch.zeros(3, 7, 0))


def test_weights_that_do_not_fit() -> None:
    with refuses(ShapeError, "W", "query_size", 13, 11):
        bilinear_scores(QUERIES, KEYS, torch.zeros(13, 11))
    with refuses(ShapeError, "W_k", "hidden", 3, 2):
        additive_scores(QUERIES, KEYS, torch.zeros(2, 11), torch.zeros(3, 11), torch.zeros(2))
    with refuses(ShapeError, "w_v", "(2, 1)", "(hidden)"):
        additive_scores(QUERIES, KEYS, torch.zeros(2, 11), torch.zeros(2, 11), torch.zeros(2, 1))
