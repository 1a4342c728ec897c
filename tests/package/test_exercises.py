"""The exercises' checkers: right answers are right, and each known mistake is named."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from browser import ROOT
from scripts import tool
from torch.nn import functional as F

import attention_book
from attention_book import (
    DotProductAttention,
    causal_mask,
    distance_scores,
    length_mask,
    masked_softmax,
)
from attention_book.exercises import check, language
from attention_book.exercises.checker import exercises, judge, numbers, option_text

CHAPTERS = sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))


def said(capsys: pytest.CaptureFixture[str], name: str, answer: object) -> str:
    check(name, answer)
    return capsys.readouterr().out


def pooled(query, keys, values, scale=1.0):
    return torch.softmax(keys @ query * scale, 0) @ values


def two_best(chosen):
    """Attention to the two best keys; `chosen` says whose values get their weights."""

    def answer(query, keys, values):
        scores, places = (keys @ query).topk(2)
        return torch.softmax(scores, 0) @ values[chosen(places)]

    return answer


def best_two(scores):
    return scores >= scores.topk(2)[0][1]


def masked_to_two(query, keys, values):
    scores = keys @ query
    return torch.softmax(scores.masked_fill(~best_two(scores), -torch.inf), 0) @ values


CHAPTER_1 = [
    ("1.1", [1 / 7, 2 / 7, 4 / 7], ": right."),
    ("1.1", [Fraction(n, 7) for n in (1, 2, 4)], ": right."),
    ("1.1", (0.14, 0.29, 0.57), ": right."),
    ("1.1", [0.57, 0.29, 0.14], "wrong order"),
    ("1.1", [0.3, 0.3, 0.4], "Raise e to each score"),
    ("1.1", [1 / 7, 2 / 7], "Expected 3 numbers, but got 2 numbers."),
    ("1.1", "1/7", "Expected 3 numbers, but got a list of one number."),
    ("1.1", "１／７，２／７、４／７", ": right."),
    ("1.1", "14%, 29% 57%", "Write 3 numbers"),
    ("1.1", "14% 29% 57%", ": right."),
    ("1.1", 1, "Expected 3 numbers, but got one number."),
    ("1.1", ["1/7", "2/7", "4/7"], "but got a list that is not all numbers."),
    ("1.2", pooled, ": right."),
    ("1.2", lambda q, k, v: pooled(q, k, v, 3**-0.5), "plain dot product"),
    ("1.2", lambda q, k, v: k @ q @ v, "softmax is missing"),
    ("1.2", lambda q, k, v: torch.softmax(k @ q, 0), "These are the weights"),
    ("1.2", lambda q, k, v: v[(k @ q).argmax()], "hard lookup"),
    ("1.2", lambda q, k, v: v.mean(0), "weights are not used"),
    ("1.2", lambda q, k, v: pooled(q, k, v) + 1, "Take the dot product"),
    ("1.2", lambda q, k, v: v, "shape (5, 2)"),
    ("1.2", lambda q, k, v: None, "returns None"),
    ("1.2", lambda q, k: k, "function raises TypeError"),
    ("1.2", 3, "Expected a function, but got a whole number."),
    ("1.3", 5, ": right."),
    ("1.3", 5.0, ": right."),
    ("1.3", 7, "smallest whole number"),
    ("1.4", {"weights": (7, 9)}, "no entry 'result'"),
    ("1.4", [(7, 9), (7, 2)], "Expected a dictionary"),
    ("1.4", {"weights": "7x9", "result": "7 × 2"}, ": right."),
    ("1.4", {"weights": "seven", "result": (7, 2)}, "Write a shape as whole numbers"),
    ("1.4", {"weights": 7, "result": (7, 2)}, "A shape is a tuple"),
    ("1.4", {"weights": (7, 9), "result": (7, 2)}, ": right."),
    ("1.4", {"weights": [7, 9], "result": [7, 2]}, ": right."),
    ("1.4", {"weights": torch.Size([7, 9]), "result": torch.Size([7, 2])}, ": right."),
    ("1.4", {"weights": (7, 5), "result": (7, 2)}, "each pair"),
    ("1.4", {"weights": (7, 9), "result": ...}, "not answered yet"),
    ("1.5", 0.5, ": right."),
    ("1.5", Fraction(1, 2), ": right."),
    ("1.5", 0.7, "Of the two things"),
    ("1.5", [0.5, 0.5], "Expected one number, but got 2 numbers."),
    ("1.6", two_best(lambda at: at), ": right."),
    ("1.6", masked_to_two, ": right."),
    ("1.6", two_best(lambda at: torch.arange(2)), "still there"),
    ("1.6", pooled, "to all keys"),
    ("1.6", lambda q, k, v: (k @ q).softmax(0).mul(best_two(k @ q)) @ v, "do not sum to 1"),
    ("1.6", two_best(lambda at: at.flip(0)), "weights swapped"),
    ("1.6", lambda q, k, v: v[(k @ q).topk(2)[1]].mean(0), "plain mean of the two"),
    ("1.6", lambda q, k, v: (k @ q * best_two(k @ q)) @ v, "softmax is missing"),
    ("1.6", lambda q, k, v: v[(k @ q).argmax()], "best key alone"),
    ("1.6", lambda q, k, v: masked_to_two(q / 3**0.5, k, v), "divided the scores"),
    ("1.6", lambda q, k, v: pooled(q, k[:2], v[:2]), "first two keys"),
    ("1.6", lambda q, k, v: masked_to_two(q, k, v) + 1, "Which rows of `values`"),
    ("1.6", lambda q, k, v: v, "shape (6, 2)"),
]


def pairs_of(queries, keys):
    return queries.unsqueeze(2) * keys.unsqueeze(1)


def work_of(multiplications=122880, positions=1536):
    return {"multiplications": multiplications, "positions": positions}


CHAPTER_4 = [
    ("4.1", 6, ": right."),
    ("4.1", "six", "Write one number"),
    ("4.2", "ijk,ikm->ijm", ": right."),
    ("4.2", "bij,bjc->bci", "transposed"),
    ("4.2", "bij,ajc->bic", "examples are mixed"),
    ("4.2", "bij,bjc->bijc", "nothing is summed"),
    ("4.2", "bij,bjc->ic", "examples are added up"),
    ("4.2", "bij,bkc->bic", "sum of all values"),
    ("4.2", "bij,bjc->bjc", "sum of its column"),
    ("4.2", "bij,bic->bjc", "must have the same size"),
    ("4.2", 7, "Expected a string"),
    ("4.3", {"fresh": (15, 3, 1), "transposed": (15, 1, 3)}, ": right."),
    ("4.3", {"fresh": (2, 5, 3), "transposed": (2, 3, 5)}, "This is the shape"),
    ("4.3", {"fresh": (1, 2, 10), "transposed": (1, 10, 2)}, "last axis"),
    ("4.3", {"fresh": (5, 3, 1), "transposed": (5, 1, 3)}, "first stride is 15"),
    ("4.3", {"fresh": (15, 3, 1), "transposed": ...}, "not answered yet"),
    ("4.4", lambda q, k: pairs_of(q, k).sum(-1), ": right."),
    ("4.4", lambda q, k: pairs_of(k, q).sum(-1), "transposed"),
    ("4.4", pairs_of, "not summed yet"),
    ("4.4", lambda q, k: pairs_of(q, k).mean(-1), "mean over the components"),
    ("4.4", lambda q, k: pairs_of(q, k).sum(-1, keepdim=True), "axis of size 1"),
    ("4.4", lambda q, k: q * k, "raises RuntimeError"),
    ("4.4", lambda q, k: ..., "not answered yet"),
    ("4.5", work_of(), ": right."),
    ("4.5", work_of(0), "multiply batch"),
    ("4.5", work_of(positions=1536.0), ": right."),
    ("4.5", work_of(positions=768), "solve 2n²d = 4nd²"),
    ("4.5", {"multiplications": 122880}, "no entry 'positions'"),
    ("4.5", work_of(positions=...), "not answered yet"),
    ("4.5", 122880, "Expected a dictionary"),
]


def hidden_of(queries, keys, W_q, W_k):
    return (queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(0)


def given_to_scores(batch=2):
    generator = torch.Generator().manual_seed(55)
    shapes = (batch, 3, 5), (batch, 4, 6), (7, 5), (7, 6), (7,)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def tried(scores_of):
    return scores_of(*given_to_scores())


def by_pairs(scores_of, tolerance, batch=2):
    queries, keys, W_q, W_k, w_v = given_to_scores(batch)
    expected = [
        [[torch.tanh(W_q @ q + W_k @ k) @ w_v for k in these_keys] for q in these_queries]
        for these_queries, these_keys in zip(queries, keys, strict=True)
    ]
    scores = scores_of(queries, keys, W_q, W_k, w_v)
    right = torch.tensor(expected)
    return scores.shape == right.shape and torch.allclose(scores, right, rtol=0, atol=tolerance)


CHAPTER_5 = [
    ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, ": right."),
    ("5.1", {"summed": (3, 5, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, "each pair"),
    ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 7), "output": (3, 5, 9)}, "each pair"),
    (
        "5.1",
        {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 7, 9)},
        "one row per query",
    ),
    ("5.1", {"summed": (3, 5, 7, 16), "scores": ..., "output": ...}, "not answered yet"),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w, ": right."),
    ("5.2", lambda q, k, W, U, w: hidden_of(k, q, U, W).tanh() @ w, "axes are swapped"),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U) @ w, "activation is missing"),
    ("5.2", lambda q, k, W, U, w: (hidden_of(q, k, W, U) @ w).tanh(), "it goes before w_v"),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh().sum(-1), "without their parameters"),
    ("5.2", lambda q, k, W, U, w: (hidden_of(q, k, W, U).tanh() @ w).softmax(-1), "weights"),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w[:, None], "left over"),
    (
        "5.2",
        lambda q, k, W, U, w: q @ W.T,
        "Expected a tensor of shape (3, 5), but got a tensor of shape (3, 11)",
    ),
    ("5.2", lambda q, k, W, U, w: ..., "not answered yet"),
    ("5.3", [[1, 2], [1, 0]], ": right."),
    ("5.3", torch.tensor([[2.0, 3.0], [2.0, 1.0]]), "not at"),
    ("5.3", [[1, 1], [1, -1]], "worked example"),
    ("5.3", [[1, 0], [1, -2]], "the other way"),
    ("5.3", [[1, 0], [1, 2]], "units are swapped"),
    ("5.3", [[1, 3], [1, 1]], "at the key 1.0, not at 0.0"),
    ("5.3", [1, 2], "Expected a tensor of shape (2, 2), but got 2 numbers"),
    ("5.4", {"megabytes": 327.68, "query_chunk": 3}, ": right."),
    ("5.4", {"megabytes": 3.0, "query_chunk": 3}, "Multiply batch"),
    ("5.4", {"megabytes": 327.68, "query_chunk": 30}, "Divide 10 MB"),
    ("5.4", {"megabytes": ..., "query_chunk": ...}, "not answered yet"),
    ("5.5", lambda scores_of: by_pairs(scores_of, 1e-5), ": right."),
    ("5.5", lambda scores_of: torch.tensor(by_pairs(scores_of, 1e-5)), ": right."),
    ("5.5", lambda scores_of: by_pairs(scores_of, 0.0), "allow for rounding"),
    ("5.5", lambda scores_of: False, "rejects a function that is right"),
    ("5.5", lambda scores_of: True, "returns 0.5 for every pair"),
    ("5.5", lambda scores_of: tried(scores_of).shape == (2, 3, 4), "returns 0.5 for every pair"),
    ("5.5", lambda scores_of: tried(scores_of).std() > 0.5, "leaves the activation out"),
    ("5.5", lambda scores_of: tried(scores_of).abs().max() < 9, "returns 0.5 for every pair"),
    ("5.5", lambda scores_of: by_pairs(scores_of, 1e-5, batch=1), "of the first example"),
    ("5.5", tried, "Expected True or False, but got a tensor of shape (2, 3, 4)"),
    ("5.5", lambda scores_of: 1, "Expected True or False, but got a whole number"),
    ("5.5", lambda scores_of: None, "returns None"),
    ("5.5", lambda scores_of: ..., "not answered yet"),
    ("5.5", True, "Expected a function, but got True"),
]


STAYS = (
    "add the query's squared length to each score",
    "add each key's squared length to its score",
    "multiply every score by 2",
    "subtract the largest score from each",
)


def terms(queries, keys):
    """The three terms of a squared distance: products, queries' squares, keys' squares."""
    of_queries = queries.square().sum(-1, keepdim=True)
    return queries @ keys.mT, of_queries, keys.square().sum(-1).unsqueeze(1)


def distances_in_terms(a, b, c):
    def answer(queries, keys):
        products, of_queries, of_keys = terms(queries, keys)
        return a * products + b * of_queries + c * of_keys

    return answer


def sums_of(fails="error", fits=(2, 3, 4), missing=(3, 4), silent=(3, 3)):
    return {
        "(2, 3) + (2, 3, 4)": fails,
        "(2, 1, 4) + (2, 3, 4)": fits,
        "(3, 1) + (4)": missing,
        "(3) + (3, 1)": silent,
    }


CHAPTER_2 = [
    ("2.1", {"dot": [3, 2], "distance": [-4, -1]}, ": right."),
    ("2.1", {"dot": [3, 2], "distance": [0, 0]}, "distance scores again"),
    ("2.1", {"dot": ..., "distance": [-4, -1]}, "not answered yet"),
    ("2.2", dict(zip(STAYS, (True, False, False, True), strict=True)), ": right."),
    ("2.2", dict(zip(STAYS, (False, False, False, True), strict=True)), "query's length"),
    ("2.2", dict(zip(STAYS, (True, True, False, True), strict=True)), "length of its own"),
    ("2.2", dict(zip(STAYS, (True, False, True, True), strict=True)), "sharper"),
    ("2.2", dict(zip(STAYS, (True, False, False, False), strict=True)), "largest score"),
    ("2.2", dict(zip(STAYS, (True, False, ..., True), strict=True)), "not answered yet"),
    ("2.3", [[0, 1], [0, 0], [-1, 0]], ": right."),
    ("2.3", torch.tensor([[0.0, 0, -1], [1, 0, 0]]), "transpose"),
    ("2.3", [[1, 0], [0, 0], [0, -1]], "row i and column j"),
    ("2.4", distances_in_terms(1, -0.5, -0.5), ": right."),
    ("2.4", distances_in_terms(-1, 0.5, 0.5), "sign is reversed"),
    ("2.4", distances_in_terms(2, -1, -1), "half is missing"),
    ("2.4", distances_in_terms(-2, 1, 1), "squared distance"),
    ("2.4", distances_in_terms(1, 0, 0), "both squared lengths"),
    ("2.4", distances_in_terms(1, 0, -0.5), "query's length is missing"),
    ("2.4", distances_in_terms(1, -0.5, 0), "key's length is missing"),
    ("2.4", distances_in_terms(1, -1, -1), "but not the dot product"),
    ("2.4", distances_in_terms(1, 0.5, 0.5), "you added them"),
    ("2.4", lambda q, k: distance_scores(q, k).mT, "transposed"),
    ("2.4", distance_scores, "differences of all pairs"),
    ("2.4", lambda q, k: -0.5 * torch.cdist(q, k).square(), ": right."),
    ("2.4", lambda q, k: q, "(2, 30, 40), but got a tensor of shape (2, 30, 11)"),
    ("2.4", lambda q, k: ..., "not answered yet"),
    ("2.5", sums_of(), ": right."),
    ("2.5", sums_of(fits=torch.Size([2, 3, 4]), silent=[3, 3]), ": right."),
    ("2.5", sums_of(fails="Error"), ": right."),
    ("2.5", sums_of(fails=(2, 3, 4)), "where 3 meets 4"),
    ("2.5", sums_of(fits="error"), "1 is repeated to 3"),
    ("2.5", sums_of(fits=(2, 1, 4)), "1 is repeated to 3"),
    ("2.5", sums_of(missing="error"), "counts as 1"),
    ("2.5", sums_of(silent=(3, 1)), "both are repeated"),
    ("2.5", sums_of(silent="error"), "both are repeated"),
    ("2.5", sums_of(silent="no"), 'or "error"'),
    ("2.5", sums_of(fits=24), "A shape is a tuple"),
    ("2.5", sums_of(missing=...), "not answered yet"),
    ("2.6", {"queries": [[2, 1], [2, 1]], "keys": [[2, 1], [4, 2]]}, ": right."),
    ("2.6", {"queries": torch.ones(1, 3, 1), "keys": [[1], [1], [9]]}, ": right."),
    ("2.6", {"queries": [[1, 0], [0, 1]], "keys": [[1, 0], [0, 1]]}, "equally long"),
    ("2.6", {"queries": [[9, 0], [9, 0]], "keys": [[1, 0], [2, 0]]}, "on the right key here"),
    ("2.6", {"queries": [[1, 0]], "keys": [[1, 0]]}, "every weight is 1"),
    ("2.6", {"queries": [[1, 0]], "keys": [[1, 0], [2, 0]]}, "the shape (1, 2, 2)"),
    ("2.6", {"queries": [[1], [2], [3]], "keys": [[1], [2]]}, "With 3 queries and 2 keys"),
    ("2.6", {"queries": [[1], [2]], "keys": [[1, 2], [2, 3]]}, "1 and 2 components"),
    ("2.6", {"queries": [1, 2], "keys": [[1], [2]]}, "a list of vectors"),
    ("2.6", {"queries": [[1], [math.nan]], "keys": [[1], [2]]}, "NaN"),
    ("2.6", {"queries": ..., "keys": ...}, "not answered yet"),
]


def band(n, oldest, newest):
    """Each query sees the keys from `oldest` to `newest` positions away."""
    offset = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    return (offset >= oldest) & (offset <= newest)


def filled(fill, dim=-1):
    return lambda scores, mask: torch.softmax(scores.masked_fill(~mask, fill), dim)


CHAPTER_3 = [
    ("3.1", [1 / 4, 3 / 4, 0, 0], ": right."),
    ("3.1", [1 / 4, 3 / 4], "Expected 4 numbers, but got 2 numbers"),
    ("3.2", lambda tokens: (tokens != 0)[:, None], ": right."),
    ("3.2", lambda tokens: (tokens != 0)[:, None].expand(-1, 3, -1), ": right."),
    ("3.2", lambda tokens: tokens != 0, "by accident"),
    ("3.2", lambda tokens: (tokens == 0)[:, None], "inverted"),
    ("3.2", lambda tokens: (tokens != 0)[:, :, None], "query axis"),
    ("3.2", lambda tokens: (tokens != 0)[:, None].float(), "boolean"),
    ("3.2", lambda tokens: length_mask((tokens != 0).sum(1), 3), "counted the real tokens"),
    ("3.3", lambda n: band(n, -2, 0), ": right."),
    ("3.3", causal_mask, "whole past"),
    ("3.3", lambda n: band(n, -3, 0), "too long"),
    ("3.3", lambda n: band(n, -1, 0), "too short"),
    ("3.3", lambda n: band(n, -2, -1), "query itself"),
    ("3.3", lambda n: band(n, -2, 2), "into the future"),
    ("3.3", lambda n: band(n, 0, 2), "lies in the future"),
    ("3.3", lambda n: ~band(n, -2, 0), "inverted"),
    ("3.3", lambda n: band(n - 1, -2, 0), "(7, 7), but got a tensor of shape (6, 6)"),
    ("3.3", lambda n: band(n, -2, 0).float(), "boolean"),
    ("3.3", lambda n: band(n, -2, 0).tolist(), "boolean"),
    ("3.3", lambda n: None, "returns None"),
    ("3.4", lambda scores, mask: masked_softmax(scores, mask=mask), "without `masked_softmax`"),
    ("3.4", lambda scores, mask: filled(-torch.inf)(scores, mask).nan_to_num(), ": right."),
    ("3.4", lambda scores, mask: torch.softmax(scores, -1), "no effect"),
    ("3.4", lambda scores, mask: torch.softmax(scores, -1) * mask, "after the softmax"),
    ("3.4", lambda scores, mask: torch.softmax(scores * mask, -1), "e to the 0"),
    ("3.4", filled(-torch.inf, 0), "wrong axis"),
    ("3.4", filled(-torch.inf, 1), "wrong axis"),
    ("3.4", lambda scores, mask: filled(-torch.inf)(scores, ~mask), "inverted"),
    ("3.4", filled(-10.0), "keeps some weight"),
    ("3.4", filled(-1e6), "lower than every score"),
    ("3.4", filled(-torch.inf), "gets NaN"),
    (
        "3.4",
        lambda scores, mask: filled(torch.finfo(scores.dtype).min)(scores, mask),
        "weights on masked keys",
    ),
    ("3.4", lambda s, m: torch.softmax(s.masked_fill_(~m, -torch.inf), -1), "writes into"),
    (
        "3.4",
        lambda s, m: torch.softmax(s + m.log(), -1).nan_to_num(),
        "gradient of an empty row is NaN",
    ),
    ("3.4", lambda scores, mask: scores[0], "(2, 3, 4), but got a tensor of shape (3, 4)"),
    ("3.4", lambda scores, mask: ..., "not answered yet"),
    ("3.5", lambda lens, n: ~length_mask(lens, n).squeeze(1), ": right."),
    ("3.5", lambda lens, n: length_mask(lens, n).squeeze(1), "Here True = blocked; yours"),
    ("3.5", lambda lens, n: ~length_mask(lens, n), "remove the axis"),
    ("3.5", length_mask, "and the shape must be"),
    ("3.5", lambda lens, n: (~length_mask(lens, n)).squeeze(1).float(), "boolean"),
    ("3.5", lambda lens, n: torch.ones(3, n, dtype=torch.bool), "Row b"),
]


def halves(x, num_heads):
    """Heads moved before the positions, attended to with the right scale."""
    batch, length, width = x.shape
    heads = x.reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)
    return torch.softmax(heads @ heads.mT * (width // num_heads) ** -0.5, dim=-1) @ heads


def without_swap(x, num_heads):
    heads = x.reshape(*x.shape[:2], num_heads, -1)
    return (torch.softmax(heads @ heads.mT * heads.shape[-1] ** -0.5, -1) @ heads).reshape(x.shape)


def centred(x, dim=-1):
    return x - x.mean(dim=dim, keepdim=True)


CHAPTER_8 = [
    ("8.1", [-1.342, -0.447, 0.447, 1.342], ": right."),
    ("8.1", [-1.162, -0.387, 0.387, 1.162], "n − 1"),
    ("8.1", [0.447, 1.342, 2.236, 3.130], "mean is not subtracted"),
    ("8.1", 4, "Expected 4 numbers, but got one number"),
    (
        "8.2",
        lambda x, eps: centred(x) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
        ": right.",
    ),
    (
        "8.2",
        lambda x, eps: centred(x) / (x.std(-1, correction=0, keepdim=True) + eps),
        "inside the root",
    ),
    ("8.2", lambda x, eps: centred(x) / (x.var(-1, keepdim=True) + eps).sqrt(), "correction=0"),
    (
        "8.2",
        lambda x, eps: centred(x, 0) / (x.var(0, correction=0, keepdim=True) + eps).sqrt(),
        "examples",
    ),
    (
        "8.2",
        lambda x, eps: centred(x, 1) / (x.var(1, correction=0, keepdim=True) + eps).sqrt(),
        "positions",
    ),
    (
        "8.2",
        lambda x, eps: x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
        "not subtracted",
    ),
    ("8.2", lambda x, eps: x, "Subtract the mean"),
    ("8.2", lambda x, eps: ..., "not answered yet"),
    ("8.3", lambda x, h: halves(x, h).transpose(1, 2).reshape(x.shape), ": right."),
    ("8.3", without_swap, "Still no position"),
    ("8.3", lambda x, h: halves(x, h).reshape(x.shape), "swap back"),
    ("8.3", lambda x, h: halves(x, h), "not joined yet"),
    ("8.3", lambda x, h: torch.softmax(x @ x.mT, -1) @ x, "Split the width"),
    ("8.4", 2363904, ": right."),
    ("8.4", 1, "Count four projections"),
]


USES = {
    "encoder": ("source", "source"),
    "causal": ("target", "target"),
    "cross": ("target", "source"),
}


def ahead(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def token(lens, n):
    return torch.arange(n) < lens.reshape(-1, 1, 1)


CHAPTER_9 = [
    ("9.1", USES, ": right."),
    ("9.1", USES | {"cross": ...}, "not answered yet"),
    ("9.1", USES | {"cross": ("target", "target")}, "joins the two"),
    ("9.1", USES | {"encoder": ("target", "source")}, "only the source"),
    ("9.1", USES | {"causal": ("target", "source")}, "target alone"),
    ("9.2", lambda lens, n: ~ahead(n) & token(lens, n), ": right."),
    ("9.2", lambda lens, n: ~(~ahead(n) & token(lens, n)), "True means blocked"),
    ("9.2", lambda lens, n: ~ahead(n) | token(lens, n), "with or"),
    ("9.2", lambda lens, n: ahead(n).mT & token(lens, n), "diagonal is missing"),
    ("9.2", lambda lens, n: ~ahead(n).mT & token(lens, n), "reverse the comparison"),
    ("9.2", lambda lens, n: ~ahead(n) & token(lens, n).mT, "query axis"),
    ("9.2", lambda lens, n: ~ahead(n), "padding can still be seen"),
    ("9.2", lambda lens, n: token(lens, n), "future can still be seen"),
    ("9.2", lambda lens, n: (~ahead(n) & token(lens, n)).float(), "boolean"),
    ("9.2", lambda lens, n: ahead(n), "(3, 4, 4), but got a tensor of shape (4, 4)"),
    ("9.2", lambda lens, n: ..., "not answered yet"),
    ("9.3", lambda t, n: (t + 1) % n, ": right."),
    ("9.3", lambda t, n: t + 1, "return to the beginning"),
    ("9.3", lambda t, n: n - 1 - t, "reversing"),
    ("9.3", lambda t, n: (t - 1) % n, "other way"),
    ("9.3", lambda t, n: t, "copies"),
    ("9.3", lambda t, n: 0, "where it came from"),
    ("9.4", 254, ": right."),
    ("9.4", 0, "Count queries"),
]


def attend(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)


def until(last):
    """Of 5 queries and 7 keys, let query i attend to the keys up to number i + last."""
    return torch.ones(5, 7, dtype=torch.bool).tril(last)


def by_divisor(divisor, last=2):
    return lambda q, k, v: attend(q @ k.mT / divisor, until(last)) @ v


CHAPTER_6 = [
    ("6.1", 36, ": right."),
    ("6.1", 5, "Start with"),
    ("6.2", by_divisor(4), ": right."),
    ("6.2", lambda q, k, v: masked_softmax(q @ k.mT / 4, causal=True) @ v, ": right."),
    ("6.2", by_divisor(4, 0), "aligned to the first key"),
    ("6.2", by_divisor(4, 1), "its own position"),
    ("6.2", by_divisor(4, 3), "one key too many"),
    ("6.2", by_divisor(4, 7), "Every query sees every key"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, ~until(2)) @ v, "inverted"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, ~until(1)) @ v, "reversed"),
    ("6.2", by_divisor(1), "not divided"),
    ("6.2", by_divisor(16), "by its root"),
    ("6.2", by_divisor(1 / 4), "you multiplied by √size"),
    ("6.2", by_divisor(7**0.5), "number of keys"),
    ("6.2", by_divisor(5**0.5), "number of queries"),
    ("6.2", by_divisor(3**0.5), "number of heads"),
    ("6.2", by_divisor(48**0.5), "heads · size"),
    ("6.2", by_divisor(11**0.5), "size of the values"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, until(2)), "These are the weights"),
    ("6.2", lambda q, k, v: torch.softmax(q @ k.mT / 4, -1) * until(2) @ v, "after the soft"),
    ("6.2", lambda q, k, v: torch.softmax(q @ k.mT / 4 * until(2), -1) @ v, "by the mask"),
    ("6.2", lambda q, k, v: torch.softmax(q @ k.mT / 4 + until(2), -1) @ v, "added the mask"),
    ("6.2", lambda q, k, v: attend(q @ k.mT / 4, until(2)).softmax(-1) @ v, "twice"),
    (
        "6.2",
        lambda q, k, v: (q @ k.mT / 4).masked_fill(~until(2), -torch.inf).softmax(-2) @ v,
        "over the queries",
    ),
    (
        "6.2",
        lambda q, k, v: (attend(q @ k.mT * 1e9, until(2)) > 0.5).double() @ v,
        "hard lookup",
    ),
    ("6.2", lambda q, k, v: q, "but got a tensor of shape (2, 3, 5, 16)"),
    ("6.2", lambda q, k, v: ..., "not answered yet"),
    ("6.3", [[0.09, -0.09], [-0.09, 0.09]], ": right."),
    ("6.3", [1, 2], "Expected a tensor of shape (2, 2), but got 2 numbers"),
    ("6.4", 0.25, ": right."),
    ("6.4", 2, "must shrink"),
    ("6.5", 512, ": right."),
    ("6.5", 22.627, "the divisor"),
    ("6.5", 8, "Plain scores"),
]


def sizes_of(projected_keys=(2, 9, 10), weights=(2, 4, 7, 9), merged=(2, 7, 12)):
    return {"projected_keys": projected_keys, "weights": weights, "merged": merged}


def in_thirds(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def side_by_side(heads):
    return heads.transpose(1, 2).flatten(2)


def with_heads(split=in_thirds, merge=side_by_side, scale=0.5, axis=-1, more=0):
    def multi_head(x, W_q, W_k, W_v, W_o, heads):
        q, k, v = (split(x @ W, heads) for W in (W_q, W_k, W_v))
        return merge(torch.softmax(q @ k.mT * scale, axis) @ v) @ W_o + more

    return multi_head


def by_reshape(x, heads):
    return x.reshape(len(x), heads, x.shape[1], -1)


def by_one_reshape(heads):
    return heads.reshape(2, 5, 6)


CHAPTER_7 = [
    ("7.1", sizes_of(), ": right."),
    ("7.1", sizes_of(projected_keys=(2, 7, 10)), "one row per key"),
    ("7.1", sizes_of(weights=(4, 7, 9)), "one map of queries and keys"),
    ("7.1", sizes_of(merged=(2, 9, 12)), "one row per query"),
    ("7.1", [(2, 9, 10), (2, 4, 7, 9), (2, 7, 12)], "Expected a dictionary, but got a list"),
    ("7.1", sizes_of(merged=...), "not answered yet"),
    ("7.2", with_heads(), ": right."),
    ("7.2", with_heads(merge=lambda y: torch.cat([*y.unbind(1)], -1)), ": right."),
    ("7.2", with_heads(split=by_reshape), "cuts the sequence"),
    ("7.2", with_heads(by_reshape, by_one_reshape), "cuts the sequence"),
    ("7.2", with_heads(merge=by_one_reshape), "The merge is wrong"),
    (
        "7.2",
        with_heads(lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)),
        "every third one",
    ),
    ("7.2", with_heads(lambda x, h: x, lambda y: y, 12**-0.5), "one head of the full width"),
    ("7.2", with_heads(scale=1), "not scaled"),
    ("7.2", with_heads(scale=12**-0.5), "√(3 · d_k)"),
    ("7.2", with_heads(scale=8**-0.5), "√d_model"),
    ("7.2", with_heads(scale=0.25), "not its root"),
    ("7.2", with_heads(axis=-2), "over the queries"),
    ("7.2", with_heads(more=1), "Project, split the width"),
    (
        "7.2",
        lambda x, q, k, v, o, h: with_heads()(x, q, k, v, torch.eye(6).double(), h),
        "W_o is not applied yet",
    ),
    (
        "7.2",
        lambda x, q, k, v, o, h: x @ q,
        "(2, 5, 8), but got a tensor of shape (2, 5, 12)",
    ),
    ("7.2", lambda x, *rest: x + 1, "Project, split the width"),
    ("7.2", lambda *all: ..., "not answered yet"),
    ("7.3", lambda x, h: x.repeat_interleave(h // x.shape[1], 1), ": right."),
    ("7.3", lambda x, h: x[:, torch.arange(h) // (h // x.shape[1])], ": right."),
    ("7.3", lambda x, h: x.repeat(1, h // x.shape[1], 1, 1), "its group is i // 3"),
    ("7.3", lambda x, h: x[:, :1].expand(-1, h, -1, -1), "only head 0"),
    ("7.3", lambda x, h: x.repeat(1, 2, 1, 1), "one copy for each group"),
    ("7.3", lambda x, h: x[:, :, None].expand(-1, -1, 3, -1, -1), "join the two axes"),
    ("7.3", lambda x, h: x, "Nothing is repeated"),
    ("7.3", lambda x, h: x.repeat_interleave(3, 1) + 1, "entries 3, 4, 5 head 1"),
    ("7.3", lambda x, h: x.repeat_interleave(3, 2), "but got a tensor of shape (2, 2, 9, 5)"),
    ("7.3", lambda x, h: ..., "not answered yet"),
    ("7.4", 10, ": right."),
    ("7.4", 7, "Multiply"),
    ("7.4", [10, 20], "Expected one number, but got 2 numbers"),
]

TRIPLE_RIGHT = (4, 2, 72.5, 36.25)


def merged(a, b, largest=torch.maximum, scaled=(1, 2)):
    common = largest(a[0], b[0])
    factors = torch.exp(a[0] - common), torch.exp(b[0] - common)
    added = [factors[0] * a[i] + factors[1] * b[i] if i in scaled else a[i] + b[i] for i in (1, 2)]
    return (common, *added)


CHAPTER_10 = [
    ("10.1", TRIPLE_RIGHT, ": right."),
    ("10.1", torch.tensor(TRIPLE_RIGHT), ": right."),
    ("10.1", [4, 2.0, Fraction(145, 2), 36.25], ": right."),
    ("10.1", (math.log(4), 2, 72.5, 36.25), "argument of the logarithm"),
    ("10.1", (4, 2.75, 132.5, 48.2), "counts a quarter"),
    ("10.1", (4, 2, 132.5, 66.25), "counts a quarter"),
    ("10.1", (4, 2, 72.5), "Expected 4 entries, m, ℓ, o and the output, but got 3."),
    ("10.1", 4, "Expected a tuple of m, ℓ, o and the output, but got a whole number."),
    ("10.2", merged, ": right."),
    ("10.2", lambda a, b: list(merged(a, b)), ": right."),
    ("10.2", lambda a, b: merged(a, b, scaled=()), "rescale each"),
    ("10.2", lambda a, b: merged(a, b, scaled=(1,)), "rescale each"),
    ("10.2", lambda a, b: merged(a, b, torch.minimum), "take the larger"),
    ("10.2", lambda a, b: (a[0], b[0]), "Expected 3 entries"),
    ("10.2", lambda a, b: ("m", 1, 2), "Expected one number, but got a string."),
    ("10.3", 4.0, ": right."),
    ("10.3", 1, "4 bytes"),
    ("10.3", 2, "Count heads"),
    ("10.4", 1, ": right."),
    ("10.4", 7, "longer time decides"),
]


def nucleus(probabilities, p):
    ranked, order = probabilities.sort(descending=True)
    return torch.zeros(4, dtype=torch.bool).scatter(0, order, ranked.cumsum(0) - ranked < p)


def same_text(lengths):
    number = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    return number.unsqueeze(1) == number.unsqueeze(0)


CHAPTER_11 = [
    ("11.1", ["an", "ana", "ban"], ": right."),
    ("11.1", ("an", "ana", "ban"), ": right."),
    ("11.1", ["na", "ana", "ban"], "most frequent pair"),
    ("11.1", ["an", "na", "ana"], "count the pairs again"),
    ("11.1", ["an", "and", "ban"], "follows it most often"),
    ("11.1", ["an", "ana", "nd"], "begins two words"),
    ("11.1", ["an", "ana"], "Expected 3 entries"),
    ("11.1", [1, 2, 3], "Each token is a string"),
    ("11.2", {"cross-entropy": 0.69, "perplexity": 2}, ": right."),
    ("11.2", {"cross-entropy": 2.77, "perplexity": 2}, "That is the sum"),
    ("11.2", {"cross-entropy": -0.69, "perplexity": 2}, "The sign is missing"),
    ("11.2", {"cross-entropy": 0.575, "perplexity": 2}, "logarithms first"),
    ("11.2", {"cross-entropy": 0.92, "perplexity": 2}, "counts too"),
    ("11.2", {"cross-entropy": 0.69, "perplexity": 1.62}, "base e"),
    ("11.2", {"cross-entropy": 0.69, "perplexity": 16}, "sum of the losses"),
    ("11.2", {"cross-entropy": 0.69, "perplexity": 0.5}, "at least 1"),
    ("11.2", {"cross-entropy": 0.1, "perplexity": 2}, "mean of the four"),
    ("11.2", {"cross-entropy": 0.69, "perplexity": 3}, "power of the cross-entropy"),
    ("11.3", nucleus, ": right."),
    ("11.3", lambda x, p: ~nucleus(x, p), "True means dropped"),
    (
        "11.3",
        lambda x, p: (
            x.sort(descending=True).values.cumsum(0)[x.argsort(descending=True).argsort()] <= p
        ),
        "belongs to the nucleus",
    ),
    ("11.3", lambda x, p: x.cumsum(0) - x < p, "not sorted"),
    (
        "11.3",
        lambda x, p: x.sort(descending=True).values.cumsum(0) - x.sort(descending=True).values < p,
        "order of the sorted",
    ),
    ("11.3", lambda x, p: x > p, "Sort, add up"),
    ("11.3", lambda x, p: nucleus(x, p)[:3], "one entry per token"),
    ("11.3", lambda x, p: x, "must be a boolean tensor"),
    ("11.4", {"layer 0": (6, 5), "layer 1": (13, 6)}, ": right."),
    ("11.4", {"layer 0": (6, 4), "layer 1": (13, 6)}, "name just before it"),
    ("11.4", {"layer 0": (6, 5), "layer 1": (13, 7)}, "what that person had"),
    ("11.5", "keys", ": right."),
    ("11.5", "scores", "Expected one of queries, keys, values"),
    ("11.6", lambda lengths: same_text(lengths).tril(), ": right."),
    ("11.6", lambda lengths: ~same_text(lengths).tril(), "True means blocked"),
    ("11.6", same_text, "future can still be seen"),
    ("11.6", lambda lengths: ~ahead(sum(lengths)), "texts before can still be seen"),
    ("11.6", lambda lengths: same_text(lengths) | ~ahead(sum(lengths)), "with or"),
    ("11.6", lambda lengths: same_text(lengths).tril(-1), "diagonal is missing"),
    ("11.6", lambda lengths: same_text(lengths).triu(), "reverse the comparison"),
    ("11.6", lambda lengths: torch.zeros(6, 6).bool(), "same text"),
    ("11.6", lambda lengths: same_text(lengths) & causal_mask(6), "without `causal_mask`"),
    ("11.7", 6.7, ": right."),
    ("11.7", 2.2, "enough for one wrong key"),
    ("11.7", 810, "power of the score"),
    ("11.7", 3, "Solve"),
]


MORE = [
    ("2.1", {"dot": (3, 2)}, "no entry 'distance'"),
    ("2.2", [True, False, False, True], "but got a list"),
    ("2.2", dict.fromkeys(STAYS, "no"), "Expected one of True, False, but got a string."),
    ("3.1", [0.25, 0.75, 0, 0.01], "Raise e to each valid score"),
    ("3.4", lambda scores, mask: filled(-1e9)(scores, mask), "With scores in float16, your"),
    (
        "3.4",
        lambda scores, mask: (
            torch.softmax(scores.masked_fill(~mask & mask.any(-1, keepdim=True), -torch.inf), -1)
            * mask.any(-1, keepdim=True)
        ),
        "NaN in the scores of an empty row comes through",
    ),
    ("4.2", "bijc,bjc", "Write a string such as"),
    ("4.2", "bijc,bjc->bic", "needs three letters"),
    ("4.2", "bxx,bxc->bxc", "must have the same size"),
    ("4.4", lambda q, k: q @ k.mT, "used a matrix product"),
    ("4.4", lambda q, k: pairs_of(q, k).sum(-1) + 1, "sum, over the components"),
    ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w + 1, "Project queries and"),
    (
        "5.2",
        lambda q, k, W, U, w: torch.stack(
            [torch.stack([torch.tanh(W @ a + U @ b) @ w for b in k]) for a in q]
        ),
        "instead of looping",
    ),
    (
        "6.2",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "aligned to the first key",
    ),
    (
        "6.2",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, until(2)),
        "without ready-made attention",
    ),
    (
        "6.2",
        lambda q, k, v: DotProductAttention()(q, k, v, causal=True),
        "without ready-made attention",
    ),
    ("6.2", lambda q, k, v: by_divisor(4)(q, k, v) + 1, "Divide by √size"),
    ("7.1", sizes_of(weights=7), "A shape is a tuple of whole numbers"),
    (
        "7.2",
        lambda *given: with_heads(merge=lambda y: attention_book.merge_heads(y))(*given),
        "without `merge_heads`",
    ),
    ("8.1", [-1.34, -0.45, 0.45, 1.34], ": right."),
    ("8.1", [1, 1, 1, 1], "Subtract the mean"),
    ("9.1", {"encoder": 1, "causal": 2, "cross": 3}, "but got a whole number"),
    (
        "9.2",
        lambda lens, n: ~ahead(n) & (torch.arange(n) <= lens.reshape(-1, 1, 1)),
        "One key too many",
    ),
    ("9.2", lambda lens, n: ~ahead(n) & token(lens, n) & (torch.arange(n) > 0), "Entry (b, i, j)"),
    ("9.2", lambda lens, n: causal_mask(n) & length_mask(lens, n), "without `causal_mask`"),
]
CASES = [
    *(CHAPTER_1 + CHAPTER_2 + CHAPTER_3 + CHAPTER_4 + CHAPTER_5 + CHAPTER_6 + CHAPTER_7),
    *(CHAPTER_8 + CHAPTER_9 + CHAPTER_10 + CHAPTER_11 + MORE),
]


@pytest.mark.parametrize(("name", "answer", "words"), CASES)
def test_the_check_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


#: The exercises whose answer is their parts, as declared.
DECLARED = {
    name: exercise
    for chapter in range(1, 1 + len(CHAPTERS))
    for name, exercise in exercises(chapter).items()
    if exercise.parts and not exercise.question
}


def with_part(name: str, at: int, value: Any) -> Any:
    """The right answer to a declared exercise with one of its parts replaced."""
    parts = DECLARED[name].parts
    values = [value if at == place else part.right for place, part in enumerate(parts)]
    if len(parts) == 1:
        return value
    return (
        tuple(values)
        if name == "10.1"
        else {part.name: values[at] for at, part in enumerate(parts)}
    )


WRONG_PARTS = [
    (name, at, wrong, f"{part.name}: {why}" if part.words else why)
    for name, exercise in DECLARED.items()
    for at, part in enumerate(exercise.parts)
    for wrong, why in part.mistakes
]


@pytest.mark.parametrize(("name", "at", "wrong", "sentence"), WRONG_PARTS)
def test_each_declared_mistake_is_named(name, at, wrong, sentence):
    assert judge(name, with_part(name, at, wrong)) == ("wrong", sentence)


CHOICES = [
    (name, at, option)
    for name, exercise in DECLARED.items()
    for at, part in enumerate(exercise.parts)
    if part.kind == "choice"
    for option in part.options
]


@pytest.mark.parametrize(("name", "at", "option"), CHOICES)
def test_a_choice_may_be_written_in_capitals(name, at, option):
    written = option_text(option)
    for styled in (written.upper(), f" {written.lower()} "):
        assert judge(name, with_part(name, at, styled)) == judge(name, with_part(name, at, option))


def test_a_comma_before_three_digits_parts_thousands_and_any_other_is_a_decimal_comma():
    assert judge("4.5", work_of(positions="1,536"))[0] == "right"
    assert judge("1.5", "0,5")[0] == "right"


def published() -> dict[str, tuple[str, str, str]]:
    """Each exercise's folded solution: its notebook, its code, and what it printed when stored."""
    found = {}
    for path in CHAPTERS:
        for cell in nbformat.read(path, as_version=4).cells:
            name = re.search(r'^check\("([\d.]+)"', cell.source, re.MULTILINE)
            if name and "hide-cell" in cell.metadata.get("tags", []):
                printed = "".join(output.get("text", "") for output in cell.outputs)
                found[name[1]] = (path.name, cell.source, printed)
    return found


PUBLISHED = published()


def solution(name: str) -> Any:
    """The published answer, from the cell's code."""
    answers = []
    space = {"torch": torch, "math": math, "check": lambda name, answer: answers.append(answer)}
    space |= {name: getattr(attention_book, name) for name in attention_book.__all__}
    exec(compile(PUBLISHED[name][1], f"solution {name}", "exec"), space)
    return answers[0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_solution_says_right(capsys, name):
    notebook, _, printed = PUBLISHED[name]
    assert ": right." in printed, f"{notebook} stores: {printed}"
    assert ": right." in said(capsys, name, solution(name))


def test_each_exercise_has_a_published_solution_and_a_wrong_answer_here():
    asked = set()
    for path in CHAPTERS:
        asked |= set(re.findall(r'check\(\\"([\d.]+)\\"', path.read_text(encoding="utf-8")))
    wrong = {name for name, _, words in CASES if words not in (": right.", "not answered yet")}
    assert set(PUBLISHED) == asked == wrong | {name for name, *_ in WRONG_PARTS}


@pytest.mark.parametrize(
    ("name", "piece"), [("1.99", r"; chapter 1 has 1\.1, 1\.2, .*1\.\d$"), ("99.1", "checker$")]
)
def test_an_exercise_that_the_book_does_not_have_is_refused(name, piece):
    with pytest.raises(KeyError, match=rf"no exercise '{name}'.*{piece}"):
        check(name, 1)


class Nonsense:
    """Raises whatever is done with it."""

    def __getattribute__(self, name):
        raise ZeroDivisionError("nonsense")


def otherwise(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same answer with another tensor in it, one after the other where there are several."""
    if isinstance(value, tuple) and all(isinstance(one, torch.Tensor) for one in value):
        return tuple(change(one) for one in value)
    return change(value if isinstance(value, torch.Tensor) else torch.as_tensor(value))


def shaken(tensor: torch.Tensor) -> torch.Tensor:
    """Of the same shape and dtype, with other entries."""
    if tensor.dtype == torch.bool:
        return tensor ^ (torch.arange(tensor.numel()).reshape(tensor.shape) % 3 == 0)
    return tensor + 1 + torch.arange(tensor.numel()).reshape(tensor.shape) % 3


CHANGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "other numbers": shaken,
    "one axis more": lambda tensor: tensor.unsqueeze(-1),
    "two of each": lambda tensor: torch.stack([tensor, tensor]),
    "NaN": lambda tensor: torch.full_like(tensor.double(), torch.nan),
    "infinity": lambda tensor: torch.full_like(tensor.double(), torch.inf),
    "empty": lambda tensor: tensor.reshape(-1)[:0],
}
WRONG_KINDS: dict[str, Any] = {
    "None": None,
    "string": "nonsense",
    "bytes": b"nonsense",
    "list": ["a", None],
    "rows of different lengths": [[1, 2], [3]],
    "empty list": [],
    "dict": {},
    "set": {1, 2},
    "complex": 1j,
    "type": dict,
    "module": math,
    "nonsense": Nonsense(),
}
EQUIVALENTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "itself": lambda tensor: tensor,
    "with a gradient": lambda tensor: (
        tensor.detach().clone().requires_grad_() if tensor.is_floating_point() else tensor
    ),
    "not contiguous": lambda tensor: torch.stack([tensor, tensor], -1)[..., 0],
    "rounded to float32": lambda tensor: tensor.float() if tensor.is_floating_point() else tensor,
}
FUNCTIONS = [name for name in PUBLISHED if callable(solution(name))]
PLAIN = [name for name in PUBLISHED if name not in FUNCTIONS]
MANY = {"5.3"}  # has more than one right answer, and looks for the ridge


def is_honest(line: str, wrong: Any) -> bool:
    """Whether what a line says about kind and shape is true of the answer."""
    told = re.search(r"Expected (.*), but got (.*?)\.$", line.strip())
    if not told:
        return True
    expected, got = told.groups()
    found = numbers(wrong)
    if shape := re.search(r"a tensor of shape (\(.*?\))", got):
        return expected != got and found is not None and str(tuple(found.shape)) == shape[1]
    if count := re.fullmatch(r"(\d+) numbers|a list of (one) number|(one) number", got):
        size = {"one": 1}.get(count[0].split()[-2], 0) or int(count[1] or 1)
        return expected != got and found is not None and found.numel() == size
    return expected != got


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_message_is_false_about_a_functions_result(capsys, name, change):
    right = solution(name)

    def changed(*arguments):
        return otherwise(right(*arguments), CHANGES[change])

    line = said(capsys, name, changed)
    assert ": not right. " in line
    assert len(line.strip()) > len(f"{name}: not right. ")
    assert "raises" not in line
    assert "cannot read" not in line
    if change == "other numbers":
        assert "but got" not in line, "the shape is right"
    results = recorded(changed, name)
    spoken_of = [
        one for value in results for one in (value, *(value if isinstance(value, tuple) else ()))
    ]
    assert any(is_honest(line, one) for one in [*spoken_of, results])


def recorded(function: Callable, name: str) -> list[Any]:
    """What a function returned each time that the check called it."""
    results = []

    def recording(*arguments):
        results.append(function(*arguments))
        return results[-1]

    check(name, recording)
    return results


@pytest.mark.parametrize("kind", WRONG_KINDS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_an_answer_of_another_kind_is_told_what_it_is(capsys, name, kind):
    wrong = WRONG_KINDS[kind]
    lines = [said(capsys, name, wrong)]
    if name in FUNCTIONS:
        lines.append(said(capsys, name, lambda *arguments: wrong))
    for line in lines:
        assert ": not right. " in line
        assert "raises" not in line or kind in ("type", "nonsense")
        assert not re.search(r"\b(TypeError|ValueError|KeyError|IndexError)\b", line) or (
            kind == "type"
        )
    if kind == "None":
        assert "None" in lines[-1]


@pytest.mark.parametrize("name", PLAIN)
def test_a_field_of_another_kind_is_told_what_it_is(capsys, name):
    right = solution(name)
    for wrong in (None, "nonsense", [[1, 2], [3]], 1j, Nonsense(), {}):
        for place in right if isinstance(right, dict) else ():
            line = said(capsys, name, right | {place: wrong})
            assert ": not right. " in line
            assert "Error" not in line
    if isinstance(right, dict):
        for place in right:
            assert ": not right. " in said(
                capsys, name, {key: right[key] for key in right if key != place}
            )
            assert "not answered yet" in said(capsys, name, right | {place: ...})


@pytest.mark.parametrize("style", EQUIVALENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_equivalent_result_is_right(capsys, name, style):
    right = solution(name)

    def restyled(*arguments):
        return otherwise(right(*arguments), EQUIVALENTS[style])

    if name == "3.4" and style == "with a gradient":
        return  # a gradient of its own cuts off the one that the exercise asks for
    assert ": right." in said(capsys, name, restyled)


@pytest.mark.parametrize("name", PLAIN)
def test_an_equivalent_answer_is_right(capsys, name):
    right = solution(name)
    found = numbers(right)
    if found is not None:
        for same in (found, found.tolist(), found.numpy(), found.float()):
            assert ": right." in said(capsys, name, same)
        # To two decimals, where the answer is worked out by hand.
        if found.dim() == 1 and len(found) > 2:
            rounded = [round(number, 2) for number in found.tolist()]
            assert ": right." in said(capsys, name, rounded)
    elif isinstance(right, dict) and isinstance(next(iter(right.values())), tuple):
        assert ": right." in said(capsys, name, {key: list(right[key]) for key in right})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_raises_is_quoted(capsys, name):
    def raising(*arguments):
        raise ValueError("of my own\nwith a second line")

    line = said(capsys, name, raising)
    assert "Your function raises ValueError: of my own" in line
    assert "second line" not in line


@pytest.mark.parametrize(
    ("variables", "spoken"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zha_CN"}, "en"),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANGUAGE": "zh_CN:en", "LC_ALL": "en_US.UTF-8"}, "zh"),
        ({"LANGUAGE": "en:zh_CN", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANGUAGE": "fr:zh_CN"}, "zh"),
        ({"ATTENTION_BOOK_LANGUAGE": "zh-Hans", "LANGUAGE": "en", "LANG": "en_US.UTF-8"}, "zh"),
        ({"ATTENTION_BOOK_LANGUAGE": "en", "LANGUAGE": "zh", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"ATTENTION_BOOK_LANGUAGE": "", "LANG": "zh_CN.UTF-8"}, "zh"),
    ],
)
def test_the_first_variable_that_is_set_chooses_the_language(monkeypatch, variables, spoken):
    for name in ("ATTENTION_BOOK_LANGUAGE", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language.language() == spoken


@pytest.fixture
def in_chinese(monkeypatch):
    monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", "zh_CN")


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("1.3", 5, "1.3：正确。"),
        ("1.3", 4, "1.3：不正确。"),
        ("1.1", "1/7", "3 个数"),
        ("2.6", {"queries": [[1], [2], [3]], "keys": [[1], [2]]}, "3 个查询、2 个键"),
        ("3.2", lambda tokens: tokens != 0, "(batch, length)"),
        ("10.1", (4, 2, 72.5), "m、ℓ、o"),
        ("1.3", ..., "1.3：还没有作答"),
    ],
)
def test_a_reader_who_works_in_chinese_is_answered_in_chinese(
    capsys, in_chinese, name, answer, words
):
    line = said(capsys, name, answer)
    assert words in line
    assert re.search("[\u4e00-\u9fff]", line.partition("：")[2])
    assert not re.search("[a-z]+ [a-z]+", line), "English words are left"


def test_the_language_is_read_at_each_call(capsys, monkeypatch):
    for chosen, words in (("en", "right."), ("zh_CN", "正确。"), ("en", "right.")):
        monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", chosen)
        assert words in said(capsys, "1.3", 5)


def test_a_message_without_a_translation_stays_english(capsys, monkeypatch, in_chinese):
    sentence = "4 is not enough: the best key gets 0.98."
    known = {old: new for old, new in language.translations().items() if old != sentence}
    monkeypatch.setattr(language, "translations", lambda: known)
    assert said(capsys, "1.3", 4) == f"1.3：不正确。{sentence}\n"
    monkeypatch.setattr(language, "translations", dict)
    assert said(capsys, "1.3", 4) == f"1.3: not right. {sentence}\n"
    assert said(capsys, "1.1", 1) == "1.1: not right. Expected 3 numbers, but got one number.\n"


def exercise_messages() -> set[str]:
    """What a translator of the checks gets."""
    from messages_ext import exercise_messages

    return {text for _, _, text in exercise_messages()}


#: Names that stay in every language: of Python and PyTorch, and those that the task itself uses.
NAMES = {
    *("None", "True", "False", "list", "tuple", "torch", "float", "bool", "int"),
    *("set", "bytes", "complex", "type", "module", "Nonsense", "Tensor"),
    *("source", "target"),
    *("merge_heads", "causal_mask", "queries", "keys", "values", "error"),
}


def test_whatever_the_check_says_can_be_translated(capsys, monkeypatch, in_chinese):
    # A translation of which only the values are left.
    values = {text: " ".join(re.findall(r"\{\d\}", text)) for text in exercise_messages()}
    monkeypatch.setattr(language, "translations", lambda: values)
    fields_of = {
        name: set(re.findall(r"\w+", " ".join(solution(name))))
        for name in PLAIN
        if isinstance(solution(name), dict)
    }
    answers = [(name, answer) for name, answer, _ in CASES]
    for name in PUBLISHED:
        answers += [(name, solution(name)), (name, ...)]
        for wrong in WRONG_KINDS.values():
            answers.append((name, wrong))
            if name in FUNCTIONS:
                answers.append((name, lambda *arguments, wrong=wrong: wrong))
    for name, answer in answers:
        line = re.sub(r"\w+Error .*", "", said(capsys, name, answer))  # an error is quoted
        words = set(re.findall(r"[^\W\d]{2,}", line)) - NAMES - fields_of.get(name, set())
        assert not words, line


def test_no_words_of_a_checker_are_kept_from_the_translators():
    known = exercise_messages()
    for path in Path(language.__file__).parent.glob("chapter_*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                words = re.search(r"[^\W\d]{2,} [^\W\d]{2,}", str(node.value))
                assert not words or node.value in known, f"{path.name}, line {node.lineno}"


def test_the_package_carries_the_finished_translations():
    translations = tool("translations")
    for catalogue, path in translations.SAID.items():
        assert path.read_text(encoding="utf-8") == translations.said(catalogue)
    assert len(language.translations()) > 400
