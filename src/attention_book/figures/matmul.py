"""Chapter 4: Q·Kᵀ entry by entry, with the sum written out."""

from __future__ import annotations

from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import Figure, canvas_of, numbers, rounded


class MatmulFigure(Figure):
    """Step through the entries of `queries` (queries, size) times `keys` (keys, size) transposed.

    `step` counts the entries row by row, from 0; it follows the slider and the pointer, and may
    be set.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a step
            past the last entry.
    """

    kind = "matmul"
    step = traitlets.Int(0).tag(sync=True)

    def __init__(
        self, queries: Tensor | None = None, keys: Tensor | None = None, *, step: int = 0
    ) -> None:
        queries = torch.tensor([[1, 2, 0, -1], [0, 1, 3, 2]]) if queries is None else queries
        keys = torch.tensor([[2, 1, 0, 1], [-1, 0, 2, 3]]) if keys is None else keys
        sizes: dict[str, int] = {}
        queries = numbers("MatmulFigure", "queries", queries, {"queries": 6, "size": 6}, sizes)
        keys = numbers("MatmulFigure", "keys", keys, {"keys": 6, "size": 6}, sizes)
        super().__init__(
            data={"queries": rounded(queries), "keys": rounded(keys)},
            step=step,
            caption="Entry (i, j) of Q·Kᵀ pairs row i of Q with column j of Kᵀ, multiplies number "
            "by number, and adds up. Point at an entry, or step with the slider.",
        )

    @traitlets.validate("step")
    def _check_step(self, proposal: Any) -> int:
        last = len(self.data["queries"]) * len(self.data["keys"]) - 1
        if not 0 <= proposal["value"] <= last:
            raise traitlets.TraitError(
                f"MatmulFigure: step must be from 0 to {last}, but is {proposal['value']}"
            )
        return proposal["value"]

    def describe(self) -> str:
        queries, keys = self.data["queries"], self.data["keys"]
        return (
            f"Q with {len(queries)} rows times K transposed with {len(keys)} columns: the "
            f"marked entry of the product is the sum of {len(queries[0])} products."
        )

    def picture(self) -> Canvas:
        queries, keys = (torch.tensor(self.data[name]) for name in ("queries", "keys"))
        i, j = divmod(self.step, len(keys))
        canvas, axes = canvas_of(1, 3, (7.2, 2.2))
        marked = {"Q": (i, None), "Kᵀ": (None, j), "Q·Kᵀ": (i, j)}
        matrices = (queries, keys.T, queries @ keys.T)
        for ax, matrix, (title, (row, column)) in zip(axes, matrices, marked.items(), strict=True):
            lit = torch.zeros_like(matrix)
            lit[slice(None) if row is None else row, slice(None) if column is None else column] = (
                0.4
            )
            ax.imshow(lit.numpy(), vmin=0, vmax=1)
            for r, numbers_of_row in enumerate(matrix.tolist()):
                for c, number in enumerate(numbers_of_row):
                    ax.text(c, r, f"{number:g}", ha="center", va="center")
            ax.set(title=title, xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        return canvas
