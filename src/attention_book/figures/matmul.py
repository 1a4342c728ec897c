"""Chapter 4: Q·Kᵀ entry by entry, with the sum written out."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.figures.base import Entries, Figure, canvas_of, control, numbers, rounded

QUERIES = [[1, 2, 0, 1], [0, 1, 2, 1], [2, 0, 1, -1]]
KEYS = [[1, 0, 1, 1], [2, 1, 0, 2], [0, -1, 1, 2], [1, 1, -1, 0]]


def plain(number: float) -> str:
    """A number with as many decimals as it needs, up to three, and a true minus sign."""
    text = f"{number:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", "−")


def factor(number: float) -> str:
    """A number as it stands in a product: in brackets where it is negative."""
    return f"({plain(number)})" if number < 0 else plain(number)


class MatmulFigure(Figure):
    """Step through the entries of `queries` (queries, size) times `keys` (keys, size) transposed.

    `step` counts the entries row by row, from 0, and starts halfway. It and the two matrices, `Q`
    and `K`, follow the controls and may be set.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a step
            past the last entry, or numbers in another shape.
    """

    kind = "matmul"
    Q = Entries().tag(sync=True)
    K = Entries().tag(sync=True)
    step = control(0, lambda figure: range(len(figure.Q) * len(figure.K)))

    def __init__(
        self, queries: Tensor | None = None, keys: Tensor | None = None, *, step: int | None = None
    ) -> None:
        queries = torch.tensor(QUERIES) if queries is None else queries
        keys = torch.tensor(KEYS) if keys is None else keys
        sizes: dict[str, int] = {}
        queries = numbers("MatmulFigure", "queries", queries, {"queries": 6, "size": 6}, sizes)
        keys = numbers("MatmulFigure", "keys", keys, {"keys": 6, "size": 6}, sizes)
        super().__init__(
            data=sizes,
            Q=rounded(queries),
            K=rounded(keys),
            step=(sizes["queries"] * sizes["keys"] - 1) // 2 if step is None else step,
            caption="Entry (i, j) of Q·Kᵀ pairs row i of Q with column j of Kᵀ, multiplies number "
            "by number, and adds up. Point at an entry, or step with the slider. Click a number of "
            "Q or Kᵀ to change it: the entries that then differ are outlined.",
        )

    def describe(self) -> str:
        i, j = divmod(self.step, len(self.K))
        query, key = self.Q[i], self.K[j]
        products = " + ".join(f"{factor(a)}×{factor(b)}" for a, b in zip(query, key, strict=True))
        total = sum(a * b for a, b in zip(query, key, strict=True))
        return (
            f"Q with {len(self.Q)} rows times K transposed with {len(self.K)} columns; "
            f"one entry of the product is marked. q{i + 1} · k{j + 1} = {products} = "
            f"{plain(total)}."
        )

    def picture(self) -> Canvas:
        queries, keys = torch.tensor(self.Q), torch.tensor(self.K)
        i, j = divmod(self.step, len(keys))
        canvas, axes = canvas_of(1, 3, (7.2, 2.4))
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
