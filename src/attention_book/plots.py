"""Drawings: tensors in, matplotlib Axes out, in one style, on a transparent ground."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib import text
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import findSystemFonts, fontManager
from matplotlib.patches import Polygon
from torch import Tensor

from attention_book.language import language, say
from attention_book.shapes import DIMENSIONS, ShapeError, Shapes, Step

#: Shades as in the interactive figures: nothing at 0, `WEIGHT` at 1, `NEGATIVE` at −1.
WEIGHT, NEGATIVE = "#6cb8e6", "#f0a868"
mpl.colormaps.register(
    LinearSegmentedColormap.from_list("weights", [f"{WEIGHT}00", WEIGHT]), force=True
)
mpl.colormaps.register(
    LinearSegmentedColormap.from_list("signed", [NEGATIVE, f"{NEGATIVE}00", f"{WEIGHT}00", WEIGHT]),
    force=True,
)
# The typeface of the pages; DejaVu Serif, which comes with matplotlib, has the signs that it lacks.
fontManager.addfont(Path(__file__).parent / "fonts" / "source-serif-4-latin-400-normal.ttf")

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
    "font.family": ["Source Serif 4", "DejaVu Serif"],
    "mathtext.fontset": "dejavuserif",
    "font.size": 10,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "text.color": "#1a1a1a",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "image.cmap": "weights",
}
#: Typefaces with Chinese characters, the best first: of Linux, of macOS, of Windows.
CHINESE = (
    *("Noto Serif CJK SC", "Source Han Serif SC", "Noto Sans CJK SC", "Noto Serif CJK JP"),
    *("Noto Sans CJK JP", "Songti SC", "PingFang SC", "PingFang HK", "SimSun", "Microsoft YaHei"),
)


NO_TYPEFACE = (
    "No typeface with Chinese characters is installed: run tools/system.sh fonts, or install Noto "
    "CJK"
)


def typeface() -> str:
    """An installed typeface with Chinese characters; "" where there is none."""
    if not {*CHINESE} & {*fontManager.get_font_names()}:
        for file in {*findSystemFonts()} - {known.fname for known in fontManager.ttflist}:
            with suppress(OSError, RuntimeError):  # installed since matplotlib looked, or no font
                fontManager.addfont(file)
    known = fontManager.get_font_names()
    return next((name for name in CHINESE if name in known), "")


def style() -> dict[str, Any]:
    """The style in the reader's language; a warning says what Chinese lacks on this machine."""
    if language() != "zh":
        return STYLE
    more = typeface()
    if not more:
        warnings.warn(NO_TYPEFACE, stacklevel=2)
    return STYLE | {"font.family": [*STYLE["font.family"], *filter(None, [more])]}


#: Points of the text next to blocks: 12 pixels at 96 per inch.
_TYPE = 9


def use_style() -> None:
    """Draw in the book's style from here on, sharp on dense screens. A notebook's pictures say at
    which shares of their width they can be cut into panels, for pages on narrow screens."""
    plt.rcParams.update(style())  # type: ignore[arg-type]
    # A formula loads every font that it might need. Which of them a machine lacks is no result.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    try:
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # not in a notebook
        return
    set_matplotlib_formats("retina")
    shell = get_ipython()
    formatter = shell and shell.display_formatter.formatters["image/png"].type_printers.get(Figure)
    if formatter and "panels" not in getattr(formatter, "keywords", {}):
        png = partial(_with_panels, formatter, panels=True)
        shell.display_formatter.formatters["image/png"].for_type(Figure, png)


def _with_panels(formatter: Any, figure: Figure, *, panels: bool) -> Any:
    """Print a figure with `formatter`, its cuts in the PNG's text. In another language its words,
    too, so that one can see without drawing it that none is English."""
    cuts = panel_cuts(figure) if panels else []
    told = {"Panels": " ".join(f"{cut:.4f}" for cut in cuts)}
    if language() != "en":
        words = (drawn.get_text() for drawn in figure.findobj(text.Text) if drawn.get_visible())
        told["Words"] = "\n".join(dict.fromkeys(filter(None, words)))
    return formatter(figure, metadata=told)


def panel_cuts(figure: Figure) -> list[float]:
    """Where a picture of panels side by side can be cut, as shares of its width from 0 to 1.

    None where a title, a legend or a text belongs to the whole figure. The picture is taken to be
    cropped as a notebook does, to what is drawn and a margin.
    """
    own = (figure.get_suptitle(), figure.get_supxlabel(), figure.get_supylabel())
    if any(own) or figure.legends or figure.texts or figure.subfigs:
        return []
    figure.draw_without_rendering()
    spans: list[list[float]] = []
    for x0, x1 in sorted(
        (box.x0, box.x1) for ax in figure.axes if (box := ax.get_tightbbox()) is not None
    ):
        if spans and x0 <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], x1)
        else:
            spans.append([x0, x1])
    whole, margin = figure.get_tightbbox(), plt.rcParams["savefig.pad_inches"]
    left, width = whole.x0 - margin, whole.width + 2 * margin
    return [((a[1] + b[0]) / 2 / figure.dpi - left) / width for a, b in pairwise(spans)]


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
                weight = f"{matrix[row, column]:z.2f}"
                ax.text(column, row, weight, ha="center", va="center", size=9)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(range(num_keys), list(map(str, range(num_keys))) if keys is None else keys)
    ax.set_yticks(
        range(num_queries), list(map(str, range(num_queries))) if queries is None else queries
    )
    ax.set_xlabel(say("key"), color=DIMENSIONS["keys"].colour)
    ax.set_ylabel(say("query"), color=DIMENSIONS["queries"].colour)
    ax.set_title(title)
    return ax


def draw_shapes(shapes: Shapes, *, columns: int = 4) -> Figure:
    """Draw a trace as a strip of blocks, one per step, each side in its dimension's colour.

    The last dimension runs to the right, the one before it downwards, the one before that into
    the page; a batch is drawn as at most three sheets one behind the other. All blocks have one
    scale: sides are as long as their sizes where none is above 64, and else as the square roots of
    these; the legend says which. Only the steps of the traced call itself are drawn, not those of
    the calls beneath.

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
    side, scale = _scale(steps)
    extents = [max(_extent(step, side)[1] for step in row) for row in rows]
    heights = [extent + 0.7 for extent in extents]
    canvas.set_size_inches(1.6 * columns, 0.66 * sum(heights) + 0.6)
    canvas.set_layout_engine("constrained")
    axes = canvas.subplots(len(rows), columns, height_ratios=heights, squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for row, height, row_axes in zip(rows, heights, axes, strict=True):
        for step, ax in zip(row, row_axes, strict=False):
            _draw_block(step, ax, side)
            name = f"{step.number}  {step.name}"
            ax.text(-0.3, _extent(step, side)[1] + 0.1, name, size=_TYPE, va="bottom")
            ax.set(xlim=(-0.35, 1.95), ylim=(-0.35, height - 0.35), aspect="equal", anchor="W")
    present = dict.fromkeys(factor for step in steps for d in step.dims for factor in d.split("*"))
    handles = [
        plt.Line2D([], [], color=DIMENSIONS[dim].colour, linewidth=4, label=dim)
        for dim in present
        if dim in DIMENSIONS
    ]
    canvas.legend(
        handles=handles,
        title=scale,
        loc="outside lower center",
        ncols=4,
        fontsize=_TYPE,
        title_fontsize=_TYPE,
    )
    return canvas


#: Sides up to this size are drawn as they are; where one is longer, all as their square roots.
LINEAR_UP_TO = 64
#: The room of a block in the units of its axes, the part of a depth that is seen, and the step
#: from one sheet to the next.
_ROOM, _SLANT, _SHEET = 1.5, 0.4, 0.08


def _scale(steps: Sequence[Step]) -> tuple[Callable[[int], float], str]:
    """The one scale of all blocks: what gives the length of a side, and what it is."""
    linear = all(size <= LINEAR_UP_TO for step in steps for _, size in _sides(step)[1])

    def length(size: int) -> float:
        return float(size) if linear else math.sqrt(size)

    reach = max(1.0, *(max(_extent(step, length, sheet=0.0)) for step in steps))
    title = (
        say("sides as long as sizes")
        if linear
        else say("sides as long as the square roots of sizes")
    )
    return lambda size: (_ROOM - 2 * _SHEET) * length(size) / reach, title


def _colours(dim: str) -> list[str]:
    """The colours of the factors of a dimension; grey for a number."""
    return [DIMENSIONS[f].colour for f in dim.split("*") if f in DIMENSIONS] or ["#555555"]


def _sides(step: Step) -> tuple[int, list[tuple[str, int]]]:
    """Sheets of the batch, and (dimension, size) of depth, height and width; "" where absent."""
    sides = list(zip(step.dims, step.shape, strict=True))
    sheets = sides.pop(0)[1] if step.dims[:1] == ("batch",) else 1
    return min(sheets, 3), [("", 1)] * (3 - len(sides)) + sides[-3:]


def _extent(step: Step, side: Callable[[int], float], sheet: float = _SHEET) -> tuple[float, float]:
    """Width and height of a whole block."""
    sheets, ((depth_dim, depth), (_, height), (_, width)) = _sides(step)
    more = (_SLANT * side(depth) if depth_dim else 0.0) + sheet * (sheets - 1)
    return side(width) + more, side(height) + more


def _draw_block(step: Step, ax: Axes, side: Callable[[int], float]) -> None:
    sheets, ((d_dim, d_size), (h_dim, h_size), (w_dim, w_size)) = _sides(step)
    width, height = side(w_size), side(h_size)
    depth = _SLANT * side(d_size) if d_dim else 0.0
    for sheet in reversed(range(sheets)):
        shift = _SHEET * sheet
        _cuboid(ax, shift, shift, width, height, depth, front=sheet == 0)
    edges = [
        # Beside the faces, so that these keep their areas.
        (w_dim, w_size, (0.0, -0.03), (width, -0.03), (0.0, -0.12), ("left", "top")),
        (h_dim, h_size, (-0.03, 0.0), (-0.03, height), (-0.1, height / 2), ("right", "center")),
        (
            d_dim,
            d_size,
            (-0.02, height + 0.02),
            (depth - 0.02, height + depth + 0.02),
            (width + depth + 0.08, height + depth / 2),
            ("left", "center"),
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
