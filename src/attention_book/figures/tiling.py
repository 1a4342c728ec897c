"""Chapter 10: online softmax tile by tile, and how many numbers are held at a time."""

from __future__ import annotations

from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from torch import Tensor

from attention_book.figures.base import Figure, canvas_of, example, numbers, rounded


class TilingFigure(Figure):
    """Walk over `scores` (length, length) in square tiles, and never hold more than one.

    `values` (length, 1) is what the weights average. `tile` is a tile's side and `step` how many
    tiles have been read; both follow the sliders and may be set.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a tile
            that does not divide the length, or a step past the last tile.
    """

    kind = "tiling"
    tile = traitlets.Int(2).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        scores: Tensor | None = None,
        values: Tensor | None = None,
        *,
        tile: int | None = None,
        step: int | None = None,
    ) -> None:
        if scores is None:
            scores = (2 * example(8, 8, seed=9)).round(decimals=1)
        scores = numbers("TilingFigure", "scores", scores, {"length": 16, "columns": 16})
        length = len(scores)
        if scores.shape[1] != length:
            raise ValueError(f"TilingFigure: scores must be square, but are {tuple(scores.shape)}")
        if values is None:
            values = torch.arange(1, length + 1)[:, None]
        sizes = {"length": length}
        values = numbers("TilingFigure", "values", values, {"length": 16, "value_size": 1}, sizes)
        tiles = [n for n in range(1, length + 1) if length % n == 0]
        if tile is None:
            tile = 2 if length % 2 == 0 else 1
        if step is None:
            # What is no tile is refused further on, by name.
            step = min(6, (length // tile) ** 2) if isinstance(tile, int) and tile > 0 else 0
        super().__init__(
            data={"scores": rounded(scores), "values": rounded(values[:, 0]), "tiles": tiles},
            tile=tile,
            step=step,
            caption="The outlined tile is all that is held of the scores. For each query of the "
            "tile three numbers go along: m, the largest score so far; l, the sum of "
            "exp(score − m); o, the sum of exp(score − m) times the value. The table shows o / l, "
            "the output so far. A finished row holds the exact output.",
        )

    @traitlets.validate("tile")
    def _check_tile(self, proposal: Any) -> int:
        if proposal["value"] not in self.data["tiles"]:
            raise traitlets.TraitError(
                f"TilingFigure: tile must be one of {self.data['tiles']}, which divide the "
                f"length, but is {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.validate("step")
    def _check_step(self, proposal: Any) -> int:
        last = (len(self.data["scores"]) // self.tile) ** 2
        if not 0 <= proposal["value"] <= last:
            raise traitlets.TraitError(
                f"TilingFigure: step must be from 0 to {last}, but is {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.observe("tile")
    def _start_again(self, change: Any) -> None:
        self.step = min(self.step, (len(self.data["scores"]) // change["new"]) ** 2)

    def describe(self) -> str:
        length = len(self.data["scores"])
        return (
            f"Scores of {length} queries over {length} keys, read in tiles of {self.tile} by "
            f"{self.tile}: {self.tile**2} scores are held instead of {length**2}."
        )

    def picture(self) -> Canvas:
        scores = self.data["scores"]
        canvas, (ax,) = canvas_of(1, 1, (4.2, 4.2))
        ax.imshow(scores, cmap="Blues")
        for edge in range(self.tile, len(scores), self.tile):
            ax.axhline(edge - 0.5, color="#333333", linewidth=0.8)
            ax.axvline(edge - 0.5, color="#333333", linewidth=0.8)
        if self.step:
            row, column = divmod(self.step - 1, len(scores) // self.tile)
            corner = column * self.tile - 0.5, row * self.tile - 0.5
            ax.add_patch(Rectangle(corner, self.tile, self.tile, fill=False, linewidth=3))
        ax.set(xlabel="key", ylabel="query", title=f"scores in tiles of {self.tile}")
        return canvas
