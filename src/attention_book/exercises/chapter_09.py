"""Checkers of chapter 9, three uses in one model."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    Part,
    answered,
    boolean,
    borrowed,
    exercise,
    first_mistake,
    lines,
    result,
)
from attention_book.exercises.language import say


def _pair(use: str, right: tuple[str, str], sentence: str, *mistakes: tuple[Any, str]) -> Part:
    sides = ("source", "target")
    options = tuple((queries, keys) for queries in sides for keys in sides)
    return Part("choice", right, mistakes, sentence, use, options=options)


answered(
    "9.1",
    "The queries come from the side that looks for something: in cross-attention, the target.",
    _pair(
        "encoder",
        ("source", "source"),
        "The encoder has only the source: queries, keys and values all come from it.",
    ),
    _pair("causal", ("target", "target"), "The causal attention uses the target alone."),
    _pair(
        "cross",
        ("target", "source"),
        "Cross-attention joins the two: queries from one, keys and values from the other.",
        (
            ("source", "target"),
            "It is the other way round: the target has the queries, the source keys and values.",
        ),
    ),
    hints=(
        "An output has one row per query. Which sequence does each use write to?",
        "In cross-attention the target asks and the source answers.",
    ),
    importance=3,
)


@exercise(
    "9.2",
    "A key must be a token and must not be ahead.",
    lines(
        "torch.ones(num_targets, num_targets, dtype=torch.bool).tril() "
        "& (torch.arange(num_targets) < target_lens.reshape(-1, 1, 1))",
        2,
        (
            "torch.ones(num_targets, num_targets, dtype=torch.bool).tril() "
            "| (torch.arange(num_targets) < target_lens.reshape(-1, 1, 1))",
            "You joined the two with or: a key must pass both.",
        ),
        (
            "torch.ones(num_targets, num_targets, dtype=torch.bool).tril(-1) "
            "& (torch.arange(num_targets) < target_lens.reshape(-1, 1, 1))",
            "The diagonal is missing: each step sees itself as well.",
        ),
        (
            "torch.ones(num_targets, num_targets, dtype=torch.bool).tril() "
            "& (torch.arange(num_targets)[:, None] < target_lens.reshape(-1, 1, 1))",
            "The lengths are on the query axis; padding must be hidden as a key.",
        ),
    ),
    question="Which expression is the mask?",
    hints=(
        "A key must pass two rules: it is not ahead, and it is not padding.",
        "Compare the places of the keys, `torch.arange(num_targets)`, once with the places of the "
        "queries and once with the lengths.",
    ),
    importance=3,
)
def decoder_mask(answer: Any) -> str | None:
    lens = torch.tensor([4, 2, 1])
    square = torch.ones(4, 4, dtype=torch.bool)
    causal = square.tril()
    is_token = torch.arange(4) < lens.reshape(-1, 1, 1)
    right = causal & is_token
    padding, future = "The padding can still be seen.", "The future can still be seen."
    mistakes = [
        (~right, "Your True means blocked; here True = may attend."),
        (causal | is_token, "You joined the two with or: a key must pass both."),
        (square.tril(-1) & is_token, "The diagonal is missing: each step sees itself as well."),
        (
            square.triu() & is_token,
            "This lets each step see itself and the future: reverse the comparison.",
        ),
        (square.tril(1) & is_token, "Each step sees one step of the future."),
        (
            causal & is_token.mT,
            "The lengths are on the query axis; padding must be hidden as a key.",
        ),
        (
            causal & (torch.arange(4) <= lens.reshape(-1, 1, 1)),
            "One key too many: counted from 0, the place number `length` is already padding.",
        ),
        (causal, padding),
        (causal.expand(3, 4, 4), padding),
        (is_token, future),
        (is_token.expand(3, 4, 4), future),
    ]
    mask = boolean(result(answer, lens, 4))
    hint = "Entry (b, i, j) is True where j is at most i and smaller than target_lens[b]."
    mistake = first_mistake(mask, right, mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The mask is right, but the task is to write it without `{0}`.", names[0])
    return mistake


@exercise(
    "9.3",
    "One place further on, and from the last letter back to the first.",
    lines(
        "(t + 1) % n",
        1,
        (
            "t + 1",
            "The last step would look past the end of the word; it must return to the beginning.",
        ),
        ("n - 1 - t", "That is the alignment of reversing."),
        (
            "(t - 1) % n",
            "That turns the word the other way: “tab” would become “bta”.",
        ),
    ),
    question="Which expression is the place?",
    hints=(
        "Write “tab” above “abt” and join equal letters.",
        "Where does the last step find its letter?",
    ),
)
def place_to_look(answer: Any) -> str | None:
    steps = [(t, n) for n in (1, 3, 6) for t in range(n)]
    got = [result(answer, t, n) for t, n in steps]
    mistakes = [
        (
            [t + 1 for t, _ in steps],
            "The last step would look past the end of the word; it must return to the beginning.",
        ),
        ([n - 1 - t for t, n in steps], "That is the alignment of reversing."),
        (
            [(t - 1) % n for t, n in steps],
            "That turns the word the other way: “tab” would become “bta”.",
        ),
        ([t for t, _ in steps], "That copies the word."),
    ]
    hint = "Write “tab” above “abt” and note, for each letter below, where it came from."
    return first_mistake(got, [(t + 1) % n for t, n in steps], mistakes, hint)


answered(
    "9.4",
    "Two heads times 36 for the encoder, 49 for the target and 42 across.",
    Part(
        "number",
        2 * (36 + 49 + 42),
        [
            (36 + 49 + 42, "These are the weights of one head; there are two."),
            (
                2 * (36 + 28 + 42),
                "You counted only the allowed pairs of the causal map; masked weights are zeros.",
            ),
            (2 * (36 + 49), "The cross-attention is missing."),
        ],
        "Count queries × keys for each of the three maps, then multiply by the heads.",
    ),
    hints=(
        "Each use computes one weight for each query and each key.",
        "How many queries and how many keys has cross-attention?",
    ),
)
