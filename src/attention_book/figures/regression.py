"""Chapter 1: kernel regression as attention, with one number for query, key and value."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Figure,
    canvas_of,
    control,
    example,
    numbers,
    rounded,
    shown,
)
from attention_book.masking import masked_softmax
from attention_book.scoring import distance_scores

WIDTHS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0]


def toy_pairs() -> tuple[Tensor, Tensor]:
    """Twenty keys from 0 to 5 and noisy values of sin 2x + x/2, rounded to hundredths."""
    keys = torch.linspace(0.1, 4.9, 20, dtype=torch.float64) + 0.12 * example(20, seed=3)
    values = torch.sin(2 * keys) + keys / 2 + 0.2 * example(20, seed=4)
    return keys.round(decimals=2), values.round(decimals=2)


def predict(query: Tensor, keys: Tensor, values: Tensor, width: float) -> tuple[Tensor, Tensor]:
    """Weights (queries, keys) and predictions (queries) of a Gaussian kernel of that width."""
    scores = distance_scores(query[None, :, None] / width, keys[None, :, None] / width)
    weights = masked_softmax(scores)[0]
    return weights, weights @ values


class RegressionFigure(Figure):
    """Move a query along a line, and the width of the kernel that compares it with the keys.

    `keys` and `values`, each (keys), are the points; `query` and `width` follow the sliders and
    may be set.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a query
            that is not finite or a width that is not above 0.
    """

    kind = "regression"
    query = control(0.0)
    width = control(0.5, above=0)

    def __init__(
        self,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        *,
        query: float | None = None,
        width: float = 0.5,
    ) -> None:
        points = toy_pairs()
        sizes: dict[str, int] = {}
        keys = numbers(
            "RegressionFigure", "keys", points[0] if keys is None else keys, {"keys": 60}, sizes
        )
        values = numbers(
            "RegressionFigure",
            "values",
            points[1] if values is None else values,
            {"keys": 60},
            sizes,
        )
        low, high = float(keys.min()), float(keys.max())
        margin = 0.1 * (high - low) or 1.0
        stops = torch.linspace(low - margin, high + margin, 61, dtype=torch.float64)
        data = {
            "keys": rounded(keys),
            "values": rounded(values),
            "queries": rounded(stops, 3),
            "widths": WIDTHS,
        }
        super().__init__(
            data=data,
            query=data["queries"][20] if query is None else query,
            width=width,
            caption="Drag the diamond, or move the sliders. Each point is a key (its place on the "
            "axis) with its value (its height); the bars are the weights that the query gives the "
            "keys. The diamond is the prediction, the sum of the values times their weights; the "
            "line is the prediction for every query.",
        )

    def _now(self) -> tuple[Tensor, Tensor]:
        keys, values = (torch.tensor(self.data[k], dtype=torch.float64) for k in ("keys", "values"))
        return predict(torch.tensor([self.query], dtype=torch.float64), keys, values, self.width)

    def describe(self) -> str:
        weights, prediction = self._now()
        return (
            f"{weights.numel()} points and the kernel regression through them. At query "
            f"{shown(self.query)} with width {shown(self.width)}, the prediction is "
            f"{shown(prediction.item())} and the largest weight is {shown(weights.max().item())}."
        )

    def picture(self) -> Canvas:
        keys, values = (torch.tensor(self.data[k], dtype=torch.float64) for k in ("keys", "values"))
        queries = torch.tensor(self.data["queries"], dtype=torch.float64)
        weights, prediction = self._now()
        canvas, (top, bottom) = canvas_of(2, 1, (5.6, 4.4))
        top.plot(keys.numpy(), values.numpy(), "o", markersize=4)
        top.plot(
            queries.numpy(), predict(queries, keys, values, self.width)[1].numpy(), linewidth=1.5
        )
        top.plot([self.query], [prediction.item()], "D", markersize=8, color="#222222")
        top.axvline(self.query, color="#999999", linewidth=0.8)
        top.set(xlabel="key", ylabel="value")
        bottom.stem(keys.numpy(), weights[0].numpy(), basefmt=" ")
        bottom.axvline(self.query, color="#999999", linewidth=0.8)
        bottom.set(xlabel="key", ylabel="weight", xlim=top.get_xlim(), ylim=(0, None))
        return canvas
