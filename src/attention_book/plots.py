"""Drawings: tensors in, matplotlib Axes out, in one style, on a transparent ground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from torch import Tensor

from attention_book.shapes import DIMENSIONS, ShapeError, Shapes, Step

#: The one style. Dark ink on a transparent ground: the page inverts figures in its dark mode. A
#: picture without a size of its own fits a phone; 10 points are 13 pixels at 96 per inch.
STYLE: dict[str, Any] = {
    "figure.facecolor": "none",
    "figure.figsize": (3.3, 2.4),
    "figure.dpi": 96,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": "#333333",
    "axes.labelcolor": "#1a1a1a",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.prop_cycle": plt.cycler(
        color=[DIMENSIONS[d].colour for d in ("queries", "keys", "size", "heads", "value_size")]
    ),
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "text.color": "#1a1a1a",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "image.cmap": "Blues",
}


#: Points of the text next to blocks: 12 pixels at 96 per inch.
_TYPE = 9


def use_style() -> None:
    """Draw in the book's style from here on, sharp on dense screens."""
    plt.rcParams.update(STYLE)  # type: ignore[arg-type]
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # not in a notebook
        return
    set_matplotlib_formats("retina")


def draw_weights(
    weights: Tensor,
    *,
    ax: Axes | None = None,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    title: str = "",
) -> Axes:
    """Draw one matrix of weights as shades from 0 to 1, with its numbers where they fit.

    Args:
        weights: (queries, keys), from 0 to 1, on any device.
        ax: where to draw; new Axes where not given.
        queries, keys: names of the rows and columns; their indices where not given.
        title: above the matrix.

    Raises:
        ShapeError: for a tensor that has not two axes, or names of another number.
    """
    if weights.dim() != 2:
        raise ShapeError(
            f"draw_weights: weights must have 2 axes (queries, keys), but has {weights.dim()}: "
            f"{tuple(weights.shape)}"
        )
    num_queries, num_keys = weights.shape
    for axis, names, number in (("queries", queries, num_queries), ("keys", keys, num_keys)):
        if names is not None and len(names) != number:
            raise ShapeError(f"draw_weights: {len(names)} names for {number} {axis}")
    if ax is None:
        width = min(1.2 + 0.5 * num_keys, 7.0)
        _, ax = plt.subplots(figsize=(width, min(0.9 + 0.5 * num_queries, 7.0)))
    matrix = weights.detach().double().cpu().numpy()
    ax.imshow(matrix, vmin=0, vmax=1, aspect="equal")
    if max(num_queries, num_keys) <= 10:
        for row in range(num_queries):
            for column in range(num_keys):
                weight = matrix[row, column]
                ink = "white" if weight > 0.6 else "#1a1a1a"
                ax.text(column, row, f"{weight:.2f}", ha="center", va="center", color=ink, size=9)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(range(num_keys), list(map(str, range(num_keys))) if keys is None else keys)
    ax.set_yticks(
        range(num_queries), list(map(str, range(num_queries))) if queries is None else queries
    )
    ax.set_xlabel("key", color=DIMENSIONS["keys"].colour)
    ax.set_ylabel("query", color=DIMENSIONS["queries"].colour)
    ax.set_title(title)
    return ax


def draw_shapes(shapes: Shapes, *, columns: int = 4) -> Figure:
    """Draw a trace as a strip of blocks, one per step, each side in its dimension's colour.

    The last dimension runs to the right, the one before it downwards, the one before that into
    the page; a batch is drawn as sheets one behind the other. Sides grow with the logarithm of
    their size. Only the steps of the traced call itself are drawn, not those of the calls beneath.

    Raises:
        ValueError: for a trace without a step.
    """
    return draw_steps([*shapes], columns=columns, canvas=plt.figure())


def draw_steps(steps: Sequence[Step], *, columns: int, canvas: Figure) -> Figure:
    """Draw the outermost of `steps` on an empty figure, as `draw_shapes` does.

    At four columns the text is 12 pixels high on a page that shows the figure unscaled.

    Raises:
        ValueError: where there is no step.
    """
    steps = [step for step in steps if "." not in step.number]
    if not steps:
        raise ValueError("draw_shapes: the trace has no step")
    rows = [steps[first : first + columns] for first in range(0, len(steps), columns)]
    heights = [max(_extent(step) for step in row) + 0.7 for row in rows]
    canvas.set_size_inches(1.6 * columns, 0.66 * sum(heights) + 0.6)
    canvas.set_layout_engine("constrained")
    axes = canvas.subplots(len(rows), columns, height_ratios=heights, squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for row, height, row_axes in zip(rows, heights, axes, strict=True):
        for step, ax in zip(row, row_axes, strict=False):
            _draw_block(step, ax)
            ax.set(xlim=(-0.35, 1.95), ylim=(-0.35, height - 0.35), aspect="equal", anchor="W")
    present = dict.fromkeys(factor for step in steps for d in step.dims for factor in d.split("*"))
    handles = [
        plt.Line2D([], [], color=DIMENSIONS[dim].colour, linewidth=4, label=dim)
        for dim in present
        if dim in DIMENSIONS
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=_TYPE)
    return canvas


def _side(size: int) -> float:
    return 0.18 if size == 1 else 0.3 + 0.16 * math.log2(max(size, 2))


def _colours(dim: str) -> list[str]:
    """The colours of the factors of a dimension; grey for a number."""
    return [DIMENSIONS[f].colour for f in dim.split("*") if f in DIMENSIONS] or ["#555555"]


def _sides(step: Step) -> tuple[int, list[tuple[str, int]]]:
    """Sheets of the batch, and (dimension, size) of depth, height and width; "" where absent."""
    sides = list(zip(step.dims, step.shape, strict=True))
    sheets = sides.pop(0)[1] if step.dims[:1] == ("batch",) else 1
    return min(sheets, 3), [("", 1)] * (3 - len(sides)) + sides[-3:]


def _extent(step: Step) -> float:
    sheets, ((depth_dim, depth), (_, height), _) = _sides(step)
    return _side(height) + (0.5 * _side(depth) if depth_dim else 0.0) + 0.13 * (sheets - 1)


def _draw_block(step: Step, ax: Axes) -> None:
    sheets, ((d_dim, d_size), (h_dim, h_size), (w_dim, w_size)) = _sides(step)
    width, height = _side(w_size), _side(h_size)
    depth = 0.5 * _side(d_size) if d_dim else 0.0
    for sheet in reversed(range(sheets)):
        shift = 0.13 * sheet
        _cuboid(ax, shift, shift, width, height, depth, front=sheet == 0)
    edges = [
        (w_dim, w_size, (0.0, 0.0), (width, 0.0), (width / 2, -0.07), ("center", "top")),
        (h_dim, h_size, (0.0, 0.0), (0.0, height), (-0.07, height / 2), ("right", "center")),
        (
            d_dim,
            d_size,
            (0.0, height),
            (depth, height + depth),
            (depth / 2 - 0.05, height + depth / 2 + 0.03),
            ("right", "bottom"),
        ),
    ]
    for dim, size, (x0, y0), (x1, y1), (x, y), (ha, va) in edges:
        if not dim:
            continue
        first, *second = _colours(dim)
        ax.plot([x0, x1], [y0, y1], color=first, linewidth=3.5, solid_capstyle="butt")
        if second:  # a product of two dimensions: dashed in both colours
            ax.plot([x0, x1], [y0, y1], color=second[0], linewidth=3.5, linestyle=(0, (1.5, 1.5)))
        ax.text(x, y, str(size), ha=ha, va=va, size=_TYPE)
    ax.text(-0.3, _extent(step) + 0.1, f"{step.number}  {step.name}", size=_TYPE, va="bottom")


def _cuboid(
    ax: Axes, x: float, y: float, width: float, height: float, depth: float, *, front: bool
) -> None:
    face, edge = to_rgba("#8a8a8a", 0.16 if front else 0.06), to_rgba("#555555", 0.8)
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
    faces = [corners]
    if depth:
        top = [corners[3], corners[2]]
        side = [corners[2], corners[1]]
        for line in (top, side):
            faces.append([*line, *[(px + depth, py + depth) for px, py in reversed(line)]])
    for polygon in faces:
        ax.add_patch(Polygon(polygon, facecolor=face, edgecolor=edge, linewidth=0.8))
