"""Chapter 2: one query among keys in the plane, under five scoring functions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import torch
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Figure,
    canvas_of,
    control,
    listed,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.masking import masked_softmax
from attention_book.scoring import (
    additive_scores,
    bilinear_scores,
    distance_scores,
    dot_product_scores,
    scaled_dot_product_scores,
)

KEYS = [[2.0, 0.5], [0.5, 0.25], [-0.5, 1.5], [-1.5, -0.5], [0.25, -2.0]]
W = [[0.0, 1.0], [-1.0, 0.0]]  # the query rotated by 90°
PLANE = [-3 + i / 4 for i in range(25)]  # the stops of each of the query's numbers
CELLS = 50  # places along each side of the plane for which the winning key is computed
W_q = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
W_k = [[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0], [1.0, -1.0]]
w_v = [1.0, -1.0, 1.0, 1.0]
FUNCTIONS = {
    "distance": N_("distance"),
    "dot": N_("dot"),
    "scaled dot": N_("scaled dot"),
    "bilinear": N_("bilinear"),
    "additive": N_("additive"),
}


def five_scores(query: Tensor, keys: Tensor) -> dict[str, Tensor]:
    """The scores (1, queries, keys) of one query (2), or of several (queries, 2), by function."""
    pair = query.reshape(1, -1, 2), keys[None]
    matrix, of_query, of_key, of_hidden = (
        torch.tensor(item, dtype=torch.float64) for item in (W, W_q, W_k, w_v)
    )
    return {
        N_("distance"): distance_scores(*pair),
        N_("dot"): dot_product_scores(*pair),
        N_("scaled dot"): scaled_dot_product_scores(*pair),
        N_("bilinear"): bilinear_scores(*pair, matrix),
        N_("additive"): additive_scores(*pair, of_query, of_key, of_hidden),
    }


def favourites(scores: list[float]) -> list[str]:
    """The names of the keys with the highest score."""
    return [f"k{k}" for k, s in enumerate(scores, 1) if s > max(scores) - 1e-9]


def order(scores: list[float]) -> str:
    """The keys from the highest score to the lowest, as in "k2 > k1 = k3"."""
    keys = sorted(range(len(scores)), key=lambda k: (-round(scores[k], 9), k))
    text = f"k{keys[0] + 1}"
    for a, b in pairwise(keys):
        text += f" {'=' if scores[a] - scores[b] < 1e-9 else '>'} k{b + 1}"
    return text


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

    `query` has the query's two numbers; it follows the pointer and the sliders and may be set. `by`
    names the scoring function whose plane is shown.

    Raises:
        TypeError, ValueError: for keys that cannot be drawn; traitlets.TraitError: for a query
            that is not two stops of its sliders, or another scoring function.
    """

    kind = "scoring"
    look = "scoring.css"
    query = control([1.0, 1.0], PLANE, N_("query, feature {0}"), is_pair=True)
    by = control("distance", FUNCTIONS, N_("scored by"))
    phrases: ClassVar = {
        "order": N_("By the {0} score, the query at {1} ranks {2}."),
    }

    def __init__(
        self, keys: Tensor | None = None, *, query: Any = (1.0, 1.0), by: str = "distance"
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
            by=by,
            caption="Drag the query. Each place has the colour of the key that wins if the query "
            "ends there.",
        )

    def describe(self) -> str:
        query, keys = (
            torch.tensor(x, dtype=torch.float64) for x in (self.query, self.data["keys"])
        )
        preferred = []
        found = {name: x.flatten().tolist() for name, x in five_scores(query, keys).items()}
        for name, scores in found.items():
            preferred.append(f"{' and '.join(favourites(scores))} by {name}")
        absent = [f"{', '.join(lost)} by {name}" for name, lost in self._losers().items() if lost]
        place = f"({shown(self.query[0])}, {shown(self.query[1])})"
        nowhere = f" No region for {'; '.join(absent)}." if absent else ""
        return (
            f"A query among {len(keys)} keys in five planes, one per function, coloured by the "
            f"winner.{nowhere} Best: {', '.join(preferred)}. "
            f"{self.phrase('order', self.by, place, order(found[self.by]))}"
        )

    def _losers(self) -> dict[str, list[str]]:
        """For each function the keys that win nowhere."""
        keys = torch.tensor(self.data["keys"], dtype=torch.float64)
        return {
            name: [
                f"k{k + 1}"
                for k in sorted({*range(len(keys))} - {*winners(name, keys).flatten().tolist()})
            ]
            for name in FUNCTIONS
        }

    def picture(self) -> Canvas:
        query, keys = (
            torch.tensor(x, dtype=torch.float64) for x in (self.query, self.data["keys"])
        )
        canvas, panels = canvas_of(2, 3, (7.4, 5.2))
        along = centres()
        for plane, (name, scores) in zip(panels, five_scores(query, keys).items(), strict=False):
            won = winners(name, keys)
            for k in sorted(set(won.flatten().tolist())):
                own = (won == k).double().numpy()
                colour = hsv_to_rgb((k / len(keys), 0.2, 1.0))
                plane.contourf(along, along, own, levels=[0.5, 1.5], colors=[colour])
                plane.contour(along, along, own, levels=[0.5], colors=["#777777"], linewidths=0.8)
            weights = masked_softmax(scores)[0, 0].tolist()
            for k, (x, y) in enumerate(self.data["keys"]):
                ends = [self.query[0], x], [self.query[1], y]
                plane.plot(*ends, color="#0868a8", linewidth=10 * weights[k])
                plane.annotate(f"k{k + 1}", (x, y), xytext=(4, 4), textcoords="offset points")
            plane.plot(*keys.T.numpy(), "o", color="#d55e00", markersize=5)
            plane.plot(*self.query, "o", color="#0072b2", markersize=8)
            plane.plot([0, self.query[0]], [0, self.query[1]], color="#0072b2", linewidth=1)
            plane.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
            plane.set_title(say(name), fontweight="bold" if name == self.by else "normal")
            plane.set(xticks=[-3, 0, 3], yticks=[-3, 0, 3])
        panels[-1].set_axis_off()
        return canvas
