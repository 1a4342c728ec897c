"""Checkers of chapter 1, queries, keys and values."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    TWO_DECIMALS,
    exercise,
    fields,
    first_mistake,
    result,
)


@exercise("1.1", "The softmax undoes the logarithm: 1 : 2 : 4, divided by their sum 7.")
def weights_by_hand(answer: Any) -> str | None:
    mistakes = [
        ([1, 2, 4], "These are e raised to the scores; divide them by their sum."),
        ([0, 1 / 3, 2 / 3], "You divided the scores by their sum; raise e to them first."),
        ([4 / 7, 2 / 7, 1 / 7], "These are the right numbers in the wrong order."),
    ]
    hint = "Raise e to each score, then divide by the sum of the three."
    return first_mistake(answer, [1 / 7, 2 / 7, 4 / 7], mistakes, hint, TWO_DECIMALS)


@exercise(
    "1.2", "The weights sum to 1 over the keys, and the result is their weighted mean of values."
)
def pooling(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(12)
    query, keys, values = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((3,), (5, 3), (5, 2))
    )
    scores = keys @ query
    weights = torch.softmax(scores, 0)
    mistakes = [
        (scores @ values, "You summed with the raw scores: the softmax is missing."),
        (scores, "These are the scores; the softmax and the weighted mean are missing."),
        (weights, "These are the weights; the weighted mean of the values is missing."),
        (
            torch.softmax(scores / 3**0.5, 0) @ values,
            "You divided the scores by √d_k; the task asks for the plain dot product.",
        ),
        (
            values[scores.argmax()],
            "You returned the value of the best key: that is a hard lookup, without a softmax.",
        ),
        (values.mean(0), "This is the plain mean of the values: the weights are not used."),
        (
            weights @ values / 5,
            "The weights sum to 1 already: do not divide by the number of keys.",
        ),
        (weights[:, None] * values, "These are the weighted values; their sum is missing."),
    ]
    hint = "Take the dot product of the query with each key, the softmax, then the weighted mean."
    return first_mistake(result(answer, query, keys, values), weights @ values, mistakes, hint)


@exercise(
    "1.3",
    "A longer query increases the differences between the scores, so the softmax is sharper.",
)
def factor(answer: Any) -> str | None:
    mistakes = [
        (1, "With the factor 1 the best key gets 0.64 of the weight."),
        (4, "4 is not enough: the best key gets 0.98."),
    ]
    hint = "Look for the smallest whole number for which the last weight is at least 0.99."
    return first_mistake(answer, 5, mistakes, hint)


@exercise("1.4", "The size of the queries is summed away in the scores, the keys in the result.")
def shapes_of(answer: Any) -> str | None:
    weights, output = fields(answer, "weights", "result")
    return first_mistake(
        weights,
        (7, 9),
        [((9, 7), "Weights have one row per query and one column per key, not the reverse.")],
        "The weights are one number for each pair of a query and a key.",
    ) or first_mistake(
        output,
        (7, 2),
        [
            ((7, 5), "The result is a mean of values, so it is as wide as a value, not a query."),
            ((9, 2), "The result has one row per query; the keys are summed away."),
        ],
        "The result has one row per query, with as many columns as a value has components.",
    )


@exercise(
    "1.5",
    "For two vectors, y·z is at most the mean of y·y and z·z, so one of the two things scores "
    "itself at least as high as the other.",
)
def largest_weight(answer: Any) -> str | None:
    mistakes = [
        (
            1,
            "That is what two projections reach. With one, the score of the pair is at most the "
            "mean of the two scores that the things give themselves.",
        ),
        (1 / 3, "That is the bound for the ring of three; here a row has two weights."),
        (0, "Both things can give each other some weight: with W = 0 all scores are equal."),
    ]
    hint = "Of the two things, one gives itself at least the score that it gives the other."
    return first_mistake(answer, 1 / 2, mistakes, hint, TWO_DECIMALS)


@exercise("1.6", "The weights of two keys belong to the values of the same two keys.")
def two_best(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(16)
    query, keys, values = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((3,), (6, 3), (6, 2))
    )
    keys = keys[(keys @ query).argsort()]  # the two best keys are last, the worst first
    scores = keys @ query
    best, places = scores.topk(2)
    weights = torch.softmax(best, 0)
    of_all = torch.softmax(scores, 0)
    mistakes = [
        (
            weights @ values[:2],
            "The mistake is still there: these are the weights of the two best keys, on the values "
            "of the first two.",
        ),
        (of_all @ values, "This attends to all keys, not to the two best."),
        (
            of_all[places] @ values[places],
            "These are the right values, but their weights do not sum to 1: take the softmax over "
            "the two best scores.",
        ),
        (weights @ values[places.flip(0)], "The right two values, with their weights swapped."),
        (values[places].mean(0), "This is the plain mean of the two values: use their weights."),
        (best @ values[places], "You summed with the raw scores: the softmax is missing."),
        (values[places[0]], "This is the value of the best key alone."),
        (
            torch.softmax(best / 3**0.5, 0) @ values[places],
            "You divided the scores by √d_k; the function in the task does not.",
        ),
        (
            torch.softmax(scores[:2], 0) @ values[:2],
            "This attends to the first two keys, which are not the two best.",
        ),
    ]
    hint = "Which rows of `values` belong to the two weights?"
    return first_mistake(
        result(answer, query, keys, values), weights @ values[places], mistakes, hint
    )
