"""The trace of a call: its shape tables filled in, as text and as a table in colour."""

from __future__ import annotations

import ast
import functools
import html
import inspect
import sys
import textwrap
import weakref
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_book.shapes.dimensions import DIMENSIONS
from attention_book.shapes.products import Axis, Product, WatchProducts
from attention_book.shapes.tables import TABLES, Row, ShapeError, ShapeTable, Sizes, written

#: A dimension of one call: the call's index in the trace, and the name there.
Name = tuple[int, str]

#: A matrix product that belongs to the next step: its count of results, the axis it sums over (None
#: where that has no name), and the axes of a result that no step shows.
_Pending = tuple[int, Name | None, list[Any] | None]


class Step(NamedTuple):
    """One named tensor of a traced call."""

    number: str  # "7", or "7.1" for the first tensor of a call made to compute step 7
    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    function: str
    call: int = 0  # of the trace's `calls`
    tensor: int = 0  # the same number for the same tensor, also in another call
    dtype: torch.dtype = torch.float32
    memory: int = 0  # the same number for tensors that share memory: a view has none of its own
    code: str = ""  # the statement that made it; empty for an argument
    products: tuple[tuple[Name, ...], ...] = ()  # per matrix product, the axes of its multiply-adds


class TracedCall(NamedTuple):
    """One call of a function with a shape table, and the sizes of the dimensions in it."""

    function: str
    table: ShapeTable
    arguments: Mapping[str, Any]  # tensors without their numbers, on the meta device
    sizes: Mapping[str, int]
    depth: int  # 1 for a call made in the block itself


class Shapes:
    """The steps that `trace` saw, as text (`print`), as a coloured table, and as `steps`.

    `every_step` also has those of deeper calls than were asked for; `calls` has all calls.
    """

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth
        self.every_step: list[Step] = []
        self.calls: list[TracedCall] = []

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
        self._known: dict[int, _Known] = {}
        self._count = 0
        self._products = WatchProducts(self._note_product, self._note_copy)
        self._lies: list[str] = []

    def __enter__(self) -> Shapes:
        self._previous = sys.gettrace()
        self._products.__enter__()
        sys.settrace(self._enter_call)
        return self.shapes

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        sys.settrace(self._previous)
        self._products.__exit__(kind, *rest)
        if kind is None and self._lies:
            raise ShapeError("; ".join(self._lies))

    def _enter_call(self, frame: FrameType, event: str, arg: object) -> Any:
        table = TABLES.get(frame.f_code)
        if table is None:
            return None
        parent = self._calls[-1]
        call = _Call(parent.pending(), self.shapes.every_step, table)
        if parent.table is None:  # calls at the top level are numbered on
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
                parent.products += call.products  # those after its last step
                if parent.table is None:
                    parent.count = call.count
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
        known = self._get(tensor)
        if known is None or known.number == 0:
            self._count += 1
            shared = [k.memory for k in self._known.values() if k.number and _overlap(tensor, k)]
            known = _Known(weakref.ref(tensor), self._count, min([*shared, self._count]))
        self._known[id(tensor)] = known._replace(call=call.index, dims=dims)
        made = call.code() if call.line else ""
        products, call.products = _summed(call.products, call.index, dims, tensor.numel()), []
        call.record(
            Step(
                call.pending()[:-1],
                row.name,
                dims,
                tuple(tensor.shape),
                call.sizes.owner,
                call.index,
                known.number,
                tensor.dtype,
                known.memory,
                made,
                products,
            )
        )
        call.tensors[row.name] = tensor

    def _get(self, tensor: Tensor) -> _Known | None:
        """What is known of a tensor; identities of tensors are used again once these are gone."""
        known = self._known.get(id(tensor))
        return known if known is not None and known.tensor() is tensor else None

    def _note_copy(self, source: Tensor, result: Tensor) -> None:
        known = self._get(source)
        if known is not None and self._get(result) is None:
            self._known[id(result)] = known._replace(tensor=weakref.ref(result), number=0)

    def _note_product(self, product: Product) -> None:
        """Name the axes of a product by the tensors that are known so far."""
        sums = next(filter(None, map(self._name, product.sums)), None)
        made = None if product.made is None else [self._name(axis) for axis in product.made]
        if made is not None and None in made:
            sums = None
        self._calls[-1].products.append((product.numbers, sums, made))

    def _name(self, axis: Axis) -> Name | None:
        tensor, index = axis
        known = self._get(tensor)
        if known is None:  # perhaps one whose last two axes are known has got a new one in front
            known = next(
                (
                    other
                    for other in self._known.values()
                    if _overlap(tensor, other) and other.ends_like(tensor)
                ),
                None,
            )
        if known is None or -index > len(known.dims):
            return None if known is None else (known.call, "1")
        return known.call, known.dims[index]


class _Known(NamedTuple):
    """A tensor that was met, for as long as it lives; number 0 for one that is not listed."""

    tensor: weakref.ref[Tensor]
    number: int
    memory: int
    call: int = 0
    dims: tuple[str, ...] = ()

    def ends_like(self, tensor: Tensor) -> bool:
        own = self.tensor()
        return (
            own is not None
            and own.shape[-2:] == tensor.shape[-2:]
            and own.stride()[-2:] == tensor.stride()[-2:]
        )


def _overlap(tensor: Tensor, known: _Known) -> bool:
    """Whether a tensor lies where a known one does; on the meta device nothing lies anywhere."""
    other = known.tensor()
    if other is None or other is tensor or tensor.numel() == 0:
        return False
    if "meta" in (tensor.device.type, other.device.type):
        return False
    return tensor.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _summed(
    pending: list[_Pending], call: int, dims: tuple[str, ...], numbers: int
) -> tuple[tuple[Name, ...], ...]:
    """The products on the way to a step, each as the axes whose sizes multiply to its count.

    Pieces of one product (the chunks of a long one) are joined. A product whose axes have no name
    is an empty tuple.
    """
    pieces: dict[Name, int] = {}
    found: list[tuple[Name, ...]] = []
    for made_numbers, sums, made in pending:
        if sums is None:
            found.append(())
        elif made is not None:
            found.append((*made, sums))
        else:
            pieces[sums] = pieces.get(sums, 0) + made_numbers
    own = tuple((call, dim) for dim in dims)
    found += [(*own, sums) if total == numbers else () for sums, total in pieces.items()]
    return tuple(found)


@functools.lru_cache(maxsize=256)
def _statements(code: CodeType) -> list[tuple[int, int, str]]:
    """First line, last line and text of each statement of a function; none without its source."""
    try:
        lines, start = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return []
    source = textwrap.dedent("".join(lines))
    kinds = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
    return [
        (
            node.lineno + start - 1,
            (node.end_lineno or node.lineno) + start - 1,
            _cut(source, node),
        )
        for node in ast.walk(ast.parse(source))
        if isinstance(node, kinds)
    ]


def _cut(source: str, node: ast.stmt) -> str:
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


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
        self.place = len(steps)
        self.tensors: dict[str, Tensor] = {}
        self.index = -1
        self.line = 0
        self.products: list[_Pending] = []

    def code(self) -> str:
        """The statement that ran last."""
        assert self.table is not None
        found = [
            (last - first, text)
            for first, last, text in _statements(self.table.code)
            if first <= self.line <= last
        ]
        return min(found)[1] if found else ""

    def pending(self) -> str:
        """The number of the step to come, as a prefix for the calls made on the way to it."""
        return f"{self.prefix}{self.count + 1}."

    def record(self, step: Step) -> None:
        self.steps.insert(self.place, step)  # before the calls that were made to compute it
        self.count += 1
        self.place = len(self.steps)
