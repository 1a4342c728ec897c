"""Checkers of chapter 8, the self-attention block."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import (
    TWO_DECIMALS,
    Part,
    answered,
    borrowed,
    drawn,
    exercise,
    first_mistake,
    lines,
    result,
    wrong_lines,
)
from attention_book.language import N_, say

OVER_POSITIONS = N_("You normalised over the positions; each is normalised on its own.")

_DISTANCES = (-3, -1, 1, 3)

answered(
    "8.1",
    N_("The mean is 4 and the variance is 5, so −3, −1, 1, 3 are divided by √5."),
    Part(
        "numbers",
        [distance / 5**0.5 for distance in _DISTANCES],
        {
            _DISTANCES: N_(
                "These are the distances from the mean; divide by the root of the variance."
            ),
            tuple(distance / 5 for distance in _DISTANCES): N_(
                "You divided by the variance; divide by its root."
            ),
            tuple(distance / (20 / 3) ** 0.5 for distance in _DISTANCES): N_(
                "You took the variance with n − 1 = 3; here it is the mean of the four squares."
            ),
            tuple(number / 5**0.5 for number in (1, 3, 5, 7)): N_(
                "The mean is not subtracted yet."
            ),
        },
        N_("Subtract the mean, 4, then divide by the root of the mean of the four squares."),
        tolerance=TWO_DECIMALS,
    ),
    hints=(
        N_("What is the mean, and how far is each number from it?"),
        N_(
            "The variance is the mean of the four squared distances; divide the distances by its "
            "root."
        ),
    ),
)


@exercise(
    "8.2",
    N_("Mean and variance are taken over the last axis only, and ε is inside the root."),
    lines(
        "(x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps)",
        2,
        {
            "(x - x.mean(-1, keepdim=True)) "
            "/ (x.var(-1, correction=0, keepdim=True).sqrt() + eps)": N_(
                "ε is added to the variance, inside the root."
            ),
            "(x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps)": N_(
                "The variance is divided by n − 1; use correction=0."
            ),
            (
                "(x - x.mean(1, keepdim=True)) "
                "/ torch.sqrt(x.var(1, correction=0, keepdim=True) + eps)"
            ): OVER_POSITIONS,
        },
    ),
    question=N_("Which expression is layer normalisation?"),
    hints=(
        N_("Each position is normalised on its own: along which axis do mean and variance run?"),
        N_("`x.var` divides by n − 1 unless it is told otherwise, and ε is inside the root."),
    ),
    importance=3,
)
def layer_norm(answer: Any) -> str | None:
    [x], eps = drawn(82, (3, 5, 7)), 0.5
    x = x + 2

    def normalise(dims: int | tuple[int, ...], correction: int = 0) -> Tensor:
        variance = x.var(dim=dims, correction=correction, keepdim=True)
        return (x - x.mean(dim=dims, keepdim=True)) / torch.sqrt(variance + eps)

    variance = x.var(dim=-1, correction=0, keepdim=True)
    centred = x - x.mean(dim=-1, keepdim=True)
    examples = N_("You normalised over the examples of the batch; each position is on its own.")
    mistakes = [
        *wrong_lines("8.2", x=x, eps=eps),
        (centred / variance.sqrt(), N_("ε is missing: add it to the variance, inside the root.")),
        (centred / (variance + eps), N_("The root is missing: divide by √(variance + ε).")),
        (
            centred / (x.std(dim=-1, keepdim=True) + eps),
            N_("torch.std divides by n − 1, and ε is added to the variance, inside the root."),
        ),
        (normalise(0), examples),
        (normalise((0, 1)), examples),
        (normalise((1, 2)), OVER_POSITIONS),
        (x / torch.sqrt(variance + eps), N_("The mean is not subtracted.")),
        (centred, N_("The mean is subtracted; now divide by √(variance + ε).")),
    ]
    hint = N_("Subtract the mean of the last axis and divide by √(variance + ε) of that axis.")
    return first_mistake(result(answer, x, eps), normalise(-1), mistakes, hint)


def _attend(heads: Tensor, scale: float) -> Tensor:
    return torch.softmax(heads @ heads.mT * scale, dim=-1) @ heads


@exercise(
    "8.3",
    N_("With the heads before the positions, the product compares positions."),
    hints=(
        N_("Print the shape of the scores. Which two axes does the product compare?"),
        N_(
            "Swap the axes of positions and heads before the first product, and swap them back "
            "before the last reshape."
        ),
    ),
)
def repaired(answer: Any) -> str | None:
    [x] = drawn(83, (2, 5, 12))
    by_position = x.reshape(2, 5, 3, 4)
    heads = by_position.transpose(1, 2)
    attended = _attend(heads, 0.5)

    def merged(heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).reshape(2, 5, 12)

    cut = N_("Split the width first, then swap the axes; one reshape mixes positions and heads.")
    by_reshape = _attend(x.reshape(2, 3, 5, 4), 0.5)
    mistakes = [
        (
            _attend(by_position, 0.5).reshape(2, 5, 12),
            N_("Still no position sees another: move the heads before the positions."),
        ),
        (by_reshape.reshape(2, 5, 12), cut),
        (merged(by_reshape), cut),
        (
            attended.reshape(2, 5, 12),
            N_("The swap back is missing: move the heads behind the positions, then reshape."),
        ),
        (attended, N_("The heads are right; they are not joined yet.")),
        (
            merged(_attend(heads, 1.0)),
            N_("The scores are not scaled; divide them by the root of the size of one head."),
        ),
        (
            merged(_attend(heads, 12**-0.5)),
            N_(
                "The scores are divided by √(whole width); divide them by the root of the size of "
                "one head."
            ),
        ),
        (
            merged(_attend(heads, 0.25)),
            N_(
                "The scores are divided by the size, not its root; divide them by the root of the "
                "size of one head."
            ),
        ),
        (_attend(x, 12**-0.5), N_("This is one head of the full width: the heads are not split.")),
    ]
    hint = N_("Split the width into heads, move them before the positions, attend, and undo both.")
    mistake = first_mistake(result(answer, x, 3), merged(attended), mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The numbers are right, but the task is to write it without `{0}`.", names[0])
    return mistake


_WEIGHTS, _BIASES, _NORM = 4 * 768 * 768, 4 * 768, 2 * 768
_SLICES = N_("More heads do not mean more parameters; each head takes a slice of 64 columns.")

answered(
    "8.4",
    N_(
        "2,363,904: four projections of 768 × 768 with biases, and γ and β; the number of heads "
        "does not matter."
    ),
    Part(
        "number",
        _WEIGHTS + _BIASES + _NORM,
        {
            _WEIGHTS: N_("The biases and the normalisation are missing."),
            _WEIGHTS + _BIASES: N_("The normalisation is missing: γ and β have 768 numbers each."),
            _WEIGHTS + _NORM: N_("Each of the four projections has a bias of 768 numbers."),
            3 * (768 * 768 + 768) + _NORM: N_(
                "There are four projections: `dense` comes after the heads."
            ),
            12 * _WEIGHTS + 12 * _BIASES + _NORM: _SLICES,
            12 * (_WEIGHTS + _BIASES): _SLICES,
        },
        N_("Count four projections from 768 to 768 with biases, and two vectors of 768."),
    ),
    hints=(
        N_("Which parts of the block have parameters? Four projections and one normalisation."),
        N_("A projection from 768 to 768 has 768 · 768 parameters in its matrix and 768 biases."),
    ),
)
