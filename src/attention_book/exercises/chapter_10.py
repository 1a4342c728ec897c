"""Checkers of chapter 10, fast and exact."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import exercise, first_mistake, parts, result
from attention_book.exercises.language import say


@exercise("10.1", "The largest score stays ln 4, so only the new key is scaled: it counts ¼.")
def third_tile(answer: Any) -> str | None:
    largest, total, mixed, output = parts(answer, 4, say("m, ℓ, o and the output"))
    own_scale = "The new key is measured against m = ln 4 as well: it counts a quarter."
    return (
        first_mistake(
            largest,
            4,
            [
                (1, "m is the largest score so far, and ln 1 is smaller than ln 4."),
                (1.386, "Give m as the argument of the logarithm: ln 4 is written 4."),
            ],
            "m is the largest score so far, here still ln 4, written 4.",
            tolerance=1e-3,
        )
        or first_mistake(
            total,
            2.0,
            [
                (2.75, own_scale),
                (1.75, "This is ℓ before the third tile."),
            ],
            "m stays, so ℓ is not corrected; add e^(ln 1 − m) to it.",
        )
        or first_mistake(
            mixed,
            72.5,
            [
                (132.5, own_scale),
                (52.5, "This is o before the third tile."),
                (52.75, "The new key's factor is multiplied by its value, 80."),
            ],
            "m stays, so o is not corrected; add e^(ln 1 − m) times 80 to it.",
        )
        or first_mistake(output, 36.25, [], "The output is o divided by ℓ.")
    )


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
        largest, total, mixed = parts(result(answer, a, b), 3, say("m, ℓ and o"))
        mistake = (
            first_mistake(
                largest,
                whole[0],
                [
                    (a[0] + b[0], "You added the two largest scores; take the larger one."),
                    (torch.minimum(a[0], b[0]), "This m is the smaller one; take the larger."),
                ],
                "The common m is the larger of the two.",
            )
            or first_mistake(
                total,
                whole[1],
                [
                    (
                        a[1] + b[1],
                        "You added the sums ℓ as they are: rescale each to the common m first.",
                    )
                ],
                "Multiply ℓ of each side by e^(its m − the common m), then add.",
            )
            or first_mistake(
                mixed,
                whole[2],
                [
                    (a[2] + b[2], "You added o as it is: rescale each side to the common m first."),
                    (whole[2] / whole[1], "This o is divided by ℓ already; that comes at the end."),
                ],
                "Multiply o of each side by e^(its m − the common m), then add.",
            )
        )
        if mistake:
            return mistake
    return None


@exercise("10.3", "16 · 8192² numbers of 4 bytes, for the weights of one layer alone.")
def gibibytes(answer: Any) -> str | None:
    mistakes = [
        (0.25, "That is one head; there are 16."),
        (1.0, "That is the number of weights in units of 2³⁰; each takes 4 bytes."),
    ]
    return first_mistake(answer, 4.0, mistakes, "Count heads × queries × keys × 4 bytes, over 2³⁰.")


@exercise("10.4", "Moving takes 1 ms and computing 0.4 ms; the slower of the two decides.")
def milliseconds(answer: Any) -> str | None:
    mistakes = [
        (0.4, "That is the time of the arithmetic; moving the bytes takes longer."),
        (1.4, "A machine computes while it moves: take the longer time, not the sum."),
        (0.001, "That is in seconds; give milliseconds."),
    ]
    hint = "Divide each amount by its limit; the longer time decides."
    return first_mistake(answer, 1.0, mistakes, hint)
