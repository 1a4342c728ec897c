"""What the log of a trace says of each step: its code, what it is made of, and what it costs."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from attention_book.shapes import Shapes, Step
from attention_book.shapes.steps import Item, Operation, Seen

#: A dimension of one call: the call's index in the trace, and the name there.
Name = tuple[int, str]

#: One axis of a tensor, counted from the last.
Axis = tuple[Seen, int]


class StepCost(NamedTuple):
    """What a walk needs of a step beyond its shape."""

    tensor: int  # the same number for the same tensor, also in another call
    memory: int  # the same number for tensors that share memory: a view has none of its own
    sources: list[int]  # the tensors of the steps that it is made of
    dtype: torch.dtype
    code: str  # the statement that made it; empty for an argument
    products: list[
        tuple[Name, ...]
    ]  # per matrix product, the axes of its multiply-adds; () unnamed


class Product(NamedTuple):
    """One matrix product: `numbers` results, each a sum over one axis, met in both operands.

    `made` are the axes of the result where it is not returned: the scores inside a fused kernel.
    """

    numbers: int
    sums: tuple[Axis, Axis]
    made: list[Axis] | None = None


class _Pending(NamedTuple):
    """A product that belongs to the next step: the axis it sums over, None where that has no name,
    and the axes of a result that no step shows."""

    numbers: int
    sums: Name | None
    made: list[Name] | None


@dataclass
class _Known:
    """A tensor whose axes have names: a step's, or one with the axes of a step's."""

    tensor: Seen
    call: int
    dims: tuple[str, ...]

    def ends_like(self, tensor: Seen) -> bool:
        """Whether a tensor may be this one with a new axis in front."""
        own = self.tensor
        last = slice(-2, None)
        return own.memory == tensor.memory and (own.shape[last], own.stride[last]) == (
            tensor.shape[last],
            tensor.stride[last],
        )


def step_costs(shapes: Shapes) -> dict[str, StepCost]:
    """What the log of a trace says of its steps, by their numbers."""
    reader = _Reader(shapes)
    for event in shapes.log:
        if isinstance(event, Operation):
            reader.note(event)
        else:
            reader.list_step(event)
    return reader.found


class _Reader:
    def __init__(self, shapes: Shapes) -> None:
        self.calls = shapes.calls
        self.steps: dict[str, Step] = {step.number: step for step in shapes.every_step}
        self.found: dict[str, StepCost] = {}
        self.known: dict[int, _Known] = {}
        self.listed: set[int] = set()
        self.made_of: dict[int, set[int]] = {}  # by tensor: the nearest steps' tensors
        self.memory: dict[int, int] = {}  # by memory: the tensor of the first step that has it
        self.pending: dict[int, list[_Pending]] = {}

    def list_step(self, item: Item) -> None:
        step, tensor = self.steps[item.number], item.seen
        self.listed.add(tensor.number)
        self.known[tensor.number] = _Known(tensor, step.call, step.dims)
        self.found[step.number] = StepCost(
            tensor.number,
            self.memory.setdefault(tensor.memory, tensor.number),
            sorted(self.made_of.get(tensor.number, ())),
            tensor.dtype,
            _statement(self.calls[step.call].code, item.line),
            self._summed(step, self._take(step.call)),
        )

    def note(self, operation: Operation) -> None:
        """Name the axes of what is multiplied by the tensors that are known so far."""
        made = operation.made
        if all(made != given for given in operation.given):
            self.made_of[made.number] = set().union(
                *(
                    {given.number} if given.number in self.listed else self._origins(given)
                    for given in operation.given
                )
            )
        for product in _products(operation):
            sums = next(filter(None, map(self._name, product.sums)), None)
            axes = None if product.made is None else [self._name(axis) for axis in product.made]
            named = None if axes is None else [axis for axis in axes if axis is not None]
            if axes is not None and named != axes:
                sums = None
            pending = _Pending(product.numbers, sums, named)
            self.pending.setdefault(operation.call.index, []).append(pending)
        if operation.function in _KEEPS_AXES:
            for given in operation.given:
                known = self.known.get(given.number)
                if known and given.shape == made.shape and made.number not in self.known:
                    self.known[made.number] = _Known(made, known.call, known.dims)

    def _origins(self, tensor: Seen) -> set[int]:
        return self.made_of.get(tensor.number, set())

    def _name(self, axis: Axis) -> Name | None:
        tensor, index = axis
        known = self.known.get(tensor.number)
        if known is None:  # perhaps one whose last two axes are known has got a new one in front
            alike = (other for other in self.known.values() if other.ends_like(tensor))
            known = next(alike, None)
        if known is None or -index > len(known.dims):
            return None if known is None else (known.call, "1")
        return known.call, known.dims[index]

    def _take(self, call: int) -> list[_Pending]:
        """The products of a call since its last step, and what the calls within have left over."""
        within = [other for other in range(call, len(self.calls)) if self._is_within(other, call)]
        return [pending for other in within for pending in self.pending.pop(other, [])]

    def _is_within(self, other: int, call: int) -> bool:
        """Whether a call was made on the way through another; calls are listed as they begin."""
        depths = [self.calls[index].depth for index in range(call, other + 1)]
        return all(depth > depths[0] for depth in depths[1:])

    def _summed(self, step: Step, pending: list[_Pending]) -> list[tuple[Name, ...]]:
        """The products on the way to a step, each as the axes whose sizes multiply to its count.

        Pieces of one product (the chunks of a long one) are joined.
        """
        pieces: dict[Name, int] = {}
        found: list[tuple[Name, ...]] = []
        for numbers, sums, made in pending:
            if sums is None:
                found.append(())
            elif made is not None:
                found.append((*made, sums))
            else:
                pieces[sums] = pieces.get(sums, 0) + numbers
        own = tuple((step.call, dim) for dim in step.dims)
        numbers = math.prod(step.shape)
        found += [(*own, sums) if total == numbers else () for sums, total in pieces.items()]
        return found


_MATMUL = {
    torch.matmul,
    torch.bmm,
    torch.mm,
    Tensor.matmul,
    Tensor.bmm,
    Tensor.mm,
    Tensor.__matmul__,
}

#: Functions whose result has the axes of its arguments, in the same places.
_KEEPS_AXES = {
    torch.where,
    torch.dropout,
    Tensor.masked_fill,
    Tensor.to,
    Tensor.__mul__,
    Tensor.mul,
}


def _products(operation: Operation) -> Iterator[Product]:
    """The matrix products of one call into PyTorch."""
    function, given, made = operation.function, operation.given, operation.made
    if function is F.linear:
        yield Product(math.prod(made.shape), ((given[0], -1), (given[1], -1)))
    elif function in _MATMUL:
        right = -1 if len(given[1].shape) == 1 else -2
        yield Product(math.prod(made.shape), ((given[0], -1), (given[1], right)))
    elif function is F.scaled_dot_product_attention:
        queries, keys, values = given[:3]
        axes = [(queries, axis) for axis in range(-len(queries.shape), -1)] + [(keys, -2)]
        numbers = math.prod(queries.shape[:-1]) * keys.shape[-2]
        yield Product(numbers, ((queries, -1), (keys, -1)), axes)
        yield Product(math.prod(made.shape), ((keys, -2), (values, -2)))


def _statement(code: CodeType, line: int) -> str:
    """The innermost statement of a function that holds a line; empty for none, or no source."""
    found = [
        (last - first, text) for first, last, text in _statements(code) if first <= line <= last
    ]
    return min(found)[1] if found else ""


@functools.lru_cache(maxsize=256)
def _statements(code: CodeType) -> list[tuple[int, int, str]]:
    """First line, last line and text of each statement of a function; none without its source."""
    try:
        lines, start = inspect.getsourcelines(code)
        source = textwrap.dedent("".join(lines))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):  # a cell may hold what is not Python alone
        return []
    start = max(start, 1)  # it is 0 for a whole file
    kinds = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
    return [
        (node.lineno + start - 1, (node.end_lineno or node.lineno) + start - 1, _cut(source, node))
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def _cut(source: str, node: Any) -> str:
    return textwrap.dedent("\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]))
