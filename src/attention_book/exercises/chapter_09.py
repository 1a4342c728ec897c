"""Checkers of chapter 9, three uses in one model."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    UnusableError,
    boolean,
    borrowed,
    exercise,
    fields,
    first_mistake,
    parts,
    result,
)
from attention_book.exercises.language import say


@exercise(
    "9.1",
    "The queries come from the side that looks for something: in cross-attention, the target.",
)
def come_from(answer: Any) -> str | None:
    pairs = []
    for given in fields(answer, "encoder", "causal", "cross"):
        pair = tuple(parts(given, 2, say("where queries, and where keys and values, come from")))
        if not all(isinstance(word, str) and word in ("source", "target") for word in pair):
            raise UnusableError('Each pair consists of the words "source" and "target".')
        pairs.append(pair)
    encoder, causal, cross = pairs
    if encoder != ("source", "source"):
        return "The encoder has only the source: queries, keys and values all come from it."
    if causal != ("target", "target"):
        return "The causal attention uses the target alone."
    if cross == ("source", "target"):
        return "It is the other way round: the target has the queries, the source keys and values."
    if cross != ("target", "source"):
        return "Cross-attention joins the two: queries from one, keys and values from the other."
    return None


@exercise("9.2", "A key must be a token and must not be ahead.")
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


@exercise("9.3", "One place further on, and from the last letter back to the first.")
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


@exercise("9.4", "Two heads times 36 for the encoder, 49 for the target and 42 across.")
def num_weights(answer: Any) -> str | None:
    mistakes = [
        (36 + 49 + 42, "These are the weights of one head; there are two."),
        (
            2 * (36 + 28 + 42),
            "You counted only the allowed pairs of the causal map; masked weights are zeros.",
        ),
        (2 * (36 + 49), "The cross-attention is missing."),
    ]
    hint = "Count queries × keys for each of the three maps, then multiply by the heads."
    return first_mistake(answer, 2 * (36 + 49 + 42), mistakes, hint)
