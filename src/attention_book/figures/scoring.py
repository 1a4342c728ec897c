"""Chapter 2: one query among keys in the plane, under five scoring functions at once."""

from __future__ import annotations

from typing import Any

import torch
import traitlets
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Figure,
    RefusedError,
    canvas_of,
    control,
    finite,
    listed,
    numbers,
    rounded,
    shown,
)
from attention_book.masking import masked_softmax
from attention_book.plots import draw_weights
from attention_book.scoring import (
    additive_scores,
    bilinear_scores,
    distance_scores,
    dot_product_scores,
    scaled_dot_product_scores,
)

KEYS = [[2.0, 0.5], [0.5, 0.25], [-0.5, 1.5], [-1.5, -0.5], [0.25, -2.0]]
W = [[0.0, 1.0], [-1.0, 0.0]]  # the query rotated by 90°
CELLS = 50  # places along each side of the plane for which the winning key is computed
W_q = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
W_k = [[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0], [1.0, -1.0]]
w_v = [1.0, -1.0, 1.0, 1.0]
FUNCTIONS = ["distance", "dot", "scaled dot", "bilinear", "additive"]


def five_scores(query: Tensor, keys: Tensor) -> dict[str, Tensor]:
    """The scores (1, queries, keys) of one query (2), or of several (queries, 2), by function."""
    pair = query.reshape(1, -1, 2), keys[None]
    matrix, of_query, of_key, of_hidden = (
        torch.tensor(item, dtype=torch.float64) for item in (W, W_q, W_k, w_v)
    )
    return {
        "distance": distance_scores(*pair),
        "dot": dot_product_scores(*pair),
        "scaled dot": scaled_dot_product_scores(*pair),
        "bilinear": bilinear_scores(*pair, matrix),
        "additive": additive_scores(*pair, of_query, of_key, of_hidden),
    }


def favourite(scores: list[float]) -> str:
    """The key with the highest score; of those that score the same, the first."""
    return f"k{next(k for k, s in enumerate(scores, 1) if s > max(scores) - 1e-9)}"


def winners(name: str, keys: Tensor) -> Tensor:
    """Which key gets the largest score at each place of the plane, (rows, columns), from below."""
    along = centres()
    places = torch.stack(torch.meshgrid(along, along, indexing="xy"), dim=-1).flatten(0, 1)
    scores = five_scores(places, keys)[name][0]
    is_best = scores > scores.max(dim=-1, keepdim=True).values - 1e-9
    return is_best.int().argmax(dim=-1).reshape(CELLS, CELLS)


def centres() -> Tensor:
    """The middles of the cells along one side of the plane."""
    return 6 * (torch.arange(CELLS, dtype=torch.float64) + 0.5) / CELLS - 3


class ScoringFigure(Figure):
    """Drag a query in the plane among `keys` (keys, 2), and see which keys it attends to.

    `query` has the query's two numbers; it follows the pointer and the sliders and may be set.
    `regions` is "none" or the scoring function by whose winning key the plane is coloured.

    Raises:
        TypeError, ValueError: for keys that cannot be drawn; traitlets.TraitError: for a query
            that is not two finite numbers.
    """

    kind = "scoring"
    query: traitlets.List[Any] = traitlets.List([1.0, 1.0]).tag(sync=True)
    regions = control("none", lambda figure: ["none", *FUNCTIONS])

    def __init__(
        self, keys: Tensor | None = None, *, query: Any = (1.0, 1.0), regions: str = "none"
    ) -> None:
        keys = torch.tensor(KEYS) if keys is None else keys
        keys = numbers("ScoringFigure", "keys", keys, {"keys": 8, "size": 2})
        if keys.shape[-1] != 2:
            raise ValueError(
                f"ScoringFigure: keys must have size 2 to lie in the plane: {keys.shape}"
            )
        if keys.abs().max() > 3:
            raise ValueError("ScoringFigure: keys must lie between −3 and 3, where the plane ends")
        super().__init__(
            data={
                "keys": rounded(keys),
                "W": W,
                "W_q": W_q,
                "W_k": W_k,
                "w_v": w_v,
                "cells": CELLS,
            },
            query=listed(query),
            regions=regions,
            caption="Drag the blue point, the end of the query, or click where it should be. The "
            "other points are keys. Each row of a table "
            "is a scoring function, and its weights are the softmax of its scores. The bilinear "
            "function here rotates the query by 90° before comparing it with the keys. If you "
            "colour the plane by a function, each place has the colour of the key that would get "
            "the largest weight if the query ended there; bold names say whose region it is.",
        )

    @traitlets.validate("query")
    def _check_query(self, proposal: Any) -> list[float]:
        query = proposal["value"]
        if len(query) != 2:
            raise RefusedError(f"ScoringFigure: query must be 2 numbers, but is {query}")
        return [finite("ScoringFigure", "query", number) for number in query]

    def describe(self) -> str:
        query, keys = (
            torch.tensor(x, dtype=torch.float64) for x in (self.query, self.data["keys"])
        )
        favourites = [
            f"{favourite(scores.flatten().tolist())} by {name}"
            for name, scores in five_scores(query, keys).items()
        ]
        region = ""
        if self.regions != "none":
            held = five_scores(query, keys)[self.regions].flatten().tolist()
            seen = set(winners(self.regions, keys).flatten().tolist())
            absent = [f"k{k + 1}" for k in range(len(keys)) if k not in seen]
            without = f"no region for {', '.join(absent)}" if absent else "each key has a region"
            region = (
                f" Coloured by {self.regions}: the query is in the region of {favourite(held)}; "
                f"{without}."
            )
        return (
            f"A query among {len(keys)} keys in the plane, with the weights of the keys under five "
            f"scoring functions. The query at ({shown(self.query[0])}, {shown(self.query[1])}) "
            f"prefers {', '.join(favourites)}.{region}"
        )

    def picture(self) -> Canvas:
        query, keys = (
            torch.tensor(x, dtype=torch.float64) for x in (self.query, self.data["keys"])
        )
        scores = five_scores(query, keys)
        canvas, (plane, table) = canvas_of(1, 2, (7.4, 3.4))
        if self.regions != "none":
            won, along = winners(self.regions, keys), centres()
            for k in sorted(set(won.flatten().tolist())):
                own = (won == k).double().numpy()
                colour = hsv_to_rgb((k / len(keys), 0.2, 1.0))
                plane.contourf(along, along, own, levels=[0.5, 1.5], colors=[colour])
                plane.contour(along, along, own, levels=[0.5], colors=["#777777"], linewidths=0.8)
                places = (won == k).nonzero().double()
                row, column = (
                    int(i)
                    for i in places[(places - places.mean(dim=0)).square().sum(dim=1).argmin()]
                )
                at = float(along[column]), float(along[row])
                plane.text(*at, f"k{k + 1}", weight="bold", ha="center", va="center")
        plane.plot(*keys.T.numpy(), "o")
        for k, (x, y) in enumerate(self.data["keys"]):
            plane.annotate(f"k{k + 1}", (x, y), xytext=(5, 5), textcoords="offset points")
        plane.annotate(
            "", tuple(self.query), (0, 0), arrowprops={"arrowstyle": "->", "linewidth": 2}
        )
        plane.set(
            xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xlabel="feature 1", ylabel="feature 2"
        )
        weights = torch.cat([masked_softmax(s)[0] for s in scores.values()])
        draw_weights(weights, ax=table, queries=list(scores), title="weights")
        table.set_ylabel("")
        return canvas
