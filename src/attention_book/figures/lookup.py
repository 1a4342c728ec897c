"""Chapter 1: three stored facts and a query between them, the smallest attention there is."""

from __future__ import annotations

from typing import ClassVar

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Figure,
    canvas_of,
    control,
    nearest,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.masking import masked_softmax
from attention_book.scoring import distance_scores

KEYS, VALUES = [0.0, 1.0, 3.0], [10.0, 20.0, 40.0]


class LookupFigure(Figure):
    """Move a query among a few stored facts; threads as wide as the weights lead to their values.

    `keys` and `values`, each (keys), are the facts. `query` follows the pointer and the slider and
    may be set; it opens at 2, or at the stop nearest to it.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a query
            that is not a stop of the slider.
    """

    kind = "lookup"
    query = control(2.0, "queries", N_("query"))
    phrases: ClassVar = {"answer": N_("The query {0} gets {1} ≈ {2}.")}

    def __init__(
        self,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        *,
        query: float | None = None,
    ) -> None:
        sizes: dict[str, int] = {}
        limit = {"keys": 6}
        keys = numbers(
            "LookupFigure", "keys", torch.tensor(KEYS) if keys is None else keys, limit, sizes
        )
        values = numbers(
            "LookupFigure",
            "values",
            torch.tensor(VALUES) if values is None else values,
            limit,
            sizes,
        )
        low, high = float(keys.min()) - 3, float(keys.max()) + 3
        data = {
            "keys": rounded(keys),
            "values": rounded(values),
            "queries": rounded(torch.linspace(low, high, 91, dtype=torch.float64)),
        }
        super().__init__(
            data=data,
            query=nearest(data["queries"], 2.0) if query is None else query,
            caption="Drag the diamond, or click where it should be. Each box is a stored value, "
            "above its key on the axis. A thread from the query to a value is as wide as its "
            "weight: the softmax of minus half the squared distance between query and key. Below, "
            "the products of the weights and their values are placed end to end; where the last "
            "one ends is the answer.",
        )

    def _weigh(self) -> Tensor:
        keys = torch.tensor(self.data["keys"], dtype=torch.float64)
        query = torch.tensor([[[self.query]]], dtype=torch.float64)
        return masked_softmax(distance_scores(query, keys[None, :, None]))[0, 0]

    def describe(self) -> str:
        weights, values = self._weigh(), self.data["values"]
        parts = " + ".join(
            f"{shown(w, 4)}·{shown(v, 1)}" for w, v in zip(weights.tolist(), values, strict=True)
        )
        answer = (weights @ torch.tensor(values, dtype=torch.float64)).item()
        return (
            f"A query and {len(values)} stored facts, joined by threads as wide as the weights. "
            f"{self.phrase('answer', shown(self.query, 1), parts, shown(answer))}"
        )

    def picture(self) -> Canvas:
        keys, values = self.data["keys"], self.data["values"]
        canvas, (ax,) = canvas_of(1, 1, (5.6, 2.2))
        box = {"boxstyle": "square,pad=0.4", "facecolor": "white", "edgecolor": "#555555"}
        for key, value, weight in zip(keys, values, self._weigh().tolist(), strict=True):
            ax.plot([self.query, key], [0, 0.75], color="#0868a8", linewidth=9 * weight)
            ax.text(key, 0.85, f"{value:g}", ha="center", va="center", bbox=box)
            ax.text(key, 0.55, f" {weight:.2f}", va="center", size=8)
        ax.plot(keys, [0] * len(keys), "o", color="#555555", clip_on=False)
        ax.plot([self.query], [0], "D", markersize=9, color="#222222", clip_on=False)
        ax.set(xlabel=say("key and query"), ylim=(0, 1), yticks=[])
        ax.set_xlim(self.data["queries"][0], self.data["queries"][-1])
        return canvas
