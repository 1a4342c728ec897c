"""Checkers of chapter 9, three uses in one model."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import NotAnsweredError, exercise, result, same


@exercise("9.1", "Whoever wants to know asks: the target asks itself, and it asks the source.")
def come_from(answer: Any) -> str | None:
    if ... in answer.values():
        raise NotAnsweredError
    given = {use: tuple(pair) for use, pair in answer.items()}
    if given["encoder"] != ("source", "source"):
        return "The encoder has only the source: it asks and answers itself."
    if given["causal"] != ("target", "target"):
        return "The causal attention runs over the target alone."
    if given["cross"] == ("source", "target"):
        return "The other way round: the target asks, and the source holds what it asks for."
    if given["cross"] != ("target", "source"):
        return "Cross-attention joins the two: one asks, the other answers."
    return None


@exercise("9.2", "A key must be a token and must not lie ahead.")
def decoder_mask(answer: Any) -> str | None:
    lens = torch.tensor([4, 2, 1])
    got = result(answer, lens, 4)
    if not isinstance(got, torch.Tensor) or got.dtype != torch.bool:
        return "The mask must be a boolean tensor, True = may attend."
    square = torch.ones(4, 4, dtype=torch.bool)
    causal = square.tril()
    is_token = torch.arange(4) < lens.reshape(-1, 1, 1)
    wanted = causal & is_token
    if same(got, ~wanted):
        return "Your True means blocked; here True = may attend."
    if same(got, causal | is_token):
        return "You joined the two with or: a key must pass both."
    if same(got, square.tril(-1) & is_token):
        return "The diagonal is missing: each step sees itself as well."
    if same(got, square.triu() & is_token):
        return "This lets each step see itself and the future: turn the comparison round."
    if same(got, causal & is_token.mT):
        return "The lengths stand on the query axis; padding must be hidden as a key."
    if same(got, causal) or same(got, causal.expand(3, 4, 4)):
        return "The padding is still seen."
    if same(got, is_token) or same(got, is_token.expand(3, 4, 4)):
        return "The future is still seen."
    if not same(got, wanted):
        return (
            f"For lengths of shape (3,) and 4 targets the mask is (3, 4, 4), not {(*got.shape,)}."
        )
    return None


@exercise("9.3", "One further on, and from the last letter back to the first.")
def place_to_look(answer: Any) -> str | None:
    steps = [(t, n) for n in (1, 3, 6) for t in range(n)]
    got = [result(answer, t, n) for t, n in steps]
    if got == [t + 1 for t, _ in steps]:
        return "The last step would look behind the word; it must come round to the beginning."
    if got == [n - 1 - t for t, n in steps]:
        return "That is the alignment of reversing."
    if got == [(t - 1) % n for t, n in steps]:
        return "That turns the word the other way: “tab” would become “bta”."
    if got == [t for t, _ in steps]:
        return "That copies the word."
    if got != [(t + 1) % n for t, n in steps]:
        return "Write “tab” and “abt” under each other, and note where each letter came from."
    return None


@exercise("9.4", "Two heads times 36 for the encoder, 49 for the target and 42 across.")
def num_weights(answer: Any) -> str | None:
    if same(answer, 36 + 49 + 42):
        return "These are the weights of one head; there are two."
    if same(answer, 2 * (36 + 28 + 42)):
        return "You counted only the allowed pairs of the causal map; masked weights are zeros."
    if same(answer, 2 * (36 + 49)):
        return "The cross-attention is missing."
    if not same(answer, 2 * (36 + 49 + 42)):
        return "Count queries × keys for each of the three maps, and then the heads."
    return None
