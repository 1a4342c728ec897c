"""Checkers of chapter 1, queries, keys and values."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    TWO_DECIMALS,
    Part,
    answered,
    drawn,
    exercise,
    first_mistake,
    lines,
    result,
    wrong_lines,
)
from attention_book.language import N_

answered(
    "1.1",
    N_("The softmax undoes the logarithm: 1 : 2 : 4, divided by their sum 7."),
    Part(
        "numbers",
        [1 / 7, 2 / 7, 4 / 7],
        {
            (1, 2, 4): N_("These are e raised to the scores; divide them by their sum."),
            (0, 1 / 3, 2 / 3): N_("You divided the scores by their sum; raise e to them first."),
            (4 / 7, 2 / 7, 1 / 7): N_("These are the right numbers in the wrong order."),
            (1 / 3, 1 / 3, 1 / 3): N_(
                "Equal weights would belong to equal scores; these scores differ."
            ),
        },
        N_("Raise e to each score, then divide by the sum of the three."),
        tolerance=TWO_DECIMALS,
    ),
    hints=(
        N_("What is e raised to the power ln 2?"),
        N_(
            "Write down e raised to each score; the weights are in the same proportion, with sum 1."
        ),
    ),
    importance=3,
)


@exercise(
    "1.2",
    N_("The weights sum to 1 over the keys, and the result is their weighted mean of values."),
    lines(
        "torch.softmax(keys @ query, dim=0) @ values",
        2,
        {
            "(keys @ query) @ values": N_(
                "You summed with the raw scores: the softmax is missing."
            ),
            "values[(keys @ query).argmax()]": N_(
                "You returned the value of the best key: that is a hard lookup, without a softmax."
            ),
            "torch.softmax(keys @ query, dim=0)[:, None] * values": N_(
                "These are the weighted values; their sum is missing."
            ),
        },
    ),
    question=N_("Which expression should the function return?"),
    hints=(
        N_("First one score per key, then one weight per key, then one mean of the values."),
        N_("`keys @ query` has the shape `(n,)`: one score per key. What makes weights of it?"),
    ),
    importance=3,
)
def pooling(answer: Any) -> str | None:
    query, keys, values = drawn(12, (3,), (5, 3), (5, 2))
    scores = keys @ query
    weights = torch.softmax(scores, 0)
    mistakes = [
        *wrong_lines("1.2", query=query, keys=keys, values=values),
        (scores, N_("These are the scores; the softmax and the weighted mean are missing.")),
        (weights, N_("These are the weights; the weighted mean of the values is missing.")),
        (
            torch.softmax(scores / 3**0.5, 0) @ values,
            N_("You divided the scores by √d_k; the task asks for the plain dot product."),
        ),
        (values.mean(0), N_("This is the plain mean of the values: the weights are not used.")),
        (
            weights @ values / 5,
            N_("The weights sum to 1 already: do not divide by the number of keys."),
        ),
    ]
    hint = N_(
        "Take the dot product of the query with each key, the softmax, then the weighted mean."
    )
    return first_mistake(result(answer, query, keys, values), weights @ values, mistakes, hint)


answered(
    "1.3",
    N_("A longer query increases the differences between the scores, so the softmax is sharper."),
    Part(
        "number",
        5,
        {
            1: N_("With the factor 1 the best key gets 0.64 of the weight."),
            2: N_("2 is not enough: the best key gets 0.86."),
            3: N_("3 is not enough: the best key gets 0.95."),
            4: N_("4 is not enough: the best key gets 0.98."),
            6: N_("6 is enough, but a smaller factor is enough too."),
        },
        N_("Look for the smallest whole number for which the last weight is at least 0.99."),
    ),
    hints=(
        N_("The scores grow by the same factor as the query."),
        N_(
            "With the factor c the weights are in the proportion e^c, e^2c, e^3c, e^4c. Divide all"
            " of them by the last: when are the others together less than about 0.01?"
        ),
    ),
)


answered(
    "1.4",
    N_("The size of the queries is summed away in the scores, the keys in the result."),
    Part(
        "shape",
        (7, 9),
        {(9, 7): N_("Weights have one row per query and one column per key, not the reverse.")},
        N_("The weights are one number for each pair of a query and a key."),
        "weights",
        N_("weights"),
    ),
    Part(
        "shape",
        (7, 2),
        {
            (7, 5): N_("The result is a mean of values, so it is as wide as a value, not a query."),
            (9, 2): N_("The result has one row per query; the keys are summed away."),
        },
        N_("The result has one row per query, with as many columns as a value has components."),
        "result",
        N_("result"),
    ),
    hints=(
        N_("Rows belong to queries. What do the columns of the weights belong to?"),
        N_("The result of one query is a weighted mean of values. How many numbers is that?"),
    ),
    importance=3,
)


answered(
    "1.5",
    N_(
        "For two vectors, y·z is at most the mean of y·y and z·z, so one of the two things scores "
        "itself at least as high as the other."
    ),
    Part(
        "number",
        1 / 2,
        {
            1: N_(
                "That is what two projections reach. With one, the score of the pair is at "
                "most the mean of the two scores that the things give themselves."
            ),
            1 / 3: N_("That is the bound for the ring of three; here a row has two weights."),
            0: N_("Both things can give each other some weight: with W = 0 all scores are equal."),
        },
        N_("Of the two things, one gives itself at least the score that it gives the other."),
        tolerance=TWO_DECIMALS,
    ),
    hints=(
        N_("With one projection, thing 0 gives thing 1 the same score as thing 1 gives thing 0."),
        N_(
            "Call the projected things y and z, and compare y·z with y·y and z·z: can y·z be "
            "larger than both?"
        ),
    ),
    importance=1,
)


@exercise(
    "1.6",
    N_("The weights of two keys belong to the values of the same two keys."),
    lines(
        "torch.softmax((keys @ query).topk(2)[0], dim=0) @ values[(keys @ query).topk(2)[1]]",
        1,
        {
            "torch.softmax(keys @ query, dim=0) @ values": N_(
                "This attends to all keys, not to the two best."
            ),
            "torch.softmax((keys @ query)[:2], dim=0) @ values[:2]": N_(
                "This attends to the first two keys, which are not the two best."
            ),
            "values[(keys @ query).topk(2)[1]].mean(0)": N_(
                "This is the plain mean of the two values: use their weights."
            ),
        },
    ),
    question=N_("Which expression returns what the colleague wanted?"),
    hints=(
        N_("Whose values does `values[:2]` hold?"),
        N_("`topk` returns two things, and the function uses only one of them."),
    ),
)
def two_best(answer: Any) -> str | None:
    query, keys, values = drawn(16, (3,), (6, 3), (6, 2))
    keys = keys[(keys @ query).argsort()]  # the two best keys are last, the worst first
    scores = keys @ query
    best, places = scores.topk(2)
    weights = torch.softmax(best, 0)
    of_all = torch.softmax(scores, 0)
    mistakes = [
        (
            weights @ values[:2],
            N_(
                "The mistake is still there: these are the weights of the two best keys, on the "
                "values of the first two."
            ),
        ),
        *wrong_lines("1.6", query=query, keys=keys, values=values),
        (
            of_all[places] @ values[places],
            N_(
                "These are the right values, but their weights do not sum to 1: take the softmax "
                "over the two best scores."
            ),
        ),
        (weights @ values[places.flip(0)], N_("The right two values, with their weights swapped.")),
        (best @ values[places], N_("You summed with the raw scores: the softmax is missing.")),
        (values[places[0]], N_("This is the value of the best key alone.")),
        (
            torch.softmax(best / 3**0.5, 0) @ values[places],
            N_("You divided the scores by √d_k; the function in the task does not."),
        ),
    ]
    hint = N_("Which rows of `values` belong to the two weights?")
    return first_mistake(
        result(answer, query, keys, values), weights @ values[places], mistakes, hint
    )
