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
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
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
from attention_book.plots import style as style_of_pictures
from attention_book.shapes import DIMENSIONS, ShapeError

HERE = Path(__file__).parent

#: A reader may type numbers up to this one, either sign; so many stops a message names one by one.
LARGEST_TYPED, MOST_LISTED = 1000, 12


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


def lean(script: str) -> str:
    """A script without its indentation and the lines that are comments, which no reader is sent.

    A test makes sure that no text of a script spans lines.
    """
    without = re.sub(r"(?m)^[ \t]*(?://.*|/\*.*|\*.*)?\n", "", script)
    return re.sub(r"(?m)^[ \t]+", "", without)


def module_script(figure: type[Figure]) -> str:
    """The script with one figure's module and style sheet, which stands before the host's."""
    needs = json.dumps([lean(figure.module()), figure.own_style()], ensure_ascii=False)
    return f"(globalThis.attentionModules ??= {{}}).{figure.kind} = {needs};\n"


def host(words: Mapping[str, str] | None = None) -> str:
    """The script that brings figures to life where no kernel runs, with what they share: the style
    sheet, the kit, and their words in another language."""
    shared = {"css": style(), "kit": lean(kit()), "words": words or {}, "files": {}}
    needs = json.dumps(shared, ensure_ascii=False)
    return f"const attentionFigures = {needs};\n{text_of('host.js')}"


class RefusedError(traitlets.TraitError):
    """A value that a control cannot show. A notebook prints the sentence alone, not the frames of
    traitlets that lead to it.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"TraitError: {self}"]


class Count(NamedTuple):
    """Stops that are counted: whole numbers from `first` on. How many follows from the sizes of
    other controls and of entries of the data, which are numbers or lists: the product of those in
    `of`, divided by the product of those in `per`, and `more`. What is in `also` comes before."""

    of: tuple[str, ...]
    per: tuple[str, ...] = ()
    first: int = 0
    more: int = 0
    also: tuple[Any, ...] = ()

    def now(self, figure: Any) -> list[Any]:
        number = math.prod(map(figure.size_of, self.of))
        number //= math.prod(map(figure.size_of, self.per))
        return [*self.also, *range(self.first, self.first + number + self.more)]


#: What a control can take: values, values with the names of choices, the name of a list in the
#: figure's data, or a count.
Stops = Sequence[Any] | Mapping[Any, str] | str | Count


class Control(traitlets.TraitType[Any, Any]):
    """A value that a control of a figure moves; see `control`."""

    def __init__(self, default: Any, stops: Stops, label: str, *, is_pair: bool) -> None:
        super().__init__(default)
        self.stops, self.label, self.is_pair = stops, label, is_pair

    def declared(self) -> dict[str, Any]:
        """What the figure's module reads of it."""
        stops: Any = self.stops
        about: dict[str, Any] = {"label": self.label}
        if isinstance(stops, Mapping):
            about["names"] = [*stops.values()]
        if isinstance(stops, Count):
            stops = stops._asdict()
        elif not isinstance(stops, str):
            stops = [*stops]
        return {**about, "stops": stops, **({"isPair": True} if self.is_pair else {})}

    def now(self, figure: Any) -> list[Any]:
        """The stops that the control of a figure has now."""
        if isinstance(self.stops, Count):
            return self.stops.now(figure)
        return [*(figure.data[self.stops] if isinstance(self.stops, str) else self.stops)]

    def validate(self, obj: Any, value: Any) -> Any:
        # A default is not checked: there are no data yet to check it against.
        if not obj.has_data:
            return value
        if not self.is_pair:
            return self._stop(obj, value)
        pair = listed(value)
        if not isinstance(pair, list) or len(pair) != 2:
            raise RefusedError(
                f"{type(obj).__name__}: {self.name} must be 2 numbers, but is {value!r}"
            )
        return [self._stop(obj, number) for number in pair]

    def _stop(self, figure: Any, value: Any) -> Any:
        stops = self.now(figure)
        # True is 1 and 2.0 is 2 to Python; a slider of whole numbers takes neither.
        for stop in stops:
            if stop == value and (type(stop) is type(value) or isinstance(stop, float)):
                return stop
        first, last = stops[0], stops[-1]
        if type(first) is int and stops == [*range(first, first + len(stops))]:
            legal = f"from {first} to {last}"
        elif len(stops) > MOST_LISTED and isinstance(value, Real):
            near = sorted(stops, key=lambda stop: abs(stop - value))
            legal = f"a stop of its slider from {first} to {last}, such as {near[0]} or {near[1]}"
        else:
            legal = f"one of {stops}"
        raise RefusedError(
            f"{type(figure).__name__}: {self.name} must be {legal}, but is {value!r}"
        )


class Entries(traitlets.TraitType[Any, Any]):
    """Numbers in nested lists that the reader may change one by one, but not their shape. A new one
    lies between the ends of the list `within` in the figure's data, or from −1000 to 1000."""

    def __init__(self, within: str = "") -> None:
        super().__init__([])
        self.within = within
        self.tag(is_typed=True)

    def declared(self) -> dict[str, Any]:
        """What the figure's module reads of it."""
        return {"within": self.within or [-LARGEST_TYPED, LARGEST_TYPED]}

    def validate(self, obj: Any, value: Any) -> Any:
        name = str(self.name)
        try:
            tensor = torch.as_tensor(listed(value), dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError):
            tensor = torch.tensor(torch.nan)
        if name not in obj.opening:
            return rounded(tensor)
        given = torch.tensor(obj.opening[name], dtype=torch.float64)
        ends = obj.data[self.within] if self.within else [-LARGEST_TYPED, LARGEST_TYPED]
        low, high = ends[0], ends[-1]
        if (
            tensor.shape != given.shape
            or not (((low <= tensor) & (tensor <= high)) | (tensor == given)).all()
        ):
            text = repr(value)
            raise RefusedError(
                f"{type(obj).__name__}: {name} must hold finite numbers from {low} to {high} in "
                f"the shape {tuple(given.shape)}, but is "
                f"{text if len(text) <= 60 else text[:60] + ' …'}"
            )
        return rounded(tensor)


def control(default: Any, stops: Stops, label: str = "", *, is_pair: bool = False) -> Any:
    """A trait that a control moves: `d_k = control(64, "stops", N_("features"))`.

    `stops` are the values that it can take. A page reads them with the `label` from here, and a
    link takes them and no other. If it `is_pair`, the value is a list of two of them.

    Raises (when the trait is set):
        traitlets.TraitError: for what the control cannot show, in one sentence.
    """
    return Control(default, stops, label, is_pair=is_pair).tag(sync=True)


class Figure(anywidget.AnyWidget):
    """A figure to move. A subclass names its module, `<kind>.js`, draws its still picture and says
    in words what that shows."""

    kind: ClassVar[str]
    folder: ClassVar[Path] = HERE  # of the files below
    needs: ClassVar[tuple[str, ...]] = ()
    look: ClassVar[str] = ""  # a style sheet of its own
    phrases: ClassVar[Mapping[str, str]] = {}  # of the sentence on what the controls did, by name
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
        """The figure's ES module, after the files it needs and what it shares with Python."""
        return "".join(cls.parts().values()) + cls.own_module()

    @classmethod
    def parts(cls) -> dict[str, str]:
        """The files that the module needs, which others may need too, by name."""
        return {name: cls._text_of(name) for name in cls.needs}

    @classmethod
    def own_module(cls) -> str:
        """The figure's own file, after what it shares with Python."""
        declared = {"controls": cls.controls(), "phrases": cls.phrases}
        text = f"const declared = {json.dumps(declared, ensure_ascii=False)};\n"
        return text + cls._text_of(f"{cls.kind}.js")

    @classmethod
    def controls(cls) -> dict[str, dict[str, Any]]:
        """What is declared of each value that the reader moves, in the order of the class."""
        # A widget gets a class of its own, below that of the figure.
        own = [each for each in reversed(cls.__mro__) if issubclass(each, Figure)][1:]
        return {
            name: trait.declared() if isinstance(trait, Control | Entries) else {}
            for each in own
            for name, trait in vars(each).items()
            if isinstance(trait, traitlets.TraitType)
            if trait.metadata.get("sync") and name[0] != "_"
        }

    @classmethod
    def own_style(cls) -> str:
        """What the figure adds to the style sheet of all figures."""
        return cls._text_of(cls.look) if cls.look else ""

    @classmethod
    def _text_of(cls, name: str) -> str:
        return (cls.folder / name).read_text(encoding="utf-8")

    def __init__(self, *, data: dict[str, Any], caption: str, **controls: Any) -> None:
        self.opening: dict[str, Any] = {}
        super().__init__(data=data, caption=caption)
        self.has_data = True
        # One by one, because a widget checks what it is made with in no fixed order, and a control
        # may be checked against one before it.
        for name, value in controls.items():
            setattr(self, name, value)
        self.opening = {name: getattr(self, name) for name in controls}
        self._update_alt()
        # The words hold for the picture, so they change when it does.
        self.observe(self._update_alt, list(controls))

    def _update_alt(self, change: Any = None) -> None:
        self.alt = self.describe()

    def stops(self, name: str) -> list[Any]:
        """The values that a control can take now."""
        trait: Control = self.traits()[name]
        return trait.now(self)

    def size_of(self, name: str) -> int:
        """A number among the controls or in the data, or how many entries a list there has."""
        value = self.data[name] if name in self.data else getattr(self, name)
        return value if isinstance(value, int) else len(value)

    def phrase(self, name: str, *values: Any) -> str:
        """The one of that name in `phrases`, with the values in their places."""
        return self.phrases[name].format(*values)

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
            **style_of_pictures(),
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

    def to_html(self, *, alone: bool = False) -> str:
        """The figure without a kernel: its state, and the still picture with its alternative. If it
        is `alone`, it brings its script, and so moves on any page that runs scripts, or as a page
        of its own: `Path("figure.html").write_text(figure.to_html(alone=True), "utf-8")`."""
        state = json.dumps(self.state(), separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        state = state.replace("<", r"\u003c")  # so that no text in it can end the script element
        picture = quote(self.still(), safe=" !$()*+,-./:;=?@[]^_`{|}~")
        head, script = "", ""
        if alone:  # twice on a page, it comes to life once
            once = 'if (!customElements.get("attention-figure")) {\n' + host() + "}"
            code = (module_script(type(self)) + once).replace("</", r"<\/")
            head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            script = f"<script>{code}</script>"
        return (
            f'{head}<attention-figure kind="{self.kind}"><figure>'
            f'<img src="data:image/svg+xml,{picture}" alt="{html.escape(self.alt)}">'
            f"<figcaption>{html.escape(self.caption)}</figcaption></figure>"
            f'<script type="application/json">{state}</script>'
            f"</attention-figure>{script}"
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


def nearest(stops: Sequence[float], number: float) -> float:
    """The stop that is nearest to a number."""
    return min(stops, key=lambda stop: abs(stop - number))


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
