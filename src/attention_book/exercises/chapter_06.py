"""Checkers of chapter 6, scaled dot-product attention."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import exercise, result, same


@exercise("6.1", "Each product of components has variance 4 · 9; 64 of them, divided by 64.")
def variance_of_scores(answer: Any) -> str | None:
    if same(answer, 2304):
        return "This is the variance of q·k; the division by √64 is still to come."
    if same(answer, 288):
        return "You divided the variance by √64; dividing a number by c divides its variance by c²."
    if same(answer, 6):
        return "This is the standard deviation; the variance is its square."
    if same(answer, 1):
        return "The variance is 1 where queries and keys have variance 1; these are louder."
    if same(answer, 13):
        return "You added the two variances; those of independent factors multiply."
    return None if same(answer, 36) else "Start with the variance of one product of components."


@exercise("6.2", "Scores over √size, masked before the softmax, softmax over the keys.")
def scaled_attention(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(62)
    queries, keys, values = (
        torch.randn(2, 3, length, size, generator=generator, dtype=torch.float64)
        for length, size in ((5, 16), (7, 16), (7, 11))
    )
    mask = torch.ones(5, 7, dtype=torch.bool).tril(2)
    got = result(answer, queries, keys, values, mask)
    dots = queries @ keys.transpose(-2, -1)

    def attend(scores: torch.Tensor, allowed: torch.Tensor = mask) -> torch.Tensor:
        return torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)

    weights = attend(dots / 4)
    mistakes = [
        (weights, "These are the weights; the mean of the values under them is still to be taken."),
        (attend(dots) @ values, "The scores are not divided by √size."),
        (attend(dots / 16) @ values, "You divided by the size; divide by its root."),
        (attend(dots * 4) @ values, "You multiplied by √size; divide by it."),
        (attend(dots / 7**0.5) @ values, "You took the root of the number of keys."),
        (attend(dots / 5**0.5) @ values, "You took the root of the number of queries."),
        (attend(dots / 48**0.5) @ values, "You took the root of heads · size; one head counts."),
        (attend(dots / 11**0.5) @ values, "You took the root of the size of the values."),
        (torch.softmax(dots / 4, -1) @ values, "The mask has no effect."),
        (
            torch.softmax(dots / 4, -1) * mask @ values,
            "You masked after the softmax: the rows no longer sum to 1.",
        ),
        (
            torch.softmax(dots / 4 * mask, -1) @ values,
            "You multiplied the scores by the mask: 0 is a score like any other.",
        ),
        (torch.softmax(weights, -1) @ values, "You took the softmax twice."),
        (
            torch.softmax((dots / 4).masked_fill(~mask, -torch.inf), -2) @ values,
            "The softmax runs over the queries; it must run over the keys.",
        ),
        (
            values.gather(
                -2,
                (dots.masked_fill(~mask, -torch.inf).argmax(-1, keepdim=True)).expand(2, 3, 5, 11),
            ),
            "You took the value of the best key: that is a look-up without softening.",
        ),
        (
            attend(dots / 4, ~mask) @ values,
            "The mask is inverted: True means that a query may attend.",
        ),
    ]
    if not same(got, weights @ values):
        for wrong, name in mistakes:
            if same(torch.nan_to_num(torch.as_tensor(got)), torch.nan_to_num(wrong)):
                return name
        return f"Expected the shape {(2, 3, 5, 11)}: scores, scale, mask, softmax, mean of values."
    return None


@exercise("6.3", "α₁(1 − α₁) = 0.09, and −α₁α₂ = −0.09; each row sums to 0, as weights must.")
def jacobian_by_pencil(answer: Any) -> str | None:
    def is_matrix(rows: list[list[float]]) -> bool:
        return same(answer, torch.tensor(rows))

    if is_matrix([[0.09, 0.0], [0.0, 0.09]]):
        return "Each weight also answers to the other score: off the diagonal stands −α₁α₂."
    if is_matrix([[0.09, 0.09], [0.09, 0.09]]):
        return "A higher score takes weight from the other key: mind the sign off the diagonal."
    if is_matrix([[0.9, 0.0], [0.0, 0.1]]) or is_matrix([[0.81, 0.09], [0.09, 0.01]]):
        return "This is one of the two terms; the Jacobian is diag(α) − αᵀα."
    if is_matrix([[-0.09, 0.09], [0.09, -0.09]]):
        return "The signs are turned round: a higher score raises its own weight."
    right = is_matrix([[0.09, -0.09], [-0.09, 0.09]])
    return None if right else "The entry (i, j) is αᵢ(1 − αᵢ) where i = j, and −αᵢαⱼ elsewhere."


@exercise("6.4", "Both factors multiply: 256^(−1/4) = 1/4 twice is 1/16 = 1/√256.")
def start_factor(answer: Any) -> str | None:
    if same(answer, 1 / 16):
        return (
            "That is the factor for the product; queries and keys both carry it, so it acts twice."
        )
    if same(answer, 1 / 256):
        return "256 is the variance; the product must shrink by its root, shared by two vectors."
    if same(answer, 4):
        return "This makes the scores larger; take its inverse."
    return None if same(answer, 1 / 4) else "The product q·k must shrink by √256 = 16."


@exercise("6.5", "√(32/512) = 0.25: someone took d_model = 512 for d_k.")
def number_under_the_root(answer: Any) -> str | None:
    if same(answer, 32):
        return "With 32 under the root the standard deviation would be 1."
    if same(answer, 128):
        return "With 128 the standard deviation is 0.5; you forgot a square."
    if same(answer, 512**0.5, 1e-2):
        return "This is the divisor; the question asks for the number under its root."
    return None if same(answer, 512) else "Plain scores have the standard deviation √32."
