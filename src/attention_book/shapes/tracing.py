"""The trace of a call: its shape tables filled in, as text and as a table in colour."""

from __future__ import annotations

import html
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_book.shapes.dimensions import DIMENSIONS
from attention_book.shapes.errors import ShapeError, written
from attention_book.shapes.tables import TABLES, Row, ShapeTable, Sizes


class Step(NamedTuple):
    """One named tensor of a traced call."""

    number: str  # "7", or "7.1" for the first tensor of a call made to compute step 7
    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    function: str
    call: int = 0  # of the trace's `calls`


class Seen(NamedTuple):
    """A tensor as a trace met it: one `number` is one tensor, one `memory` is shared memory."""

    number: int
    memory: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class Listed(NamedTuple):
    """A step was listed: its number, its tensor, and the line that made it, 0 for an argument."""

    step: str
    tensor: Seen
    line: int


class Operation(NamedTuple):
    """One call into PyTorch: the tensors that it was given, and the one that it made."""

    function: Any
    given: tuple[Seen, ...]
    made: Seen
    call: int  # of the trace's `calls`


class TracedCall(NamedTuple):
    """One call of a function with a shape table, and the sizes of the dimensions in it."""

    function: str
    table: ShapeTable
    arguments: Mapping[str, Any]  # tensors without their numbers, on the meta device
    sizes: Mapping[str, int]
    depth: int  # 1 for a call made in the block itself


class Shapes:
    """The steps that `trace` saw, as text (`print`), as a coloured table, and as `steps`.

    `every_step` also has those of deeper calls than were asked for; `calls` has all calls, and
    `log` what ran, in its order.
    """

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth
        self.every_step: list[Step] = []
        self.calls: list[TracedCall] = []
        self.log: list[Listed | Operation] = []

    @property
    def steps(self) -> list[Step]:
        return [
            step
            for step in self.every_step
            if self.depth is None or self.calls[step.call].depth <= self.depth
        ]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        steps = self.steps
        if not steps:
            return "no step was traced: no function with a shape table ran inside the block"
        indents = ["  " * step.number.count(".") for step in steps]
        columns = [
            [i + s.number for i, s in zip(indents, steps, strict=True)],
            [i + s.name for i, s in zip(indents, steps, strict=True)],
            [written(s.dims) for s in steps],
        ]
        padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
        shapes = [written(s.shape) for s in steps]
        return "\n".join("   ".join(line) for line in zip(*padded, shapes, strict=True))

    def _repr_html_(self) -> str:
        rows = []
        for step in self.steps:
            indent = 1.2 * step.number.count(".")
            dims = ", ".join(_coloured(dim, dim) for dim in step.dims)
            sizes = ", ".join(
                _coloured(dim, size) for dim, size in zip(step.dims, step.shape, strict=True)
            )
            rows.append(
                f'<tr><td style="text-align:left;padding-left:{indent + 0.5}em">{step.number}</td>'
                f'<td style="text-align:left;padding-left:{indent + 0.5}em">'
                f"<code>{html.escape(step.name)}</code></td>"
                f'<td style="text-align:left">({dims})</td>'
                f'<td style="text-align:left">({sizes})</td></tr>'
            )
        head = "".join(
            f'<th style="text-align:left" scope="col">{title}</th>'
            for title in ("step", "tensor", "dimensions", "shape")
        )
        body = "\n".join(rows)
        head = f"<thead><tr>{head}</tr></thead>"
        return f'<table class="shapes">{head}\n<tbody>\n{body}\n</tbody></table>'


def _coloured(dim: str, text: object) -> str:
    """`text` underlined in the colour of the dimension; a product has those of its factors."""
    known = [DIMENSIONS[factor].colour for factor in dim.split("*") if factor in DIMENSIONS]
    if not known:
        return f'<span class="dim">{text}</span>'
    style = f"border-bottom:3px solid {known[0]}"
    if len(known) > 1:
        width = 100 / len(known)
        parts = (f"{c} {i * width:g}% {(i + 1) * width:g}%" for i, c in enumerate(known))
        style += f";border-image:linear-gradient(90deg,{','.join(parts)}) 1"
    return f'<span class="dim" style="{style}">{text}</span>'


class trace:  # noqa: N801, a context manager reads as a verb
    """List every named tensor of the calls made inside the block, with its shape.

    >>> with trace() as shapes:
    ...     attention(queries, keys, values)
    >>> print(shapes)

    Only functions with a shape table are listed. Calls made on the way to a step come below it,
    numbered 7.1, 7.2 …; `depth=1` leaves them out. The block's exit raises `ShapeError` if a table
    says another shape than a tensor has. Outside the block nothing is installed.
    """

    def __init__(self, depth: int | None = None) -> None:
        self.shapes = Shapes(depth)
        self._calls = [_Call("", [], None)]
        self._tensors = _Register()
        self._operations = _Watch(self._note)
        self._lies: list[str] = []

    def __enter__(self) -> Shapes:
        self._previous = sys.gettrace()
        self._operations.__enter__()
        sys.settrace(self._enter_call)
        return self.shapes

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        sys.settrace(self._previous)
        self._operations.__exit__(kind, *rest)
        if kind is None and self._lies:
            raise ShapeError("; ".join(self._lies))

    def _enter_call(self, frame: FrameType, event: str, arg: object) -> Any:
        table = TABLES.get(frame.f_code)
        if table is None:
            return None
        parent = self._calls[-1]
        call = _Call(parent.pending(), self.shapes.every_step, table)
        call.count = parent.nested  # calls on the way to one step are numbered on
        if parent.table is None:  # and so are those at the top level
            call.prefix, call.count = "", parent.count
        self._calls.append(call)
        values = frame.f_locals
        call.sizes = table.check(tuple(values[name] for name in table.positions), {})
        call.index = len(self.shapes.calls)
        arguments = {name: _without_numbers(values[name]) for name in table.positions}
        self.shapes.calls.append(
            TracedCall(call.sizes.owner, table, arguments, call.sizes.size, len(self._calls) - 1)
        )
        for row in table.arguments:
            if row.kind == "floating":
                self._see(call, row, values[row.name])

        def on_event(frame: FrameType, event: str, arg: object) -> Any:
            values = frame.f_locals
            for name, row in table.rows.items():
                if name not in table.positions and name in values:
                    self._see(call, row, values[name])
            if event != "return":
                call.line = frame.f_lineno  # of the statement about to run
            else:
                if "returns" in table.rows:
                    self._see(call, table.rows["returns"], arg)
                self._calls.pop()
                if parent.table is None:
                    parent.count = call.count
                else:
                    parent.nested = call.count
            return on_event

        return on_event

    def _see(self, call: _Call, row: Row, tensor: object) -> None:
        if not isinstance(tensor, Tensor) or call.tensors.get(row.name) is tensor:
            return
        try:
            call.sizes.fit(row, tensor.shape)
        except ShapeError as lie:
            self._lies.append(f"the shape table is wrong: {lie}")
            return
        # A second name for a tensor is no step of its own; three arguments may be one tensor.
        is_argument = row in call.table.arguments if call.table else False
        is_listed = any(tensor is listed for listed in call.tensors.values())
        if row.name in call.tensors or (is_listed and not is_argument):
            return
        dims = tuple(
            "1" if row.stretches and size == 1 != call.sizes.size.get(dim) else dim
            for dim, size in zip(
                call.sizes.dims(row, tensor.shape) or (), tensor.shape, strict=True
            )
        )
        step = Step(
            call.pending()[:-1], row.name, dims, tuple(tensor.shape), call.sizes.owner, call.index
        )
        call.record(step)
        self.shapes.log.append(Listed(step.number, self._tensors.see(tensor), call.line))
        call.tensors[row.name] = tensor

    def _note(self, function: Any, given: list[Tensor], made: Tensor) -> None:
        seen = [self._tensors.see(tensor) for tensor in (*given, made)]
        index = self._calls[-1].index
        self.shapes.log.append(Operation(function, tuple(seen[:-1]), seen[-1], index))


class _Register:
    """A number for each tensor and for each memory, for as long as they live: identities and
    addresses are used again."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[weakref.ref[Tensor], Seen]] = {}
        self._memory: dict[int, tuple[int, list[weakref.ref[Tensor]]]] = {}
        self._count = 0

    def see(self, tensor: Tensor) -> Seen:
        alive, seen = self._seen.get(id(tensor), (None, None))
        if alive is not None and seen is not None and alive() is tensor:
            return seen
        self._count += 1
        alive = weakref.ref(tensor)
        seen = Seen(
            self._count,
            self._memory_of(tensor, alive),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
        )
        self._seen[id(tensor)] = alive, seen
        return seen

    def _memory_of(self, tensor: Tensor, alive: weakref.ref[Tensor]) -> int:
        if tensor.device.type == "meta" or tensor.numel() == 0:  # lies nowhere
            return self._count
        address = tensor.untyped_storage().data_ptr()
        number, sharers = self._memory.get(address, (0, []))
        if not any(other() is not None for other in sharers):
            number, sharers = self._count, []
        self._memory[address] = number, [*sharers, alive]
        return number


class _Watch(TorchFunctionMode):
    """Report each tensor that PyTorch makes inside the block, and the tensors it is made of."""

    def __init__(self, note: Callable[[Any, list[Tensor], Tensor], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        made = _tensors_in(result)
        if made:
            given = _tensors_in([*args, *(kwargs or {}).values()])
            for tensor in made:
                self.note(func, given, tensor)
        return result


def _tensors_in(value: Any) -> list[Tensor]:
    """A tensor alone, or those of a list or tuple of arguments or results."""
    if isinstance(value, Tensor):
        return [value]
    parts = value if isinstance(value, list | tuple) else ()
    return [tensor for part in parts for tensor in _tensors_in(part)]


def _without_numbers(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return value


class _Call:
    """One traced call: its number, and where its next step belongs in the list of steps."""

    sizes: Sizes

    def __init__(self, prefix: str, steps: list[Step], table: ShapeTable | None) -> None:
        self.prefix = prefix
        self.steps = steps
        self.table = table
        self.count = 0
        self.nested = 0  # the steps of the calls on the way to the next step
        self.place = len(steps)
        self.tensors: dict[str, Tensor] = {}
        self.index = -1
        self.line = 0

    def pending(self) -> str:
        """The number of the step to come, as a prefix for the calls made on the way to it."""
        return f"{self.prefix}{self.count + 1}."

    def record(self, step: Step) -> None:
        self.steps.insert(self.place, step)  # before the calls that were made to compute it
        self.count += 1
        self.nested = 0
        self.place = len(self.steps)
