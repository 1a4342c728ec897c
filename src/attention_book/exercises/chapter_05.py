"""Checkers of chapter 5, additive attention."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import NotAnsweredError, exercise, result, same


@exercise("5.1", "Every pair has 16 hidden numbers until w_v makes one of them.")
def shapes_by_pencil(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    if tuple(answer["summed"]) == (3, 7, 5, 16):
        return "Queries come before keys: the sum has one row a query."
    if tuple(answer["summed"]) == (3, 5, 7):
        return "The sum still has its hidden units; w_v takes them away later."
    if tuple(answer["summed"]) != (3, 5, 7, 16):
        return "The sum has one vector of 16 numbers for each pair of a query and a key."
    if tuple(answer["scores"]) == (3, 5, 7, 1):
        return "The scores are squeezed: the axis of size 1 is gone."
    if tuple(answer["scores"]) != (3, 5, 7):
        return "The scores hold one number for each pair of a query and a key."
    if tuple(answer["output"]) == (3, 5, 16):
        return "The output is a mean of values, so it is as wide as a value."
    if tuple(answer["output"]) != (3, 5, 9):
        return "The output has one row a query, as wide as a value."
    return None


@exercise("5.2", "Each query and each key is projected once; broadcasting makes the pairs.")
def scores_without_loop(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(52)
    queries, keys, W_q, W_k, w_v = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((3, 2), (5, 7), (11, 2), (11, 7), (11,))
    )
    got = result(answer, queries, keys, W_q, W_k, w_v)
    summed = (queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(0)
    scores = torch.tanh(summed) @ w_v
    if same(got, scores.T):
        return "These are transposed, one row a key: the two new axes are swapped."
    if same(got, summed @ w_v):
        return "The bend is missing: without tanh the query has no say in the weights."
    if same(got, torch.tanh(summed @ w_v)):
        return "You bent after the contraction; tanh goes before w_v."
    if same(got, torch.tanh(summed).sum(-1)):
        return "You summed the hidden units evenly; w_v says how much each counts."
    if same(got, torch.softmax(scores, -1)):
        return "These are weights; the task asks for the scores, before the softmax."
    if same(got, scores.unsqueeze(-1)):
        return "One axis of size 1 is left over; squeeze it."
    if not same(got, scores):
        return f"Expected shape {tuple(scores.shape)}: project, add by broadcasting, tanh, w_v."
    return None


@exercise("5.3", "Both steps move by 1, and the ridge between them with them.")
def ridge(answer: Any) -> str | None:
    W_q = torch.as_tensor(answer).double()
    if W_q.shape != (2, 2):
        return f"W_q must have shape (2, 2), but has {tuple(W_q.shape)}."
    if same(W_q, torch.tensor([[1.0, 1.0], [1.0, -1.0]])):
        return "This is the pencil case: its ridge is where k = q."
    queries = torch.linspace(-1, 1, 5, dtype=torch.float64)
    keys = torch.linspace(-3, 3, 601, dtype=torch.float64)
    first, second = (queries[:, None] * w[0] + w[1] - keys for w in W_q)
    scores = torch.tanh(first) - torch.tanh(second)
    best = keys[scores.argmax(-1)]
    if (best - (queries - 1)).abs().max() < 0.006:
        return "The ridge is where k = q − 1: you moved it the other way."
    if (best - (queries + 1)).abs().max() < 0.006:
        return None
    if (keys[scores.argmin(-1)] - (queries + 1)).abs().max() < 0.006:
        return "The score is lowest where k = q + 1: the two units are swapped."
    return f"For the query 0 the highest score is at the key {best[2]:.1f}, not at 1."


@exercise("5.4", "327.68 MB for 100 queries is 3.2768 MB for each, and three of them fit into 10.")
def memory(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    megabytes, query_chunk = answer["megabytes"], answer["query_chunk"]
    if same(megabytes, 81.92, 0.1):
        return "You counted numbers; each takes 4 bytes."
    if same(megabytes, 1.28, 0.01):
        return "This is the size of the scores; the hidden units are 256 times as many."
    if same(megabytes, 312.5, 0.1):
        return "You divided by 1024²; the task asks for units of a million bytes."
    if not same(megabytes, 327.68, 0.5):
        return "Multiply batch, queries, keys, hidden units and 4 bytes."
    if query_chunk == 4:
        return "Four queries take 13.1 MB, which is more than 10."
    return None if query_chunk == 3 else "Divide 10 MB by the bytes of one query's hidden units."
