"""Chapter 3: what valid lengths do to weights, and what a wrong mask value leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Entries,
    Figure,
    RefusedError,
    canvas_of,
    control,
    labels,
    listed,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.masking import length_mask, masked_softmax
from attention_book.plots import draw_weights

FILLS = {
    "-inf": N_("score −∞"),
    "-1e6": N_("score −10⁶"),
    "1e-6": N_("score 10⁻⁶"),
    "after": N_("weight 0 after the softmax"),
}
#: The same on a control and in a sentence.
SHORT = {"-inf": "−∞", "-1e6": "−10⁶", "1e-6": "10⁻⁶", "after": N_("0 afterwards")}
WORDS = [[N_("It"), N_("rains"), "⟨pad⟩", "⟨pad⟩"], [N_("We"), N_("stay"), N_("home"), "⟨pad⟩"]]
SAME = 1e-9  # weights that differ by less are drawn as equal


class MaskingFigure(Figure):
    """Move the valid lengths of `scores` (batch, queries, keys) and choose how keys are masked.

    `valid_lens` has one length per example, or for each example a list with one length per
    query; `fill` is "-inf", "-1e6", "1e-6" (each put in place of a masked score) or "after"
    (weights are zeroed after the softmax). `compare` is "none" or a second fill, whose weights are
    then shown next to the first. They and `scores` follow the controls and may be set. `tokens` are
    the names of the keys, one list for all examples or one for each.

    Raises:
        TypeError, ValueError: for scores that cannot be drawn; traitlets.TraitError: for lengths
            that do not fit them.
    """

    kind = "masking"
    valid_lens: traitlets.List[Any] = traitlets.List().tag(sync=True)
    fill = control("-inf", SHORT, N_("Masked with:"))
    compare = control("none", {"none": N_("nothing"), **SHORT}, N_("Compare with:"))
    scores = Entries().tag(sync=True)
    phrases: ClassVar = {
        "leak": N_("{0}: masked keys of example 1 keep {1}, a leak."),
        "unmasked": N_("No key of example 1 is masked, and its rows sum to {0}."),
        "empty rows": N_(
            "Example 1: rows with a valid key sum to 1, rows without one to 0; masked keys get 0."
        ),
        "after": N_("{0}: the rows of example 1 sum to {1}."),
        "masked": N_("{0}: masked keys of example 1 get 0, and its rows sum to {1}."),
        "two": N_("{0} and {1}"),
        "range": N_("between {0} and {1}"),
        "little": N_("less than 0.001"),
        "up to": N_("up to {0}"),
        "same": N_("{0}: its weights are the same."),
        "differ": N_("{0}: {1} of {2} weights differ, by {3} (query {4}, {5})."),
    }

    def __init__(
        self,
        scores: Tensor | None = None,
        valid_lens: Tensor | Sequence[Any] | None = None,
        *,
        tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
        fill: str = "-inf",
        compare: str = "none",
    ) -> None:
        if scores is None:
            scores = torch.tensor(
                [[[1, 2, 3, 4], [2, 0, 1, 3]], [[0.5, 1.5, -1, 2], [3, 1, 0, -2]]]
            )
            valid_lens = [2, 3] if valid_lens is None else valid_lens
            tokens = WORDS if tokens is None else tokens
        limits = {"batch": 4, "queries": 8, "keys": 12}
        scores = numbers("MaskingFigure", "scores", scores, limits)
        batch, _, keys = scores.shape
        super().__init__(
            data={"tokens": self._words(tokens, batch, keys)},
            scores=rounded(scores),
            valid_lens=[keys] * batch if valid_lens is None else listed(valid_lens),
            fill=fill,
            compare=compare,
            caption="Each sentence of the batch has a number of valid words; drag the edge "
            "behind the last of them, for the whole sentence at its top or for one query at its "
            "weights. Under a masked score, which is struck through, stands what the softmax gets "
            "instead. The bars are the weights. A masked key should get exactly 0; where it keeps "
            "a weight, the cell is outlined, and what is set to 0 after the softmax is dashed. "
            "Each row of weights should sum to 1, the length of the bar at its end, unless all its "
            "keys are masked. Click a score to change it. If you choose a second fill to compare "
            "with, its weights stand under the first, underlined where they differ.",
        )

    @staticmethod
    def _words(tokens: Any, batch: int, keys: int) -> Any:
        """One list of labels for all examples, or one for each."""
        if not isinstance(tokens, list) or not all(isinstance(row, list) for row in tokens):
            return labels("MaskingFigure", "tokens", tokens, keys, "key ", first=1)
        if len(tokens) != batch:
            raise ValueError(f"MaskingFigure: {len(tokens)} lists of tokens for {batch} examples")
        return [labels("MaskingFigure", "tokens", row, keys, "key ", first=1) for row in tokens]

    def _tokens(self, example: int) -> list[str]:
        tokens: list[Any] = self.data["tokens"]
        return tokens[example] if isinstance(tokens[0], list) else tokens

    @traitlets.validate("valid_lens")
    def _check_valid_lens(self, proposal: Any) -> list[Any]:
        lens = proposal["value"]
        batch, queries, keys = torch.tensor(self.scores).shape
        rows = [item if isinstance(item, list) else [item] for item in lens]
        one_each = not any(isinstance(item, list) for item in lens)
        all_each = all(isinstance(item, list) and len(item) == queries for item in lens)
        whole = all(type(n) is int and 0 <= n <= keys for row in rows for n in row)
        if len(lens) != batch or not (one_each or all_each) or not whole:
            raise RefusedError(
                f"MaskingFigure: valid_lens must be {batch} whole numbers from 0 to {keys}, or "
                f"{batch} lists of {queries} of them, but is {lens}"
            )
        return lens

    def _weigh(self, fill: str) -> tuple[Tensor, Tensor]:
        """Weights (batch, queries, keys), and which keys are allowed, in a mask that broadcasts."""
        scores = torch.tensor(self.scores, dtype=torch.float64)
        lens = torch.tensor(self.valid_lens)
        allowed = length_mask(lens, scores.shape[-1])
        if fill == "-inf":
            return masked_softmax(scores, lens), allowed
        if fill == "after":
            return torch.softmax(scores, dim=-1).masked_fill(~allowed, 0.0), allowed
        return torch.softmax(scores.masked_fill(~allowed, float(fill)), dim=-1), allowed

    def _compared(self, weights: Tensor) -> str:
        """The sentence on the second fill."""
        if self.compare == "none":
            return ""
        gaps = (self._weigh(self.compare)[0][0] - weights).abs()
        most = gaps.max().item()
        other = SHORT[self.compare]
        if most <= SAME:
            return " " + self.phrase("same", other)
        first = int((gaps > most - SAME).flatten().nonzero()[0])
        q, k = divmod(first, gaps.shape[-1])
        differ = int((gaps > SAME).sum()), gaps.numel(), self._much(most)
        return " " + self.phrase("differ", other, *differ, q + 1, self._tokens(0)[k])

    def _much(self, most: float) -> str:
        return self.phrase("little") if most < 0.001 else self.phrase("up to", shown(most, 3))

    def describe(self) -> str:
        weights, allowed = self._weigh(self.fill)
        batch, queries, keys = weights.shape
        weights, allowed = weights[0], allowed.expand_as(weights)[0]  # what is said of example 1
        sums = weights.sum(dim=-1)
        low, high = shown(sums.min().item(), 3), shown(sums.max().item(), 3)
        ends = [shown(total, 3) for total in sums.tolist()] if queries == 2 else [low, high]
        total = low if low == high else self.phrase("two" if queries == 2 else "range", *ends)
        empty = ~allowed.any(dim=-1)
        is_right = ((sums - (~empty).double()).abs() < SAME).all()
        masked = weights.masked_fill(allowed, 0.0).max().item()
        if allowed.all():
            told = self.phrase("unmasked", total)
        elif is_right and low != high:
            told = self.phrase("empty rows")
        elif masked == 0:
            name = "after" if self.fill == "after" else "masked"
            told = self.phrase(name, SHORT[self.fill], total)
        else:
            told = self.phrase("leak", SHORT[self.fill], self._much(masked))
        return (
            f"Weights of {queries} queries over {keys} keys in each of {batch} examples, masked to "
            f"the valid lengths {self.valid_lens}. {told}{self._compared(weights)}"
        )

    def picture(self) -> Canvas:
        fills = [self.fill, *([] if self.compare == "none" else [self.compare])]
        batch = len(self.scores)
        canvas, axes = canvas_of(len(fills), batch, (3.2 * batch, 2.2 * len(fills)))
        for n, fill in enumerate(fills):
            weights, _ = self._weigh(fill)
            for i, ax in enumerate(axes[n * batch : (n + 1) * batch]):
                title = say("example {0}: {1} valid", i + 1, self.valid_lens[i])
                if len(fills) == 2:
                    title += f"\n{say(FILLS[fill])}"
                draw_weights(weights[i], ax=ax, keys=self._tokens(i), title=title)
        return canvas
