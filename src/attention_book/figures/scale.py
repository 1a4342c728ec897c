"""Chapter 6: what √d_k keeps from happening to scores, weights and gradients."""

from __future__ import annotations

from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import Figure, canvas_of, example, numbers, rounded
from attention_book.masking import masked_softmax
from attention_book.scoring import dot_product_scores, scaled_dot_product_scores

EDGES = torch.arange(-60, 61, 4, dtype=torch.float64)  # of the histogram's bins, in score units


def jacobian_norm(weights: Tensor) -> Tensor:
    """The mean over the rows of ‖∂ softmax / ∂ scores‖, the Frobenius norm."""
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return torch.linalg.matrix_norm(jacobian).mean()


def measure(scores: Tensor) -> dict[str, Any]:
    """What the figure shows of scores (1, queries, keys); shares and weights are probabilities."""
    weights = masked_softmax(scores)
    inside = scores.flatten().clamp(EDGES[0] + 1e-9, EDGES[-1] - 1e-9)  # outliers: the end bins
    shares = torch.histogram(inside, EDGES).hist / inside.numel()
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
            that is no stop of the slider.
    """

    kind = "scale"
    d_k = traitlets.Int(64).tag(sync=True)

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
            "edges": EDGES.int().tolist(),
            "pairs": sizes["queries"] * sizes["keys"],
            "plain": plain,
            "scaled": scaled,
        }
        super().__init__(
            data=data,
            d_k=min(64, stops[-1]) if d_k is None else d_k,
            caption="Plain dot products beside those divided by √d_k: how the scores spread (the "
            "end bins hold all that lies further out), the weights of one query, the variance of "
            "the scores and the size of the gradient that passes the softmax.",
        )

    @traitlets.validate("d_k")
    def _check_d_k(self, proposal: Any) -> int:
        if proposal["value"] not in self.data["stops"]:
            raise traitlets.TraitError(
                f"ScaleFigure: d_k must be one of {self.data['stops']}, but is {proposal['value']}"
            )
        return proposal["value"]

    def describe(self) -> str:
        now = self.data["stops"].index(self.d_k)
        plain, scaled = self.data["plain"][now], self.data["scaled"][now]
        return (
            f"At d_k = {self.d_k} plain scores have variance {plain['variance']:.1f} and the "
            f"softmax passes a gradient of norm {plain['gradient']:.3f}; scaled scores have "
            f"{scaled['variance']:.2f} and {scaled['gradient']:.3f}."
        )

    def picture(self) -> Canvas:
        canvas, axes = canvas_of(2, 2, (6.4, 4.2))
        now = self.data["stops"].index(self.d_k)
        for column, name in enumerate(("plain", "scaled")):
            seen = self.data[name][now]
            axes[column].stairs(seen["shares"], self.data["edges"], fill=True)
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
