"""Checkers of chapter 4, batched matrix multiplication."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import NotAnsweredError, exercise, result, same


@exercise("4.1", "Row 2 of Q meets row 1 of K: 6 + 1 − 1.")
def entry(answer: Any) -> str | None:
    if same(answer, 2):
        return "This is entry (1, 2), the first query with the second key."
    if same(answer, 4):
        return "This is entry (1, 1), the first query with the first key."
    if same(answer, 3):
        return "This is entry (2, 2), the second query with the second key."
    if same(answer, 8):
        return "Mind the sign of the last feature: it is −1 · 1."
    return None if same(answer, 6) else "Multiply (3, 1, −1) and (2, 1, 1) by feature, then add."


@exercise("4.2", "The letter of the keys is in both and not behind the arrow, so it is summed.")
def letters(answer: Any) -> str | None:
    if not isinstance(answer, str):
        return f"Expected a string such as 'ij,jk->ik', but got a {type(answer).__name__}."
    generator = torch.Generator().manual_seed(42)
    weights, values = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((2, 3, 5), (2, 5, 7))
    )
    got = torch.einsum(answer, weights, values)
    output = weights @ values
    if same(got, output.mT):
        return "The output is transposed: one row a query comes first."
    if same(got, torch.einsum("bij,ajc->bic", weights, values)):
        return "The batch has two letters, so one of them is summed: the examples are mixed."
    if same(got, torch.einsum("bij,bjc->bijc", weights, values)):
        return "The letter of the keys still stands behind the arrow, so nothing is summed."
    if same(got, output.sum(0)):
        return "The letter of the batch is missing behind the arrow: the examples are added up."
    if same(got, torch.einsum("bij,bkc->bic", weights, values)):
        return "The keys have two letters, so each weight meets the sum of all values."
    if not same(got, output):
        return f"The output must be (batch, queries, value_size), here {tuple(output.shape)}."
    return None


@exercise("4.3", "Steps along the last axis cost 1, along the others the sizes behind them.")
def strides(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    fresh, transposed = tuple(answer["fresh"]), tuple(answer["transposed"])
    if fresh == (2, 5, 3):
        return "This is the shape; strides say how far to go in memory for one step."
    if fresh == (1, 2, 10):
        return "You counted from the first axis; numbers lie in order along the last axis."
    if fresh == (5, 3, 1):
        return "One example has 5 · 3 numbers, so the first stride is 15."
    if fresh != (15, 3, 1):
        return "For a fresh tensor, a stride is the product of all sizes behind its axis."
    if transposed == (15, 5, 1):
        return "These are the strides of a fresh (2, 3, 5) tensor; transposing copies nothing."
    if transposed == fresh:
        return "With the same strides nothing would be transposed; two of them change places."
    return None if transposed == (15, 1, 3) else "Swap the strides of the two axes, no more."


@exercise("4.4", "The new axes make the pairs, the sum takes the features away.")
def scores_by_broadcasting(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(44)
    queries, keys = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((2, 3, 7), (2, 5, 7))
    )
    got = result(answer, queries, keys)
    products = queries.unsqueeze(2) * keys.unsqueeze(1)
    scores = products.sum(-1)
    if same(got, scores.mT):
        return "These are transposed, one row a key: the two new axes are swapped."
    if same(got, products):
        return "The products of the features are still to be summed."
    if same(got, products.mean(-1)):
        return "This is the mean over the features; a dot product is their sum."
    if same(got, products.sum(-1, keepdim=True)):
        return "One axis of size 1 is left over: sum without keepdim."
    if not same(got, scores):
        return f"Expected shape {tuple(scores.shape)}: one number for each query and key."
    return None


@exercise("4.5", "One multiplication for each example, query, key and feature.")
def multiplications(answer: Any) -> str | None:
    if same(answer, 8 * 12 * 20):
        return "This is the number of entries; each takes 64 multiplications."
    if same(answer, 12 * 20 * 64):
        return "This is the work for one example; there are 8."
    if same(answer, 2 * 8 * 12 * 20 * 64):
        return "You counted the additions as well; the task asks for multiplications."
    right = same(answer, 8 * 12 * 20 * 64)
    return None if right else "Multiply batch, queries, keys and size."
