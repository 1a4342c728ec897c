"""A note on an operation that failed: its operands, which axis meets which, and what mends it.

A mend is named only where it has been tried, on tensors without numbers, and where it is the only
one of those tried that fits.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_book.shapes.errors import written
from attention_book.shapes.lines import fields_of

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
        try:
            note = _note(_Failed(str(error), function, args, kwargs, frame, site))
        except Exception:  # an explanation must not hide what it explains
            return
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
    """A tensor that an operation was given; without a name where the line has none for it."""

    name: str
    tensor: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def axis(self, axis: int) -> str:
        return f"axis {axis} of {self.name or 'an operand'}, of size {self.shape[axis]}"


#: A change of one operand: what is written for it, which operand it is, and the change itself.
Change = tuple[str, int, Callable[[Tensor], Tensor]]


class _Failed:
    """An operation that failed, with names for its operands."""

    def __init__(
        self,
        message: str,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        site: FrameType,
    ) -> None:
        self.message, self.function, self.args, self.kwargs = message, function, args, kwargs
        self.name = str(getattr(function, "__name__", function)).strip("_")
        self.frame, self.site = frame, site
        self.expression = _expression_at(site)
        values = [*_flat([*args, *kwargs.values()])]
        self.operands = [
            Operand(text or self._name_of(value), value)
            for value, text in zip(values, self._texts(len(values)), strict=True)
            if isinstance(value, Tensor)
        ]

    def _texts(self, count: int) -> list[str]:
        """What the line writes for each argument; empty where that cannot be said."""
        nodes: list[ast.expr] = []
        match self.expression:
            case ast.BinOp(left=left, right=right):
                is_reversed = self.name.startswith("r") and self.name[1:] in _BROADCAST
                nodes = [right, left] if is_reversed else [left, right]
            case ast.Compare(left=left, comparators=[right]):
                nodes = [left, right]
            case ast.AugAssign(target=left, value=right):
                nodes = [left, right]
            case ast.Subscript(value=left, slice=right):
                nodes = [left, right]
            case ast.Call(func=called, args=args, keywords=keywords):
                if getattr(called, "attr", getattr(called, "id", "")).strip("_") != self.name:
                    return [""] * count
                nodes = [*_flat_nodes([*args, *(keyword.value for keyword in keywords)])]
                if isinstance(called, ast.Attribute) and not self._is_module(called.value):
                    nodes.insert(0, called.value)
        texts = [_short(each) for each in nodes]
        return [*texts, *[""] * (count - len(texts))] if len(texts) <= count else [""] * count

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

    def fits(self, change: Callable[[Tensor], Tensor] | None = None, index: int = -1) -> Any:
        """The result with one operand changed, without numbers; None where that fails."""
        count = itertools.count()

        def plain(value: Any) -> Any:
            if isinstance(value, Tensor):
                bare = torch.empty_strided(
                    value.shape, value.stride(), dtype=value.dtype, device="meta"
                )
                return change(bare) if change and next(count) == index else bare
            if isinstance(value, list | tuple):
                return type(value)(map(plain, value))
            return value

        return _tried(
            lambda: self.function(
                *map(plain, self.args), **{name: plain(v) for name, v in self.kwargs.items()}
            )
        )


def _name_in(frame: FrameType, tensor: Tensor, prefix: str) -> str:
    """The variable of a frame that is a tensor, or the attribute of its `self`."""
    for name, value in frame.f_locals.items():
        if value is tensor:
            return name
    fields = fields_of(frame.f_locals.get("self"))
    for place in (fields, fields.get("_parameters", {}), fields.get("_buffers", {})):
        for name, value in place.items():
            if value is tensor:
                return prefix + name
    return ""


def _note(failed: _Failed) -> str:
    code, line = failed.site.f_code, failed.site.f_lineno
    source = linecache.getline(code.co_filename, line, failed.site.f_globals).strip()
    where = "" if code.co_name == "<module>" else f" of {code.co_name}"
    lines = [f"{_LINE}{line}{where}{f', `{source}`' if source else ''}:"]
    try:
        reason, mends = _reason(failed)
    except Exception:  # of other arguments than were thought of
        reason, mends = [], []
    dtypes = {str(each.tensor.dtype).removeprefix("torch.") for each in failed.operands}
    shows_dtype = not reason and len(dtypes) > 1
    named = [each for each in failed.operands if each.name]
    # Those without a name lie inside a library; alone, they are better than nothing.
    for operand in named if named and failed.frame is not failed.site else failed.operands:
        dtype = f" {operand.tensor.dtype}" if shows_dtype else ""
        lines.append(f"    {operand.name or 'an operand'} {written(operand.shape)}{dtype}")
    lines += [f"    {sentence}" for sentence in reason]
    if len(mends) == 1:
        lines.append(f"    {mends[0]} would fit.")
    elif mends:
        lines.append(
            "    More than one change would fit, and the sizes do not tell which one is meant."
        )
    return "\n".join(lines)


def _reason(failed: _Failed) -> tuple[list[str], list[str]]:
    """Sentences on what does not fit, and the mends that have been tried and do."""
    kinds: list[tuple[set[str], Callable[[_Failed], tuple[str, list[str]]]]] = [
        ({"matmul", "rmatmul", "mm", "bmm"}, _matmul),
        ({"linear"}, _linear),
        ({"einsum"}, _einsum),
        ({"view", "reshape"}, _view),
        ({"cat", "concat", "concatenate", "stack"}, _cat),
        ({"scaled_dot_product_attention"}, _fused),
        ({"getitem", "setitem"}, _index),
        (_BROADCAST | {f"r{name}" for name in _BROADCAST}, _broadcast),
    ]
    for names, explained in kinds:
        if failed.name in names:
            if failed.name not in ("getitem", "setitem") and failed.fits() is not None:
                return [], []  # it did not fail because of its shapes
            sentence, mends = explained(failed)
            return [sentence] if sentence else [], mends
    return [], []


_BROADCAST = {
    *("add", "sub", "mul", "div", "truediv", "floordiv", "pow", "where", "masked_fill"),
    *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "maximum", "minimum"),
    *("true_divide", "logical_and", "logical_or", "logical_xor", "multiply", "divide", "subtract"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "iand", "ior", "ixor"),
}


def _of(failed: _Failed, changes: list[Change]) -> list[str]:
    """The changes that fit, as what is written, with the shape that it has."""
    found: list[str] = []
    names = [each.name for each in failed.operands]
    for text, index, change in changes:
        operand = failed.operands[index]
        if operand.name and failed.fits(change, index) is not None:
            changed = change(torch.empty(operand.shape, device="meta"))
            is_last = names.count(operand.name) > 1 and index == len(names) - 1
            side = " as the last operand" if is_last else ""
            found.append(f"{text}, of shape {written(changed.shape)},{side}")
    return found


def _transposed(failed: _Failed, index: int) -> list[Change]:
    operand = failed.operands[index]
    if len(operand.shape) < 2:
        return []
    change = partial(torch.transpose, dim0=-2, dim1=-1)
    return [(f"{_base(operand)}.transpose(-2, -1)", index, change)]


def _with_axes(failed: _Failed, index: int, axes: int, last: int) -> list[Change]:
    """Axes of size 1 put into an operand, to have `axes`; `last` of its own stay at the end."""
    operand = failed.operands[index]
    own = len(operand.shape)
    found: list[Change] = []
    if not own or own >= axes or last > own:
        return []
    for places in itertools.combinations(range(axes), own):
        if places[own - last :] != tuple(range(axes - last, axes)):
            continue
        key = tuple(slice(None) if axis in places else None for axis in range(axes))
        needed = key[min(places) :]  # axes in front come by themselves
        if None not in needed:
            continue
        if needed.count(None) == 1:
            place = needed.index(None)
            place = -1 if place == len(needed) - 1 else place
            text = f"{_base(operand)}.unsqueeze({place})"
        else:
            text = ", ".join("None" if part is None else ":" for part in needed)
            text = f"{_base(operand)}[{text}]"
        found.append((text, index, itemgetter(needed)))
    return found


def _matmul(failed: _Failed) -> tuple[str, list[str]]:
    left, right = failed.operands[:: -1 if failed.name == "rmatmul" else 1]
    first, second = (1, 0) if failed.name == "rmatmul" else (0, 1)
    ranks = {"mm": 2, "bmm": 3}
    axes = ranks.get(failed.name)
    both = f"torch.matmul({left.name}, {right.name})"
    if axes and any(len(each.shape) != axes for each in (left, right)):
        wrong = next(each for each in (left, right) if len(each.shape) != axes)
        fitting = _tried(lambda: torch.matmul(*(_bare(each) for each in (left, right))))
        return (
            f"{failed.name} multiplies tensors of {axes} axes, but {wrong.name} has "
            f"{len(wrong.shape)}.",
            [both] if fitting is not None and left.name and right.name else [],
        )
    if not left.shape or not right.shape:
        return "A product of matrices needs at least one axis on each side.", []
    across = -1 if len(right.shape) == 1 else -2
    if left.shape[-1] != right.shape[across]:
        sentence = (
            f"{_first(left.axis(-1))}, meets {right.axis(across)}: "
            "a product of matrices needs the two to be equal."
        )
    else:
        sentence = _conflict(left, right, left.shape[:-2], right.shape[:-2], -2)
    changes = [*_transposed(failed, second), *_transposed(failed, first)]
    turned = _of(failed, changes)
    if turned and _looks_like(left.name, "k") and _looks_like(right.name, "q"):
        turned = []  # what fits has a row for each key
    if turned and (_WEIGHTS.search(left.name) or _looks_like(right.name, "v")):
        turned = []  # what fits sums over queries, or over the features of values
    if len(turned) == 2 and _are_scores(failed, left.name, right.name):
        turned = _of(failed, _transposed(failed, second))
    stretched: list[Change] = []
    if axes is None:
        for index, own, other in ((second, right, left), (first, left, right)):
            if len(own.shape) >= 2:
                stretched += _with_axes(failed, index, len(other.shape), 2)
    return sentence, turned + _of(failed, stretched)


#: Names of what is multiplied with values.
_WEIGHTS = re.compile(r"weight|score|att|prob|alpha|^w$", re.IGNORECASE)


def _looks_like(name: str, letter: str) -> bool:
    """Whether a name is that of queries, keys or values, by its first letter."""
    return name.rpartition(".")[2].lower().startswith(letter)


def _are_scores(failed: _Failed, left: str, right: str) -> bool:
    """Whether a product is that of queries and keys: each row of one with each row of the other."""
    source = linecache.getline(failed.site.f_code.co_filename, failed.site.f_lineno)
    are_both = _looks_like(left, "q") and _looks_like(right, "k")
    return are_both or re.match(r"\s*\w*scores?\w*\s*=[^=]", source) is not None


def _linear(failed: _Failed) -> tuple[str, list[str]]:
    x, weight = failed.operands[:2]
    if len(weight.shape) != 2 or not x.shape or x.shape[-1] == weight.shape[1]:
        return "", []
    is_own = failed.frame is failed.site
    layer = (
        weight.name if is_own else f"a layer from {weight.shape[1]} to {weight.shape[0]} features"
    )
    sentence = f"{_first(x.axis(-1))}, meets {layer}, which takes {weight.shape[1]}."
    changes = _transposed(failed, 1) if is_own else []
    if len(x.shape) <= 3:
        changes += _transposed(failed, 0)
    # Which axes are joined can be told where they differ from the others.
    joinable = 1 not in x.shape[1:] and (len(x.shape) < 4 or x.shape[1] != x.shape[2])
    for start in range(1, len(x.shape) - 1) if joinable else ():
        text = f"{_base(x)}.flatten({start if start == 1 else start - len(x.shape)})"
        changes.append((text, 0, partial(torch.flatten, start_dim=start)))
    return sentence, _of(failed, changes)


def _einsum(failed: _Failed) -> tuple[str, list[str]]:
    equation = failed.args[0] if failed.args else failed.kwargs.get("equation")
    if not isinstance(equation, str) or "." in equation:
        return "", []
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(failed.operands):
        return (
            f"'{equation}' names {len(terms)} operands, but {len(failed.operands)} are given.",
            [],
        )
    sizes: dict[str, tuple[int, str]] = {}
    for term, operand in zip(terms, failed.operands, strict=True):
        name, shape = operand.name or "an operand", operand.shape
        if len(term) != len(shape):
            return f"'{term}' names {len(term)} axes, but {name} has {len(shape)}.", []
        for letter, size in zip(term, shape, strict=True):
            known, where = sizes.setdefault(letter, (size, name))
            if known != size:
                sentence = f"'{letter}' is {known} in {where}, but {size} in {name}."
                return sentence, _of(failed, [*_swaps(failed)])
    return "", []


def _swaps(failed: _Failed) -> Iterator[Change]:
    """Two axes of an operand exchanged."""
    for index, operand in enumerate(failed.operands):
        axes = len(operand.shape)
        for a, b in itertools.combinations(range(axes), 2):
            at = (a, b) if b < axes - 1 or a < axes - 2 else (-2, -1)
            text = f"{_base(operand)}.transpose({at[0]}, {at[1]})"
            yield text, index, partial(torch.transpose, dim0=a, dim1=b)


def _view(failed: _Failed) -> tuple[str, list[str]]:
    x = failed.operands[0]
    given = failed.kwargs.get("shape", failed.kwargs.get("size", failed.args[1:]))
    sizes = [*_flat([given])]
    if not all(isinstance(size, int) for size in sizes):
        return "", []
    total, known = math.prod(x.shape), math.prod(size for size in sizes if size != -1)
    has_free = -1 in sizes
    fits = total % known == 0 if has_free and known else total == known
    if fits:
        call = f"{_base(x)}.reshape({', '.join(map(str, sizes))})"
        return (
            f"The axes of {x.name or 'the operand'} lie in memory in another order, so no view of "
            f"it has the shape {written(sizes)}.",
            [call] if failed.name == "view" and x.name else [],
        )
    name = x.name or "the operand"
    if has_free:
        return f"The {total} numbers of {name} are not a multiple of {known}.", []
    sentence = f"{_first(name)} has {total} numbers, and the shape {written(sizes)} has {known}."
    # The last axis is split, and one size before it is not that of the tensor.
    before = len(x.shape) - 1
    wrong = [i for i in range(before) if sizes[i : i + 1] != [x.shape[i]]]
    if len(wrong) == 1 and math.prod(sizes[before:]) == x.shape[-1] and x.name:
        sizes[wrong[0]] = x.shape[wrong[0]]
        return sentence, [f"{_base(x)}.{failed.name}({', '.join(map(str, sizes))})"]
    return sentence, []


def _cat(failed: _Failed) -> tuple[str, list[str]]:
    dim = failed.kwargs.get("dim", failed.args[1] if len(failed.args) > 1 else 0)
    first, *rest = failed.operands
    ranks = {len(each.shape) for each in failed.operands}
    joined = dim % len(first.shape) if isinstance(dim, int) and first.shape else 0
    if len(ranks) > 1:
        other = next(each for each in rest if len(each.shape) != len(first.shape))
        sentence = (
            f"{first.name or 'One'} has {len(first.shape)} axes, {other.name or 'another'} "
            f"{len(other.shape)}: they must have as many."
        )
        most = max(ranks)
        short = [i for i, each in enumerate(failed.operands) if len(each.shape) == most - 1]
        if failed.name == "stack" or len(short) != 1 or len(ranks) > 2:
            return sentence, []
        place, text = short[0], _base(failed.operands[short[0]])
        changes: list[Change] = [
            (f"{text}.unsqueeze({axis})", place, partial(torch.unsqueeze, dim=axis))
            for axis in range(most)
        ]
        return sentence, _of(failed, changes)
    unequal = [axis for axis in range(len(first.shape)) if _differs(failed.operands, axis)]
    is_stack = failed.name == "stack"
    clashing = [axis for axis in unequal if is_stack or axis != joined]
    if not clashing:
        return "", []
    axis = clashing[0]
    other = next(each for each in rest if each.shape[axis] != first.shape[axis])
    needs = "all axes" if is_stack else f"all axes but axis {joined}, along which they are joined,"
    sentence = f"{_first(first.axis(axis))}, meets {other.axis(axis)}: {needs} must be equal."
    names = [each.name for each in failed.operands]
    if is_stack or len(unequal) != 1 or not all(names):
        return sentence, []
    return sentence, [f"torch.cat([{', '.join(names)}], dim={axis})"]


def _differs(operands: list[Operand], axis: int) -> bool:
    return len({each.shape[axis] for each in operands}) > 1


def _fused(failed: _Failed) -> tuple[str, list[str]]:
    if len(failed.operands) < 3 or any(len(each.shape) < 2 for each in failed.operands[:3]):
        return "", []
    queries, keys, values = failed.operands[:3]
    if queries.shape[-1] != keys.shape[-1]:
        return f"{_first(queries.axis(-1))}, meets {keys.axis(-1)}: they must be equal.", []
    if keys.shape[-2] != values.shape[-2]:
        return f"{_first(keys.axis(-2))}, meets {values.axis(-2)}: each key has one value.", []
    return "", []


def _index(failed: _Failed) -> tuple[str, list[str]]:
    """A boolean index covers the first axes."""
    if len(failed.operands) < 2 or failed.operands[1].tensor.dtype != torch.bool:
        return "", []
    of, mask = failed.operands[:2]
    for axis, (size, other) in enumerate(zip(of.shape, mask.shape, strict=False)):
        if size != other:
            sentence = f"{_first(of.axis(axis))}, meets {mask.axis(axis)}: "
            return sentence + "a boolean index is compared from the first axis.", []
    return "", []


def _broadcast(failed: _Failed) -> tuple[str, list[str]]:
    operands = failed.operands
    pairs = itertools.combinations(operands, 2)
    sentences = (_conflict(a, b, a.shape, b.shape, 0) for a, b in pairs)
    sentence = next(filter(None, sentences), "")
    if not sentence:
        return "", []
    axes = max(len(each.shape) for each in operands)
    changes: list[Change] = []
    for index, operand in enumerate(operands):
        is_mask = operand.tensor.dtype == torch.bool or "mask" in operand.name.lower()
        # A mask that does not reach the last axis hides queries, not keys.
        widest = max(operands, key=lambda each: len(each.shape))
        if is_mask and operand.shape[-1:] != widest.shape[-1:]:
            continue
        changes += _with_axes(failed, index, axes, 1 if is_mask else 0)
    return sentence, _of(failed, changes)


def _conflict(
    a: Operand, b: Operand, left: tuple[int, ...], right: tuple[int, ...], shift: int
) -> str:
    """Which axes do not fit where shapes are compared from their ends; `shift` counts the axes
    that come after."""
    for axis in range(-1, -min(len(left), len(right)) - 1, -1):
        if left[axis] != right[axis] and 1 not in (left[axis], right[axis]):
            at = axis + shift
            return (
                f"{_first(a.axis(at))}, meets {b.axis(at)}: "
                "axes are compared from the last, and must be equal or of size 1."
            )
    return ""


def _first(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith(("axis", "an ", "the ")) else text


def _base(operand: Operand) -> str:
    """The text of an operand as what a method is called on."""
    return (
        operand.name
        if re.fullmatch(r"[\w.]+|[\w.]+\(.*\)|[\w.]+\[.*\]", operand.name)
        else f"({operand.name})"
    )


def _bare(operand: Operand) -> Tensor:
    return torch.empty(operand.shape, dtype=operand.tensor.dtype, device="meta")


def _tried(compute: Callable[[], Any]) -> Any:
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return compute()
    except Exception:  # whatever it is, this does not fit
        return None


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def _flat_nodes(nodes: list[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple):
            yield from _flat_nodes(node.elts)
        else:
            yield node


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def _expression_at(frame: FrameType) -> ast.AST | None:
    """The expression, or augmented assignment, that a frame is computing; None without a source."""
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    first, last, start, end = positions or (None, None, None, None)
    if first is None or last is None or start is None or end is None:
        return None
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]
    if not lines:
        return None
    lines[-1] = lines[-1].encode()[:end].decode()
    lines[0] = lines[0].encode()[start:].decode()
    text = "".join(lines)
    for source in (f"({text}\n)", text):
        try:
            (statement,) = ast.parse(source).body
        except SyntaxError:
            continue
        return statement.value if isinstance(statement, ast.Expr) else statement
    return None
