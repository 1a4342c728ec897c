"""Checkers of chapter 10, fast and exact."""

from __future__ import annotations

from typing import Any

import torch

from attention_book.exercises.checker import (
    Part,
    answered,
    exercise,
    first_mistake,
    in_parts,
    result,
)
from attention_book.language import N_, say

answered(
    "10.1",
    N_("The largest score stays ln 4, so only the new key is scaled: it counts ¼."),
    Part(
        "number",
        4,
        {
            1: N_("m is the largest score so far, and ln 1 is smaller than ln 4."),
            1.386: N_("Give m as the argument of the logarithm: ln 4 is written 4."),
        },
        N_("m is the largest score so far, here still ln 4, written 4."),
        "m",
        "m = ln",
        tolerance=1e-3,
    ),
    Part(
        "number",
        2.0,
        {
            2.75: N_("The new key is measured against m = ln 4 as well: it counts a quarter."),
            1.75: N_("This is ℓ before the third tile."),
        },
        N_("m stays, so ℓ is not corrected; add e^(ln 1 − m) to it."),
        "ℓ",
    ),
    Part(
        "number",
        72.5,
        {
            132.5: N_("The new key is measured against m = ln 4 as well: it counts a quarter."),
            52.5: N_("This is o before the third tile."),
            52.75: N_("The new key's factor is multiplied by its value, 80."),
        },
        N_("m stays, so o is not corrected; add e^(ln 1 − m) times 80 to it."),
        "o",
    ),
    Part(
        "number",
        36.25,
        {
            30: N_("This is the output before the third tile."),
            72.5: N_("This is o; the output is o divided by ℓ."),
        },
        N_("The output is o divided by ℓ."),
        "output",
        N_("output"),
    ),
    as_tuple=N_("m, ℓ, o and the output"),
    hints=(
        N_("Does the new score change the largest one?"),
        N_("The new key counts e^(ln 1 − ln 4). Add that to ℓ, and that times 80 to o."),
    ),
    importance=3,
)


@exercise(
    "10.2",
    N_("Both sides are measured against the common largest score, then added."),
    hints=(
        N_("The two sides measured their sums against different largest scores."),
        N_("Multiply ℓ and o of each side by e^(its m − the common m); then they can be added."),
    ),
)
def merge(answer: Any) -> str | None:
    scores = torch.tensor([0.3, -1.0, 2.0, 1.1], dtype=torch.float64)
    values = torch.tensor([1.0, 5.0, -2.0, 3.0], dtype=torch.float64)

    def triple(part: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        exponentials = torch.exp(scores[part] - scores[part].max())
        return scores[part].max(), exponentials.sum(), exponentials @ values[part]

    whole = triple(slice(0, 4))
    for halves in ((slice(0, 2), slice(2, 4)), (slice(2, 4), slice(0, 2))):
        a, b = triple(halves[0]), triple(halves[1])
        largest, total, mixed = in_parts(result(answer, a, b), 3, say("m, ℓ and o"))
        mistake = (
            first_mistake(
                largest,
                whole[0],
                [
                    (a[0] + b[0], N_("You added the two largest scores; take the larger one.")),
                    (torch.minimum(a[0], b[0]), N_("This m is the smaller one; take the larger.")),
                ],
                N_("The common m is the larger of the two."),
            )
            or first_mistake(
                total,
                whole[1],
                [
                    (
                        a[1] + b[1],
                        N_("You added the sums ℓ as they are: rescale each to the common m first."),
                    )
                ],
                N_("Multiply ℓ of each side by e^(its m − the common m), then add."),
            )
            or first_mistake(
                mixed,
                whole[2],
                [
                    (
                        a[2] + b[2],
                        N_("You added o as it is: rescale each side to the common m first."),
                    ),
                    (
                        whole[2] / whole[1],
                        N_("This o is divided by ℓ already; that comes at the end."),
                    ),
                ],
                N_("Multiply o of each side by e^(its m − the common m), then add."),
            )
        )
        if mistake:
            return mistake
    return None


answered(
    "10.3",
    N_("16 · 8192² numbers of 4 bytes are 4 GiB, for the weights of one layer alone."),
    Part(
        "number",
        4.0,
        {
            0.25: N_("That is one head; there are 16."),
            1.0: N_("That is the number of weights in units of 2³⁰; each takes 4 bytes."),
            4 * 2**30: N_("This is the number of bytes; divide by 2³⁰."),
            4 * 2**30 / 1e9: N_("This is in gigabytes of 10⁹ bytes; divide by 2³⁰."),
        },
        N_("Count heads × queries × keys × 4 bytes, over 2³⁰."),
        unit="GiB",
    ),
    hints=(
        N_("How many weights has one head, for 8,192 queries and 8,192 keys?"),
        N_("8,192 is 2¹³, so one head has 2²⁶ weights."),
    ),
)


answered(
    "10.4",
    N_("Moving takes 1 ms and computing 0.4 ms; the slower of the two decides."),
    Part(
        "number",
        1.0,
        {
            0.4: N_("That is the time of the arithmetic; moving the bytes takes longer."),
            1.4: N_("A machine computes while it moves: take the longer time, not the sum."),
            0.001: N_("That is in seconds; give milliseconds."),
        },
        N_("Divide each amount by its limit; the longer time decides."),
        unit="ms",
    ),
    hints=(
        N_(
            "Work out two times: how long the arithmetic takes, and how long moving the bytes "
            "takes."
        ),
        N_("A machine can do both at once; which of the two is finished last?"),
    ),
)
