"""Checkers of chapter 10, fast and exact."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import exercise, result, same


@exercise("10.1", "The largest score stays ln 4, so only the new key is scaled: it counts ¼.")
def third_tile(answer: Any) -> str | None:
    largest, total, mixed, output = answer
    if same(largest, 1):
        return "m is the largest score so far, and ln 1 is smaller than ln 4."
    if same(total, 2.75) or same(mixed, 132.5):
        return "The new key is measured against m = ln 4 as well: it counts a quarter."
    if not (same(largest, 4) and same(total, 2.0) and same(mixed, 72.5)):
        return "m stays, so nothing is corrected; add e^(ln 1 − m) to ℓ, and times 80 to o."
    return None if same(output, 36.25) else "The output is o divided by ℓ."


@exercise("10.2", "Both sides are measured against the common largest score, then added.")
def merge(answer: Any) -> str | None:
    scores = torch.tensor([0.3, -1.0, 2.0, 1.1], dtype=torch.float64)
    values = torch.tensor([1.0, 5.0, -2.0, 3.0], dtype=torch.float64)

    def triple(part: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        exponentials = torch.exp(scores[part] - scores[part].max())
        return scores[part].max(), exponentials.sum(), exponentials @ values[part]

    whole = triple(slice(0, 4))
    for halves in ((slice(0, 2), slice(2, 4)), (slice(2, 4), slice(0, 2))):
        a, b = triple(halves[0]), triple(halves[1])
        got = result(answer, a, b)
        if same(got[1], a[1] + b[1]):
            return "You added the sums as they are: each must first be put on the common largest."
        if not all(same(mine, right) for mine, right in zip(got, whole, strict=True)):
            return "Multiply ℓ and o of each side by e^(its m − the common m), then add."
    return None


@exercise("10.3", "16 · 8192² numbers of 4 bytes, for the weights of one layer alone.")
def gibibytes(answer: Any) -> str | None:
    if same(answer, 0.25):
        return "That is one head; there are 16."
    if same(answer, 1.0):
        return "That is the count of numbers in 2³⁰; each takes 4 bytes."
    return None if same(answer, 4.0) else "Count heads × queries × keys × 4 bytes, over 2³⁰."


@exercise("10.4", "Moving takes 1 ms and computing 0.4 ms; the slower of the two decides.")
def milliseconds(answer: Any) -> str | None:
    if same(answer, 0.4):
        return "That is the time of the arithmetic; the bytes take longer."
    if same(answer, 1.4):
        return "A machine computes while it moves: take the longer time, not the sum."
    return None if same(answer, 1.0) else "Divide each count by its limit; the longer time decides."
