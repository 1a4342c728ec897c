"""Chapter 5: the score that a small network gives each pair of a query and a key."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Count,
    Figure,
    canvas_of,
    control,
    numbers,
    rounded,
    shown,
)
from attention_book.language import N_, say
from attention_book.scoring import additive_scores

SCALES = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]
# Units in pairs: a ridge where q = k, one where q = −k, one where q is near 0. The query carries
# a constant 1 as its second number, which stands in for the bias the module does not have.
W_q = [[1, 1], [1, -1], [1, 1], [1, -1], [1, 0.5], [1, -0.5]]
W_k = [[-1], [-1], [1], [1], [0], [0]]
w_v = [0.5, -0.5, 0.5, -0.5, 0.5, -0.5]

SAME = 1e-9  # scores that differ by less are named as equal
FRAME: dict[str, Any] = {"origin": "lower", "extent": (-3, 3, -3, 3)}


def surface(data: dict[str, Any], hidden: int, scale: float) -> Tensor:
    """Scores (queries, keys) over the grid of the figure, from the first `hidden` units."""
    of_query, of_key, of_hidden = (
        torch.tensor(data[name], dtype=torch.float64)[:hidden] for name in ("W_q", "W_k", "w_v")
    )
    grid = torch.tensor(data["grid"], dtype=torch.float64)[None, :, None]
    queries = torch.cat([grid, torch.ones_like(grid)], dim=-1)
    return additive_scores(queries, grid, scale * of_query, scale * of_key, of_hidden)[0]


def exactly(number: float) -> str:
    """A query or key: two decimals, and a third where it has one."""
    return shown(number, 2 if abs(number - round(number, 2)) < SAME else 3)


class AdditiveFigure(Figure):
    """Add hidden units one by one and steepen them, and see which pairs score high.

    `W_q` (hidden, 2) multiplies the query and a constant 1, `W_k` (hidden, 1) the key, `w_v`
    (hidden) the hidden units. `hidden` is how many units count, `scale` multiplies W_q and W_k, and
    `query` is the one whose scores are drawn as a curve; they follow the controls and may be set.

    Raises:
        TypeError, ValueError: for parameters that cannot be drawn; traitlets.TraitError: for a
            number of units there is not, a scale or a query that is no stop of its slider.
    """

    kind = "additive"
    hidden = control(1, Count(("w_v",), first=1), N_("hidden units"))
    scale = control(2.0, SCALES, N_("scale of W_q, W_k"))
    query = control(0.75, "grid", N_("query of the curve"))
    phrases: ClassVar = {
        "one unit": N_("With 1 hidden unit at scale {0}, scores go from {1} to {2}."),
        "units": N_("With {0} hidden units at scale {1}, scores go from {2} to {3}."),
        "one key": N_("Query {0} scores highest at key {1}."),
        "two keys": N_("Query {0} scores highest at keys {1} and {2}, which score the same."),
        "keys": N_("Query {0} scores highest at {1} keys from {2} to {3}, which score the same."),
    }

    def __init__(
        self,
        W_q: Tensor | None = None,
        W_k: Tensor | None = None,
        w_v: Tensor | None = None,
        *,
        hidden: int = 1,
        scale: float = 2.0,
        query: float = 0.75,
    ) -> None:
        own = globals()
        sizes: dict[str, int] = {}
        limits = {
            "W_q": {"hidden": 32, "query_size": 2},
            "W_k": {"hidden": 32, "key_size": 1},
            "w_v": {"hidden": 32},
        }
        data: dict[str, Any] = {"grid": [-3 + 0.375 * i for i in range(17)], "scales": SCALES}
        for (name, limit), given in zip(limits.items(), (W_q, W_k, w_v), strict=True):
            tensor = torch.tensor(own[name]) if given is None else given
            data[name] = rounded(numbers("AdditiveFigure", name, tensor, limit, sizes))
        if sizes["query_size"] != 2:
            raise ValueError("AdditiveFigure: W_q must take 2 numbers, the query and a constant 1")
        super().__init__(
            data=data,
            hidden=hidden,
            scale=scale,
            query=query,
            caption="Each small map is one hidden unit over all pairs of a query (to the right) "
            "and a key (upwards), both single numbers; add units and see their sum below, where "
            "each square is one pair. The legend gives the score of its colour. The upright frame "
            "marks one query: drag it. Beside it are its scores: the "
            "thin curves are the hidden units, the thick one is their sum.",
        )

    def describe(self) -> str:
        scores = surface(self.data, self.hidden, self.scale)
        grid = self.data["grid"]
        row = scores[grid.index(self.query)].tolist()
        best = [k for k, score in zip(grid, row, strict=True) if score > max(row) - SAME]
        query, first, last = (exactly(x) for x in (self.query, best[0], best[-1]))
        ends = map(shown, (self.scale, scores.min().item(), scores.max().item()))
        count = [] if self.hidden == 1 else [self.hidden]
        units = self.phrase("units" if count else "one unit", *count, *ends)
        if len(best) == 1:
            where = self.phrase("one key", query, first)
        elif len(best) == 2:
            where = self.phrase("two keys", query, first, last)
        else:
            where = self.phrase("keys", query, len(best), first, last)
        return f"Additive scores over queries and keys from −3 to 3, shaded. {units} {where}"

    def picture(self) -> Canvas:
        scores = surface(self.data, self.hidden, self.scale)
        drawn = min(self.hidden, 5)
        canvas, panels = canvas_of(1, drawn + 1, (1.7 * drawn + 3.2, 2.9))
        parts = [surface(self.data, n, self.scale) for n in range(1, drawn + 1)]
        before = [torch.zeros_like(scores), *parts]
        maps = [(say("unit"), j + 1, parts[j] - before[j]) for j in range(drawn)]
        limit = max(scores.abs().max().item(), *(one.abs().max().item() for *_, one in maps)) or 1.0
        for ax, (name, number, one) in zip(panels, maps, strict=False):
            ax.imshow(one.T.numpy(), cmap="signed", vmin=-limit, vmax=limit, **FRAME)
            ax.set(title=f"{name} {number}", xticks=[-3, 0, 3], yticks=[-3, 0, 3])
        image = panels[-1].imshow(scores.T.numpy(), cmap="signed", vmin=-limit, vmax=limit, **FRAME)
        canvas.colorbar(image, label=say("score"))
        panels[-1].axvline(self.query, color="#333333", linewidth=0.8)
        title = say("sum of {0}", self.hidden) if self.hidden > 1 else say("score")
        panels[-1].set(xlabel=say("query"), ylabel=say("key"), title=title)
        return canvas
