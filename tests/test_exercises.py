"""The exercises' checkers: right answers are right, and each known mistake is named."""

from __future__ import annotations

import pytest
import torch

from attention_book.exercises import check


def said(capsys: pytest.CaptureFixture[str], name: str, answer: object) -> str:
    check(name, answer)
    return capsys.readouterr().out


def pairs_of(queries, keys):
    return queries.unsqueeze(2) * keys.unsqueeze(1)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("4.1", 6, "right."),
        ("4.1", 2, "entry (1, 2)"),
        ("4.1", 4, "entry (1, 1)"),
        ("4.1", 3, "entry (2, 2)"),
        ("4.1", 8, "sign"),
        ("4.1", "six", "Multiply"),
        ("4.2", "ijk,ikm->ijm", "right."),
        ("4.2", "bij,bjc->bci", "transposed"),
        ("4.2", "bij,ajc->bic", "examples are mixed"),
        ("4.2", "bij,bjc->bijc", "nothing is summed"),
        ("4.2", "bij,bjc->ic", "examples are added up"),
        ("4.2", "bij,bkc->bic", "sum of all values"),
        ("4.2", "bij,bic->bjc", "raises RuntimeError"),
        ("4.2", 7, "Expected a string"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": (15, 1, 3)}, "right."),
        ("4.3", {"fresh": (2, 5, 3), "transposed": (2, 3, 5)}, "This is the shape"),
        ("4.3", {"fresh": (1, 2, 10), "transposed": (1, 10, 2)}, "last axis"),
        ("4.3", {"fresh": (5, 3, 1), "transposed": (5, 1, 3)}, "first stride is 15"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": (15, 5, 1)}, "copies nothing"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": (15, 3, 1)}, "change places"),
        ("4.3", {"fresh": (15, 3, 1), "transposed": ...}, "not answered yet"),
        ("4.4", lambda q, k: pairs_of(q, k).sum(-1), "right."),
        ("4.4", lambda q, k: pairs_of(k, q).sum(-1), "transposed"),
        ("4.4", pairs_of, "still to be summed"),
        ("4.4", lambda q, k: pairs_of(q, k).mean(-1), "mean over the features"),
        ("4.4", lambda q, k: pairs_of(q, k).sum(-1, keepdim=True), "axis of size 1"),
        ("4.4", lambda q, k: q * k, "raises RuntimeError"),
        ("4.4", lambda q, k: ..., "not answered yet"),
        ("4.5", 122880, "right."),
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
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, "right."),
        ("5.1", {"summed": (3, 7, 5, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, "before keys"),
        ("5.1", {"summed": (3, 5, 7), "scores": (3, 5, 7), "output": (3, 5, 9)}, "hidden units"),
        ("5.1", {"summed": (3, 5, 16), "scores": (3, 5, 7), "output": (3, 5, 9)}, "each pair"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7, 1), "output": (3, 5, 9)}, "squeezed"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 7), "output": (3, 5, 9)}, "each pair"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 5, 16)}, "as wide as"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": (3, 5, 7), "output": (3, 7, 9)}, "row a query"),
        ("5.1", {"summed": (3, 5, 7, 16), "scores": ..., "output": ...}, "not answered yet"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w, "right."),
        ("5.2", lambda q, k, W, U, w: hidden_of(k, q, U, W).tanh() @ w, "axes are swapped"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U) @ w, "bend is missing"),
        ("5.2", lambda q, k, W, U, w: (hidden_of(q, k, W, U) @ w).tanh(), "tanh goes before"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh().sum(-1), "evenly"),
        ("5.2", lambda q, k, W, U, w: (hidden_of(q, k, W, U).tanh() @ w).softmax(-1), "weights"),
        ("5.2", lambda q, k, W, U, w: hidden_of(q, k, W, U).tanh() @ w[:, None], "left over"),
        ("5.2", lambda q, k, W, U, w: q @ W.T, "Expected shape (3, 5)"),
        ("5.2", lambda q, k, W, U, w: ..., "not answered yet"),
        ("5.3", [[1, 2], [1, 0]], "right."),
        ("5.3", torch.tensor([[2.0, 3.0], [2.0, 1.0]]), "not at 1"),
        ("5.3", [[1, 1], [1, -1]], "pencil case"),
        ("5.3", [[1, 0], [1, -2]], "the other way"),
        ("5.3", [[1, 0], [1, 2]], "units are swapped"),
        ("5.3", [[1, 3], [1, 1]], "at the key 2.0"),
        ("5.3", [1, 2], "shape (2, 2)"),
        ("5.4", {"megabytes": 327.68, "query_chunk": 3}, "right."),
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
