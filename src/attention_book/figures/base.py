"""What every interactive figure shares: its two lives, its still picture, its checks of input.

With a kernel and a front end that shows widgets, a figure is an ipywidget. Everywhere else (the
book, a stored notebook, paper) it is HTML that holds the figure's numbers and a still picture; the
book's host script brings that HTML to life. The HTML depends on the numbers alone, so executing a
notebook again gives the same bytes, and comparing outputs compares the figure's data.
"""

from __future__ import annotations

import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import anywidget
import ipywidgets  # type: ignore[import-untyped]
import matplotlib as mpl
import torch
import traitlets
from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from attention_book.data import normal
from attention_book.plots import STYLE
from attention_book.shapes import DIMENSIONS, ShapeError

HERE = Path(__file__).parent


def N_(text: str) -> str:  # noqa: N802
    """Mark a text in a figure's data, which its script translates when it shows it."""
    return text


def text_of(name: str) -> str:
    """A file next to this one."""
    return (HERE / name).read_text(encoding="utf-8")


def kit() -> str:
    """The helpers that stand before every figure's module."""
    return text_of("kit.js") + text_of("frame.js")


def style() -> str:
    """The style sheet of the figures, with the book's colours of the dimensions."""
    colours = "".join(f"--dim-{name}:{dim.colour};" for name, dim in DIMENSIONS.items())
    return text_of("figure.css") + f".attention-figure{{{colours}}}\n"


class RefusedError(traitlets.TraitError):
    """A value that a control cannot show. A notebook prints the sentence alone, not the frames of
    traitlets that lead to it.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"TraitError: {self}"]


class Control(traitlets.TraitType[Any, Any]):
    """A value that a control of a figure moves; see `control`."""

    def __init__(
        self, default: Any, stops: Callable[[Any], Sequence[Any]] | None, above: float | None
    ) -> None:
        super().__init__(default)
        self.stops, self.above = stops, above

    def validate(self, obj: Any, value: Any) -> Any:
        owner, name = type(obj).__name__, self.name or ""
        if self.stops is None:
            return finite(owner, name, value, above=self.above)
        # A default is not checked: there are no data yet to check it against.
        stops = self.stops(obj) if obj.has_data else [value]
        # True is 1 and 2.0 is 2 to Python; a slider of whole numbers takes neither.
        for stop in stops:
            if stop == value and (type(stop) is type(value) or isinstance(stop, float)):
                return stop
        legal = (
            f"from {stops[0]} to {stops[-1]}"
            if isinstance(stops, range)
            else f"one of {list(stops)}"
        )
        raise RefusedError(f"{owner}: {name} must be {legal}, but is {value!r}")


class Entries(traitlets.TraitType[Any, Any]):
    """Numbers in nested lists that the reader may change one by one, but not their shape."""

    def __init__(self) -> None:
        super().__init__([])
        self.tag(is_typed=True)

    def validate(self, obj: Any, value: Any) -> Any:
        name = str(self.name)
        kept = getattr(obj, name) if obj.trait_has_value(name) else []
        try:
            tensor = torch.as_tensor(listed(value), dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError):
            tensor = torch.tensor(torch.nan)
        shape = tuple(torch.tensor(kept).shape) if kept else tuple(tensor.shape)
        if tensor.shape != shape or not tensor.isfinite().all():
            given = repr(value)
            raise RefusedError(
                f"{type(obj).__name__}: {name} must hold finite numbers in the shape {shape}, "
                f"but is {given if len(given) <= 60 else given[:60] + ' …'}"
            )
        return rounded(tensor)


def control(
    default: Any,
    stops: Callable[[Any], Sequence[Any]] | None = None,
    *,
    above: float | None = None,
) -> Any:
    """A trait that a control moves, with its check: `step = control(0, lambda f: range(9))`.

    `stops` gives, for a figure, the values that the control can take now. Without it the value may
    be any finite number, or any above `above`.

    Raises (when the trait is set):
        traitlets.TraitError: for what the control cannot show, in one sentence.
    """
    return Control(default, stops, above).tag(sync=True)


class Figure(anywidget.AnyWidget):
    """A figure to move. A subclass names its module, `<kind>.js`, draws its still picture and says
    in words what that shows."""

    kind: ClassVar[str]
    folder: ClassVar[Path] = HERE  # of the files below
    needs: ClassVar[tuple[str, ...]] = ()
    look: ClassVar[str] = ""  # a style sheet of its own
    has_data = False
    data = traitlets.Dict().tag(sync=True)
    caption = traitlets.Unicode().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "kind" in cls.__dict__:
            cls._esm = kit() + cls.module()
            cls._css = style() + cls.own_style()
        super().__init_subclass__(**kwargs)

    @classmethod
    def module(cls) -> str:
        """The figure's ES module, after the files that it alone needs."""
        return "".join(cls._text_of(name) for name in (*cls.needs, f"{cls.kind}.js"))

    @classmethod
    def own_style(cls) -> str:
        """What the figure adds to the style sheet of all figures."""
        return cls._text_of(cls.look) if cls.look else ""

    @classmethod
    def _text_of(cls, name: str) -> str:
        return (cls.folder / name).read_text(encoding="utf-8")

    def __init__(self, *, data: dict[str, Any], caption: str, **controls: Any) -> None:
        super().__init__(data=data, caption=caption)
        self.has_data = True
        # One by one, because a widget checks what it is made with in no fixed order, and a control
        # may be checked against one before it.
        for name, value in controls.items():
            setattr(self, name, value)
        self._say_again()
        # The words hold for the picture, so they change when it does.
        self.observe(self._say_again, list(controls))

    def _say_again(self, change: Any = None) -> None:
        self.alt = self.describe()

    def picture(self) -> Canvas:
        """Draw the figure as it stands, for paper and for pages without scripts."""
        raise NotImplementedError(f"{type(self).__name__} draws no picture")

    def describe(self) -> str:
        """Say what the picture shows as it stands, for those who do not see it. The last sentence
        says what the controls did; the module shows the same sentence."""
        raise NotImplementedError(f"{type(self).__name__} has no words for its picture")

    def still(self) -> str:
        """The picture as SVG, the same on each machine and whatever style the reader has set.

        Numbers stop at hundredths of a point, which hides the last bits where machines differ.
        """
        style: dict[Any, Any] = {
            **{k: v for k, v in mpl.rcParamsDefault.items() if not k.startswith("backend")},
            **STYLE,
            "svg.hashsalt": "attention",
            "svg.fonttype": "none",
            "image.interpolation": "none",
        }
        file = io.StringIO()
        with mpl.rc_context(style):
            self.picture().savefig(file, format="svg", transparent=True, metadata={"Date": None})
        svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", file.getvalue())
        return re.sub(r"\s*\n\s*", " ", svg[svg.index("<svg") :])

    def state(self) -> dict[str, Any]:
        """All that the figure's module needs: its data and where its controls stand."""
        shared = {*ipywidgets.DOMWidget.class_trait_names(), "caption", "alt"}
        names = (name for name in self.trait_names(sync=True) if name[0] != "_")
        return {name: getattr(self, name) for name in sorted(names) if name not in shared}

    def to_html(self) -> str:
        """The figure without a kernel: its state, and the still picture with its alternative."""
        state = json.dumps(self.state(), separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        state = state.replace("<", r"\u003c")  # so that no text in it can end the script element
        picture = quote(self.still(), safe=" !$()*+,-./:;=?@[]^_`{|}~")
        return (
            f'<attention-figure kind="{self.kind}"><figure>'
            f'<img src="data:image/svg+xml,{picture}" alt="{html.escape(self.alt)}">'
            f"<figcaption>{html.escape(self.caption)}</figcaption></figure>"
            f'<script type="application/json">{state}</script>'
            "</attention-figure>"
        )

    def __repr__(self) -> str:
        long = {"data", *self.trait_names(is_typed=True)}
        controls = (f"{k}={v!r}" for k, v in self.state().items() if k not in long)
        return f"{type(self).__name__}({', '.join(controls)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        if not _is_shown_live():
            bundle, metadata = {}, {}
        return {**bundle, "text/html": self.to_html(), "text/plain": repr(self)}, metadata


def _is_shown_live() -> bool:
    """Whether a front end with widgets asks: it names the cell it runs, as nbclient does not."""
    if "google.colab" in str(type(get_ipython())):
        return True
    kernel = getattr(get_ipython(), "kernel", None)
    return kernel is not None and "cellId" in kernel.get_parent().get("metadata", {})


def shown(number: float, decimals: int = 2) -> str:
    """A number for people, as the modules write it: a true minus sign, and no "−0.00"."""
    text = f"{number:.{decimals}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def canvas_of(rows: int, columns: int, size: tuple[float, float]) -> tuple[Canvas, list[Axes]]:
    """A still picture of `rows` × `columns` axes, `size` in inches, apart from pyplot's."""
    canvas = Canvas(figsize=size, layout="constrained")
    return canvas, list(canvas.subplots(rows, columns, squeeze=False).ravel())


def rounded(tensor: Tensor, decimals: int = 6) -> Any:
    """Nested lists of numbers, rounded so that every machine stores the same."""

    def tidy(item: Any) -> Any:
        # Adding 0.0 turns −0.0, which differs in text alone, into 0.0.
        return [tidy(x) for x in item] if isinstance(item, list) else round(item, decimals) + 0.0

    return tidy(tensor.double().tolist())


def example(*shape: int, seed: int = 0) -> Tensor:
    """Float64 numbers on the CPU, normally distributed, the same on each call."""
    generator = torch.Generator().manual_seed(seed)
    return normal(*shape, generator=generator, dtype=torch.float64).cpu()


def numbers(
    owner: str,
    name: str,
    tensor: Any,
    limits: Mapping[str, int],
    sizes: dict[str, int] | None = None,
) -> Tensor:
    """Take a reader's tensor as float64, or say in one sentence why it cannot be drawn.

    `limits` gives the tensor's dimensions, each with the largest size that can be drawn; `sizes`
    holds what the tensors before it fixed.

    Raises:
        TypeError: for what is not a tensor of real numbers.
        ShapeError: for a wrong number of axes, and for sizes that are 0, too large or disagree.
        ValueError: for a tensor on a GPU, one that requires grad, and for NaN or infinity.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{owner}: {name} must be a tensor, but is {type(tensor).__name__}")
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"{owner}: {name} must hold real numbers, but holds {tensor.dtype}")
    if tensor.device.type != "cpu":
        raise ValueError(f"{owner}: {name} is on {tensor.device}; pass {name}.cpu()")
    if tensor.requires_grad:
        raise ValueError(f"{owner}: {name} requires grad; pass {name}.detach()")
    dims, shape = f"({', '.join(limits)})", tuple(tensor.shape)
    if tensor.dim() != len(limits):
        raise ShapeError(
            f"{owner}: {name} must have {len(limits)} axes {dims}, but has {tensor.dim()}: {shape}"
        )
    sizes = {} if sizes is None else sizes
    for (dim, limit), size in zip(limits.items(), shape, strict=True):
        where = f"{owner}: '{dim}' is {size} in {name} {dims} = {shape}"
        if size == 0:
            raise ShapeError(f"{where}: there is nothing to draw")
        if size > limit:
            raise ShapeError(f"{where}, more than the {limit} that can be drawn")
        if sizes.setdefault(dim, size) != size:
            raise ShapeError(f"{where}, but {sizes[dim]} in what came before")
    if not tensor.isfinite().all():
        raise ValueError(f"{owner}: {name} holds NaN or infinity, which cannot be drawn")
    return tensor.double()


def listed(value: Any) -> Any:
    """A sequence, tensor or array as a list; what is none stays, for its control to refuse."""
    if hasattr(value, "tolist"):
        return value.tolist()
    try:
        return list(value)
    except TypeError:
        return value


def labels(
    owner: str, name: str, given: Iterable[str] | None, number: int, stem: str, *, first: int = 0
) -> list[str]:
    """The reader's labels, one each, or `stem` with a number, counted from `first`.

    Raises:
        TypeError: for what is not a list of labels.
        ValueError: for another number of labels than there is to label.
    """
    if given is None:
        return [f"{stem}{i}" for i in range(first, first + number)]
    try:
        names = [str(item) for item in given]
    except TypeError:
        what = type(given).__name__
        raise TypeError(f"{owner}: {name} must be a list of labels, but is {what}") from None
    if len(names) != number:
        raise ValueError(f"{owner}: {len(names)} {name} for {number} positions")
    return names


def finite(owner: str, name: str, value: Any, *, above: float | None = None) -> float:
    """Take a number for a slider.

    Raises:
        traitlets.TraitError: for what is not a number, for NaN and infinity, and for a number not
            above `above`.
    """
    number = float(value) if isinstance(value, Real) else math.nan
    if not math.isfinite(number) or (above is not None and number <= above):
        where = "finite" if above is None else f"finite and above {above:g}"
        raise RefusedError(f"{owner}: {name} must be {where}, but is {value!r}")
    return number
