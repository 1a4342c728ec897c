"""The shape steps of any trace, with a slider for each size that is free to change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas

from attention_book.figures.base import Figure, RefusedError
from attention_book.multihead import MultiHeadAttention
from attention_book.plots import draw_steps
from attention_book.shapes import Shapes, Step, trace
from attention_book.walk.relations import value
from attention_book.walk.steps import DTYPES, misfit, shared, start_of, walk_named, walk_of


class ShapeWalk(Figure):
    """Change the sizes of a trace, and see every step follow.

    >>> with trace() as shapes:
    ...     attention(queries, keys, values)
    >>> ShapeWalk(shapes)

    Any trace can be shown, that of your own functions, too. One slider moves the dimensions that
    are free: sizes that follow from others (heads*d_k, or d_model/heads) follow, and so does what
    multi-head attention sets by default, until it is unlinked. The page sets a challenge that one
    size can meet: to make another step outgrow the largest, or else all steps take ten times the
    memory.

    `sizes`, `dtype` and `nested` (whether the steps of nested calls are shown) follow the controls
    and may be set; so may `broken` and `own`: which size is broken, and how large.

    Raises:
        TypeError: for what is not a trace.
        ValueError: for a trace without a step, or with more than can be shown.
        ShapeError: for a size of 0, or above 65,536.
        traitlets.TraitError: for sizes that do not fit each other.
    """

    kind = "walk"
    folder = Path(__file__).parent
    needs = ("sizes.js", "block.js", "rows.js", "panel.js", "controls.js")
    look = "walk.css"
    shown = traitlets.Unicode().tag(sync=True)
    preset = traitlets.Unicode().tag(sync=True)
    unlinked: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    sizes: traitlets.Dict[str, int] = traitlets.Dict().tag(sync=True)
    dtype = traitlets.Enum([*DTYPES], default_value="float32").tag(sync=True)
    nested = traitlets.Bool(False).tag(sync=True)
    broken = traitlets.Unicode().tag(sync=True)
    own = traitlets.Int(0).tag(sync=True)
    written = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        shapes: Shapes | None = None,
        *,
        dtype: str = "float32",
        nested: bool = False,
    ) -> None:
        walk = walk_of(_example() if shapes is None else shapes)
        self._open(shared([walk]), walk, dtype=dtype, nested=nested)

    def _open(self, data: dict[str, Any], walk: Mapping[str, Any], **controls: Any) -> None:
        caption = "Choose a step to see its block between what it is made of and what it makes."
        if walk["dims"]:
            caption = "Choose a step to see its block; choose a size to move it, or to break it."
        super().__init__(
            data=data,
            caption=caption,
            shown=walk["name"],
            sizes=start_of(walk),
            **controls,
        )

    @property
    def _walk(self) -> dict[str, Any]:
        return walk_named(self.data, self.shown)

    @traitlets.validate("shown")
    def _check_shown(self, proposal: Any) -> str:
        names = [walk["name"] for walk in self.data["walks"]]
        if proposal["value"] not in names:
            raise RefusedError(
                f"ShapeWalk: shown must be one of {names}, but is {proposal['value']!r}"
            )
        return proposal["value"]

    @traitlets.observe("shown")
    def _follow_shown(self, change: Any) -> None:
        """Open another walk at the sizes of its trace, unless its sizes came with it."""
        if self.has_data and misfit(self._walk, self.sizes, self.unlinked):
            self.unlinked, self.broken = [], ""
            self.sizes = start_of(self._walk)

    @traitlets.validate("sizes")
    def _check_sizes(self, proposal: Any) -> dict[str, int]:
        problem = misfit(self._walk, proposal["value"], self.unlinked)
        if problem:
            raise RefusedError(f"ShapeWalk: {problem}")
        return proposal["value"]

    @traitlets.validate("broken")
    def _check_broken(self, proposal: Any) -> str:
        names = [entry["id"] for entry in self._walk["breaks"]]
        if proposal["value"] and proposal["value"] not in names:
            raise RefusedError(
                f"ShapeWalk: broken must be empty or one of {names}, but is {proposal['value']!r}"
            )
        return proposal["value"]

    def _steps(self) -> list[Step]:
        """The outermost steps, with their shapes at the present sizes."""
        return [
            Step(
                step["number"],
                step["name"],
                tuple(step["dims"]),
                tuple(value(axis, self.sizes) for axis in step["axes"]),
                step["function"],
            )
            for step in self._walk["steps"]
            if "." not in step["number"]
        ]

    def describe(self) -> str:
        steps = self._steps()
        first, last = steps[0], steps[-1]
        largest = max(steps, key=lambda step: math.prod(step.shape))
        return (
            f"{len(steps)} steps of {self.shown} as blocks, from {first.name} {first.shape} to "
            f"{last.name} {last.shape}; the largest is {largest.name} {largest.shape}, "
            f"{math.prod(largest.shape):,} numbers."
        )

    def picture(self) -> Canvas:
        return draw_steps(self._steps(), columns=4, canvas=Canvas())


def _example() -> Shapes:
    attention = MultiHeadAttention(12, 3)
    queries, memory = torch.zeros(2, 5, 12), torch.zeros(2, 7, 12)
    with trace(depth=1) as shapes, torch.no_grad():
        attention(queries, memory, memory)
    return shapes
