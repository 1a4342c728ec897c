"""Chapter 4: Q·Kᵀ entry by entry, with the sum written out."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import (
    Count,
    Entries,
    Figure,
    canvas_of,
    control,
    numbers,
    rounded,
)
from attention_book.language import N_, say

QUERIES = [[[1, 2, 0, 1], [0, 1, 2, 1], [2, 0, 1, -1]], [[0, 1, 1, 2], [3, 0, 1, 0], [1, -1, 2, 1]]]
KEYS = [
    [[1, 0, 1, 1], [2, 1, 0, 2], [0, -1, 1, 2], [1, 1, -1, 0]],
    [[2, 1, 0, 1], [0, 2, 1, -1], [1, 1, 1, 1], [-1, 0, 2, 1]],
]


def plain(number: float) -> str:
    """A number with as many decimals as it needs, up to three, and a true minus sign."""
    text = f"{number:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", "−")


def factor(number: float) -> str:
    """A number as it stands in a product: in brackets where it is negative."""
    return f"({plain(number)})" if number < 0 else plain(number)


def batched(name: str, tensor: Any, sizes: dict[str, int]) -> Tensor:
    """Take (rows, size) or (batch, rows, size); the first becomes a batch of one."""
    limits = {name: 6, "size": 6}
    if isinstance(tensor, Tensor) and tensor.dim() == 3:
        return numbers("MatmulFigure", name, tensor, {"batch": 4, **limits}, sizes)
    sizes.setdefault("batch", 1)
    return numbers("MatmulFigure", name, tensor, limits, sizes)[None]


class MatmulFigure(Figure):
    """Step through the entries of `queries` (queries, size) times `keys` (keys, size) transposed.

    Both may have a batch in front: its matrices are sheets on top of each other, of which `sheet`
    is the upper one, counted from 0. `step` counts the entries row by row, from 0, and starts
    halfway. They and `Q` (batch, queries, size) and `K` (batch, keys, size) follow the controls and
    may be set.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a step
            past the last entry, or numbers in another shape.
    """

    kind = "matmul"
    Q = Entries().tag(sync=True)
    K = Entries().tag(sync=True)
    sheet = control(0, Count(("batch",)), N_("sheet of the batch"))
    step = control(0, Count(("queries", "keys")), N_("entry"))
    phrases: ClassVar = {"sum": "q{0} · k{1} = {2} = {3}."}

    def __init__(
        self,
        queries: Tensor | None = None,
        keys: Tensor | None = None,
        *,
        step: int | None = None,
        sheet: int = 0,
    ) -> None:
        sizes: dict[str, int] = {}
        if queries is None and keys is None:
            queries, keys = torch.tensor(QUERIES), torch.tensor(KEYS)
        own = torch.tensor(QUERIES[0]), torch.tensor(KEYS[0])
        queries = batched("queries", own[0] if queries is None else queries, sizes)
        keys = batched("keys", own[1] if keys is None else keys, sizes)
        super().__init__(
            data=sizes,
            Q=rounded(queries),
            K=rounded(keys),
            sheet=sheet,
            step=(sizes["queries"] * sizes["keys"] - 1) // 2 if step is None else step,
            caption="Entry (i, j) of Q·Kᵀ stands where row i of Q meets column j of Kᵀ: multiply "
            "the two number by number, and add up. Point at an entry, or step with the slider. "
            "Click a number of Q or Kᵀ to change it: dashed entries use it, orange ones have "
            "changed. "
            "Each example of a batch has a sheet of its own, and no entry mixes two sheets.",
        )

    def describe(self) -> str:
        queries, keys = self.Q[self.sheet], self.K[self.sheet]
        i, j = divmod(self.step, len(keys))
        query, key = queries[i], keys[j]
        products = " + ".join(f"{factor(a)}×{factor(b)}" for a, b in zip(query, key, strict=True))
        total = sum(a * b for a, b in zip(query, key, strict=True))
        return (
            f"Q with {len(queries)} rows times K transposed with {len(keys)} columns; "
            f"one entry of the product is marked. "
            f"{self.phrase('sum', i + 1, j + 1, products, plain(total))}"
        )

    def picture(self) -> Canvas:
        queries, keys = (torch.tensor(batch[self.sheet]) for batch in (self.Q, self.K))
        i, j = divmod(self.step, len(keys))
        canvas, (corner, right, left, product) = canvas_of(2, 2, (5.0, 4.4))
        corner.set_axis_off()
        if len(self.Q) > 1:
            sheet = say("sheet {0} of {1}", self.sheet + 1, len(self.Q))
            corner.text(0.5, 0.5, sheet, ha="center", va="center")
        marked = {"Q": (i, None), "Kᵀ": (None, j), "Q·Kᵀ": (i, j)}
        matrices = (queries, keys.T, queries @ keys.T)
        axes = (left, right, product)
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
