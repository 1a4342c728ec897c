"""Checkers of chapter 2, scoring functions."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import NotAnsweredError, exercise, result, same
from attention_book.measure import peak_bytes
from attention_book.scoring import distance_scores


@exercise("2.1", "The long key wins by dot product, the near key by distance.")
def scores_by_pencil(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    mistakes: dict[str, dict[tuple[float, float], str]] = {
        "dot": {
            (0, 2): "In each dot product both products count: 1·3 + 2·0 and 1·0 + 2·1.",
        },
        "distance": {
            (4, 1): "A distance is small where things are alike; a score must be large: minus.",
            (-8, -2): "The half is missing: −½ times the squared distance.",
            (8, 2): "These are squared distances; the score is −½ times that.",
            (-(8**0.5), -(2**0.5)): "These are distances with a minus; square them and halve.",
        },
    }
    right = {"dot": (3, 2), "distance": (-4, -1)}
    for name, numbers in right.items():
        for wrong, mistake in mistakes[name].items():
            if same(answer[name], torch.tensor(wrong, dtype=torch.float64), 0.01):
                return mistake
        if same(answer[name], torch.tensor(numbers[::-1])):
            return f"The two {name} scores are in the wrong order: first the key (3, 0)."
        if not same(answer[name], torch.tensor(numbers)):
            return f"Look at the {name} scores again, one key at a time."
    return None


@exercise("2.2", "A softmax does not see what is added to all of its inputs.")
def weights_stay(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    query, key, twice, largest = answer.values()
    if not query:
        return "The query's length is the same for all its keys, so its factor cancels."
    if key:
        return "Each key has a length of its own: the scores change by different amounts."
    if twice:
        return "Twice the scores are twice the differences: the softmax becomes sharper."
    if not largest:
        return "The largest score is one number, the same for all keys, so its factor cancels."
    return None


@exercise("2.3", "The entry in row i and column j is the factor of q_i k_j.")
def w_with_purpose(answer: Any) -> str | None:
    right = torch.tensor([[0.0, 1.0], [0.0, 0.0], [-1.0, 0.0]])
    if same(answer, right.T):
        return "This is the transpose: W has a row for each number of the query, 3 by 2."
    if same(answer, right.abs()):
        return "The sign of the second term is missing."
    if same(answer, -right):
        return "Both signs are turned round."
    if same(answer, torch.tensor([[0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])):
        return "The −1 belongs to q₃, the third row; this gives q₁k₂ − q₂k₁."
    if not same(answer, right):
        return "W is 3 by 2; put the factor of q_i k_j into row i and column j."
    return None


@exercise("2.4", "One matrix product, and two lengths that broadcasting adds.")
def lean_distance_scores(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(24)
    queries = torch.randn(2, 30, 11, generator=generator, dtype=torch.float64)
    keys = torch.randn(2, 40, 11, generator=generator, dtype=torch.float64)
    dots = queries @ keys.mT
    of_queries = queries.square().sum(-1, keepdim=True)
    of_keys = keys.square().sum(-1).unsqueeze(1)
    right = distance_scores(queries, keys)
    mistakes = [
        (-right, "The sign is turned round: the nearest key must have the largest score."),
        (2 * right, "The half is missing: −½ times the squared distance."),
        (-2 * right, "This is the squared distance; the score is −½ times that."),
        (dots, "This is the dot product: both lengths are still missing."),
        (dots - of_keys / 2, "The weights would be right, but the query's length is missing."),
        (dots - of_queries / 2, "The key's length is missing, and the softmax sees that."),
        (dots - of_queries - of_keys, "The two lengths must be halved; the dot product must not."),
        (dots + of_queries / 2 + of_keys / 2, "The lengths must be taken away, not added."),
        (right.mT, "The scores are transposed: one row a query."),
    ]
    got = result(answer, queries, keys)
    for wrong, mistake in mistakes:
        if same(got, wrong):
            return mistake
    if not same(got, right):
        return "Multiply out −½‖q − k‖²: it has three terms, and one is a matrix product."
    if peak_bytes(lambda: answer(queries, keys)) >= right.numel() * queries.shape[-1] * 8:
        return "The numbers are right, but the differences of all pairs were formed on the way."
    return None
