"""The exercises' checkers: right answers are right, and each known mistake is named."""

from __future__ import annotations

import pytest
import torch

from attention_book import causal_mask, distance_scores, length_mask, masked_softmax
from attention_book.exercises import check


def said(capsys: pytest.CaptureFixture[str], name: str, answer: object) -> str:
    check(name, answer)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("1.4", {"weights": (7, 9), "result": (7, 2)}, ": right."),
        ("1.4", {"weights": [7, 9], "result": [7, 2]}, ": right."),
        ("1.4", {"weights": torch.Size([7, 9]), "result": torch.Size([7, 2])}, ": right."),
        ("1.4", {"weights": [9, 7], "result": [7, 2]}, "other way round"),
        ("1.4", {"weights": (7, 5), "result": (7, 2)}, "each pair"),
        ("1.4", {"weights": (7, 9), "result": [7, 5]}, "as wide as a value"),
        ("1.4", {"weights": (7, 9), "result": (9, 2)}, "row a query"),
        ("1.4", {"weights": (7, 9), "result": ...}, "not answered yet"),
    ],
)
def test_chapter_1_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


def pairs_of(queries, keys):
    return queries.unsqueeze(2) * keys.unsqueeze(1)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("4.1", 6, ": right."),
        ("4.1", 2, "entry (1, 2)"),
        ("4.1", 4, "entry (1, 1)"),
        ("4.1", 3, "entry (2, 2)"),
        ("4.1", 8, "sign"),
        ("4.1", "six", "Multiply"),
        ("4.2", "ijk,ikm->ijm", ": right."),
        ("4.2", "bij,bjc->bci", "transposed"),
        ("4.2", "bij,ajc->bic", "examples are mixed"),
        ("4.2", "bij,bjc->bijc", "nothing is summed"),
        ("4.2", "bij,bjc->ic", "examples are added up"),
        ("4.2", "bij,bkc->bic", "sum of all values"),
        ("4.2", "bij,bic->bjc", "raises RuntimeError"),
        ("4.2", 7, "Expected a string"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": (15, 1, 3)}, ": right."),
        ("4.3", {"fresh": (2, 5, 3), "transposed": (2, 3, 5)}, "This is the shape"),
        ("4.3", {"fresh": (1, 2, 10), "transposed": (1, 10, 2)}, "last axis"),
        ("4.3", {"fresh": (5, 3, 1), "transposed": (5, 1, 3)}, "first stride is 15"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": (15, 5, 1)}, "copies nothing"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": (15, 3, 1)}, "change places"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": ...}, "not answered yet"),
        ("4.4", lambda q, k: pairs_of(q, k).sum(-1), ": right."),
        ("4.4", lambda q, k: pairs_of(k, q).sum(-1), "transposed"),
        ("4.4", pairs_of, "still to be summed"),
        ("4.4", lambda q, k: pairs_of(q, k).mean(-1), "mean over the features"),
        ("4.4", lambda q, k: pairs_of(q, k).sum(-1, keepdim=True), "axis of size 1"),
        ("4.4", lambda q, k: q * k, "raises RuntimeError"),
        ("4.4", lambda q, k: ..., "not answered yet"),
        ("4.5", 122880, ": right."),
        ("4.5", 1920, "number of entries"),
        ("4.5", 15360, "work for one example"),
        ("4.5", 245760, "additions as well"),
        ("4.5", 0, "Multiply batch"),
    ],
)
def test_chapter_4_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


def hidden_of(queries, keys, W_q, W_k):
    return (queries @ W_q.T).unsqueeze(1) + (keys @ W_k.T).unsqueeze(0)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, ": right."),
        ("5.1", {"summed": (3, 7, 5, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, "before keys"),
        ("5.1", {"summed": (3, 5, 7), "scores": (3, 5, 7), "output": (3, 5, 9)}, "hidden units"),
        ("5.1", {"summed": (3, 5, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, "each pair"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7, 1), "output": (3, 5, 9)}, "squeezed"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 7), "output": (3, 5, 9)}, "each pair"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 5, 16)}, "as wide as"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 7, 9)}, "row a query"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": ..., "output": ...}, "not answered yet"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w, ": right."),
        ("5.2", lambda q, k, W, U, w: hidden_of(k, q, U, W).tanh() @ w, "axes are swapped"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U) @ w, "bend is missing"),
        ("5.2", lambda q, k, W, U, w: (hidden_of(q, k, W, U) @ w).tanh(), "tanh goes before"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh().sum(-1), "evenly"),
        ("5.2", lambda q, k, W, U, w: (hidden_of(q, k, W, U).tanh() @ w).softmax(-1), "weights"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w[:, None], "left over"),
        ("5.2", lambda q, k, W, U, w: q @ W.T, "Expected shape (3, 5)"),
        ("5.2", lambda q, k, W, U, w: ..., "not answered yet"),
        ("5.3", [[1, 2], [1, 0]], ": right."),
        ("5.3", torch.tensor([[2.0, 3.0], [2.0, 1.0]]), "not at 1"),
        ("5.3", [[1, 1], [1, -1]], "pencil case"),
        ("5.3", [[1, 0], [1, -2]], "the other way"),
        ("5.3", [[1, 0], [1, 2]], "units are swapped"),
        ("5.3", [[1, 3], [1, 1]], "at the key 2.0"),
        ("5.3", [1, 2], "shape (2, 2)"),
        ("5.4", {"megabytes": 327.68, "query_chunk": 3}, ": right."),
        ("5.4", {"megabytes": 81.92, "query_chunk": 3}, "4 bytes"),
        ("5.4", {"megabytes": 1.28, "query_chunk": 3}, "size of the scores"),
        ("5.4", {"megabytes": 312.5, "query_chunk": 3}, "1024"),
        ("5.4", {"megabytes": 3.0, "query_chunk": 3}, "Multiply batch"),
        ("5.4", {"megabytes": 327.68, "query_chunk": 4}, "more than 10"),
        ("5.4", {"megabytes": 327.68, "query_chunk": 30}, "Divide 10 MB"),
        ("5.4", {"megabytes": ..., "query_chunk": ...}, "not answered yet"),
    ],
)
def test_chapter_5_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


STAYS = ("query", "key", "twice", "largest")


def terms(queries, keys):
    """The three terms of a squared distance: products, queries' squares, keys' squares."""
    of_queries = queries.square().sum(-1, keepdim=True)
    return queries @ keys.mT, of_queries, keys.square().sum(-1).unsqueeze(1)


def distances_in_terms(a, b, c):
    def answer(queries, keys):
        products, of_queries, of_keys = terms(queries, keys)
        return a * products + b * of_queries + c * of_keys

    return answer


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("2.1", {"dot": [3, 2], "distance": [-4, -1]}, ": right."),
        ("2.1", {"dot": [2, 3], "distance": [-4, -1]}, "wrong order"),
        ("2.1", {"dot": [0, 2], "distance": [-4, -1]}, "both products count"),
        ("2.1", {"dot": [3, 2], "distance": [4, 1]}, "minus"),
        ("2.1", {"dot": [3, 2], "distance": [-8, -2]}, "half is missing"),
        ("2.1", {"dot": [3, 2], "distance": [8, 2]}, "squared distances"),
        ("2.1", {"dot": [3, 2], "distance": [-2.83, -1.41]}, "square them"),
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
        ("2.3", [[0, 1], [0, 0], [1, 0]], "sign of the second"),
        ("2.3", [[0, -1], [0, 0], [1, 0]], "Both signs"),
        ("2.3", [[0, 1], [-1, 0], [0, 0]], "third row"),
        ("2.3", [[1, 0], [0, 0], [0, -1]], "row i and column j"),
        ("2.4", distances_in_terms(1, -0.5, -0.5), ": right."),
        ("2.4", distances_in_terms(-1, 0.5, 0.5), "sign is turned round"),
        ("2.4", distances_in_terms(2, -1, -1), "half is missing"),
        ("2.4", distances_in_terms(-2, 1, 1), "squared distance"),
        ("2.4", distances_in_terms(1, 0, 0), "both lengths"),
        ("2.4", distances_in_terms(1, 0, -0.5), "query's length is missing"),
        ("2.4", distances_in_terms(1, -0.5, 0), "key's length is missing"),
        ("2.4", distances_in_terms(1, -1, -1), "must be halved"),
        ("2.4", distances_in_terms(1, 0.5, 0.5), "taken away"),
        ("2.4", lambda q, k: distance_scores(q, k).mT, "transposed"),
        ("2.4", distance_scores, "differences of all pairs"),
        ("2.4", lambda q, k: q, "three terms"),
        ("2.4", lambda q, k: ..., "not answered yet"),
    ],
)
def test_chapter_2_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


def band(n, oldest, newest):
    """Each query sees the keys from `oldest` to `newest` positions away."""
    offset = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    return (offset >= oldest) & (offset <= newest)


def filled(fill, dim=-1):
    return lambda scores, mask: torch.softmax(scores.masked_fill(~mask, fill), dim)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("3.1", [1 / 4, 3 / 4, 0, 0], ": right."),
        ("3.1", [1 / 16, 3 / 16, 5 / 16, 7 / 16], "without a mask"),
        ("3.1", [1 / 16, 3 / 16, 0, 0], "after the softmax"),
        ("3.1", [1 / 6, 3 / 6, 1 / 6, 1 / 6], "score 0"),
        ("3.1", [1 / 4, 3 / 4], "Four weights"),
        ("3.2", lambda tokens: (tokens != 0)[:, None], ": right."),
        ("3.2", lambda tokens: (tokens != 0)[:, None].expand(-1, 3, -1), ": right."),
        ("3.2", lambda tokens: tokens != 0, "by accident"),
        ("3.2", lambda tokens: (tokens == 0)[:, None], "inverted"),
        ("3.2", lambda tokens: (tokens != 0)[:, :, None], "query axis"),
        ("3.2", lambda tokens: (tokens != 0)[:, None].float(), "boolean"),
        ("3.2", lambda tokens: length_mask((tokens != 0).sum(1), 3), "Three axes"),
        ("3.3", lambda n: band(n, -2, 0), ": right."),
        ("3.3", causal_mask, "whole past"),
        ("3.3", lambda n: band(n, -3, 0), "too long"),
        ("3.3", lambda n: band(n, -1, 0), "too short"),
        ("3.3", lambda n: band(n, -2, -1), "query itself"),
        ("3.3", lambda n: band(n, -2, 2), "into the future"),
        ("3.3", lambda n: band(n, 0, 2), "lies in the future"),
        ("3.3", lambda n: ~band(n, -2, 0), "inverted"),
        ("3.3", lambda n: band(n - 1, -2, 0), "Row i"),
        ("3.3", lambda n: band(n, -2, 0).float(), "boolean"),
        ("3.3", lambda n: band(n, -2, 0).tolist(), "boolean"),
        ("3.3", lambda n: None, "boolean"),
        ("3.4", lambda scores, mask: masked_softmax(scores, mask=mask), ": right."),
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
        ("3.4", lambda s, m: torch.softmax(s + m.log(), -1).nan_to_num(), "NaN for a gradient"),
        ("3.4", lambda scores, mask: scores[0], "shape of the scores"),
        ("3.4", lambda scores, mask: ..., "not answered yet"),
        ("3.5", lambda lens, n: ~length_mask(lens, n).squeeze(1), ": right."),
        ("3.5", lambda lens, n: length_mask(lens, n).squeeze(1), "Here True = blocked; yours"),
        ("3.5", lambda lens, n: ~length_mask(lens, n), "drop the axis"),
        ("3.5", length_mask, "and the shape must be"),
        ("3.5", lambda lens, n: (~length_mask(lens, n)).squeeze(1).float(), "must be boolean"),
        ("3.5", lambda lens, n: torch.ones(3, n, dtype=torch.bool), "Row b"),
    ],
)
def test_chapter_3_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


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


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("8.1", [-1.342, -0.447, 0.447, 1.342], ": right."),
        ("8.1", [-3, -1, 1, 3], "divide them"),
        ("8.1", [-0.6, -0.2, 0.2, 0.6], "divide by its root"),
        ("8.1", [-1.162, -0.387, 0.387, 1.162], "n − 1"),
        ("8.1", [0.447, 1.342, 2.236, 3.130], "mean is still"),
        ("8.1", 4, "Take away the mean"),
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
            "not taken away",
        ),
        ("8.2", lambda x, eps: x, "Take away the mean"),
        ("8.2", lambda x, eps: ..., "not answered yet"),
        ("8.3", lambda x, h: halves(x, h).transpose(1, 2).reshape(x.shape), ": right."),
        ("8.3", without_swap, "Still no position"),
        ("8.3", lambda x, h: halves(x, h).reshape(x.shape), "way back"),
        ("8.3", lambda x, h: halves(x, h), "to be joined"),
        ("8.3", lambda x, h: torch.softmax(x @ x.mT, -1) @ x, "Cut the width"),
        ("8.4", 2363904, ": right."),
        ("8.4", 2359296, "biases and the normalisation"),
        ("8.4", 2362368, "normalisation is missing"),
        ("8.4", 2360832, "bias of 768"),
        ("8.4", 12 * 2362368, "do not multiply"),
        ("8.4", 1, "Count four maps"),
    ],
)
def test_chapter_8_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


USES = {
    "encoder": ("source", "source"),
    "causal": ("target", "target"),
    "cross": ("target", "source"),
}


def ahead(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def token(lens, n):
    return torch.arange(n) < lens.reshape(-1, 1, 1)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("9.1", USES, ": right."),
        ("9.1", USES | {"cross": ...}, "not answered yet"),
        ("9.1", USES | {"cross": ("source", "target")}, "other way round"),
        ("9.1", USES | {"cross": ("target", "target")}, "joins the two"),
        ("9.1", USES | {"encoder": ("target", "source")}, "only the source"),
        ("9.1", USES | {"causal": ("target", "source")}, "target alone"),
        ("9.2", lambda lens, n: ~ahead(n) & token(lens, n), ": right."),
        ("9.2", lambda lens, n: ~(~ahead(n) & token(lens, n)), "True means blocked"),
        ("9.2", lambda lens, n: ~ahead(n) | token(lens, n), "with or"),
        ("9.2", lambda lens, n: ahead(n).mT & token(lens, n), "diagonal is missing"),
        ("9.2", lambda lens, n: ~ahead(n).mT & token(lens, n), "turn the comparison round"),
        ("9.2", lambda lens, n: ~ahead(n) & token(lens, n).mT, "query axis"),
        ("9.2", lambda lens, n: ~ahead(n), "padding is still seen"),
        ("9.2", lambda lens, n: token(lens, n), "future is still seen"),
        ("9.2", lambda lens, n: (~ahead(n) & token(lens, n)).float(), "boolean"),
        ("9.2", lambda lens, n: ahead(n), "the mask is (3, 4, 4), not (4, 4)"),
        ("9.2", lambda lens, n: ..., "not answered yet"),
        ("9.3", lambda t, n: (t + 1) % n, ": right."),
        ("9.3", lambda t, n: t + 1, "come round"),
        ("9.3", lambda t, n: n - 1 - t, "reversing"),
        ("9.3", lambda t, n: (t - 1) % n, "other way"),
        ("9.3", lambda t, n: t, "copies"),
        ("9.3", lambda t, n: 0, "under each other"),
        ("9.4", 254, ": right."),
        ("9.4", 127, "one head"),
        ("9.4", 212, "allowed pairs"),
        ("9.4", 170, "cross-attention is missing"),
        ("9.4", 0, "Count queries"),
    ],
)
def test_chapter_9_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


def attend(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)


def by_divisor(divisor):
    return lambda q, k, v, mask: attend(q @ k.mT / divisor, mask) @ v


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("6.1", 36, ": right."),
        ("6.1", 2304, "still to come"),
        ("6.1", 288, "by c²"),
        ("6.1", 6, "standard deviation"),
        ("6.1", 1, "louder"),
        ("6.1", 13, "multiply"),
        ("6.1", 5, "Start with"),
        ("6.2", by_divisor(4), ": right."),
        ("6.2", by_divisor(1), "not divided"),
        ("6.2", by_divisor(16), "by its root"),
        ("6.2", by_divisor(1 / 4), "You multiplied by √size"),
        ("6.2", by_divisor(7**0.5), "number of keys"),
        ("6.2", by_divisor(5**0.5), "number of queries"),
        ("6.2", by_divisor(48**0.5), "heads · size"),
        ("6.2", by_divisor(11**0.5), "size of the values"),
        ("6.2", lambda q, k, v, mask: attend(q @ k.mT / 4, mask), "These are the weights"),
        ("6.2", lambda q, k, v, mask: torch.softmax(q @ k.mT / 4, -1) @ v, "no effect"),
        ("6.2", lambda q, k, v, mask: torch.softmax(q @ k.mT / 4, -1) * mask @ v, "after the soft"),
        ("6.2", lambda q, k, v, mask: torch.softmax(q @ k.mT / 4 * mask, -1) @ v, "by the mask"),
        ("6.2", lambda q, k, v, mask: attend(q @ k.mT / 4, mask).softmax(-1) @ v, "twice"),
        ("6.2", lambda q, k, v, mask: attend(q @ k.mT / 4, ~mask) @ v, "inverted"),
        (
            "6.2",
            lambda q, k, v, mask: (q @ k.mT / 4).masked_fill(~mask, -torch.inf).softmax(-2) @ v,
            "over the queries",
        ),
        (
            "6.2",
            lambda q, k, v, mask: (attend(q @ k.mT * 1e9, mask) > 0.5).double() @ v,
            "without softening",
        ),
        ("6.2", lambda q, k, v, mask: q, "Expected the shape"),
        ("6.2", lambda q, k, v, mask: ..., "not answered yet"),
        ("6.3", [[0.09, -0.09], [-0.09, 0.09]], ": right."),
        ("6.3", [[0.09, 0.0], [0.0, 0.09]], "other score"),
        ("6.3", [[0.09, 0.09], [0.09, 0.09]], "sign off the diagonal"),
        ("6.3", [[0.9, 0.0], [0.0, 0.1]], "one of the two terms"),
        ("6.3", [[0.81, 0.09], [0.09, 0.01]], "one of the two terms"),
        ("6.3", [[-0.09, 0.09], [0.09, -0.09]], "turned round"),
        ("6.3", [1, 2], "The entry (i, j)"),
        ("6.4", 0.25, ": right."),
        ("6.4", 1 / 16, "queries and keys both"),
        ("6.4", 1 / 256, "by its root"),
        ("6.4", 4, "inverse"),
        ("6.4", 2, "must shrink"),
        ("6.5", 512, ": right."),
        ("6.5", 32, "would be 1"),
        ("6.5", 128, "forgot a square"),
        ("6.5", 22.627, "the divisor"),
        ("6.5", 8, "Plain scores"),
    ],
)
def test_chapter_6_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


def sizes_of(projected_keys=(2, 9, 20), weights=(2, 4, 7, 9), merged=(2, 7, 12)):
    return {"projected_keys": projected_keys, "weights": weights, "merged": merged}


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("7.1", sizes_of(), ": right."),
        ("7.1", sizes_of(projected_keys=(2, 9, 5)), "serves all heads"),
        ("7.1", sizes_of(projected_keys=(2, 9, 24)), "happen to be d_model"),
        ("7.1", sizes_of(projected_keys=(2, 7, 20)), "one row a key"),
        ("7.1", sizes_of(weights=(2, 7, 9)), "weights of its own"),
        ("7.1", sizes_of(weights=(2, 4, 9, 7)), "one map of queries and keys"),
        ("7.1", sizes_of(merged=(2, 7, 20)), "means of values"),
        ("7.1", sizes_of(merged=(2, 7, 24)), "only after W_o"),
        ("7.1", sizes_of(merged=(2, 9, 12)), "one row a query"),
        ("7.1", sizes_of(merged=...), "not answered yet"),
        ("7.2", 262144, ": right."),
        ("7.2", 196608, "W_o is missing"),
        ("7.2", 263168, "biases"),
        ("7.2", 2097152, "full width"),
        ("7.2", 32768, "there are 8"),
        ("7.2", 1, "Count W_q"),
        ("7.3", lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2), ": right."),
        ("7.3", lambda x, h: x.view(2, h, 6, 4), "cuts the sequence"),
        ("7.3", lambda x, h: x.unflatten(-1, (h, -1)), "change places"),
        ("7.3", lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2), "dealt the numbers"),
        ("7.3", lambda x, h: x.unflatten(-1, (h, -1)).permute(0, 2, 3, 1), "last two axes"),
        ("7.3", lambda x, h: x, "Expected the shape"),
        ("7.3", lambda x, h: ..., "not answered yet"),
        ("7.4", lambda x: x.transpose(1, 2).flatten(2), ": right."),
        ("7.4", lambda x: x.reshape(2, 6, 12), "Right shape, wrong numbers"),
        ("7.4", lambda x: x.permute(0, 2, 3, 1).flatten(2), "stay together"),
        ("7.4", lambda x: x.sum(1), "side by side"),
        ("7.4", lambda x: x.mean(1), "side by side"),
        ("7.4", lambda x: x, "Expected the shape"),
        ("7.4", lambda x: ..., "not answered yet"),
        ("7.5", lambda lens, h: lens.repeat_interleave(h), ": right."),
        ("7.5", lambda lens, h: lens.repeat(h), "of another example"),
        ("7.5", lambda lens, h: lens, "one length an example still"),
        ("7.5", lambda lens, h: lens[:, None].expand(-1, h), "join the two axes"),
        ("7.5", lambda lens, h: lens * h, "do not change"),
        ("7.5", lambda lens, h: lens.sum(), "Expected a tensor"),
        ("7.5", lambda lens, h: ..., "not answered yet"),
    ],
)
def test_chapter_7_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)
