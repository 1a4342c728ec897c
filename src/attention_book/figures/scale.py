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

#: Edges of both histograms' bins, in score units; the two end bins contain all further out.
EDGES = torch.arange(-20, 21, 1, dtype=torch.float64)


def jacobian_norm(weights: Tensor) -> Tensor:
    """The mean over the rows of ‖∂ softmax / ∂ scores‖, the Frobenius norm."""
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return torch.linalg.matrix_norm(jacobian).mean()


def softmax_curve(scores: Tensor, keys: int) -> Tensor:
    """The weight of a key with each of `scores`, where all the other keys score 0."""
    rows = torch.zeros(1, len(scores), keys, dtype=scores.dtype)
    rows[0, :, 0] = scores
    return masked_softmax(rows)[0, :, 0]


def measure(scores: Tensor) -> dict[str, Any]:
    """What the figure shows of scores (1, queries, keys); shares and weights are probabilities, and
    scores and weights those of the first query."""
    weights = masked_softmax(scores)
    inside = scores.flatten().clamp(EDGES[0] + 1e-9, EDGES[-1] - 1e-9)
    shares = torch.histogram(inside, EDGES).hist / inside.numel()
    return {
        "shares": rounded(shares),
        "scores": rounded(scores[0, 0]),
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
            plain.append(measure(dot_product_scores(*pair)))
            scaled.append(measure(scaled_dot_product_scores(*pair)))
        data = {
            "stops": stops,
            "edges": rounded(EDGES),
            "pairs": sizes["queries"] * sizes["keys"],
            "plain": plain,
            "scaled": scaled,
        }
        super().__init__(
            data=data,
            d_k=min(64, stops[-1]) if d_k is None else d_k,
            caption="How the scores of plain dot products spread, and below those divided by √d_k; "
            "the end bins contain all that is further out. The black curve is the softmax: the "
            "weight of a key with this score when the other keys score 0, and the dots on it are "
            "the scores of the first query. Where it is flat, hardly any gradient passes. Next to "
            "them, up to the chosen d_k: the gradient that passes through the softmax, the "
            "variance of the scores, and the weights of the first query.",
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
            axes[column].stairs(seen["shares"], self.data["edges"], fill=True)
            axes[column].set(
                title=f"{name}, d_k = {self.d_k}",
                xlabel="score",
                ylabel="share of pairs",
                ylim=(0, 1),
            )
            scores = torch.linspace(-20, 20, 81)
            axes[column].plot(scores, softmax_curve(scores, len(seen["weights"])), color="#333333")
            axes[2 + column].bar(range(1, len(seen["weights"]) + 1), seen["weights"])
            axes[2 + column].set(
                title=f"variance {seen['variance']:.2f}, gradient {seen['gradient']:.3f}",
                xlabel="key",
                ylabel="weight",
                ylim=(0, 1),
            )
        return canvas
