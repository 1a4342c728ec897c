"""Checkers of chapter 8, the self-attention block."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import (
    TWO_DECIMALS,
    borrowed,
    exercise,
    first_mistake,
    result,
)
from attention_book.exercises.language import say


@exercise("8.1", "The mean is 4 and the variance is 5, so −3, −1, 1, 3 are divided by √5.")
def normalised(answer: Any) -> str | None:
    distances = torch.tensor([-3.0, -1.0, 1.0, 3.0])
    mistakes = [
        (distances, "These are the distances from the mean; divide by the root of the variance."),
        (distances / 5, "You divided by the variance; divide by its root."),
        (
            distances / (20 / 3) ** 0.5,
            "You took the variance with n − 1 = 3; here it is the mean of the four squares.",
        ),
        (torch.tensor([1.0, 3.0, 5.0, 7.0]) / 5**0.5, "The mean is not subtracted yet."),
    ]
    hint = "Subtract the mean, 4, then divide by the root of the mean of the four squares."
    return first_mistake(answer, distances / 5**0.5, mistakes, hint, TWO_DECIMALS)


@exercise("8.2", "Mean and variance are taken over the last axis only, and ε is inside the root.")
def layer_norm(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(82)
    x, eps = torch.randn(3, 5, 7, generator=generator, dtype=torch.float64) + 2, 0.5

    def normalise(dims: int | tuple[int, ...], correction: int = 0) -> Tensor:
        variance = x.var(dim=dims, correction=correction, keepdim=True)
        return (x - x.mean(dim=dims, keepdim=True)) / torch.sqrt(variance + eps)

    variance = x.var(dim=-1, correction=0, keepdim=True)
    centred = x - x.mean(dim=-1, keepdim=True)
    examples = "You normalised over the examples of the batch; each position is on its own."
    positions = "You normalised over the positions; each is normalised on its own."
    mistakes = [
        (centred / (variance.sqrt() + eps), "ε is added to the variance, inside the root."),
        (centred / variance.sqrt(), "ε is missing: add it to the variance, inside the root."),
        (centred / (variance + eps), "The root is missing: divide by √(variance + ε)."),
        (normalise(-1, correction=1), "The variance is divided by n − 1; use correction=0."),
        (
            centred / (x.std(dim=-1, keepdim=True) + eps),
            "torch.std divides by n − 1, and ε is added to the variance, inside the root.",
        ),
        (normalise(0), examples),
        (normalise((0, 1)), examples),
        (normalise(1), positions),
        (normalise((1, 2)), positions),
        (x / torch.sqrt(variance + eps), "The mean is not subtracted."),
        (centred, "The mean is subtracted; now divide by √(variance + ε)."),
    ]
    hint = "Subtract the mean of the last axis and divide by √(variance + ε) of that axis."
    return first_mistake(result(answer, x, eps), normalise(-1), mistakes, hint)


def _attend(heads: Tensor, scale: float) -> Tensor:
    return torch.softmax(heads @ heads.mT * scale, dim=-1) @ heads


@exercise("8.3", "With the heads before the positions, the product compares positions.")
def repaired(answer: Any) -> str | None:
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(83), dtype=torch.float64)
    by_position = x.reshape(2, 5, 3, 4)
    heads = by_position.transpose(1, 2)
    attended = _attend(heads, 0.5)

    def merged(heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).reshape(2, 5, 12)

    cut = "Split the width first, then swap the axes; one reshape mixes positions and heads."
    by_reshape = _attend(x.reshape(2, 3, 5, 4), 0.5)
    mistakes = [
        (
            _attend(by_position, 0.5).reshape(2, 5, 12),
            "Still no position sees another: move the heads before the positions.",
        ),
        (by_reshape.reshape(2, 5, 12), cut),
        (merged(by_reshape), cut),
        (
            attended.reshape(2, 5, 12),
            "The swap back is missing: move the heads behind the positions, then reshape.",
        ),
        (attended, "The heads are right; they are not joined yet."),
        (
            merged(_attend(heads, 1.0)),
            "The scores are not scaled; divide them by the root of the size of one head.",
        ),
        (
            merged(_attend(heads, 12**-0.5)),
            "The scores are divided by √(whole width); divide them by the root of the size of "
            "one head.",
        ),
        (
            merged(_attend(heads, 0.25)),
            "The scores are divided by the size, not its root; divide them by the root of the size "
            "of one head.",
        ),
        (_attend(x, 12**-0.5), "This is one head of the full width: the heads are not split."),
    ]
    hint = "Split the width into heads, move them before the positions, attend, and undo both."
    mistake = first_mistake(result(answer, x, 3), merged(attended), mistakes, hint)
    if mistake is None and (names := borrowed(answer)):
        return say("The numbers are right, but the task is to write it without `{0}`.", names[0])
    return mistake


@exercise(
    "8.4",
    "Four projections of 768 × 768 with biases, and γ and β; the number of heads does not matter.",
)
def num_parameters(answer: Any) -> str | None:
    weights, biases, norm = 4 * 768 * 768, 4 * 768, 2 * 768
    shared = "More heads do not mean more parameters; each head takes a slice of 64 columns."
    mistakes = [
        (weights, "The biases and the normalisation are missing."),
        (weights + biases, "The normalisation is missing: γ and β have 768 numbers each."),
        (weights + norm, "Each of the four projections has a bias of 768 numbers."),
        (
            3 * (768 * 768 + 768) + norm,
            "There are four projections: `dense` comes after the heads.",
        ),
        (12 * weights + 12 * biases + norm, shared),
        (12 * (weights + biases), shared),
    ]
    hint = "Count four projections from 768 to 768 with biases, and two vectors of 768."
    return first_mistake(answer, weights + biases + norm, mistakes, hint)
