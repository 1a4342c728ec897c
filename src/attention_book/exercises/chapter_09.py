"""Checkers of chapter 9, three uses in one model."""

from __future__ import annotations

from collections.abc import Mapping
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
    wrong_lines,
)
from attention_book.language import N_, say


def _pair(
    use: str, right: tuple[str, str], sentence: str, mistakes: Mapping[Any, str] | None = None
) -> Part:
    sides = ("source", "target")
    options = tuple((queries, keys) for queries in sides for keys in sides)
    return Part("choice", right, mistakes or {}, sentence, use, options=options)


answered(
    "9.1",
    N_("The queries come from the side that looks for something: in cross-attention, the target."),
    _pair(
        N_("encoder"),
        ("source", "source"),
        N_("The encoder has only the source: queries, keys and values all come from it."),
    ),
    _pair(N_("causal"), ("target", "target"), N_("The causal attention uses the target alone.")),
    _pair(
        N_("cross"),
        ("target", "source"),
        N_("Cross-attention joins the two: queries from one, keys and values from the other."),
        {
            ("source", "target"): N_(
                "It is the other way round: the target has the queries, the source keys and values."
            )
        },
    ),
    hints=(
        N_("An output has one row per query. Which sequence does each use write to?"),
        N_("In cross-attention the target asks and the source answers."),
    ),
    importance=3,
)


@exercise(
    "9.2",
    N_("A key must be a token and must not be ahead."),
    lines(
        "torch.ones(num_targets, num_targets, dtype=torch.bool).tril() "
        "& (torch.arange(num_targets) < target_lens.reshape(-1, 1, 1))",
        2,
        {
            (
                "torch.ones(num_targets, num_targets, dtype=torch.bool).tril() "
                "| (torch.arange(num_targets) < target_lens.reshape(-1, 1, 1))"
            ): N_("You joined the two with or: a key must pass both."),
            (
                "torch.ones(num_targets, num_targets, dtype=torch.bool).tril(-1) "
                "& (torch.arange(num_targets) < target_lens.reshape(-1, 1, 1))"
            ): N_("The diagonal is missing: each step sees itself as well."),
            (
                "torch.ones(num_targets, num_targets, dtype=torch.bool).tril() "
                "& (torch.arange(num_targets)[:, None] < target_lens.reshape(-1, 1, 1))"
            ): N_("The lengths are on the query axis; padding must be hidden as a key."),
        },
    ),
    question=N_("Which expression is the mask?"),
    hints=(
        N_("A key must pass two rules: it is not ahead, and it is not padding."),
        N_(
            "Compare the places of the keys, `torch.arange(num_targets)`, once with the places of "
            "the queries and once with the lengths."
        ),
    ),
    importance=3,
)
def decoder_mask(answer: Any) -> str | None:
    lens = torch.tensor([4, 2, 1])
    square = torch.ones(4, 4, dtype=torch.bool)
    causal = square.tril()
    is_token = torch.arange(4) < lens.reshape(-1, 1, 1)
    right = causal & is_token
    padding, future = N_("The padding can still be seen."), N_("The future can still be seen.")
    mistakes = [
        (~right, N_("Your True means blocked; here True = may attend.")),
        *wrong_lines("9.2", target_lens=lens, num_targets=4),
        (
            square.triu() & is_token,
            N_("This lets each step see itself and the future: reverse the comparison."),
        ),
        (square.tril(1) & is_token, N_("Each step sees one step of the future.")),
        (
            causal & (torch.arange(4) <= lens.reshape(-1, 1, 1)),
            N_("One key too many: counted from 0, the place number `length` is already padding."),
        ),
        (causal, padding),
        (causal.expand(3, 4, 4), padding),
        (is_token, future),
        (is_token.expand(3, 4, 4), future),
    ]
    mask = boolean(result(answer, lens, 4))
    hint = N_("Entry (b, i, j) is True where j is at most i and smaller than target_lens[b].")
    mistake = first_mistake(mask, right, mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The mask is right, but the task is to write it without `{0}`.", names[0])
    return mistake


@exercise(
    "9.3",
    N_("One place further on, and from the last letter back to the first."),
    lines(
        "(t + 1) % n",
        1,
        {
            "t + 1": N_(
                "The last step would look past the end of the word; it must return to the "
                "beginning."
            ),
            "n - 1 - t": N_("That is the alignment of reversing."),
            "(t - 1) % n": N_("That turns the word the other way: “tab” would become “bta”."),
        },
    ),
    question=N_("Which expression is the place?"),
    hints=(
        N_("Write “tab” above “abt” and join equal letters."),
        N_("Where does the last step find its letter?"),
    ),
)
def place_to_look(answer: Any) -> str | None:
    steps = [(t, n) for n in (1, 3, 6) for t in range(n)]
    got = [result(answer, t, n) for t, n in steps]
    places, lengths = torch.tensor(steps).T
    mistakes = [
        *wrong_lines("9.3", t=places, n=lengths),
        ([t for t, _ in steps], N_("That copies the word.")),
    ]
    hint = N_("Write “tab” above “abt” and note, for each letter below, where it came from.")
    return first_mistake(got, [(t + 1) % n for t, n in steps], mistakes, hint)


answered(
    "9.4",
    N_("Two heads times 36 for the encoder, 49 for the target and 42 across are 254."),
    Part(
        "number",
        2 * (36 + 49 + 42),
        {
            36 + 49 + 42: N_("These are the weights of one head; there are two."),
            2 * (36 + 28 + 42): N_(
                "You counted only the allowed pairs of the causal map; masked weights are zeros."
            ),
            2 * (36 + 49): N_("The cross-attention is missing."),
        },
        N_("Count queries × keys for each of the three maps, then multiply by the heads."),
    ),
    hints=(
        N_("Each use computes one weight for each query and each key."),
        N_("How many queries and how many keys has cross-attention?"),
    ),
)
