"""A note on an operation that failed: its operands, which axis meets which, and what mends it.

A mend is named only where it has been tried, on tensors without numbers, and where it is the only
one of those tried that fits.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import math
import re
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter, methodcaller
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from attention_book.shapes.errors import written
from attention_book.shapes.lines import attributes_of

_LINE, _STEPS = "In line ", "The steps up to it:"
#: How many steps an error shows, and how long the text of an operand may be.
_MOST_STEPS, _LONGEST = 12, 40


def explain(
    error: Exception, function: Any, args: Any, kwargs: Any, frame: FrameType, site: FrameType
) -> None:
    """Add a note to the error of an operation that `frame` calls on behalf of a line of `site`."""
    if not _has_note(error, _LINE):
        while frame is not site and frame.f_code.co_name != "forward" and frame.f_back:
            frame = frame.f_back  # to the module of a library, if it is one that failed
        # An explanation must not hide what it explains.
        note = _tried(lambda: _note(_Failed(function, args, kwargs, frame, site)))
        if note is not None:
            error.add_note(note)


def show_steps(error: Exception, steps: str) -> None:
    """Add the last steps before an error to it."""
    if not _has_note(error, _STEPS):
        lines = steps.splitlines()
        left_out = ["…"] if len(lines) > _MOST_STEPS else []
        error.add_note("\n".join([_STEPS, *left_out, *lines[-_MOST_STEPS:]]))


def _has_note(error: Exception, start: str) -> bool:
    return any(note.startswith(start) for note in getattr(error, "__notes__", ()))


class Operand(NamedTuple):
    """A tensor that an operation was given, and what the line has for it; empty if nothing."""

    text: str
    tensor: Tensor
    place: int  # among the operands

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def name(self) -> str:
        return self.text or "an operand"

    @property
    def base(self) -> str:
        """The text as what a method is called on."""
        is_plain = re.fullmatch(r"[\w.]+|[\w.]+\(.*\)|[\w.]+\[.*\]", self.text)
        return self.text if is_plain else f"({self.text})"

    def axis(self, axis: int) -> str:
        return f"axis {axis} of {self.name}, of size {self.shape[axis]}"

    # What may be done to it, so that it fits

    def changed(self, method: str, *arguments: int) -> Change:
        text = f"{self.base}.{method}({', '.join(map(str, arguments))})"
        return Change(text, self, methodcaller(method, *arguments))

    def swaps(self) -> list[Change]:
        """Two axes exchanged; the last two in the end."""
        axes = range(len(self.shape))
        pairs = [*itertools.combinations(axes, 2)]
        return [
            self.changed("transpose", *((-2, -1) if pair == pairs[-1] else pair)) for pair in pairs
        ]

    def with_axes(self, axes: int, last: int) -> Iterator[Change]:
        """Axes of size 1 put in, to have `axes`; `last` of the operand's own stay at the end."""
        own = len(self.shape)
        for places in itertools.combinations(range(axes), own) if own else ():
            # Axes in front come by themselves.
            key = tuple(slice(None) if axis in places else None for axis in range(places[0], axes))
            if None not in key or places[own - last :] != tuple(range(axes - last, axes)):
                continue
            if key.count(None) == 1:
                place = key.index(None)
                yield self.changed("unsqueeze", -1 if place == len(key) - 1 else place)
            else:
                text = ", ".join("None" if part is None else ":" for part in key)
                yield Change(f"{self.base}[{text}]", self, itemgetter(key))


class Change(NamedTuple):
    """A change of one operand: what is written for it, and the change itself."""

    text: str
    operand: Operand
    compute: Callable[[Tensor], Tensor]


#: A sentence on what does not fit, and the mends that do.
Reason = tuple[str, list[str]]


class _Failed:
    """An operation that failed, with names for its operands."""

    def __init__(
        self, function: Any, args: Any, kwargs: Any, frame: FrameType, site: FrameType
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.name = str(getattr(function, "__name__", function)).strip("_")
        self.frame, self.site = frame, site
        self.source = linecache.getline(site.f_code.co_filename, site.f_lineno, site.f_globals)
        self.expression = _expression_at(site)
        values = flat([*args, *kwargs.values()])
        texts = zip(values, self._texts(len(values)), strict=True)
        given = [(text, value) for value, text in texts if isinstance(value, Tensor)]
        self.operands = [
            Operand(text or self._name_of(value), value, index)
            for index, (text, value) in enumerate(given)
        ]

    def _texts(self, count: int) -> list[str]:
        """What the line writes for each argument; empty where that cannot be said."""
        nodes: list[ast.expr] = []
        match self.expression:
            case (
                ast.BinOp(left=left, right=right)
                | ast.Compare(left=left, comparators=[right])
                | ast.AugAssign(target=left, value=right)
                | ast.Subscript(value=left, slice=right)
            ):
                is_reversed = self.name.startswith("r") and self.name[1:] in _BROADCAST
                nodes = [right, left] if is_reversed else [left, right]
            case ast.Call(func=called, args=args, keywords=keywords):
                if getattr(called, "attr", getattr(called, "id", "")).strip("_") == self.name:
                    nodes = flat([*args, *(keyword.value for keyword in keywords)])
                    if isinstance(called, ast.Attribute) and not self._is_module(called.value):
                        nodes.insert(0, called.value)
        texts = [_short(each) for each in nodes] if len(nodes) <= count else []
        return [*texts, *[""] * (count - len(texts))]

    def _is_module(self, node: ast.expr) -> bool:
        """Whether a method is called on a module such as torch, not on a tensor."""
        while isinstance(node, ast.Attribute):
            node = node.value
        name = getattr(node, "id", "")
        value = self.site.f_locals.get(name, self.site.f_globals.get(name))
        return isinstance(value, ModuleType | type)

    def _name_of(self, tensor: Tensor) -> str:
        """What stands for a tensor where the operation is called, or else inside the library."""
        return (
            _name_in(self.site, tensor, "self.")
            or self._given_to_module(tensor)
            or (_name_in(self.frame, tensor, "") if self.frame is not self.site else "")
        )

    def _given_to_module(self, tensor: Tensor) -> str:
        """What the line writes for the argument of a module whose `forward` fails."""
        frame, call = self.frame, self.expression
        between = frame.f_back
        while between and between.f_code.co_name in ("_call_impl", "_wrapped_call_impl"):
            between = between.f_back
        names = frame.f_code.co_varnames[1:2]
        is_argument = names and frame.f_locals.get(names[0]) is tensor
        if is_argument and between is self.site and isinstance(call, ast.Call) and call.args:
            return _short(call.args[0])
        return ""

    def fits(self, change: Change | None = None, function: Any = None) -> Any:
        """The result with one operand changed, or of another function, without numbers; None
        where that fails."""
        indices = itertools.count()

        def plain(tensor: Tensor) -> Tensor:
            bare = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
            )
            index = next(indices)
            return change.compute(bare) if change and index == change.operand.place else bare

        def compute() -> Any:
            args, kwargs = tree_map_only(Tensor, plain, (self.args, self.kwargs))
            return (function or self.function)(*args, **kwargs)

        return _tried(compute)

    def fitting(self, changes: Iterable[Change]) -> list[str]:
        """The changes that fit, as what is written, with the shape that it has."""
        found: list[str] = []
        names = [each.text for each in self.operands]
        for change in changes:
            name, shape, index = change.operand.text, change.operand.shape, change.operand.place
            if name and self.fits(change) is not None:
                changed = change.compute(torch.empty(shape, device="meta"))
                is_last = names.count(name) > 1 and index == len(names) - 1
                side = " as the last operand" if is_last else ""
                found.append(f"{change.text}, of shape {written(changed.shape)},{side}")
        return found


def _name_in(frame: FrameType, tensor: Tensor, prefix: str) -> str:
    """The variable of a frame that is a tensor, or the attribute of its `self`."""
    own = attributes_of(frame.f_locals.get("self"))
    named = [*frame.f_locals.items(), *((prefix + name, value) for name, value in own.items())]
    return _first(name for name, value in named if value is tensor)


def _note(failed: _Failed) -> str:
    code, line = failed.site.f_code, failed.site.f_lineno
    source = failed.source.strip()
    where = "" if code.co_name == "<module>" else f" of {code.co_name}"
    lines = [f"{_LINE}{line}{where}{f', `{source}`' if source else ''}:"]
    # Nothing of other arguments than were thought of.
    sentence, mends = _tried(lambda: _reason(failed)) or ("", [])
    shows_dtype = not sentence and len({each.tensor.dtype for each in failed.operands}) > 1
    named = [each for each in failed.operands if each.text]
    # Those without a name lie inside a library; alone, they are better than nothing.
    for operand in named if named and failed.frame is not failed.site else failed.operands:
        dtype = f" {operand.tensor.dtype}" if shows_dtype else ""
        lines.append(f"    {operand.name} {written(operand.shape)}{dtype}")
    if sentence:
        lines.append(f"    {sentence}")
    if len(mends) == 1:
        lines.append(f"    {mends[0]} would fit.")
    elif mends:
        lines.append(
            "    More than one change would fit, and the sizes do not tell which one is meant."
        )
    return "\n".join(lines)


_BROADCAST = {
    *("add", "sub", "mul", "div", "truediv", "floordiv", "pow", "where", "masked_fill"),
    *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "maximum", "minimum"),
    *("true_divide", "logical_and", "logical_or", "logical_xor", "multiply", "divide", "subtract"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "iand", "ior", "ixor"),
}


def _reason(failed: _Failed) -> Reason:
    """A sentence on what does not fit, and the mends that have been tried and do."""
    explained = _REASONS.get(failed.name) or _REASONS.get(failed.name.removeprefix("r"))
    if explained is None or (explained is not _index and failed.fits() is not None):
        return "", []  # it did not fail because of its shapes
    return explained(failed)


# Which axes meet


def _first(sentences: Iterable[str]) -> str:
    return next(filter(None, sentences), "")


def _meeting(a: Operand, axis: int, b: Operand, other: int, needs: str) -> str:
    """What is said of two axes that meet and differ; nothing of two that are equal."""
    if a.shape[axis] == b.shape[other]:
        return ""
    return f"A{a.axis(axis)[1:]}, meets {b.axis(other)}: {needs}."


def _conflict(a: Operand, b: Operand, after: int = 0) -> str:
    """What is said of shapes that are compared from their ends, `after` axes left out."""
    needs = "axes are compared from the last, and must be equal or of size 1"
    axes = range(-1 - after, -1 - min(len(a.shape), len(b.shape)), -1)
    return _first(
        _meeting(a, axis, b, axis, needs)
        for axis in axes
        if 1 not in (a.shape[axis], b.shape[axis])
    )


def _matmul(failed: _Failed) -> Reason:
    left, right = failed.operands
    axes = {"mm": 2, "bmm": 3}.get(failed.name)
    for each in failed.operands if axes else ():
        if len(each.shape) != axes:
            has = f"but {each.name} has {len(each.shape)}"
            is_mended = left.text and right.text and failed.fits(function=torch.matmul) is not None
            mend = [f"torch.matmul({left.text}, {right.text})"] if is_mended else []
            return f"{failed.name} multiplies tensors of {axes} axes, {has}.", mend
    if not left.shape or not right.shape:
        return "A product of matrices needs at least one axis on each side.", []
    across, needs = max(-2, -len(right.shape)), "a product of matrices needs the two to be equal"
    sentence = _meeting(left, -1, right, across, needs) or _conflict(left, right, after=2)
    turned = failed.fitting([*right.swaps()[-1:], *left.swaps()[-1:]])
    if _looks_like(left, "k") and _looks_like(right, "q"):
        turned = []  # what fits has a row for each key
    if _WEIGHTS.search(left.text) or _looks_like(right, "v"):
        turned = []  # what fits sums over queries, or over the features of values
    if (_looks_like(left, "q") and _looks_like(right, "k")) or _SCORES.match(failed.source):
        turned = turned[:1]  # each row of one with each row of the other
    if axes is None:
        for each, other in ((right, left), (left, right)):
            turned += failed.fitting(each.with_axes(len(other.shape), 2))
    return sentence, turned


#: Names of what is multiplied with values, and a line that computes scores.
_WEIGHTS = re.compile(r"weight|score|att|prob|alpha|^w$", re.IGNORECASE)
_SCORES = re.compile(r"\s*\w*scores?\w*\s*=[^=]")


def _looks_like(operand: Operand, letter: str) -> bool:
    """Whether a name is that of queries, keys or values, by its first letter."""
    return operand.text.rpartition(".")[2].lower().startswith(letter)


def _linear(failed: _Failed) -> Reason:
    x, weight = failed.operands[:2]
    size, features = weight.shape
    if x.shape[-1] == features:
        return "", []
    is_own = failed.frame is failed.site
    layer = weight.name if is_own else f"a layer from {features} to {size} features"
    changes = weight.swaps() if is_own else []
    if len(x.shape) <= 3:
        changes += x.swaps()[-1:]
    # Which axes are joined can be told where they differ from the others.
    if 1 not in x.shape[1:] and (len(x.shape) < 4 or x.shape[1] != x.shape[2]):
        for start in range(1, len(x.shape) - 1):
            place = start if start == 1 else start - len(x.shape)
            changes.append(x.changed("flatten", place))
    sentence = f"A{x.axis(-1)[1:]}, meets {layer}, which takes {features}."
    return sentence, failed.fitting(changes)


def _einsum(failed: _Failed) -> Reason:
    equation = failed.args[0] if failed.args else failed.kwargs.get("equation")
    if not isinstance(equation, str) or "." in equation:
        return "", []
    terms, operands = equation.replace(" ", "").partition("->")[0].split(","), failed.operands
    if len(terms) != len(operands):
        return f"'{equation}' names {len(terms)} operands, but {len(operands)} are given.", []
    sizes: dict[str, tuple[int, str]] = {}
    for term, operand in zip(terms, operands, strict=True):
        if len(term) != len(operand.shape):
            axes = len(operand.shape)
            return f"'{term}' names {len(term)} axes, but {operand.name} has {axes}.", []
        for letter, size in zip(term, operand.shape, strict=True):
            known, where = sizes.setdefault(letter, (size, operand.name))
            if known != size:
                sentence = f"'{letter}' is {known} in {where}, but {size} in {operand.name}."
                return sentence, failed.fitting(swap for each in operands for swap in each.swaps())
    return "", []


def _view(failed: _Failed) -> Reason:
    x = failed.operands[0]
    sizes = flat([failed.kwargs.get("shape", failed.kwargs.get("size", failed.args[1:]))])
    total, known = math.prod(x.shape), math.prod(size for size in sizes if size != -1)
    if total == known or (-1 in sizes and total % known == 0):
        mend = f"{x.base}.reshape({', '.join(map(str, sizes))})"
        return (
            f"The axes of {x.name} lie in memory in another order, so no view of it has the shape "
            f"{written(sizes)}.",
            [mend] if failed.name == "view" and x.text else [],
        )
    if -1 in sizes:
        return f"The {total} numbers of {x.name} are not a multiple of {known}.", []
    sentence = f"{x.name} has {total} numbers, and the shape {written(sizes)} has {known}."
    # The last axis is split, and one size before it is not that of the tensor.
    before = len(x.shape) - 1
    wrong = [i for i in range(before) if sizes[i : i + 1] != [x.shape[i]]]
    if len(wrong) != 1 or math.prod(sizes[before:]) != x.shape[-1] or not x.text:
        return sentence, []
    sizes[wrong[0]] = x.shape[wrong[0]]
    return sentence, [f"{x.base}.{failed.name}({', '.join(map(str, sizes))})"]


def _cat(failed: _Failed) -> Reason:
    first, *rest = operands = failed.operands
    axes, most = len(first.shape), max(len(each.shape) for each in operands)
    for other in rest:
        if len(other.shape) != axes:
            changes = (
                each.changed("unsqueeze", axis)
                for each in operands
                if len(each.shape) == most - 1
                for axis in range(most)
            )
            sentence = f"{first.name} has {axes} axes, {other.name} {len(other.shape)}"
            return f"{sentence}: they must have as many.", failed.fitting(changes)
    dim = failed.kwargs.get("dim", failed.args[1] if len(failed.args) > 1 else 0)
    joined = None if failed.name == "stack" else dim % axes
    but = "" if joined is None else f" but axis {joined}, along which they are joined,"
    unequal = [axis for axis in range(axes) if len({each.shape[axis] for each in operands}) > 1]
    sentence = _first(
        _meeting(first, axis, other, axis, f"all axes{but} must be equal")
        for axis in unequal
        if axis != joined
        for other in rest
    )
    names = [each.text for each in operands]
    is_mended = joined is not None and len(unequal) == 1 and all(names)
    return sentence, [f"torch.cat([{', '.join(names)}], dim={unequal[0]})"] if is_mended else []


def _fused(failed: _Failed) -> Reason:
    queries, keys, values = failed.operands[:3]
    return (
        _meeting(queries, -1, keys, -1, "they must be equal")
        or _meeting(keys, -2, values, -2, "each key has one value")
    ), []


def _index(failed: _Failed) -> Reason:
    of, mask = failed.operands[:2]
    if mask.tensor.dtype != torch.bool:
        return "", []
    axes = range(min(len(of.shape), len(mask.shape)))
    needs = "a boolean index is compared from the first axis"
    return _first(_meeting(of, axis, mask, axis, needs) for axis in axes), []


def _broadcast(failed: _Failed) -> Reason:
    operands = failed.operands
    sentence = _first(itertools.starmap(_conflict, itertools.combinations(operands, 2)))
    widest = max(operands, key=lambda each: len(each.shape)).shape
    changes: list[Change] = []
    for each in operands:
        is_mask = each.tensor.dtype == torch.bool or "mask" in each.text.lower()
        # A mask that does not reach the last axis hides queries, not keys.
        if not is_mask or each.shape[-1:] == widest[-1:]:
            changes += each.with_axes(len(widest), int(is_mask))
    return sentence, failed.fitting(changes) if sentence else []


_REASONS: dict[str, Callable[[_Failed], Reason]] = {
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(("getitem", "setitem"), _index),
    **dict.fromkeys(("matmul", "mm", "bmm"), _matmul),
    **dict.fromkeys(("view", "reshape"), _view),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), _cat),
    "linear": _linear,
    "einsum": _einsum,
    "scaled_dot_product_attention": _fused,
}


# The line that failed


def _tried(compute: Callable[[], Any]) -> Any:
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return compute()
    except Exception:  # whatever it is
        return None


def flat(values: Iterable[Any]) -> list[Any]:
    """What is in lists and tuples, those of a syntax tree too."""
    found = []
    for value in values:
        parts = value.elts if isinstance(value, ast.List | ast.Tuple) else value
        found += flat(parts) if isinstance(parts, list | tuple) else [value]
    return found


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def _expression_at(frame: FrameType) -> ast.AST | None:
    """The expression, or augmented assignment, that a frame is computing; None without a source."""
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    place: Any = inspect.getframeinfo(frame, context=0).positions
    for node in ast.walk(_tried(lambda: ast.parse(source)) or ast.Module([], [])):
        if isinstance(node, ast.expr | ast.AugAssign):
            of_node = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if of_node == tuple(place):
                return node
    return None
