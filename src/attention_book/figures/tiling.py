"""Chapter 10: online softmax tile by tile, and how many numbers are held at a time."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import traitlets
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from torch import Tensor

from attention_book.figures.base import (
    Count,
    Figure,
    canvas_of,
    control,
    example,
    numbers,
    rounded,
)
from attention_book.language import N_, say

#: The lengths to count memory at; the tile, the size of a value and the bytes per number.
LENGTHS = [2**power for power in range(10, 18)]
TILE, VALUE_SIZE, BYTES = 128, 64, 4


def memory(length: int) -> tuple[int, int]:
    """Bytes of all scores of one head, and of one tile with m, l and o of each of its queries."""
    return BYTES * length**2, BYTES * (TILE**2 + TILE * (1 + 1 + VALUE_SIZE))


def in_bytes(number: float) -> str:
    """A number of bytes in the largest unit that leaves it at least 1."""
    units = [say("bytes"), "KiB", "MiB", "GiB"]
    while number >= 1024 and len(units) > 1:
        number /= 1024
        units.pop(0)
    return f"{number:g} {units[0]}"


class TilingFigure(Figure):
    """Walk over `scores` (length, length) in square tiles, with never more than one in memory.

    `values` (length, 1) is what the weights average. `tile` is a tile's side and `step` how many
    tiles have been read. `n` is a real length, at which the figure counts the memory of one head in
    float32. All three follow the sliders and may be set.

    Raises:
        TypeError, ValueError: for tensors that cannot be drawn; traitlets.TraitError: for a tile
            that does not divide the length, a step past the last tile, or an `n` that is not a
            power of two from 1,024 to 131,072.
    """

    kind = "tiling"
    look = "tiling.css"
    tile = control(1, "tiles", N_("tile size"))
    step = control(0, Count(("scores", "scores"), ("tile", "tile"), more=1), N_("tiles read"))
    n = control(16_384, LENGTHS, N_("positions n"))
    phrases: ClassVar = {
        "memory": N_(
            "At n = {0} the whole matrix takes {1}, about {2} times the {3} of one tile with its "
            "m, ℓ and o."
        ),
        "nothing read": N_(
            "With tiles of {0} × {1}, none of {2} is read yet: no score is held, and no output is "
            "known."
        ),
        "read": N_(
            "With tiles of {0} × {1}, {2} of {3} are read: {4} of {5} scores are held at a time, "
            "and {6} of {7} outputs are exact."
        ),
    }

    def __init__(
        self,
        scores: Tensor | None = None,
        values: Tensor | None = None,
        *,
        tile: int | None = None,
        step: int | None = None,
        n: int = 16_384,
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
            tile = tiles[-2] if len(tiles) > 1 else 1
        if step is None:
            # What is not a tile is refused further on, by name.
            step = min(2, (length // tile) ** 2) if isinstance(tile, int) and tile > 0 else 0
        super().__init__(
            data={
                "scores": rounded(scores),
                "values": rounded(values[:, 0]),
                "tiles": tiles,
                "memory": {
                    "tile": TILE,
                    "value_size": VALUE_SIZE,
                    "bytes": BYTES,
                    "at": [[length, *memory(length)] for length in LENGTHS],
                },
            },
            tile=tile,
            step=step,
            n=n,
            caption="m: largest score so far. ℓ: sum of exp(score − m). o: the same, each term "
            "times its value.",
        )

    @traitlets.observe("tile")
    def _start_again(self, change: Any) -> None:
        self.step = min(self.step, (len(self.data["scores"]) // change["new"]) ** 2)

    def describe(self) -> str:
        length = len(self.data["scores"])
        strips = length // self.tile
        finished = self.step // strips * self.tile
        whole, held = memory(self.n)
        read = self.phrase("nothing read", self.tile, self.tile, strips**2)
        if self.step:
            numbers = self.step, strips**2, self.tile**2, length**2, finished, length
            read = self.phrase("read", self.tile, self.tile, *numbers)
        times = f"{float(f'{whole / held:.3g}'):,g}"
        memory_told = self.phrase("memory", f"{self.n:,}", in_bytes(whole), times, in_bytes(held))
        return f"Scores of {length} queries over {length} keys, read in tiles. {memory_told} {read}"

    def picture(self) -> Canvas:
        scores = self.data["scores"]
        canvas, (ax,) = canvas_of(1, 1, (4.2, 4.4))
        largest = max(abs(score) for row in scores for score in row)
        ax.imshow(scores, cmap="signed", vmin=-largest, vmax=largest)
        for edge in range(self.tile, len(scores), self.tile):
            ax.axhline(edge - 0.5, color="#333333", linewidth=0.8)
            ax.axvline(edge - 0.5, color="#333333", linewidth=0.8)
        if self.step:
            row, column = divmod(self.step - 1, len(scores) // self.tile)
            corner = column * self.tile - 0.5, row * self.tile - 0.5
            ax.add_patch(Rectangle(corner, self.tile, self.tile, fill=False, linewidth=3))
        ax.set(xlabel=say("key"), ylabel=say("query"))
        ax.set_title(say("scores in tiles of {0}", self.tile))
        whole, held = map(in_bytes, memory(self.n))
        said = say("n = {0}: {1} as a whole, {2} per tile", f"{self.n:,}", whole, held)
        canvas.supxlabel(said, fontsize="medium")
        return canvas
