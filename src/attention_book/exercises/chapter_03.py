"""Checkers of chapter 3, masking."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import (
    TWO_DECIMALS,
    Part,
    answered,
    boolean,
    borrowed,
    equal_numbers,
    exercise,
    first_mistake,
    lines,
    result,
    wrong_lines,
)
from attention_book.language import N_, say
from attention_book.masking import length_mask, masked_softmax

POLARITY = N_("The polarity is inverted: True = may attend.")
POLARITY_OF_TOKENS = N_(
    "The polarity is inverted: True = may attend, so True where the token is real."
)
NAN_ROW = N_("A query that may attend to nothing gets NaN; it must get zeros.")


answered(
    "3.1",
    N_("Only the allowed keys count in the denominator: 1 : 3, divided by 4."),
    Part(
        "numbers",
        [1 / 4, 3 / 4, 0, 0],
        {
            (1 / 16, 3 / 16, 5 / 16, 7 / 16): N_("These are the weights without a mask."),
            (1 / 16, 3 / 16, 0, 0): N_(
                "You masked after the softmax: the row sums to 1/4. Leave the padding out of "
                "the sum."
            ),
            (1 / 6, 3 / 6, 1 / 6, 1 / 6): N_(
                "You gave the padding the score 0, and e to the 0 is 1. Its score must be −∞."
            ),
            (1, 3, 0, 0): N_("These are e raised to the scores; divide them by their sum."),
            (0, 1, 0, 0): N_(
                "You divided the scores by their sum; raise e to them first, and e to the 0 is 1."
            ),
        },
        N_("Raise e to each valid score and divide by the sum of these; padding gets 0."),
        tolerance=TWO_DECIMALS,
    ),
    hints=(
        N_("Only the first two keys take part; the weights of the others are known at once."),
        N_(
            "e to the 0 is 1 and e to the ln 3 is 3: what are the two weights in the proportion 1 "
            ": 3?"
        ),
    ),
    importance=3,
)


@exercise(
    "3.2",
    N_("The axis of size 1 stands for the queries: one mask for all of them."),
    lines(
        "(tokens != 0).unsqueeze(1)",
        1,
        {
            "tokens != 0": N_(
                "A mask (batch, length) is read as (queries, keys). Where batch = length it fits "
                "by accident; give it an axis for the queries."
            ),
            "(tokens == 0).unsqueeze(1)": POLARITY_OF_TOKENS,
            "(tokens != 0).unsqueeze(2)": N_(
                "The mask is on the query axis: (batch, length, 1) stops padding from attending, "
                "not from being attended to."
            ),
        },
    ),
    question=N_("Which expression is the mask?"),
    hints=(
        N_(
            "Start with True where a token is real. Which axis of the scores do these places "
            "belong to?"
        ),
        N_(
            "The scores are `(batch, queries, keys)`; the mask needs an axis of size 1 for the "
            "queries."
        ),
    ),
    importance=3,
)
def padding_mask(answer: Any) -> str | None:
    # As many examples as positions, so that a mask without the axis of the queries fits too.
    tokens = torch.tensor([[5, 3, 0], [0, 7, 0], [4, 1, 2]])
    real = tokens != 0
    mask = boolean(result(answer, tokens))
    right = real[:, None].expand_as(mask) if mask.shape == (3, 3, 3) else real[:, None]
    mistakes = [
        *wrong_lines("3.2", tokens=tokens),
        (~right, POLARITY_OF_TOKENS),
        (
            length_mask(real.sum(1), 3),
            N_(
                "You counted the real tokens and took them to be the first ones; padding may be "
                "anywhere in the row."
            ),
        ),
    ]
    return first_mistake(
        mask, right, mistakes, N_("A key is allowed exactly where its token is not 0.")
    )


@exercise(
    "3.3",
    N_("Two masks combined: not the future, and not too long ago."),
    lines(
        "torch.ones(n, n, dtype=torch.bool).tril() & torch.ones(n, n, dtype=torch.bool).triu(-2)",
        2,
        {
            "torch.ones(n, n, dtype=torch.bool).tril()": N_(
                "This lets each query see the whole past; the window is missing."
            ),
            (
                "torch.ones(n, n, dtype=torch.bool).tril() "
                "& torch.ones(n, n, dtype=torch.bool).triu(-3)"
            ): N_("The window is one position too long."),
            (
                "torch.ones(n, n, dtype=torch.bool).tril(2) "
                "& torch.ones(n, n, dtype=torch.bool).triu()"
            ): N_("The window lies in the future: rows are queries, columns are keys."),
        },
    ),
    question=N_("Which expression is the mask?"),
    hints=(
        N_("The window is two rules at once: not the future, and not too long ago."),
        N_("Let i be the row and j the column. For which differences i − j is the entry True?"),
    ),
)
def window_mask(answer: Any) -> str | None:
    def band(oldest: int, newest: int) -> Tensor:
        offset = torch.arange(7)[None, :] - torch.arange(7)[:, None]
        return (offset >= oldest) & (offset <= newest)

    mistakes = [
        *wrong_lines("3.3", n=7),
        (band(-1, 0), N_("The window is one position too short: itself and the two before.")),
        (band(-2, -1), N_("The query itself must be seen too.")),
        (band(-2, 2), N_("The window reaches into the future.")),
        (~band(-2, 0), POLARITY),
    ]
    mask = boolean(result(answer, 7))
    return first_mistake(
        mask, band(-2, 0), mistakes, N_("Row i is True at columns i−2, i−1 and i.")
    )


@exercise(
    "3.4",
    N_("Exact zeros, sums of 1, and a finite gradient for an empty row."),
    lines(
        "torch.softmax(scores.masked_fill(~mask, -torch.inf)"
        ".masked_fill(~mask.any(-1, keepdim=True), 0), -1) * mask.any(-1, keepdim=True)",
        3,
        {
            "torch.softmax(scores, -1) * mask": N_(
                "You masked after the softmax: the rows do not sum to 1."
            ),
            "torch.softmax(scores * mask, -1)": N_(
                "A masked score of 0 still gets weight, because e to the 0 is 1."
            ),
            "torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)": NAN_ROW,
        },
    ),
    question=N_("Which expression keeps everything that the exercise asks for?"),
    hints=(
        N_("Mask the scores, not the weights. Which score gets a weight of exactly 0?"),
        N_(
            "In an empty row every score is −∞, and its softmax is NaN. Give such a row other "
            "scores before the softmax and zeros after it."
        ),
    ),
)
def my_masked_softmax(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(34)
    scores = torch.randn(2, 3, 4, generator=generator)
    lens = torch.tensor([[1, 4, 2], [3, 2, 4]])
    mask = length_mask(lens, 4)
    got = result(answer, scores, mask)
    if mistake := _mistake_in_weights(got, scores, mask):
        return mistake
    if "masked_softmax" in borrowed(answer):
        return N_("The weights are right, but the task is to write it without `masked_softmax`.")
    given = scores.clone()
    answer(given, mask.clone())
    if not equal_numbers(given, scores):
        return N_("It writes into its argument: the caller's scores have changed.")
    low = torch.full((1, 1, 4), -2e6)
    if not equal_numbers(
        result(answer, low, mask[1:, 1:2], given=say("scores of −2·10⁶")), [[[0.5, 0.5, 0.0, 0.0]]]
    ):
        return N_("Real scores of −2·10⁶ lose their weight: fill with −∞, lower than every score.")
    half = result(answer, scores.half(), mask, given=say("scores in float16"))
    if not isinstance(half, Tensor) or not half.isfinite().all():
        return N_("In float16 the result contains NaN or infinity.")
    mask[0, 1] = False
    leaf = scores.clone().requires_grad_()
    empty = answer(leaf, mask)
    if empty[0, 1].isnan().any():
        return NAN_ROW
    if not equal_numbers(empty[0, 1], [0, 0, 0, 0]):
        return N_(
            "A query that may attend to nothing gets weights on masked keys; it must get zeros."
        )
    given[0, 1] = torch.nan
    if answer(given, mask)[0, 1].isnan().any():
        return N_("NaN in the scores of an empty row comes through; replace those scores as well.")
    if not empty.requires_grad:
        return N_("The weights are right, but no gradient reaches the scores.")
    empty.square().sum().backward()
    if leaf.grad is None or not leaf.grad.isfinite().all():
        return N_(
            "The weights are right, but the gradient of an empty row is NaN: replace its scores "
            "before the softmax, not its weights after it."
        )
    return None


def _mistake_in_weights(got: Any, scores: Tensor, mask: Tensor) -> str | None:
    right = masked_softmax(scores, mask=mask)
    plain = torch.softmax(scores, dim=-1)
    axis = N_("The softmax runs along the wrong axis: the keys are last.")
    filled = scores.masked_fill(~mask, -torch.inf)
    mistakes = [
        (plain, N_("The mask has no effect.")),
        *wrong_lines("3.4", scores=scores, mask=mask),
        *(
            (wrong, axis)
            for dim in (0, 1)
            for weights in (torch.softmax(filled, dim), torch.softmax(scores, dim))
            for wrong in (weights, weights.nan_to_num(), weights * mask)
        ),
        (masked_softmax(scores, mask=~mask), POLARITY),
        # What a masked fill gives where a row of the inverted mask is empty.
        (torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1), POLARITY),
        (torch.softmax(scores.masked_fill(mask, -1e9), dim=-1), POLARITY),
    ]
    hint = N_("The allowed weights of a row must be the softmax of its allowed scores.")
    if isinstance(got, Tensor) and got.shape == scores.shape:
        leak = got.detach()[~mask].abs().max()
        if leak > 0 and equal_numbers(got, right, 0.01):
            return N_("A masked key keeps some weight; it must be exactly 0.")
    return first_mistake(got, right, mistakes, hint)


@exercise(
    "3.5",
    N_("Two libraries, two polarities: say what True means."),
    lines(
        "~length_mask(valid_lens, num_keys).squeeze(1)",
        1,
        {
            "length_mask(valid_lens, num_keys).squeeze(1)": N_(
                "Here True = blocked; yours is True where a key is valid."
            ),
            "~length_mask(valid_lens, num_keys)": N_(
                "The polarity is right; remove the axis of size 1: (batch, keys)."
            ),
            "length_mask(valid_lens, num_keys)": N_(
                "Here True = blocked, and the shape must be (batch, keys)."
            ),
        },
    ),
    question=N_("Which expression is the mask?"),
    hints=(
        N_("`length_mask` gives the same rule with the other polarity."),
        N_("Look at the shape of `length_mask(valid_lens, num_keys)`: which axis is too many?"),
    ),
    importance=3,
)
def key_padding_mask(answer: Any) -> str | None:
    lens = torch.tensor([3, 1, 0])
    allowed = length_mask(lens, 4).squeeze(1)
    mask = boolean(result(answer, lens, 4))
    mistakes = [
        *wrong_lines("3.5", length_mask=length_mask, valid_lens=lens, num_keys=4),
    ]
    hint = N_("Row b is False at its first valid_lens[b] positions, and True after them.")
    return first_mistake(mask, ~allowed, mistakes, hint)
