"""Checkers of chapter 8, the self-attention block."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_book.exercises.checker import exercise, result, same


@exercise("8.1", "The mean is 4 and the variance is 5, so the distances −3, −1, 1, 3 shrink by √5.")
def normalised(answer: Any) -> str | None:
    distances = torch.tensor([-3.0, -1.0, 1.0, 3.0])
    if same(answer, distances, 1e-3):
        return "These are the distances from the mean; divide them by the root of the variance."
    if same(answer, distances / 5, 1e-3):
        return "You divided by the variance; divide by its root."
    if same(answer, distances / (20 / 3) ** 0.5, 1e-3):
        return "You took the variance with n − 1 = 3; here it is the mean of the four squares."
    if same(answer, torch.tensor([1.0, 3.0, 5.0, 7.0]) / 5**0.5, 1e-3):
        return "The mean is still to be taken away."
    if not same(answer, distances / 5**0.5, 1e-3):
        return "Take away the mean, 4, then divide by the root of the mean square of what is left."
    return None


@exercise("8.2", "Mean and variance are taken over the last axis alone, and ε stands in the root.")
def layer_norm(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(82)
    x, eps = torch.randn(3, 5, 7, generator=generator, dtype=torch.float64) + 2, 0.5
    got = result(answer, x, eps)

    def normalise(dims: int | tuple[int, ...], correction: int = 0) -> Tensor:
        variance = x.var(dim=dims, correction=correction, keepdim=True)
        return (x - x.mean(dim=dims, keepdim=True)) / torch.sqrt(variance + eps)

    variance = x.var(dim=-1, correction=0, keepdim=True)
    centred = x - x.mean(dim=-1, keepdim=True)
    if same(got, centred / (variance.sqrt() + eps)) or same(got, centred / variance.sqrt()):
        return "ε must be added to the variance, inside the root."
    if same(got, normalise(-1, correction=1)):
        return "The variance is divided by n − 1; use correction=0."
    if same(got, normalise(0)) or same(got, normalise((0, 1))):
        return "You normalised over the examples of the batch: each position must stand by itself."
    if same(got, normalise(1)) or same(got, normalise((1, 2))):
        return "You normalised over the positions: each must stand by itself."
    if same(got, x / torch.sqrt(variance + eps)):
        return "The mean is not taken away."
    if not same(got, normalise(-1)):
        return "Take away the mean of the last axis and divide by √(variance + ε) of that axis."
    return None


def _attend(heads: Tensor, scale: float) -> Tensor:
    return torch.softmax(heads @ heads.mT * scale, dim=-1) @ heads


@exercise(
    "8.3", "With the heads before the positions, the product compares position with position."
)
def repaired(answer: Any) -> str | None:
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(83), dtype=torch.float64)
    got = result(answer, x, 3)
    by_position = x.reshape(2, 5, 3, 4)
    heads = by_position.transpose(1, 2)
    attended = _attend(heads, 0.5)
    if same(got, _attend(by_position, 0.5).reshape(2, 5, 12)):
        return "Still no position sees another: the heads must be moved before the positions."
    if same(got, _attend(x.reshape(2, 3, 5, 4), 0.5).reshape(2, 5, 12)) or same(
        got, _attend(x.reshape(2, 3, 5, 4), 0.5).transpose(1, 2).reshape(2, 5, 12)
    ):
        return "Cut the width first, then swap the axes; one reshape mixes positions and heads."
    if same(got, attended.reshape(2, 5, 12)):
        return "The way back lacks the swap: move the heads behind the positions, then reshape."
    if same(got, attended):
        return "The heads are right; their widths are still to be joined."
    for scale, mistake in ((1.0, "are not scaled"), (12**-0.5, "are divided by √(whole width)")):
        if same(got, _attend(heads, scale).transpose(1, 2).reshape(2, 5, 12)):
            return f"The scores {mistake}; divide them by the root of one head's size."
    if not same(got, attended.transpose(1, 2).reshape(2, 5, 12)):
        return "Cut the width into heads, move them before the positions, attend, and undo both."
    return None


@exercise("8.4", "Four maps of 768 × 768 with their biases, and γ and β; heads share them out.")
def num_parameters(answer: Any) -> str | None:
    weights, biases, norm = 4 * 768 * 768, 4 * 768, 2 * 768
    if same(answer, weights):
        return "The biases and the normalisation are missing."
    if same(answer, weights + biases):
        return "The normalisation is missing: γ and β have 768 numbers each."
    if same(answer, weights + norm):
        return "Each of the four maps has a bias of 768 numbers."
    if same(answer, 3 * (768 * 768 + 768) + norm):
        return "There are four maps: the dense one comes after the heads."
    if same(answer, 12 * weights + 12 * biases + norm) or same(answer, 12 * (weights + biases)):
        return "The heads do not multiply the maps; each head takes a slice of 64 columns."
    if not same(answer, weights + biases + norm):
        return "Count four maps from 768 to 768 with biases, and two vectors of 768."
    return None
