"""Checkers of chapter 12, a model that learned English."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    TWO_DECIMALS,
    Part,
    answered,
    borrowed,
    exercise,
    first_mistake,
    lines,
    result,
    wrong_lines,
)
from attention_book.language import N_, say

answered(
    "12.1",
    N_("The first word gets “_the”, because _ and t are merged first; the second keeps “_ he”."),
    Part(
        "choice",
        "_the n _ he",
        {
            "_the n _he": N_("“_ he” is not among the eight merges, so these two stay apart."),
            "_th e n _ he": N_("Merge 2 comes before merge 8: h and e are joined first."),
            "_t he n _ he": N_("Go on: “_t” and “he” are neighbours, and merge 7 joins them."),
        },
        N_("Take the merges in their order, and apply each wherever it fits."),
        options=("_the n _he", "_th e n _ he", "_the n _ he", "_t he n _ he"),
    ),
    hints=(
        N_("Write every character alone, with _ for a space, and begin with merge 1."),
        N_("After each merge, look for the first pair of the list in what you have written."),
    ),
    importance=3,
)


answered(
    "12.2",
    N_("A layer has 45,440: four projections, three matrices of the network and two norms."),
    Part(
        "number",
        45_440,
        {
            49_536: N_("The keys and values have four heads, so W_k and W_v are 32 × 64."),
            45_312: N_("The two norms of the layer have 64 gains each."),
            34_432: N_("Gate, up and down are three matrices of 172 × 64."),
        },
        N_("Multiply out the nine shapes of the list, and add them up."),
        "layer",
        N_("one layer"),
    ),
    Part(
        "number",
        260_032,
        {
            292_800: N_("The embedding is used twice, but its parameters count once."),
            259_968: N_("The norm after the last layer has 64 gains."),
            227_264: N_("The embedding is missing."),
            227_200: N_("These are the five layers; embedding and last norm are missing."),
        },
        N_("Five layers, the embedding once, and the last norm."),
        "model",
        N_("the model"),
    ),
    hints=(
        N_("A matrix of 32 × 64 has 2,048 parameters, and nothing here has a bias."),
        N_("The model is five layers, one embedding of 512 × 64 and one norm of 64."),
    ),
    importance=2,
)


@exercise(
    "12.3",
    N_("Each head is reordered by itself; the numbers stay the same, and only rows move."),
    lines(
        "weight.reshape(num_heads, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)",
        1,
        {
            "torch.cat([weight[0::2], weight[1::2]])": N_(
                "That reorders all rows at once, so each new head has rows of several old ones."
            ),
            "weight.reshape(num_heads, 2, -1, weight.shape[1]).transpose(1, 2)"
            ".reshape(weight.shape)": N_(
                "That is the inverse: it puts the halves of a head side by side."
            ),
            "weight.reshape(weight.shape[0], num_heads, 2, -1).transpose(2, 3)"
            ".reshape(weight.shape)": N_(
                "That reorders the columns, which are components of the input; rows make pairs."
            ),
        },
    ),
    question=N_("Which expression reorders the rows?"),
    hints=(
        N_("Split the rows into heads first, so that no row leaves its head."),
        N_("With the axes (heads, pairs, 2, d_model), exchange two of them, and join again."),
    ),
    importance=3,
)
def reordered(answer: Any) -> str | None:
    weight = torch.arange(96, dtype=torch.float64).reshape(12, 8)
    right = weight.reshape(2, 3, 2, 8).transpose(1, 2).reshape(12, 8)
    mistakes = [
        *wrong_lines("12.3", weight=weight, num_heads=2),
        (weight, N_("The rows are where they were.")),
    ]
    hint = N_("In each head, rows 0, 2, 4 … come first, and then rows 1, 3, 5 …")
    mistake = first_mistake(result(answer, weight, 2), right, mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The rows are right, but the task is to write it without `{0}`.", names[0])
    return mistake


answered(
    "12.4",
    N_(
        "Each token must be right, so the probabilities are multiplied: 0.82 for 10 tokens, 0.13 "
        "for 100."
    ),
    Part(
        "number",
        0.98**10,
        {
            0.8: N_("That subtracts 0.02 for each token; multiply by 0.98 instead."),
            0.98: N_("That is one token; there are 10."),
            1 - 0.98**10: N_("That is the share with such a token."),
        },
        N_("Multiply 0.98 by itself, once for each token."),
        "10 tokens",
        N_("10 tokens"),
        tolerance=TWO_DECIMALS,
    ),
    Part(
        "number",
        0.98**100,
        {
            0.0: N_("Few are left, but not none: 0.98 to the power of 100 is above 0.1."),
            0.98: N_("That is one token; there are 100."),
            1 - 0.98**100: N_("That is the share with such a token."),
        },
        N_("Multiply 0.98 by itself, once for each token."),
        "100 tokens",
        N_("100 tokens"),
        tolerance=TWO_DECIMALS,
    ),
    hints=(
        N_("What is the probability that one token fits? And that two do?"),
        N_("The probabilities of independent events are multiplied."),
    ),
    importance=2,
)


answered(
    "12.5",
    N_(
        "A loss per token can only be compared where the tokens are the same; per character it can."
    ),
    Part(
        "number",
        0.3,
        {
            4.8: N_("One token's loss is shared by its characters: divide."),
            1.2: N_("That is per token; a token has 4 characters."),
        },
        N_("The loss of a token is shared by 4 characters."),
        "A",
        N_("A, nats per character"),
        tolerance=TWO_DECIMALS,
    ),
    Part(
        "number",
        0.4,
        {0.1: N_("B's tokens are single characters, so its loss is per character already.")},
        N_("B's tokens are single characters."),
        "B",
        N_("B, nats per character"),
        tolerance=TWO_DECIMALS,
    ),
    Part(
        "choice",
        "A",
        {"B": N_("B's loss per token is lower, but so is what each token says.")},
        N_("Compare per character."),
        "better",
        N_("the better one"),
        options=("A", "B"),
    ),
    hints=(
        N_("The two losses are about different things: four characters, and one."),
        N_("A text of 400 characters has 100 of A's tokens. What does A lose on all of it?"),
    ),
    importance=3,
)
