"""Chapter 5: the score that a small network gives each pair of a query and a key."""

from __future__ import annotations

from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import Figure, canvas_of, finite, numbers, rounded
from attention_book.scoring import additive_scores

SCALES = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]
# Units in pairs: a ridge where q = k, one where q = −k, one where q is near 0. The query carries
# a constant 1 as its second number, which stands in for the bias the module does not have.
W_q = [[1, 1], [1, -1], [1, 1], [1, -1], [1, 0.5], [1, -0.5]]
W_k = [[-1], [-1], [1], [1], [0], [0]]
w_v = [0.5, -0.5, 0.5, -0.5, 0.5, -0.5]


def surface(data: dict[str, Any], hidden: int, scale: float) -> Tensor:
    """Scores (queries, keys) over the grid of the figure, from the first `hidden` units."""
    of_query, of_key, of_hidden = (
        torch.tensor(data[name], dtype=torch.float64)[:hidden] for name in ("W_q", "W_k", "w_v")
    )
    grid = torch.tensor(data["grid"], dtype=torch.float64)[None, :, None]
    queries = torch.cat([grid, torch.ones_like(grid)], dim=-1)
    return additive_scores(queries, grid, scale * of_query, scale * of_key, of_hidden)[0]


class AdditiveFigure(Figure):
    """Add hidden units one by one and steepen them, and see which pairs score high.

    `W_q` (hidden, 2) multiplies the query and a constant 1, `W_k` (hidden, 1) the key, `w_v`
    (hidden) the hidden units. `hidden` is how many units count and `scale` multiplies W_q and W_k;
    both follow the sliders and may be set.

    Raises:
        TypeError, ValueError: for weights that cannot be drawn; traitlets.TraitError: for a number
            of units there is not, or a scale that is not above 0.
    """

    kind = "additive"
    hidden = traitlets.Int(1).tag(sync=True)
    scale = traitlets.Float(2.0).tag(sync=True)

    def __init__(
        self,
        W_q: Tensor | None = None,
        W_k: Tensor | None = None,
        w_v: Tensor | None = None,
        *,
        hidden: int = 1,
        scale: float = 2.0,
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
            caption="Each square is one pair of a query and a key, both single numbers. Blue pairs "
            "score above 0, orange pairs below. Each hidden unit adds one slanted step; two steps "
            "back to back make a ridge.",
        )

    @traitlets.validate("hidden")
    def _check_hidden(self, proposal: Any) -> int:
        if not 1 <= proposal["value"] <= len(self.data["w_v"]):
            raise traitlets.TraitError(
                f"AdditiveFigure: hidden must be from 1 to {len(self.data['w_v'])}, "
                f"but is {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.validate("scale")
    def _check_scale(self, proposal: Any) -> float:
        return finite("AdditiveFigure", "scale", proposal["value"], above=0)

    def describe(self) -> str:
        scores = surface(self.data, self.hidden, self.scale)
        low, high = scores.min().item(), scores.max().item()
        return (
            "Additive scores over queries and keys from −3 to 3, shaded; with "
            f"{self.hidden} of the hidden units they go from {low:.2f} to {high:.2f}."
        )

    def picture(self) -> Canvas:
        scores = surface(self.data, self.hidden, self.scale)
        canvas, (ax,) = canvas_of(1, 1, (4.6, 3.8))
        limit = scores.abs().max().item() or 1.0
        image = ax.imshow(
            scores.T.numpy(),
            cmap="RdBu",
            vmin=-limit,
            vmax=limit,
            origin="lower",
            extent=(-3, 3, -3, 3),
        )
        canvas.colorbar(image, label="score")
        ax.set(xlabel="query", ylabel="key")
        return canvas
