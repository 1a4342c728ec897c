"""Scoring functions, pair by pair in loops, and the identities between them."""

import math

import hypothesis
import oracles
import pytest
import torch
from cases import LAYOUTS, Problem, close, laid_out, largest, problems, refuses, untouched
from hypothesis import strategies as st
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


def reach(size: int, *tensors: Tensor) -> float:
    """How large a sum of `size` products of the tensors' numbers may be."""
    return size * math.prod(map(largest, tensors))


@pytest.mark.parametrize(
    ("function", "truth"), [(dot_product_scores, oracles.dot), (distance_scores, distance)]
)
@hypothesis.given(problem=problems(heads=(0, 3), least_size=0))
def test_scores_equal_those_of_the_loops(function: object, truth: object, problem: Problem) -> None:
    queries, keys = problem.queries, problem.keys
    with untouched(queries, keys):
        scores = function(queries, keys)
    assert scores.dtype == queries.dtype
    close(
        scores,
        oracles.scores(queries, keys, truth),
        reach=reach(queries.shape[-1], queries, keys),
    )


@hypothesis.given(problem=problems(heads=(0, 3)), scale=st.none() | st.floats(-2, 2))
def test_scaled_scores_equal_those_of_the_loops(problem: Problem, scale: float | None) -> None:
    queries, keys = problem.queries, problem.keys

    def scaled(query: list[float], key: list[float]) -> float:
        product = oracles.dot(query, key)
        return product / math.sqrt(len(query)) if scale is None else product * scale

    with untouched(queries, keys):
        scores = scaled_dot_product_scores(queries, keys, scale)
    assert scores.dtype == queries.dtype
    close(
        scores,
        oracles.scores(queries, keys, scaled),
        reach=2 * reach(queries.shape[-1], queries, keys),
    )


@hypothesis.given(problem=problems(heads=(0, 3), sizes=(3, 4, 1)), layout=st.sampled_from(LAYOUTS))
def test_bilinear_scores_equal_those_of_the_loops(problem: Problem, layout: str) -> None:
    queries, keys = problem.queries, problem.keys
    W = laid_out(normal(3, 4, dtype=queries.dtype), layout)

    def bilinear(query: list[float], key: list[float]) -> float:
        rows = zip(query, W.tolist(), strict=True)
        return math.fsum(q * w * k for q, row in rows for w, k in zip(row, key, strict=True))

    with untouched(queries, keys, W):
        scores = bilinear_scores(queries, keys, W)
    assert scores.dtype == queries.dtype
    close(scores, oracles.scores(queries, keys, bilinear), reach=reach(12, queries, keys, W))


@hypothesis.given(problem=problems(heads=(0, 3), sizes=(3, 4, 1)), layout=st.sampled_from(LAYOUTS))
def test_additive_scores_equal_those_of_the_loops(problem: Problem, layout: str) -> None:
    queries, keys = problem.queries, problem.keys
    W_q, W_k, w_v = (
        laid_out(normal(*shape, dtype=queries.dtype, seed=seed), layout)
        for seed, shape in enumerate([(5, 3), (5, 4), (5,)])
    )
    hidden = list(zip(W_q.tolist(), W_k.tolist(), w_v.tolist(), strict=True))

    def additive(query: list[float], key: list[float]) -> float:
        return math.fsum(
            v * math.tanh(oracles.dot(q, query) + oracles.dot(k, key)) for q, k, v in hidden
        )

    with untouched(queries, keys, W_q, W_k, w_v):
        scores = additive_scores(queries, keys, W_q, W_k, w_v)
    assert scores.dtype == queries.dtype
    summed = reach(3, queries, W_q) + reach(4, keys, W_k)
    close(
        scores,
        oracles.scores(queries, keys, additive),
        reach=reach(5, w_v) * (1 + summed),
    )


def test_the_scale_can_be_chosen() -> None:
    queries, keys = normal(2, 3, 4), normal(2, 5, 4, seed=1)
    products = dot_product_scores(queries, keys)
    close(scaled_dot_product_scores(queries, keys), products / 2)
    close(scaled_dot_product_scores(queries, keys, 1.0), products)
    close(scaled_dot_product_scores(queries, keys, scale=0.25), products / 4)
    assert (scaled_dot_product_scores(queries, keys, 0.0) == 0).all()
    with refuses(TypeError, "scale", "number", "str"):
        scaled_dot_product_scores(queries, keys, "0.5")


def test_distance_is_the_dot_product_less_half_the_squared_lengths() -> None:
    queries, keys = normal(2, 3, 4), normal(2, 5, 4, seed=1)
    lengths = queries.square().sum(-1)[:, :, None] + keys.square().sum(-1)[:, None, :]
    close(distance_scores(queries, keys), dot_product_scores(queries, keys) - lengths / 2)


def test_bilinear_with_the_identity_is_the_dot_product() -> None:
    queries, keys = normal(2, 3, 4), normal(2, 5, 4, seed=1)
    identity = torch.eye(4, dtype=torch.float64, device=data.device)
    close(bilinear_scores(queries, keys, identity), dot_product_scores(queries, keys))


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


# Bad input

QUERIES, KEYS = torch.zeros(3, 5, 11), torch.zeros(3, 7, 11)
SAME_SIZE = pytest.mark.parametrize(
    "function", [dot_product_scores, scaled_dot_product_scores, distance_scores]
)


@SAME_SIZE
def test_queries_and_keys_of_unlike_sizes(function: object) -> None:
    with refuses(ShapeError, "keys", "size", 13, 11):
        function(QUERIES, torch.zeros(3, 7, 13))


@SAME_SIZE
def test_a_lone_batch_is_not_silently_broadcast(function: object) -> None:
    with refuses(ShapeError, "keys", "batch", 1, 3):
        function(QUERIES, KEYS[:1])
    with refuses(ShapeError, "keys", "batch", 3, 1):
        function(QUERIES[:1], KEYS)


@SAME_SIZE
def test_ranks_that_do_not_fit(function: object) -> None:
    with refuses(ShapeError, "queries", "(5, 11)", 2):
        function(QUERIES[0], KEYS[0])
    with refuses(ShapeError, "keys", "queries", 4, 3):
        function(QUERIES, KEYS[:, None])


@SAME_SIZE
def test_dtypes_that_do_not_fit(function: object) -> None:
    with refuses(TypeError, "keys", "queries", "torch.float64", "torch.float32"):
        function(QUERIES, KEYS.double())
    with refuses(TypeError, "queries", "torch.int64"):
        function(QUERIES.long(), KEYS.long())


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
