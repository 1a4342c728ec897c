"""The shape steps of any trace, with a slider for each size that is free to change."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure as Canvas

from attention_book.figures.base import Figure, RefusedError
from attention_book.figures.breaks import breaks
from attention_book.multihead import MultiHeadAttention
from attention_book.plots import draw_steps
from attention_book.shapes import DIMENSIONS, ShapeError, Shapes, Step, trace
from attention_book.shapes.relations import Relations, Sizes, value

#: Sizes that a slider reaches.
LARGEST = 65_536
#: Steps that a figure holds, and up to how many it takes in those of nested calls as well.
MOST_STEPS, FEW_STEPS = 250, 130

#: Bytes per number. A floating-point tensor is counted in the one that the reader chooses.
DTYPES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}

#: What `MultiHeadAttention` sets where its caller gives nothing; these sizes start linked.
DEFAULTS = {
    "query_size": "d_model",
    "key_size": "d_model",
    "value_size": "d_model",
    "d_k": "d_model/heads",
    "d_v": "d_model/heads",
}
#: What its constructor asks for: the second must divide the first.
DIVIDES = [("heads", "kv_heads")]


class ShapeWalk(Figure):
    """Change the sizes of a trace, and see every step follow.

    >>> with trace() as shapes:
    ...     attention(queries, keys, values)
    >>> ShapeWalk(shapes)

    The sliders are the dimensions that are free: sizes that follow from others (heads*d_k, or
    d_model/heads) follow, and so does what multi-head attention sets by default, until it is
    unlinked. The page sets a challenge that one slider can meet: to make another step outgrow the
    largest, or else all steps take ten times the memory.

    `sizes`, `dtype` and `nested` (whether the steps of nested calls are shown) follow the controls
    and may be set; so may `broken` and `own`: which size is broken, and how large.

    Raises:
        TypeError: for what is not a trace.
        ValueError: for a trace without a step, or with more than can be shown.
        ShapeError: for a size of 0, or above 65,536.
        traitlets.TraitError: for sizes that do not fit each other.
    """

    kind = "walk"
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
        super().__init__(
            data=data,
            caption="Every step of the computation, as a block whose sides have the colours of "
            "their dimensions. Move a size and see which steps grow with it; choose a step to see "
            "the code that makes it.",
            shown=walk["name"],
            sizes=start_of(walk),
            **controls,
        )

    @property
    def _walk(self) -> dict[str, Any]:
        return unpacked(self.data, self.shown)

    @traitlets.validate("shown")
    def _check_shown(self, proposal: Any) -> str:
        names = [walk["name"] for walk in self.data["walks"]]
        if proposal["value"] not in names:
            raise RefusedError(
                f"ShapeWalk: shown must be one of {names}, but is {proposal['value']!r}"
            )
        return proposal["value"]

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


# --- What a page needs of a trace -------------------------------------------------------------


def walk_of(shapes: Shapes, name: str | None = None) -> dict[str, Any]:
    """A trace as the figure needs it: its free dimensions, what links them, its steps.

    A step has a `number`, a `name` and `dims` as its table writes them; `axes` are the same as
    expressions in the free dimensions. `bytes` are those of one number, 0 for a floating-point
    tensor; each product lists the axes whose sizes multiply to its multiply-adds, none where they
    have no name; steps with one `tensor` are one, and those with one `memory` share it.
    """
    if not isinstance(shapes, Shapes):
        raise TypeError(f"ShapeWalk: shapes must be a trace, but is {type(shapes).__name__}")
    listed = shapes.steps
    if not listed:
        raise ValueError(
            "ShapeWalk: the trace has no step: call a function with a shape table inside the block"
        )
    if len(listed) > MOST_STEPS:
        raise ValueError(
            f"ShapeWalk: the trace has {len(listed)} steps, more than the {MOST_STEPS} that can be "
            "shown; trace(depth=1) lists the outermost only"
        )
    relations = Relations(shapes)
    steps: list[dict[str, Any]] = [
        {
            "number": step.number,
            "name": step.name,
            "dims": list(step.dims),
            "axes": [relations.expression(step.call, dim) for dim in step.dims],
            "bytes": 0 if step.dtype.is_floating_point else step.dtype.itemsize,
            "code": step.code,
            "function": step.function,
            "tensor": step.tensor,
            "products": [
                [relations.expression(*axis) for axis in product] for product in step.products
            ],
            "memory": step.memory,
        }
        for step in (shapes.every_step if len(shapes.every_step) <= FEW_STEPS else listed)
    ]
    _give_to_callers(shapes, relations, steps)
    used = {
        name
        for step in steps
        for axes in [step["axes"], *step["products"]]
        for axis in axes
        for name in names_in(axis)
    }
    free = {dim.name: dim for dim in relations.free.values() if dim.name in used}
    for dim in free.values():
        if not 1 <= dim.size <= LARGEST:
            raise ShapeError(
                f"ShapeWalk: '{dim.name}' is {dim.size} in the trace, "
                f"but must be at least 1 and at most {LARGEST:,}"
            )
    has_attention = any(call.function == MultiHeadAttention.__name__ for call in shapes.calls)
    walk = {
        "name": name
        or " and ".join(dict.fromkeys(c.function for c in shapes.calls if c.depth == 1)),
        "dims": [{"name": dim.name, "names": dim.names, "size": dim.size} for dim in free.values()],
        "links": _links(shapes, relations, free),
        "divides": [pair for pair in DIVIDES if has_attention and set(pair) <= free.keys()],
        "steps": steps,
    }
    return {**walk, "breaks": breaks(shapes, relations, walk)}


def _give_to_callers(shapes: Shapes, relations: Relations, steps: Sequence[dict[str, Any]]) -> None:
    """Count the products of steps that are left out with the step they were made for."""
    kept = {step["number"]: step for step in steps}
    for step in shapes.every_step:
        number = step.number
        while number and number not in kept:
            number = number.rpartition(".")[0]
        if number and number != step.number:
            kept[number]["products"] += [
                [relations.expression(*axis) for axis in product] for product in step.products
            ]


def shared(walks: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The data of a figure: its walks, each text in them stored once, and what sizes mean."""
    used = {
        name
        for walk in walks
        for step in walk["steps"]
        for dim in step["dims"]
        for name in names_in(dim)
    }
    texts: dict[str, int] = {}
    return {
        "walks": [_packed(walk, texts) for walk in walks],
        "texts": list(texts),
        "meanings": {name: DIMENSIONS[name].meaning for name in sorted(used & set(DIMENSIONS))},
        "bytes": DTYPES,
        "largest": LARGEST,
        **more,
    }


_PLAIN = ("number", "bytes", "tensor", "memory")
_TEXTS = ("name", "code", "function")
_LISTS = ("dims", "axes")


def _packed(walk: Mapping[str, Any], texts: dict[str, int]) -> dict[str, Any]:
    def at(text: str) -> int:
        return texts.setdefault(text, len(texts))

    steps = [
        [step[key] for key in _PLAIN]
        + [at(step[key]) for key in _TEXTS]
        + [at(",".join(step[key])) for key in _LISTS]
        + [at(",".join(product)) for product in step["products"]]
        for step in walk["steps"]
    ]
    broken = [
        {
            **{
                key: at(text) if key in ("label", "says", "hint") else text
                for key, text in entry.items()
            },
            "cases": [{**case, "text": at(case["text"])} for case in entry["cases"]],
        }
        for entry in walk["breaks"]
    ]
    return {**walk, "steps": steps, "breaks": broken}


def unpacked(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A walk of a figure's data as `walk_of` made it, but for the texts of its breaks."""
    walk = next(walk for walk in data["walks"] if walk["name"] == name)
    texts = data["texts"]
    steps = []
    for row in walk["steps"]:
        step = dict(zip(_PLAIN, row, strict=False))
        step |= {key: texts[at] for key, at in zip(_TEXTS, row[4:], strict=False)}
        lists = [texts[at].split(",") if texts[at] else [] for at in row[7:]]
        steps.append({**step, "dims": lists[0], "axes": lists[1], "products": lists[2:]})
    return {**walk, "steps": steps}


def names_in(expression: str) -> list[str]:
    """The names of dimensions in an expression."""
    return re.findall(r"[^\W\d]\w*", expression)


def _links(shapes: Shapes, relations: Relations, free: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The defaults of multi-head attention that the trace keeps; `fixed` where its caller has no
    way to set another size."""
    found: dict[str, dict[str, Any]] = {}
    sizes = {name: dim.size for name, dim in free.items()}
    for index, call in enumerate(shapes.calls):
        if call.function != MultiHeadAttention.__name__:
            continue
        for dim, default in DEFAULTS.items():
            name = relations.expression(index, dim)
            top, *under = default.split("/")
            to = "/".join(relations.expression(index, part) for part in (top, *under))
            is_free = name in free and name not in found and name not in names_in(to)
            if is_free and free.keys() >= set(names_in(to)) and sizes[name] == value(to, sizes):
                found[name] = {"name": name, "to": to, "fixed": call.depth > 1}
    return list(found.values())


def start_of(walk: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that the trace had."""
    return {dim["name"]: dim["size"] for dim in walk["dims"]}


def misfit(walk: Mapping[str, Any], sizes: Sizes, unlinked: Sequence[str] = ()) -> str:
    """What is wrong with sizes for a walk, in one sentence; empty where nothing is."""
    names = [dim["name"] for dim in walk["dims"]]
    if set(sizes) != set(names):
        return f"sizes must name {', '.join(names)}, but name {', '.join(sizes) or 'nothing'}"
    for name, size in sizes.items():
        if type(size) is not int or not 1 <= size <= LARGEST:
            return f"'{name}' must be a whole number from 1 to {LARGEST:,}, but is {size!r}"
    axes = {axis for step in walk["steps"] for axis in step["axes"]}
    for axis in sorted(axes):
        if "/" in axis and value(axis, sizes) == 0:
            top, under = axis.split("/", 1)
            return (
                f"{top} = {value(top, sizes)} is not a multiple of {under} = {value(under, sizes)}"
            )
    for whole, part in walk["divides"]:
        quotient = sizes[whole] / sizes[part]
        if quotient != int(quotient) or quotient < 2:
            return f"{part} = {sizes[part]} must divide {whole} = {sizes[whole]} and be smaller"
    for link in walk["links"]:
        name, to = link["name"], link["to"]
        is_linked = link["fixed"] or name not in unlinked
        if is_linked and sizes[name] != value(to, sizes):
            return (
                f"{name} = {sizes[name]} must be {to}{'' if link['fixed'] else ', or be unlinked'}"
            )
    return ""
