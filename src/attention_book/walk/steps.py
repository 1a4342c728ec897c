"""What a page needs of a trace: its free sizes, what links them, and its steps."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from attention_book.multihead import MultiHeadAttention
from attention_book.positions import rotary_embedding
from attention_book.shapes import DIMENSIONS, ShapeError, Shapes, Step
from attention_book.shapes.steps import names_in
from attention_book.walk.breaks import breaks
from attention_book.walk.costs import StepCost, step_costs
from attention_book.walk.relations import Relations, Sizes, value

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
#: Its steps where the second is smaller; where the two are equal, it has none of them.
SHARED = {"shared_keys", "shared_values"}


def walk_of(shapes: Shapes, name: str | None = None) -> dict[str, Any]:
    """A trace as the figure needs it: its free dimensions, what links them, its steps.

    A step has a `number`, a `name` and `dims` as its table writes them; `axes` are the same as
    expressions in the free dimensions. `bytes` are those of one number, 0 for a floating-point
    tensor; each product lists the axes whose sizes multiply to its multiply-adds, none where they
    have no name; steps with one `tensor` are one, those with one `memory` share it, and `sources`
    are the tensors that a step is made of. Where steps of calls within are left out, `cut` is
    their number; `shared` of them share heads, present where a pair of `divides` may be equal
    because no step that is kept does. The expressions in `even`, where there are any, must be even.
    Where code without a shape table has an axis without a name, nothing says how it follows from
    the others: then every axis is a number, and no dimension is free.
    """
    if not isinstance(shapes, Shapes):
        raise TypeError(f"ShapeWalk: shapes must be a trace, but is {type(shapes).__name__}")
    listed = shapes.steps
    if not listed:
        raise ValueError(
            "ShapeWalk: the trace has no step: call a function inside the block, or bind a tensor "
            "to a name"
        )
    if len(listed) > MOST_STEPS:
        raise ValueError(
            f"ShapeWalk: the trace has {len(listed)} steps, more than the {MOST_STEPS} that can be "
            "shown; trace(depth=1) lists the outermost only"
        )
    relations = Relations(shapes)
    costs = step_costs(shapes)
    steps: list[dict[str, Any]] = []
    kept = shapes.every_step if len(shapes.every_step) <= FEW_STEPS else listed
    sources = _sources(costs, {costs[step.number].tensor for step in kept})
    for step in kept:
        cost = costs[step.number]
        steps.append(
            {
                "number": step.number,
                "name": step.name,
                "dims": list(step.dims),
                "axes": [relations.expression(step.call, dim) for dim in step.dims],
                "bytes": 0 if cost.dtype.is_floating_point else cost.dtype.itemsize,
                "code": cost.code,
                "function": step.function,
                "tensor": cost.tensor,
                "memory": cost.memory,
                "sources": sources[cost.tensor],
                "products": _products(relations, cost),
            }
        )
    _give_to_callers(shapes, relations, costs, steps)
    if any(_has_nameless_axis(shapes, each) for each in kept):
        at = {dim.name: dim.size for dim in relations.free.values()}
        for held in steps:
            for axes in [held["axes"], *held["products"]]:
                axes[:] = [str(value(axis, at)) for axis in axes]
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
    walk: dict[str, Any] = {
        "name": name
        or " and ".join(dict.fromkeys(c.function for c in shapes.calls if c.depth == 1))
        or "block",
        "dims": [{"name": dim.name, "names": dim.names, "size": dim.size} for dim in free.values()],
        "links": _links(shapes, relations, free),
        "divides": [pair for pair in DIVIDES if has_attention and set(pair) <= free.keys()],
        "steps": steps,
    }
    if len(kept) < len(shapes.every_step):
        walk["cut"] = len(shapes.every_step) - len(kept)
    even = _even(shapes, relations, free)
    if even:
        walk["even"] = even
    if walk["divides"] and SHARED.isdisjoint(step.name for step in kept):
        walk["shared"] = sum(step.name in SHARED for step in shapes.every_step)
    return {**walk, "breaks": breaks(shapes, relations, walk)}


def _has_nameless_axis(shapes: Shapes, step: Step) -> bool:
    has_table = shapes.calls[step.call].table is not None
    return not has_table and any(dim.isdigit() and int(dim) > 1 for dim in step.dims)


def _sources(costs: Mapping[str, StepCost], kept: set[int]) -> dict[int, list[int]]:
    """The nearest of the `kept` tensors that each of them is made of."""
    made_of = {cost.tensor: cost.sources for cost in costs.values()}

    @functools.cache
    def nearest(tensor: int) -> frozenset[int]:
        found = (frozenset({s}) if s in kept else nearest(s) for s in made_of[tensor])
        return frozenset().union(*found)

    return {tensor: sorted(nearest(tensor)) for tensor in kept}


def _products(relations: Relations, cost: StepCost) -> list[list[str]]:
    return [[relations.expression(*axis) for axis in product] for product in cost.products]


def _give_to_callers(
    shapes: Shapes,
    relations: Relations,
    costs: Mapping[str, StepCost],
    steps: Sequence[dict[str, Any]],
) -> None:
    """Count the products of steps that are left out with the step they were made for."""
    kept = {step["number"]: step for step in steps}
    for step in shapes.every_step:
        number = step.number
        while number and number not in kept:
            number = number.rpartition(".")[0]
        if number and number != step.number:
            kept[number]["products"] += _products(relations, costs[step.number])


def shared(walks: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The data of a figure: its walks, and what their sizes mean."""
    used = {
        name
        for walk in walks
        for step in walk["steps"]
        for dim in step["dims"]
        for name in names_in(dim)
    }
    return {
        "walks": list(walks),
        "meanings": {name: DIMENSIONS[name].meaning for name in sorted(used & set(DIMENSIONS))},
        "bytes": DTYPES,
        "largest": LARGEST,
        **more,
    }


def walk_named(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A walk of a figure's data."""
    return next(walk for walk in data["walks"] if walk["name"] == name)


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
    for size in _even(shapes, relations, free):
        if "half" in free:
            found["half"] = {"name": "half", "to": f"{size}/2", "fixed": True}
    return list(found.values())


def _even(shapes: Shapes, relations: Relations, free: Mapping[str, Any]) -> list[str]:
    """The sizes whose features are rotated in pairs."""
    rotated = [i for i, c in enumerate(shapes.calls) if c.function == rotary_embedding.__name__]
    sizes = {relations.expression(index, "size") for index in rotated}
    return sorted(size for size in sizes if set(names_in(size)) <= free.keys())


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
        if quotient != int(quotient) or (quotient == 1 and "shared" not in walk):
            smaller = "" if "shared" in walk else " and be smaller"
            return f"{part} = {sizes[part]} must divide {whole} = {sizes[whole]}{smaller}"
    for axis in walk.get("even", ()):
        if value(axis, sizes) % 2:
            return f"{axis} = {value(axis, sizes)} is odd, but must be even"
    for link in walk["links"]:
        name, to = link["name"], link["to"]
        is_linked = link["fixed"] or name not in unlinked
        if is_linked and sizes[name] != value(to, sizes):
            return (
                f"{name} = {sizes[name]} must be {to}{'' if link['fixed'] else ', or be unlinked'}"
            )
    return ""
