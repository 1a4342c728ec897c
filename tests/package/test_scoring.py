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


def test_vectors_of_size_0_have_no_scale() -> None:
    with refuses(ShapeError, "size", 0):
        scaled_dot_product_scores(torch.zeros(3, 5, 0), torch.zeros(3, 7, 0))
