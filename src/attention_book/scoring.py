"""Scoring functions: how alike a query and a key are, for every pair, as (…, queries, keys).

They store no parameters and apply no softmax. Each takes three axes or, with heads, four.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_book.shapes import ShapeError, checked, number


@checked
def dot_product_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Score each key for each query by their dot product, q kᵀ.

    Shapes:
        queries          (batch, queries, size) or (batch, heads, queries, size)
        keys             (batch, keys, size) or (batch, heads, keys, size)
        transposed_keys  (batch, size, keys) or (batch, heads, size, keys)
        returns          (batch, queries, keys) or (batch, heads, queries, keys)

    Source: Luong et al. (2015), section 3.1.
    """
    transposed_keys = keys.transpose(-2, -1)
    return queries @ transposed_keys


@checked
def scaled_dot_product_scores(queries: Tensor, keys: Tensor, scale: float | None = None) -> Tensor:
    """Score each key for each query by their dot product times `scale`, by default 1/√size.

    Shapes:
        queries          (batch, queries, size) or (batch, heads, queries, size)
        keys             (batch, keys, size) or (batch, heads, keys, size)
        scaled_queries   (batch, queries, size) or (batch, heads, queries, size)
        transposed_keys  (batch, size, keys) or (batch, heads, size, keys)
        returns          (batch, queries, keys) or (batch, heads, queries, keys)

    Raises:
        ShapeError: for vectors of size 0, whose scale would be infinite.
        TypeError: for a scale that is not a number.

    Source: Vaswani et al. (2017), eq. 1.
    """
    scale = default_scale(queries.shape[-1]) if scale is None else scale
    number("scaled_dot_product_scores", "scale", scale)
    # Scaling the queries is scaling the scores, on far fewer numbers where keys are many, and
    # keeps float16 products in range.
    scaled_queries = queries * scale
    transposed_keys = keys.transpose(-2, -1)
    return scaled_queries @ transposed_keys


def default_scale(size: int) -> float:
    """1/√size, which gives dot products of independent unit-variance components variance 1."""
    if size == 0:
        raise ShapeError("'size' is 0 in queries and keys: there is nothing to compare")
    return size**-0.5


@checked
def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Score each key for each query by minus half their squared distance, −½‖q − k‖².

    Shapes:
        queries           (batch, queries, size) or (batch, heads, queries, size)
        keys              (batch, keys, size) or (batch, heads, keys, size)
        expanded_queries  (batch, queries, 1, size) or (batch, heads, queries, 1, size)
        expanded_keys     (batch, 1, keys, size) or (batch, heads, 1, keys, size)
        differences       (batch, queries, keys, size) or (batch, heads, queries, keys, size)
        returns           (batch, queries, keys) or (batch, heads, queries, keys)

    Source: Nadaraya (1964) and Watson (1964); the Gaussian kernel is its exponential.
    """
    expanded_queries = queries.unsqueeze(-2)
    expanded_keys = keys.unsqueeze(-3)
    differences = expanded_queries - expanded_keys
    return -0.5 * differences.square().sum(dim=-1)


@checked
def bilinear_scores(queries: Tensor, keys: Tensor, W: Tensor) -> Tensor:
    """Score each key for each query by q W kᵀ, a dot product with a learned projection of q.

    Shapes:
        queries            (batch, queries, query_size) or (batch, heads, queries, query_size)
        keys               (batch, keys, key_size) or (batch, heads, keys, key_size)
        W                  (query_size, key_size)
        projected_queries  (batch, queries, key_size) or (batch, heads, queries, key_size)
        transposed_keys    (batch, key_size, keys) or (batch, heads, key_size, keys)
        returns            (batch, queries, keys) or (batch, heads, queries, keys)

    Source: Luong et al. (2015), section 3.1, where it is called "general".
    """
    projected_queries = queries @ W
    transposed_keys = keys.transpose(-2, -1)
    return projected_queries @ transposed_keys


@checked
def additive_scores(queries: Tensor, keys: Tensor, W_q: Tensor, W_k: Tensor, w_v: Tensor) -> Tensor:
    """Score each key for each query by a small network, tanh(q W_qᵀ + k W_kᵀ) w_v.

    Shapes:
        queries            (batch, queries, query_size) or (batch, heads, queries, query_size)
        keys               (batch, keys, key_size) or (batch, heads, keys, key_size)
        W_q                (hidden, query_size)
        W_k                (hidden, key_size)
        w_v                (hidden)
        projected_queries  (batch, queries, hidden) or (batch, heads, queries, hidden)
        projected_keys     (batch, keys, hidden) or (batch, heads, keys, hidden)
        summed             (batch, queries, keys, hidden) or (batch, heads, queries, keys, hidden)
        returns            (batch, queries, keys) or (batch, heads, queries, keys)

    Source: Bahdanau et al. (2015), appendix A.1.2.
    """
    projected_queries = queries @ W_q.T
    projected_keys = keys @ W_k.T
    summed = projected_queries.unsqueeze(-2) + projected_keys.unsqueeze(-3)
    return torch.tanh(summed) @ w_v
