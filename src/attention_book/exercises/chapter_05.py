"""Checkers of chapter 5, additive attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import (
    Part,
    UnusableError,
    answered,
    called,
    drawn,
    exercise,
    first_mistake,
    kind,
    lines,
    numbers,
    result,
    sentences,
    wrong_lines,
)
from attention_book.language import N_, say

answered(
    "5.1",
    N_("Every pair has 16 hidden units until w_v turns them into one score."),
    Part(
        "shape",
        (3, 5, 7, 16),
        {
            (3, 7, 5, 16): N_("Queries come before keys: the sum has one row per query."),
            (3, 5, 7): N_("The sum still has its hidden units; w_v removes them later."),
        },
        N_("The sum has one vector of 16 numbers for each pair of a query and a key."),
        "summed",
        N_("sum"),
    ),
    Part(
        "shape",
        (3, 5, 7),
        {(3, 5, 7, 1): N_("The scores are squeezed: the axis of size 1 is gone.")},
        N_("The scores are one number for each pair of a query and a key."),
        "scores",
        N_("scores"),
    ),
    Part(
        "shape",
        (3, 5, 9),
        {(3, 5, 16): N_("The output is a mean of values, so it is as wide as a value.")},
        N_("The output has one row per query, with as many columns as a value has components."),
        "output",
        N_("output"),
    ),
    hints=(
        N_("Both projections end in 16 numbers. Broadcasting then makes every pair."),
        N_("The sum has four axes: batch, queries, keys, hidden units."),
    ),
    importance=3,
)


@exercise(
    "5.2",
    N_("Each query and each key is projected once; broadcasting makes the pairs."),
    lines(
        "torch.tanh((queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(0)) @ w_v",
        0,
        {
            "((queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(0)) @ w_v": N_(
                "The activation is missing: without tanh the query does not affect the weights."
            ),
            "torch.tanh((queries @ W_q.T).unsqueeze(0) + (keys @ W_k.T).unsqueeze(1)) @ w_v": N_(
                "These are transposed, one row per key: the two new axes are swapped."
            ),
            "torch.tanh(((queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(0)) @ w_v)": N_(
                "You applied tanh to the score; it goes before w_v."
            ),
        },
    ),
    question=N_("Which expression gives the scores?"),
    hints=(
        N_("Project the queries and the keys once each, before any pair is made."),
        N_("`(m, 1, hidden)` plus `(1, n, hidden)` is `(m, n, hidden)`; what comes then?"),
    ),
)
def scores_without_loop(answer: Any) -> str | None:
    given = drawn(52, (3, 2), (5, 7), (11, 2), (11, 7), (11,))
    queries, keys, W_q, W_k, w_v = given
    projected_queries, projected_keys = (queries @ W_q.T)[:, None], (keys @ W_k.T)[None]
    summed = projected_queries + projected_keys
    scores = torch.tanh(summed) @ w_v
    mistakes = [
        *wrong_lines("5.2", queries=queries, keys=keys, W_q=W_q, W_k=W_k, w_v=w_v),
        (
            torch.tanh(summed).sum(-1),
            N_("You summed the hidden units without their parameters w_v."),
        ),
        (
            (projected_queries.tanh() + projected_keys.tanh()) @ w_v,
            N_("You applied tanh before the sum; it must act on query and key together."),
        ),
        (
            torch.tanh(projected_queries * projected_keys) @ w_v,
            N_("You multiplied the projections; add them."),
        ),
        (torch.sigmoid(summed) @ w_v, N_("The activation is a sigmoid; the task asks for tanh.")),
        (torch.relu(summed) @ w_v, N_("The activation is a ReLU; the task asks for tanh.")),
        (
            torch.softmax(scores, -1),
            N_("These are weights; the task asks for the scores before them."),
        ),
        (scores.unsqueeze(-1), N_("One axis of size 1 is left over; squeeze it.")),
    ]
    hint = N_("Project queries and keys, add them by broadcasting, apply tanh, then w_v.")
    mistake = first_mistake(result(answer, *given), scores, mistakes, hint)
    if mistake is None and called(answer, *given).count("tanh") > 1:
        return N_(
            "The numbers are right, but tanh runs more than once: broadcast instead of looping."
        )
    return mistake


@exercise(
    "5.3",
    N_("Both steps move by 1, and the ridge between them moves with them."),
    Part(
        "line",
        "[[1, 2], [1, 0]]",
        {
            "[[1, 1], [1, -1]]": N_("This is the worked example: its ridge is where k = q."),
            "[[1, 1], [2, 0]]": N_(
                "This is the transpose: each row has the factor of q and the factor of the "
                "constant."
            ),
            "[[1, 0], [1, -2]]": N_("The ridge is where k = q − 1: you moved it the other way."),
            "[[1, 0], [1, 2]]": N_(
                "The score is lowest where k = q + 1: the two units are swapped."
            ),
        },
        "",
        options=(
            "[[1, 1], [1, -1]]",
            "[[1, 0], [1, -2]]",
            "[[1, 2], [1, 0]]",
            "[[1, 1], [2, 0]]",
            "[[1, 0], [1, 2]]",
        ),
    ),
    question=N_("Which of these is W_q?"),
    hints=(
        N_(
            "In the worked example the two steps are at k = q + 1 and k = q − 1, and the ridge is "
            "between them."
        ),
        N_("A unit's step is where its input is 0: for the row (a, b) that is where a·q + b = k."),
    ),
)
def ridge(answer: Any) -> str | None:
    hint = N_("Both steps of the ridge must move by 1 along the axis of the keys.")
    mistake = first_mistake(answer, [[1, 2], [1, 0]], wrong_lines("5.3"), hint)
    W_q = numbers(answer)
    if mistake != hint or W_q is None or not W_q.isfinite().all():
        return mistake
    # Other parameters give the same ridge, so look where the highest scores are.
    queries = torch.linspace(-1, 1, 5, dtype=torch.float64)
    keys = torch.linspace(-3, 3, 601, dtype=torch.float64)
    first, second = (queries[:, None] * w[0] + w[1] - keys for w in W_q)
    scores = torch.tanh(first) - torch.tanh(second)
    best = keys[scores.argmax(-1)]
    if (best - (queries + 1)).abs().max() < 0.006:
        return None
    *_, moved_back, swapped = sentences("5.3")
    if (best - (queries - 1)).abs().max() < 0.006:
        return moved_back
    if (keys[scores.argmin(-1)] - (queries + 1)).abs().max() < 0.006:
        return swapped
    if scores.amax(-1).sub(scores.amin(-1)).max() < 1e-9:
        return N_("All keys score alike: the two steps cancel.")
    wrong = (best - (queries + 1)).abs().argmax()
    return say(
        "For the query {0} the highest score is at the key {1}, not at {2}.",
        *(f"{number:.1f}" for number in (queries[wrong], best[wrong], queries[wrong] + 1)),
    )


answered(
    "5.4",
    N_("327.68 MB for 100 queries is 3.2768 MB for each, and three of them fit into 10."),
    Part(
        "number",
        327.68,
        {
            81.92: N_("You counted numbers; each takes 4 bytes."),
            1.28: N_("This is the size of the scores; the hidden units are 256 times as many."),
            312.5: N_("You divided by 1024²; the task asks for units of a million bytes."),
            10.24: N_("This is one example; the batch has 32."),
        },
        N_("Multiply batch, queries, keys, hidden units and 4 bytes."),
        "megabytes",
        N_("megabytes"),
        tolerance=0.5,
        unit="MB",
    ),
    Part(
        "number",
        3,
        {
            4: N_("Four queries take 13.1 MB, which is more than 10."),
            3.05: N_("Only whole queries can be computed together: round down."),
        },
        N_("Divide 10 MB by the bytes of one query's hidden units, and round down."),
        "query_chunk",
        "query_chunk",
        tolerance=0.01,
    ),
    hints=(
        N_("The tensor of hidden units has four axes; multiply their sizes."),
        N_("How many megabytes belong to one of the 100 queries?"),
    ),
)


#: The scores (…, m, n) of queries (…, m, d_q) and keys (…, n, d_k), from W_q, W_k and w_v.
Scores = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def _pairs(q: Tensor, k: Tensor, W_q: Tensor, W_k: Tensor) -> Tensor:
    return (q @ W_q.T).unsqueeze(-2) + (k @ W_k.T).unsqueeze(-3)


def _right(q: Tensor, k: Tensor, W_q: Tensor, W_k: Tensor, w_v: Tensor) -> Tensor:
    return torch.tanh(_pairs(q, k, W_q, W_k)) @ w_v


def _in_another_order(q: Tensor, k: Tensor, W_q: Tensor, W_k: Tensor, w_v: Tensor) -> Tensor:
    """The same up to rounding."""
    both = (_pairs(k, q, W_k, W_q).tanh() * w_v).sum(-1)
    return both.transpose(-2, -1).contiguous()


def _swapped(q: Tensor, k: Tensor, W_q: Tensor, W_k: Tensor, w_v: Tensor) -> Tensor:
    return _right(k, q, W_k, W_q, w_v)


#: Wrong functions, each with what to say of a test that accepts it; those that a careless test
#: accepts come first.
_WRONG: list[tuple[Scores, str]] = [
    (
        lambda q, k, W_q, W_k, w_v: torch.full((*q.shape[:-1], k.shape[-2]), 0.5).to(q),
        N_("Your test accepts a function that returns 0.5 for every pair, in the right shape."),
    ),
    (
        lambda q, k, W_q, W_k, w_v: _pairs(q, k, W_q, W_k) @ w_v,
        N_("Your test accepts a function that leaves the activation out."),
    ),
    (
        lambda q, k, W_q, W_k, w_v: torch.tanh(_pairs(q, k, W_q, W_k) @ w_v),
        N_(
            "Your test accepts a function that applies tanh to the score instead of the hidden "
            "units."
        ),
    ),
    (
        lambda q, k, W_q, W_k, w_v: _pairs(q, k, W_q, W_k).tanh().sum(-1),
        N_("Your test accepts a function that adds up the hidden units without w_v."),
    ),
    (
        lambda q, k, W_q, W_k, w_v: (
            ((q @ W_q.T).tanh().unsqueeze(-2) + (k @ W_k.T).tanh().unsqueeze(-3)) @ w_v
        ),
        N_(
            "Your test accepts a function that applies tanh to each projection, before they are "
            "added."
        ),
    ),
    (
        lambda q, k, W_q, W_k, w_v: torch.softmax(_right(q, k, W_q, W_k, w_v), -1),
        N_("Your test accepts a function that returns the weights instead of the scores."),
    ),
    (
        _swapped,
        N_(
            "Your test accepts a function that returns the scores transposed, with one row per key."
        ),
    ),
    (
        lambda q, k, W_q, W_k, w_v: _swapped(q, k, W_q, W_k, w_v).reshape(
            *q.shape[:-1], k.shape[-2]
        ),
        N_(
            "Your test accepts a function that transposes the scores and then reshapes them to the "
            "right shape."
        ),
    ),
    (
        lambda q, k, W_q, W_k, w_v: torch.tanh(q @ W_q.T + k @ W_k.T) @ w_v,
        N_("Your test accepts a function that has no unsqueeze, so that query i meets key i only."),
    ),
    (
        lambda q, k, W_q, W_k, w_v: _right(q, k[:1].expand_as(k), W_q, W_k, w_v),
        N_(
            "Your test accepts a function that uses the keys of the first example for every "
            "example."
        ),
    ),
]


@exercise(
    "5.5",
    N_("It tells the right function from ten wrong ones."),
    hints=(
        N_("Sizes that are all different show what equal ones hide."),
        N_(
            "Compute the scores of your tensors once more, pair by pair in a loop, and compare "
            "with a tolerance."
        ),
    ),
)
def a_test_of_scores(answer: Any) -> str | None:
    if not all(_verdict(result(answer, right)) for right in (_right, _in_another_order)):
        return N_(
            "Your test rejects a function that is right. If it compares numbers, allow for "
            "rounding, as torch.allclose does with atol=1e-5."
        )
    for wrong, why in _WRONG:
        try:
            verdict = answer(wrong)
        except Exception:  # the wrong function, or the test itself, may stop with any error
            continue
        if _verdict(verdict):
            return why
    return None


def _verdict(value: Any) -> bool:
    """True or False, as a bool or as a tensor of one."""
    if issubclass(type(value), Tensor) and value.shape == () and value.dtype == torch.bool:
        return bool(value)
    if type(value) is not bool:
        raise UnusableError(say("Expected True or False, but got {0}.", kind(value)))
    return value
