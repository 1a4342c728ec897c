"""Checkers of chapter 6, scaled dot-product attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import (
    Part,
    answered,
    borrowed,
    called,
    drawn,
    exercise,
    first_mistake,
    numbers,
    result,
)
from attention_book.language import N_

answered(
    "6.1",
    N_("Each product of components has variance 4 · 9; the sum of 64, divided by 64."),
    Part(
        "number",
        36,
        {
            2304: N_("This is the variance of q·k; the division by √64 is missing."),
            288: N_(
                "You divided the variance by √64; dividing a number by c divides its variance "
                "by c²."
            ),
            6: N_("This is the standard deviation; the variance is its square."),
            1: N_("The variance is 1 where queries and keys have variance 1; these are larger."),
            13: N_(
                "You added the two variances; those of independent factors with mean 0 multiply."
            ),
        },
        N_("Start with the variance of one product."),
    ),
    hints=(
        N_("The variance is the square of the standard deviation."),
        N_(
            "For independent factors of mean 0, the variance of a product is the product of the "
            "variances."
        ),
    ),
    importance=3,
)


@exercise(
    "6.2",
    N_("The last query sees all keys, and each query before it one key fewer."),
    hints=(
        N_("The last query may see every key, the one before it all but the last."),
        N_("Query i stands at the position i + length − new. Which keys may that position see?"),
    ),
    importance=3,
)
def attention_of_the_last(answer: Any) -> str | None:
    queries, keys, values = drawn(62, (2, 3, 5, 16), (2, 3, 7, 16), (2, 3, 7, 11))
    dots = queries @ keys.transpose(-2, -1)

    def until(last: int) -> Tensor:
        """Let query i attend to the keys up to number i + last."""
        return torch.ones(5, 7, dtype=torch.bool).tril(last)

    def attend(scores: Tensor, allowed: Tensor | None = None, dim: int = -1) -> Tensor:
        allowed = until(2) if allowed is None else allowed
        return torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=dim)

    def pool(weights: Tensor) -> Tensor:
        return weights @ values

    weights = attend(dots / 4)
    best = dots.masked_fill(~until(2), -torch.inf).argmax(-1, keepdim=True)
    mistakes = [
        (weights, N_("These are the weights; the weighted mean of the values is missing.")),
        (
            pool(attend(dots / 4, until(0))),
            N_(
                "Your causal rule is aligned to the first key, as PyTorch's is_causal is: here the "
                "queries are the last positions, so the last query must see all keys."
            ),
        ),
        (pool(attend(dots / 4, until(1))), N_("A query must see its own position too.")),
        (
            pool(attend(dots / 4, until(3))),
            N_("Each query sees one key too many, its next position."),
        ),
        (
            pool(torch.softmax(dots / 4, -1)),
            N_("Every query sees every key; only the last one may."),
        ),
        (
            pool(attend(dots / 4, ~until(2))).nan_to_num(),
            N_("The mask is inverted: each query sees only what comes after it."),
        ),
        (
            pool(attend(dots / 4, ~until(1))),
            N_("The comparison is reversed: each query sees itself and what comes after it."),
        ),
        (pool(attend(dots)), N_("The rule is right, but the scores are not divided by √size.")),
        (
            pool(attend(dots / 16)),
            N_("The rule is right, but you divided by the size; divide by its root."),
        ),
        (
            pool(attend(dots * 4)),
            N_("The rule is right, but you multiplied by √size; divide by it."),
        ),
        *(
            (pool(attend(dots / number**0.5)), sentence)
            for number, sentence in (
                (7, N_("The rule is right, but you took the root of the number of keys.")),
                (5, N_("The rule is right, but you took the root of the number of queries.")),
                (3, N_("The rule is right, but you took the root of the number of heads.")),
                (
                    48,
                    N_(
                        "The rule is right, but you took the root of heads · size; one head counts."
                    ),
                ),
                (11, N_("The rule is right, but you took the root of the size of the values.")),
            )
        ),
        (
            pool(torch.softmax(dots / 4, -1) * until(2)),
            N_("You masked after the softmax: the rows no longer sum to 1."),
        ),
        (
            pool(torch.softmax(dots / 4 * until(2), -1)),
            N_("You multiplied the scores by the mask: 0 is a score like any other."),
        ),
        (
            pool(torch.softmax(dots / 4 + until(2), -1)),
            N_("You added the mask to the scores: True adds 1, and False blocks nothing."),
        ),
        (pool(torch.softmax(weights, -1)), N_("You took the softmax twice.")),
        (
            pool(attend(dots / 4, dim=-2)),
            N_("The softmax runs over the queries; it must run over the keys."),
        ),
        (
            values.gather(-2, best.expand(2, 3, 5, 11)),
            N_("You took the value of the best key: that is a hard lookup, without a softmax."),
        ),
    ]
    got = result(answer, queries, keys, values)
    hint = N_("Divide by √size, let query i see the keys up to i + (length − new), then pool.")
    right = pool(weights)
    mistake = first_mistake(got, right, mistakes, hint)
    found = numbers(got)
    if mistake and found is not None and found.isnan().any():
        # Rows of a wrong mask without any key: their NaN hides which mask it was.
        swept = first_mistake(found.nan_to_num(), right, mistakes, hint)
        return swept if swept not in (None, hint) else mistake
    if mistake is None:
        ready_made = {"DotProductAttention", "MultiHeadAttention", "SelfAttentionBlock"}
        if "scaled_dot_product_attention" in called(answer, queries, keys, values) or (
            ready_made & set(borrowed(answer))
        ):
            return N_(
                "The numbers are right, but the task is to write it without ready-made attention."
            )
    return mistake


answered(
    "6.3",
    N_("α₁(1 − α₁) = 0.09, and −α₁α₂ = −0.09; each column sums to 0, as the weights sum to 1."),
    Part(
        "rows",
        [[0.09, -0.09], [-0.09, 0.09]],
        {
            ((0.09, 0.0), (0.0, 0.09)): N_(
                "Each weight also depends on the other score: off the diagonal the entry is −α₁α₂."
            ),
            ((0.09, 0.09), (0.09, 0.09)): N_(
                "A higher score takes weight from the other key: check the sign off the diagonal."
            ),
            ((0.9, 0.0), (0.0, 0.1)): N_(
                "This is one of the two terms; the Jacobian is diag(α) − αᵀα."
            ),
            ((0.81, 0.09), (0.09, 0.01)): N_(
                "This is one of the two terms; the Jacobian is diag(α) − αᵀα."
            ),
            ((-0.09, 0.09), (0.09, -0.09)): N_(
                "The signs are reversed: a higher score raises its own weight."
            ),
        },
        N_("The entry (i, j) is αᵢ(1 − αᵢ) where i = j, and −αᵢαⱼ elsewhere."),
    ),
    hints=(
        N_("The two weights always sum to 1, so what one gains the other loses."),
        N_("How fast does a weight α grow with its own score? By α(1 − α)."),
    ),
)


answered(
    "6.4",
    N_("Both factors multiply: 256^(−1/4) = 1/4 twice is 1/16 = 1/√256."),
    Part(
        "number",
        1 / 4,
        {
            1 / 16: N_(
                "That is the factor for the product; queries and keys both carry it: use its root."
            ),
            1 / 256: N_(
                "256 is the variance; the product must shrink by its root, shared by two vectors."
            ),
            4: N_("This makes the scores larger; take its inverse."),
            16: N_("This is what the product must be divided by; both vectors share it."),
        },
        N_("The product q·k must shrink by √256 = 16."),
    ),
    hints=(
        N_("What is the variance of q·k at the start, and by what must the product be divided?"),
        N_("A factor on both the queries and the keys counts twice in the product."),
    ),
)


answered(
    "6.5",
    N_("√(32/512) = 0.25: someone took d_model = 512 for d_k."),
    Part(
        "number",
        512,
        {
            32: N_("With 32 under the root the standard deviation would be 1."),
            128: N_("With 128 the standard deviation is 0.5; you forgot a square."),
            512**0.5: N_("This is the divisor; the question asks for the number under its root."),
        },
        N_("Plain scores have the standard deviation √32."),
        tolerance=0.01,
    ),
    hints=(
        N_("What standard deviation do the scores have before they are divided?"),
        N_("√32 divided by the root of the unknown number is 0.25."),
    ),
)
