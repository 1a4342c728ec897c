"""Checkers of chapter 1, queries, keys and values."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import NotAnsweredError, exercise, result, same


@exercise("1.1", "The softmax undoes the logarithm: 1 : 2 : 4, divided by their sum 7.")
def weights_by_pencil(answer: Any) -> str | None:
    if same(answer, torch.tensor([1.0, 2.0, 4.0])):
        return "These are e raised to the scores; divide them by their sum."
    if same(answer, torch.tensor([0.0, 1.0, 2.0]) * 0.693147 / 2.079442, 1e-3):
        return "You divided the scores by their sum; raise e to them first."
    if not same(answer, torch.tensor([1 / 7, 2 / 7, 4 / 7]), 1e-3):
        return "Raise e to each score, then divide by the sum of the three."
    return None


@exercise("1.2", "The weights sum to 1 over the keys, and the values are averaged under them.")
def pooling(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(12)
    query, keys, values = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((3,), (5, 3), (5, 2))
    )
    got = result(answer, query, keys, values)
    scores = keys @ query
    if same(got, scores @ values):
        return "You summed with the raw scores: the softmax is missing."
    if same(got, torch.softmax(scores, 0)):
        return "These are the weights; the mean of the values under them is still to be taken."
    if same(got, torch.softmax(scores / 3**0.5, 0) @ values):
        return "You divided the scores by √d_k; the task asks for the plain dot product."
    if same(got, values[scores.argmax()]):
        return "You returned the value of the best key: that is a look-up without softening."
    if not same(got, torch.softmax(scores, 0) @ values):
        return f"The result must have shape {(2,)}, one mean for each column of the values."
    return None


@exercise(
    "1.3",
    "A longer query stretches the differences between the scores, and the softmax is sharper.",
)
def factor(answer: Any) -> str | None:
    if same(answer, 1):
        return "With the factor 1 the best key gets 0.64 of the weight."
    if same(answer, 4):
        return "4 is not enough: the best key gets 0.98."
    if not same(answer, 5):
        return "Look for the smallest whole number for which the last weight is at least 0.99."
    return None


@exercise("1.4", "The size of the queries is summed away in the scores, the keys in the result.")
def shapes_of(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    weights, output = tuple(answer["weights"]), tuple(answer["result"])
    if weights == (9, 7):
        return "Weights have one row a query and one column a key, not the other way round."
    if weights != (7, 9):
        return "The weights hold one number for each pair of a query and a key."
    if output == (7, 5):
        return "The result is a mean of values, so it is as wide as a value, not as a query."
    return None if output == (7, 2) else "The result has one row a query."
