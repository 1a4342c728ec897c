"""Chapter 1: kernel regression as attention, with one number for query, key and value."""

from __future__ import annotations

from typing import ClassVar

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Count,
    Entries,
    Figure,
    canvas_of,
    control,
    example,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
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
    """Move a query along a line, the width of the kernel, and the points that it predicts from.

    `keys` and `values`, each (keys), are the points. `query`, `width` and `values` follow the
    controls and may be set; so may `point`, the point that the slider moves, counted from the left.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a query
            or a width that is no stop of its slider, or values outside the axis.
    """

    kind = "regression"
    query = control(0.0, "queries", N_("query"))
    width = control(0.5, WIDTHS, N_("width w"))
    point = control(0, Count(("keys",)))
    values = Entries("heights").tag(sync=True)
    phrases: ClassVar = {
        "prediction": N_(
            "At query {0} with width {1}, the prediction is {2} and the largest weight is {3}."
        ),
        "one moved": N_(
            "At query {0} with width {1}, the prediction is {2}; 1 moved point changes it by {3}."
        ),
        "some moved": N_(
            "At query {0} with width {1}, the prediction is {2}; {3} moved points change it by {4}."
        ),
    }

    def __init__(
        self,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        *,
        query: float | None = None,
        width: float = 0.5,
        point: int | None = None,
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
        least, most = float(values.min()), float(values.max())
        room = 0.25 * (most - least) or 1.0
        heights = torch.linspace(least - room, most + room, 81, dtype=torch.float64)
        data = {
            "keys": rounded(keys),
            "given": rounded(values),
            "queries": rounded(stops, 3),
            "widths": WIDTHS,
            "heights": rounded(heights),
        }
        super().__init__(
            data=data,
            # One key of the toy is nearest here, and the prediction lies on no point.
            query=data["queries"][16] if query is None else query,
            width=width,
            point=len(data["keys"]) // 2 if point is None else point,
            values=data["given"],
            caption="Drag the diamond, the arrow on the bell, or a point up or down. Each point "
            "is a key (its place on the axis) with its value (its height). The bell is the kernel "
            "around the query, and the bars in it are the weights of the keys; the threads from "
            "the diamond to the points are as wide as the weights. The diamond is the prediction, "
            "the sum of the values times their weights; the line is the prediction for every "
            "query. Click a point to give it a slider; once it has moved, thin lines show where "
            "it was and what was predicted then.",
        )

    def _predict(self, queries: list[float], values: list[float]) -> tuple[Tensor, Tensor]:
        places, keys, heights = (
            torch.tensor(x, dtype=torch.float64) for x in (queries, self.data["keys"], values)
        )
        return predict(places, keys, heights, self.width)

    def _told(self, now: tuple[float, ...]) -> str:
        """The sentence, with the largest weight, or with what moved points change."""
        given, numbers = self.data["given"], [*map(shown, now)]
        moved = sum(a != b for a, b in zip(given, self.values, strict=True))
        if not moved:
            return self.phrase("prediction", *numbers)
        change = shown(now[2] - self._predict([self.query], given)[1].item())
        if moved == 1:
            return self.phrase("one moved", *numbers[:3], change)
        return self.phrase("some moved", *numbers[:3], moved, change)

    def describe(self) -> str:
        weights, prediction = self._predict([self.query], self.values)
        now = (self.query, self.width, prediction.item(), weights.max().item())
        return f"{weights.numel()} points and the kernel regression through them. {self._told(now)}"

    def picture(self) -> Canvas:
        keys, queries, given = (self.data[name] for name in ("keys", "queries", "given"))
        weights, prediction = self._predict([self.query], self.values)
        canvas, (top, bottom) = canvas_of(2, 1, (5.6, 4.4))
        places = torch.tensor(queries, dtype=torch.float64)
        kernel = torch.exp(-(((places - self.query) / self.width) ** 2) / 2)
        nearest = torch.exp(-(((torch.tensor(keys) - self.query) / self.width) ** 2) / 2).max()
        for key, value, weight in zip(keys, self.values, weights[0].tolist(), strict=True):
            ends = [self.query, key], [prediction.item(), value]
            top.plot(*ends, color="#0868a8", linewidth=20 * weight, zorder=1)
        top.plot(keys, self.values, "o", markersize=4)
        top.plot(queries, self._predict(queries, self.values)[1].numpy(), linewidth=1.5)
        if self.values != given:
            top.plot(queries, self._predict(queries, given)[1].numpy(), color="#555555", lw=0.8)
            top.vlines(keys, given, self.values, color="#555555", linewidth=0.8)
        top.plot([self.query], [prediction.item()], "D", markersize=8, color="#222222")
        top.axvline(self.query, color="#999999", linewidth=0.8)
        top.set(ylabel=say("value"))
        largest = weights.max().item()
        peak = largest / max(nearest.item(), 1e-300)
        bottom.fill_between(queries, (min(peak, 1.0) * kernel).numpy(), alpha=0.2)
        bottom.bar(keys, weights[0].numpy(), width=0.01 * (queries[-1] - queries[0]))
        bottom.axvline(self.query, color="#999999", linewidth=0.8)
        limits = top.get_xlim()
        bottom.set(xlabel=say("key and query"), ylabel=say("weight"), xlim=limits, ylim=(0, None))
        return canvas
