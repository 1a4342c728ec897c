"""Chapter 6: what √d_k keeps from happening to scores, weights and gradients."""

from __future__ import annotations

from typing import Any, ClassVar

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
from attention_book.language import N_, say
from attention_book.masking import masked_softmax
from attention_book.scoring import dot_product_scores, scaled_dot_product_scores

#: Edges of both histograms' bins, in score units; the two end bins contain all further out.
EDGES = torch.arange(-20, 21, 1, dtype=torch.float64)


#: The curve is drawn so far from the score of weight ½; a dot further out stands there.
REACH = 8.0


def jacobian_norms(weights: Tensor) -> Tensor:
    """For each row, ‖∂ softmax / ∂ scores‖, the Frobenius norm."""
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return torch.linalg.matrix_norm(jacobian)


def steadiest_query(plain: Tensor) -> int:
    """The query to show, of plain weights (d_k, queries, keys): the one whose dot on the curve
    goes back least in all as d_k grows, so that the picture shows what most queries do."""
    leads = torch.logit(plain.amax(dim=-1)).clamp(-REACH, REACH)
    return int((leads[:-1] - leads[1:]).clamp(min=0).sum(dim=0).argmin())


def best_key(row: Tensor) -> dict[str, Any]:
    """The key with the largest of the scores in `row`. Its `lead` is its score minus the log of the
    other keys' summed exponentials: its weight is 1 / (1 + exp(−lead)), so ½ where the lead is 0,
    and rises with its score at the rate `slope`."""
    best = int(row.argmax())
    others = torch.cat([row[:best], row[best + 1 :]]).logsumexp(dim=0)
    lead = row[best] - others
    weight = torch.sigmoid(lead)
    return {
        "best": best,
        "score": rounded(row[best]),
        "lead": rounded(lead.clamp(-REACH, REACH)),
        "slope": rounded(weight * (1 - weight)),
    }


def measure(scores: Tensor, weights: Tensor, query: int) -> dict[str, Any]:
    """What the figure shows of scores and weights (queries, keys); shares are probabilities, and
    the weights and the best key are those of `query`."""
    inside = scores.flatten().clamp(EDGES[0] + 1e-9, EDGES[-1] - 1e-9)
    shares = torch.histogram(inside, EDGES).hist / inside.numel()
    return {
        "shares": rounded(shares),
        "weights": rounded(weights[query]),
        "variance": rounded(scores.var(correction=0)),
        "gradient": rounded(jacobian_norms(weights).mean()),
        **best_key(scores[query]),
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
    look = "scale.css"
    d_k = control(64, "stops", "d_k")
    phrases: ClassVar = {
        "sides": N_(
            "At d_k = {0}, plain scores have variance {1} and the softmax passes a gradient of "
            "norm {2}; scaled scores have variance {3} and gradient {4}."
        )
    }

    def __init__(
        self, queries: Tensor | None = None, keys: Tensor | None = None, *, d_k: int | None = None
    ) -> None:
        queries = example(200, 1024, seed=1) if queries is None else queries
        sizes: dict[str, int] = {}
        queries = numbers("ScaleFigure", "queries", queries, {"queries": 2000, "d_k": 4096}, sizes)
        keys = example(10, sizes["d_k"], seed=2) if keys is None else keys
        keys = numbers("ScaleFigure", "keys", keys, {"keys": 16, "d_k": 4096}, sizes)
        stops = [2**i for i in range(sizes["d_k"].bit_length())]
        pairs = [(queries[None, :, :size], keys[None, :, :size]) for size in stops]
        plain = torch.cat([dot_product_scores(*pair) for pair in pairs])
        scaled = torch.cat([scaled_dot_product_scores(*pair) for pair in pairs])
        sides = {
            "plain": (plain, masked_softmax(plain)),
            "scaled": (scaled, masked_softmax(scaled)),
        }
        query = steadiest_query(sides["plain"][1])
        data = {
            "stops": stops,
            "edges": rounded(EDGES),
            "reach": REACH,
            "pairs": sizes["queries"] * sizes["keys"],
            "query": query,
            **{
                name: [measure(*at, query) for at in zip(*side, strict=True)]
                for name, side in sides.items()
            },
        }
        super().__init__(
            data=data,
            d_k=min(64, stops[-1]) if d_k is None else d_k,
            caption="Each component has variance 1. Where the curve is flat, hardly any gradient "
            "passes.",
        )

    def describe(self) -> str:
        now = self.data["stops"].index(self.d_k)
        plain, scaled = self.data["plain"][now], self.data["scaled"][now]
        numbers = [
            text
            for side in (plain, scaled)
            for text in (shown(side["variance"], 1), shown(side["gradient"], 3))
        ]
        return (
            f"How scores spread, and where the best key of query {self.data['query'] + 1} is on "
            "the curve of the softmax: "
            f"at weight {shown(max(plain['weights']), 3)}, slope {shown(plain['slope'], 3)} if "
            f"plain; {shown(max(scaled['weights']), 3)}, {shown(scaled['slope'], 3)} if scaled. "
            f"{self.phrase('sides', self.d_k, *numbers)}"
        )

    def picture(self) -> Canvas:
        canvas, axes = canvas_of(2, 2, (6.4, 4.4))
        now = self.data["stops"].index(self.d_k)
        measured = [*self.data["plain"], *self.data["scaled"]]
        most = max(max(seen["shares"]) for seen in measured)
        steepest = max(seen["gradient"] for seen in measured)
        spread, gradients, curve, bars = axes
        leads = torch.linspace(-REACH, REACH, 81)
        curve.plot(leads, torch.sigmoid(leads), color="#333333")
        colours = {N_("plain"): "#0868a8", N_("scaled"): "#b34700"}
        for column, (name, colour) in enumerate(colours.items()):
            seen = self.data[name][now]
            spread.stairs(
                seen["shares"], self.data["edges"], fill=column == 1, color=colour, label=say(name)
            )
            gradients.bar_label(
                gradients.bar(say(name), seen["gradient"], color=colour), fmt="%.3f"
            )
            around = torch.tensor([-1.5, 1.5])
            tangent = seen["lead"] + around, max(seen["weights"]) + around * seen["slope"]
            curve.plot(*tangent, color=colour)
            curve.plot(seen["lead"], max(seen["weights"]), "o", color=colour)
            places = torch.arange(1, len(seen["weights"]) + 1) + 0.4 * (column - 0.5)
            bars.bar(places, seen["weights"], width=0.4, color=colour)
        number = self.data["query"] + 1
        title = say("scores, d_k = {0}", self.d_k)
        spread.set(title=title, xlabel=say("score"), ylabel=say("share of pairs"))
        spread.set(ylim=(0, 1.25 * most))
        spread.legend(frameon=False, loc="upper center", ncols=2)
        gradients.set(title=say("gradient through the softmax"), ylim=(0, 1.15 * steepest or 1))
        curve.set(xlabel=say("score, 0 where weight is ½"), ylabel=say("weight"), ylim=(0, 1))
        curve.set_title(say("best key of query {0}", number))
        bars.set(title=say("query {0}", number), xlabel=say("key"), ylabel=say("weight"))
        bars.set_ylim(0, 1)
        return canvas
