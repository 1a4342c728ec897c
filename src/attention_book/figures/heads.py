"""Chapter 7: the same queries and keys, split into one head or into many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import Figure, canvas_of, example, labels, numbers, rounded
from attention_book.masking import masked_softmax
from attention_book.multihead import split_heads
from attention_book.plots import draw_weights
from attention_book.scoring import scaled_dot_product_scores

TOKENS = ["the", "cat", "sat", "on", "the", "mat"]


class HeadsFigure(Figure):
    """Choose the number of heads and look at the map of each.

    `queries` and `keys`, each (length, d_model), are already projected; `tokens` names their
    positions. `num_heads` is how many heads share the width and `head` the one shown, from 0; both
    follow the sliders and may be set.

    Raises:
        TypeError, ValueError: for tensors or tokens that cannot be drawn; traitlets.TraitError:
            for a number of heads that does not divide the width, or a head there is not.
    """

    kind = "heads"
    num_heads = traitlets.Int(1).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        queries: Tensor | None = None,
        keys: Tensor | None = None,
        *,
        tokens: Sequence[str] | None = None,
        num_heads: int = 1,
        head: int = 0,
    ) -> None:
        if queries is None and keys is None and tokens is None:
            tokens = TOKENS
        queries = 1.5 * example(6, 8, seed=5) if queries is None else queries
        keys = 1.5 * example(6, 8, seed=6) if keys is None else keys
        sizes: dict[str, int] = {}
        limits = {"length": 12, "d_model": 16}
        queries = numbers("HeadsFigure", "queries", queries, limits, sizes)
        keys = numbers("HeadsFigure", "keys", keys, limits, sizes)
        width = sizes["d_model"]
        counts = [n for n in range(1, width + 1) if width % n == 0]
        maps = {}
        for n in counts:
            scores = scaled_dot_product_scores(
                split_heads(queries[None], n), split_heads(keys[None], n)
            )
            maps[str(n)] = rounded(masked_softmax(scores)[0])
        super().__init__(
            data={
                "counts": counts,
                "d_model": width,
                "maps": maps,
                "tokens": labels("HeadsFigure", "tokens", tokens, sizes["length"], "t"),
            },
            num_heads=num_heads,
            head=head,
            caption="The width of each query and key is cut into equal slices, one a head. A head "
            "compares its own slice alone, so each head has a map of its own.",
        )

    @traitlets.validate("num_heads")
    def _check_num_heads(self, proposal: Any) -> int:
        if proposal["value"] not in self.data["counts"]:
            raise traitlets.TraitError(
                f"HeadsFigure: num_heads must be one of {self.data['counts']}, which divide "
                f"d_model = {self.data['d_model']}, but is {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.validate("head")
    def _check_head(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < self.num_heads:
            raise traitlets.TraitError(
                f"HeadsFigure: head must be from 0 to {self.num_heads - 1}, "
                f"but is {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.observe("num_heads")
    def _keep_head(self, change: Any) -> None:
        self.head = min(self.head, change["new"] - 1)

    def describe(self) -> str:
        width = self.data["d_model"]
        return (
            f"Weights of {len(self.data['tokens'])} positions over each other, a map for each of "
            f"{self.num_heads} out of {width} possible heads, which share a width of {width}."
        )

    def picture(self) -> Canvas:
        maps = torch.tensor(self.data["maps"][str(self.num_heads)], dtype=torch.float64)
        shown = maps[:4]  # more would be too small to read on paper
        canvas, axes = canvas_of(1, len(shown), (3.0 * len(shown), 2.9))
        for h, ax in enumerate(axes):
            title = f"head {h} of {self.num_heads}"
            names = self.data["tokens"]
            draw_weights(shown[h], ax=ax, queries=names, keys=names, title=title)
        return canvas
