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
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter, methodcaller
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from attention_book.shapes.errors import written
from attention_book.shapes.lines import attributes_of

_LINE, _STEPS = "In line ", "The steps up to it:"
#: What stands between a line and the `forward` of the module that it calls.
_CALLS = ("Module._wrapped_call_impl", "Module._call_impl")
#: How many steps an error shows, and how long the text of an operand may be.
_MOST_STEPS, _LONGEST = 12, 40


def explain(error: Exception, frame: FrameType, site: FrameType, *operation: Any) -> None:
    """Add a note to an error that comes of a line of `site`: of an operation, a function and what
    `frame` gives it, or else of the module of a library whose `forward` is `frame`."""
    if not _has_note(error, _LINE):
        while frame is not site and frame.f_code.co_name != "forward" and frame.f_back:
            frame = frame.f_back  # to the module of a library, if it is one that failed
        # An explanation must not hide what it explains.
        note = _tried(lambda: _note(_Failed(frame, site, *operation)))
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
        written_out = ast.parse(self.text or "it", mode="eval").body
        is_plain = isinstance(written_out, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        return self.text if is_plain else f"({self.text})"

    def axis(self, axis: int) -> str:
        return f"axis {axis} of {self.name}, of size {self.shape[axis]}"

    # What may be done to it, so that it fits

    def changed(self, method: str, *arguments: int) -> Change:
        text = f"{self.base}.{method}{written(arguments)}"
        return Change(text, self, methodcaller(method, *arguments))

    def swaps(self) -> list[Change]:
        """Two axes exchanged; the last two in the end."""
        pairs = [*itertools.combinations(range(len(self.shape)), 2)][:-1]
        return [self.changed("transpose", *pair) for pair in (*pairs, (-2, -1))]

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
    """An operation, or a module of a library, that failed, with names for its operands."""

    def __init__(self, frame: FrameType, site: FrameType, *operation: Any) -> None:
        function, args, kwargs = operation or (None, (), {})
        self.frame, self.site, self.is_own = frame, site, frame is site  # called by the line itself
        self.name = str(getattr(function, "__name__", function)).strip("_")
        self.source = linecache.getline(site.f_code.co_filename, site.f_lineno, site.f_globals)
        self.expression = _expression_at(site)
        like = torch.overrides.get_testing_overrides().get(function)
        order = inspect.signature(like).parameters if like else ()
        self.function, self.args, self.kwargs = function, args, _sorted(kwargs, order)
        given = self._given(args, self.kwargs, frame) if self.is_own else self._given_to_module()
        if not self.is_own and (self.name in _REASONS or not given):
            texts = {id(value): text for text, value in given}
            values = flat([*args, *self.kwargs.values()])
            given = [(texts.get(id(value), ""), value) for value in values]
        elif not self.is_own:
            self.function = None  # the module tells more
        tensors = [each for each in given if isinstance(each[1], Tensor)]
        self.operands = [
            Operand(text or self._name_of(value), value, place)
            for place, (text, value) in enumerate(tensors)
        ]

    def _given_to_module(self) -> list[tuple[str, Any]]:
        """What is given to the module, whose `forward` may have bound its arguments anew."""
        between, args, kwargs = self.frame.f_back, (), dict[str, Any]()
        while between and between.f_code.co_qualname.startswith(_CALLS):
            args, kwargs = between.f_locals["args"], between.f_locals["kwargs"]
            between = between.f_back
        return self._given(args, _sorted(kwargs, self.frame.f_code.co_varnames), between)

    def _given(self, args: Any, kwargs: Any, caller: Any) -> list[tuple[str, Any]]:
        """The parts of all arguments, with what the line writes for them, if it is the caller."""
        self.nodes = self._nodes(len(args)) if caller is self.site else {}
        values = (*enumerate(args), *kwargs.items())
        return [part for key, value in values for part in _parts(self.nodes.get(key), value)]

    def _nodes(self, count: int) -> dict[Any, ast.expr]:
        """What the line writes for each argument: for `count` by their places, others by name."""
        match self.expression:
            case (
                ast.BinOp(left=left, right=right)
                | ast.Compare(left=left, comparators=[right])
                | ast.AugAssign(target=left, value=right)
                | ast.Subscript(value=left, slice=right)
            ):
                is_reversed = self.name.startswith("r") and self.name[1:] in _BROADCAST
                return {0: right, 1: left} if is_reversed else {0: left, 1: right}
            case ast.Call(func=called, args=args, keywords=keywords):
                name = getattr(called, "attr", getattr(called, "id", ""))
                if self.is_own and name.strip("_") != self.name:
                    return {}
                if isinstance(called, ast.Attribute) and self.function == getattr(Tensor, name, 0):
                    args = [called.value, *args]
                if len(args) != count or any(isinstance(each, ast.Starred) for each in args):
                    args = []
                return {**dict(enumerate(args)), **{each.arg: each.value for each in keywords}}
        return {}

    def _name_of(self, tensor: Tensor) -> str:
        """What stands for a tensor where the operation is called, or else inside the library."""
        inside = "" if self.is_own else _name_in(self.frame, tensor, "")
        return _name_in(self.site, tensor, "self.") or inside

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
        """The changes that fit, as what is written, with the shape that it has; of some with one
        result the first."""
        found: dict[tuple[Any, ...], str] = {}
        names = [each.text for each in self.operands]
        for change in changes:
            name, shape, index = change.operand.text, change.operand.shape, change.operand.place
            if name and self.fits(change) is not None:
                changed = change.compute(torch.empty(shape, device="meta"))
                result = index, changed.shape, changed.squeeze().stride()
                is_last = names.count(name) > 1 and index == len(names) - 1
                side = " as the last operand" if is_last else ""
                found.setdefault(result, f"{change.text}, of shape {written(changed.shape)},{side}")
        return [*found.values()]


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
    shown = failed.operands if failed.is_own or not named else named
    lines += dict.fromkeys(
        f"    {each.name} {written(each.shape)}{f' {each.tensor.dtype}' if shows_dtype else ''}"
        for each in shown
    )
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
    if failed.function is None:
        return _widths(failed), []
    return _REASONS[failed.name](failed)


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
            mend = [f"{left.base} @ {right.base}"] if is_mended else []
            return f"{failed.name} multiplies tensors of {axes} axes, {has}.", mend
    across, needs = max(-2, -len(right.shape)), "a product of matrices needs the two to be equal"
    sentence = _meeting(left, -1, right, across, needs) or _conflict(left, right, after=2)
    turns = right.swaps()[-1:]
    if right.text.endswith(".T") and len(right.shape) > 2:  # which turns them all round
        back = range(len(right.shape))[::-1]
        turns = [Change(f"{right.text[:-2]}.mT", right, lambda given: given.permute(*back).mT)]
    turned = failed.fitting(turns)
    if _looks_like(left, "k") and _looks_like(right, "q"):
        turned = []  # what fits has a row for each key
    if _is_weights(left) or _looks_like(right, "v"):
        turned = []  # what fits sums over the features of values
    is_score = (_looks_like(left, "q") and _looks_like(right, "k")) or _SCORES.match(failed.source)
    if turned and not is_score:
        # That sums over what has a row each on the left: no mend, but it makes the other doubtful.
        turned += failed.fitting(left.swaps()[-1:])
    for each, other in ((right, left), (left, right)):
        turned += failed.fitting(each.with_axes(len(other.shape), 2))
    return sentence, turned if sentence else []


#: Names of what is multiplied with values, and a line that computes scores.
_WEIGHTS = re.compile(r"weight|score|att|prob|alpha|^w$", re.IGNORECASE)
_SCORES = re.compile(r"\s*\w*scores?\w*\s*=[^=]")


def _is_weights(operand: Operand) -> bool:
    """Whether a tensor is called so, or each of its rows sums to 1."""
    is_sum = _tried(lambda: bool((operand.tensor.sum(-1) - 1).abs().max() < 0.01))
    return bool(_WEIGHTS.search(operand.text) or is_sum)


def _looks_like(operand: Operand, letter: str) -> bool:
    """Whether a name is that of queries, keys or values, by its first letter."""
    return operand.text.rpartition(".")[2].lower().startswith(letter)


def _linear(failed: _Failed) -> Reason:
    x, weight = failed.operands[:2]
    size, features = weight.shape
    if x.shape[-1] == features:
        return "", []
    layer = weight.name if failed.is_own else f"a layer from {features} to {size} features"
    changes = weight.swaps() if failed.is_own else []
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
                if any(map(_is_weights, operands)):
                    return sentence, []  # what fits may sum over queries
                return sentence, failed.fitting(swap for each in operands for swap in each.swaps())
    return "", []


def _view(failed: _Failed) -> Reason:
    x = failed.operands[0]
    sizes = flat([failed.kwargs.get("shape", failed.kwargs.get("size", failed.args[1:]))])
    total, known = math.prod(x.shape), math.prod(size for size in sizes if size != -1)
    if total == known or (-1 in sizes and total % known == 0):
        whole = [total // known if size == -1 else size for size in sizes]
        sentence = f"The axes of {x.name} lie in memory in another order, so no view of it has the "
        sentence += f"shape {written(sizes)}."
        bases, large = [x.base], [size for size in x.shape if size > 1]
        if _mixes(x.shape, whole):
            sentence = f"{sentence[:-1]}, and a reshape would mix them."
            turns = (x.changed("transpose", axis, axis + 1) for axis in range(len(x.shape) - 1))
            bases = [each.text for each in turns if not _mixes(each.compute(x.tensor).shape, whole)]
        # Of two axes of one size, it cannot be told which of them is meant.
        is_clear = x.text and len({*large}) == len(large)
        return sentence, [f"{each}.reshape{written(sizes)}" for each in bases if is_clear]
    if -1 in sizes:
        return f"The {total} numbers of {x.name} are not a multiple of {known}.", []
    sentence = f"{x.name} has {total} numbers, and the shape {written(sizes)} has {known}."
    # The last axis is split, and one size before it is not that of the tensor.
    before = len(x.shape) - 1
    wrong = [i for i in range(before) if sizes[i : i + 1] != [x.shape[i]]]
    if len(wrong) != 1 or math.prod(sizes[before:]) != x.shape[-1] or not x.text:
        return sentence, []
    sizes[wrong[0]] = x.shape[wrong[0]]
    return sentence, [f"{x.base}.{failed.name}{written(sizes)}"]


def _mixes(shape: Iterable[int], sizes: Iterable[int]) -> bool:
    """Whether a reshape does more to some axes than to join them, or to split one."""
    own, new = ({*itertools.accumulate(each, operator.mul, initial=1)} for each in (shape, sizes))
    return any(
        any(start < cut < end for cut in own - new) and any(start < cut < end for cut in new - own)
        for start, end in itertools.pairwise(sorted(own & new))
    )


def _axes(failed: _Failed) -> Reason:
    x, named = failed.operands[0], [v for name, v in failed.kwargs.items() if "dim" in name]
    axes = [axis for axis in flat([*failed.args[1:], *named]) if type(axis) is int]
    if failed.name == "permute" and len(axes) != len(x.shape):
        return f"permute takes each axis of {x.name} once: {len(x.shape)}, not {len(axes)}.", []
    return _no_axis(x, axes, is_new=failed.name == "unsqueeze"), []


def _no_axis(x: Operand, axes: list[int], is_new: bool = False) -> str:
    most, what = max(len(x.shape) + is_new, 1), "A new axis" if is_new else "An axis"
    wrong = next((axis for axis in axes if not -most <= axis < most), None)
    known = written(range(-most, 0) if wrong and wrong < 0 else range(most))
    return "" if wrong is None else f"{what} of {x.name} is one of {known}, not {wrong}."


def _norm(failed: _Failed) -> Reason:
    x, sizes = failed.operands[0], (*failed.args[1:], failed.kwargs.get("normalized_shape"))[0]
    own, made_for = written(x.shape[-len(sizes) :]), written(sizes)
    sentence = f"{failed.name} is for last axes of sizes {made_for}, but {x.name} has {own}."
    return sentence if own != made_for else "", []


def _cross_entropy(failed: _Failed) -> Reason:
    logits, targets = failed.operands[:2]
    wanted = logits.shape[:1] + logits.shape[2:]
    if targets.tensor.is_floating_point() or len(logits.shape) < 2 or targets.shape == wanted:
        return "", []
    rule = f"{failed.name} takes the classes from axis 1 of {logits.name}"
    sentence = f"{rule}, so {targets.name} must be {written(wanted)}."
    return sentence, failed.fitting(logits.swaps()[-1:])


def _embedding(failed: _Failed) -> Reason:
    ids, table = failed.operands[:2]
    rows, (low, high) = len(table.tensor), map(int, ids.tensor.aminmax())
    if ids.tensor.is_floating_point() or 0 <= low <= high < rows:
        return "", []
    wrong = high if low >= 0 else low
    return f"{ids.name} holds {wrong}, but {table.name} has rows 0 to {rows - 1}.", []


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
    if missing := _no_axis(first, [dim], is_new=failed.name == "stack"):
        return missing, []
    joined = None if failed.name == "stack" else dim % axes
    but = "" if joined is None else f" but axis {joined}, along which they are joined,"
    unequal = [axis for axis in range(axes) if len({each.shape[axis] for each in operands}) > 1]
    sentence = _first(
        _meeting(first, axis, other, axis, f"all axes{but} must be equal")
        for axis in unequal
        if axis != joined
        for other in rest
    )
    mends = []
    if isinstance(failed.expression, ast.Call) and joined is not None and len(unequal) == 1:
        text = _short(failed.nodes.get(0, failed.nodes.get("tensors")))
        mends = [f"{ast.unparse(failed.expression.func)}({text}, dim={unequal[0]})"] if text else []
    return sentence, mends


def _fused(failed: _Failed) -> Reason:
    queries, keys, values, *masks = failed.operands
    sentence = (
        _meeting(queries, -1, keys, -1, "they must be equal")
        or _meeting(keys, -2, values, -2, "each key has one value")
        or ("" if failed.kwargs.get("enable_gqa") else _conflict(queries, keys, after=2))
    )
    if sentence or not masks:
        return sentence, []
    shape = *queries.shape[:-1], keys.shape[-2]
    scores = Operand("the scores", torch.empty(shape, device="meta"), -1)
    sentence = _conflict(scores, masks[0])
    return sentence, failed.fitting(masks[0].with_axes(len(shape), 1)) if sentence else []


def _widths(failed: _Failed) -> str:
    """What is said of an argument of a module that takes others, if it has widths of its own."""
    module = failed.frame.f_locals["self"]
    own, kind = attributes_of(module), type(module).__name__
    names = (name for name in ("embed_dim", "kdim", "vdim", "input_size") if name in own)
    return _first(
        f"A{each.axis(-1)[1:]}, meets {name} of {kind}, of size {own[name]}: they must be equal."
        for each, name in zip(failed.operands, names, strict=False)
        if each.shape[-1] != own[name]
    )


def _index(failed: _Failed) -> Reason:
    of, mask = failed.operands[:2]
    if mask.tensor.dtype != torch.bool or mask.tensor is not failed.args[1]:
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


_OF_AXES = {
    *("softmax", "log_softmax", "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin"),
    *("logsumexp", "cumsum", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "size"),
}
_REASONS: dict[str, Callable[[_Failed], Reason]] = {
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(_OF_AXES, _axes),
    **dict.fromkeys(("getitem", "setitem"), _index),
    **dict.fromkeys(("matmul", "mm", "bmm"), _matmul),
    **dict.fromkeys(("view", "reshape"), _view),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), _cat),
    "linear": _linear,
    "einsum": _einsum,
    "cross_entropy": _cross_entropy,
    "embedding": _embedding,
    **dict.fromkeys(("layer_norm", "rms_norm"), _norm),
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
    """What is in lists and tuples."""
    found = []
    for value in values:
        found += flat(value) if isinstance(value, list | tuple) else [value]
    return found


def _sorted(arguments: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Arguments in the order of names."""
    places = {name: place for place, name in enumerate(names)}
    return dict(sorted(arguments.items(), key=lambda each: places.get(each[0], len(places))))


def _parts(node: ast.expr | None, value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value that is a list, with what a line that writes `node` has for each."""
    if not isinstance(value, list | tuple):
        yield _short(node), value
        return
    parts = getattr(node, "elts", [])
    if len(parts) != len(value) or any(isinstance(part, ast.Starred) for part in parts):
        parts = [node and ast.Subscript(node, ast.Constant(index)) for index in range(len(value))]
    for part, each in zip(parts, value, strict=True):
        yield from _parts(part, each)


def _short(node: ast.AST | None) -> str:
    text = ast.unparse(node) if node else ""
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
