"""Chapter 6: what √d_k keeps from happening to scores, weights and gradients."""

from __future__ import annotations

from typing import Any

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
from attention_book.scoring import dot_product_scores, scaled_dot_product_scores

# Edges of the histograms' bins, in score units: scaled scores need an axis of their own.
EDGES = {
    "plain": torch.arange(-60, 61, 4, dtype=torch.float64),
    "scaled": torch.arange(-4, 4.25, 0.25, dtype=torch.float64),
}


def jacobian_norm(weights: Tensor) -> Tensor:
    """The mean over the rows of ‖∂ softmax / ∂ scores‖, the Frobenius norm."""
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return torch.linalg.matrix_norm(jacobian).mean()


def measure(scores: Tensor, edges: Tensor) -> dict[str, Any]:
    """What the figure shows of scores (1, queries, keys); shares and weights are probabilities."""
    weights = masked_softmax(scores)
    inside = scores.flatten().clamp(edges[0] + 1e-9, edges[-1] - 1e-9)  # outliers: the end bins
    shares = torch.histogram(inside, edges).hist / inside.numel()
    return {
        "shares": rounded(shares),
        "weights": rounded(weights[0, 0]),
        "variance": rounded(scores.var(correction=0)),
        "gradient": rounded(jacobian_norm(weights)),
    }


class ScaleFigure(Figure):
    """Move d_k over the powers of two, with plain and with scaled dot products side by side.

    `queries` (queries, d_k) and `keys` (keys, d_k) are read up to their first 1, 2, 4, … features;
    `d_k` is where the slider stands, and may be set.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a d_k
            that is not a stop of the slider.
    """

    kind = "scale"
    d_k = control(64, lambda figure: figure.data["stops"])

    def __init__(
        self, queries: Tensor | None = None, keys: Tensor | None = None, *, d_k: int | None = None
    ) -> None:
        queries = example(200, 1024, seed=1) if queries is None else queries
        sizes: dict[str, int] = {}
        queries = numbers("ScaleFigure", "queries", queries, {"queries": 2000, "d_k": 4096}, sizes)
        keys = example(10, sizes["d_k"], seed=2) if keys is None else keys
        keys = numbers("ScaleFigure", "keys", keys, {"keys": 16, "d_k": 4096}, sizes)
        stops = [2**i for i in range(sizes["d_k"].bit_length())]
        plain, scaled = [], []
        for size in stops:
            pair = queries[None, :, :size], keys[None, :, :size]
            plain.append(measure(dot_product_scores(*pair), EDGES["plain"]))
            scaled.append(measure(scaled_dot_product_scores(*pair), EDGES["scaled"]))
        data = {
            "stops": stops,
            "edges": {name: rounded(edges) for name, edges in EDGES.items()},
            "pairs": sizes["queries"] * sizes["keys"],
            "plain": plain,
            "scaled": scaled,
        }
        super().__init__(
            data=data,
            d_k=min(64, stops[-1]) if d_k is None else d_k,
            caption="Plain dot products next to those divided by √d_k: how the scores spread (on "
            "axes of their own; the end bins contain everything further out) and the weights of "
            "one query. The curves show the variance of the scores, and the size of the gradient "
            "that passes through the softmax, up to the chosen d_k.",
        )

    def describe(self) -> str:
        now = self.data["stops"].index(self.d_k)
        plain, scaled = self.data["plain"][now], self.data["scaled"][now]
        return (
            "How scores spread, and the weights of one query, for plain and scaled dot products. "
            f"At d_k = {self.d_k}, plain scores have variance {shown(plain['variance'], 1)} and "
            f"the softmax passes a gradient of norm {shown(plain['gradient'], 3)}; scaled scores "
            f"have {shown(scaled['variance'], 1)} and {shown(scaled['gradient'], 3)}."
        )

    def picture(self) -> Canvas:
        canvas, axes = canvas_of(2, 2, (6.4, 4.2))
        now = self.data["stops"].index(self.d_k)
        for column, name in enumerate(("plain", "scaled")):
            seen = self.data[name][now]
            axes[column].stairs(seen["shares"], self.data["edges"][name], fill=True)
            axes[column].set(
                title=f"{name}, d_k = {self.d_k}", xlabel="score", ylabel="share of pairs"
            )
            axes[2 + column].bar(range(1, len(seen["weights"]) + 1), seen["weights"])
            axes[2 + column].set(
                title=f"variance {seen['variance']:.2f}, gradient {seen['gradient']:.3f}",
                xlabel="key",
                ylabel="weight",
                ylim=(0, 1),
            )
        return canvas
