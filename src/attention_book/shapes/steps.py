"""What a trace has seen: its steps, printed, as a table in colour, and as a list."""

from __future__ import annotations

import html
import weakref
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

from torch import Tensor

from attention_book.language import say
from attention_book.shapes.dimensions import DIMENSIONS
from attention_book.shapes.errors import written
from attention_book.shapes.naming import AxisNames
from attention_book.shapes.tables import ShapeTable, Sizes
from attention_book.shapes.watch import Listed, Operation, Seen


class Step(NamedTuple):
    """One named tensor of a traced call."""

    number: str  # "7", or "7.1" for the first tensor of a call made to compute step 7
    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    function: str
    call: int = 0  # of the trace's `calls`
    times: int = 1  # how often its line bound it, where later times are not listed


class TracedCall(NamedTuple):
    """One call, and the sizes of the dimensions in it."""

    function: str
    code: CodeType
    table: ShapeTable | None  # None for a function that is not the book's
    arguments: Mapping[str, Any]  # the book's: tensors without their numbers, on the meta device
    sizes: dict[str, int]
    depth: int  # 1 for a call made in the block itself, 0 for the block


class Item:
    """A step before it has its number, and the calls made on the way to it."""

    def __init__(self, name: str, tensor: Tensor, inner: list[Call]) -> None:
        self.name, self.shape = name, tuple(tensor.shape)
        self.dims: tuple[str, ...] | None = None  # by a shape table, with the sizes of its names
        self.sizes: Mapping[str, int] = {}
        self.axes_within: AxisNames | None = None  # of the function that has returned it
        self.tensor = weakref.ref(tensor)
        self.inner = inner
        self.is_result = False  # it has no name yet
        self.is_echo = False  # it is what a function of the book has returned
        self.times = 1
        self.number = ""  # none while it is not listed


class Call:
    """One call as it is seen: its steps so far, and what it is called from."""

    def __init__(self, function: str, code: CodeType, axes: AxisNames) -> None:
        self.function, self.code, self.axes = function, code, axes
        self.table: ShapeTable | None = None
        self.arguments: Mapping[str, Any] = {}
        self.checked = Sizes(function)  # what a table has found
        self.items: list[Item] = []
        self.pending: list[Call] = []  # made on the way to the next step
        self.is_bare = False  # its result is bound to no name
        self.times = 1
        self.index = -1

    def add(self, item: Item) -> None:
        self.items.append(item)
        self.pending = []

    def drop(self, item: Item) -> None:
        """Forget a result that the caller has a name for."""
        self.items.remove(item)
        self.pending = item.inner + self.pending


class Shapes:
    """The steps that `trace` saw, as text (`print`), as a coloured table, and as `steps`.

    `every_step` also has those of deeper calls than were asked for; `calls` has all calls, and
    `log` what ran, in its order. `remarks` are sentences about what is not listed.
    """

    def __init__(self, depth: int | None, block: Call) -> None:
        self.depth = depth
        self.remarks: dict[str, None] = {}
        self._block = block
        self._seen: list[tuple[Item, Seen, int] | tuple[Call, Operation]] = []
        self._built: tuple[list[Step], list[TracedCall]] | None = None

    @property
    def every_step(self) -> list[Step]:
        return self._build()[0]

    @property
    def calls(self) -> list[TracedCall]:
        return self._build()[1]

    @property
    def log(self) -> list[Listed | Operation]:
        self._build()
        return [
            entry[1]._replace(call=entry[0].index)
            if len(entry) == 2
            else Listed(entry[0].number, *entry[1:])
            for entry in self._seen
            if len(entry) == 2 or entry[0].number
        ]

    @property
    def steps(self) -> list[Step]:
        every_step, calls = self._build()
        return [
            step
            for step in every_step
            if self.depth is None or calls[step.call].depth <= self.depth
        ]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def saw_item(self, item: Item, tensor: Seen, line: int) -> None:
        self._built = None
        self._seen.append((item, tensor, line))

    def saw_operation(self, call: Call, operation: Operation) -> None:
        self._seen.append((call, operation))

    def remark(self, sentence: str) -> None:
        self.remarks[sentence] = None

    def changed(self) -> None:
        self._built = None

    def _build(self) -> tuple[list[Step], list[TracedCall]]:
        if self._built is None:
            numbering = _Numbering()
            numbering.number_block(self._block)
            self._built = numbering.steps, numbering.calls
        return self._built

    def __repr__(self) -> str:
        steps = self.steps
        if not steps:
            lines = ["no step was traced: no line inside the block bound a tensor to a name"]
            return "\n".join([*lines, *self.remarks])
        indents = ["  " * step.number.count(".") for step in steps]
        columns = [
            [i + s.number for i, s in zip(indents, steps, strict=True)],
            [i + s.name for i, s in zip(indents, steps, strict=True)],
        ]
        if _are_named(steps):
            columns.append([written(s.dims) for s in steps])
        padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
        shapes = [written(s.shape) + _counted(s) for s in steps]
        lines = ["   ".join(line) for line in zip(*padded, shapes, strict=True)]
        return "\n".join([*lines, *self.remarks])

    def _repr_html_(self) -> str:
        rows = []
        steps = self.steps
        titles = [say("step"), say("tensor"), say("dimensions"), say("shape")]
        is_named = _are_named(steps)
        if not is_named:
            del titles[2]
        for step in steps:
            indent = 1.2 * step.number.count(".")
            dims = ", ".join(_coloured(dim, dim) for dim in step.dims)
            sizes = ", ".join(
                _coloured(dim, size) for dim, size in zip(step.dims, step.shape, strict=True)
            )
            named = f'<td style="text-align:left">({dims})</td>' if is_named else ""
            rows.append(
                f'<tr><td style="text-align:left;padding-left:{indent + 0.5}em">{step.number}</td>'
                f'<td style="text-align:left;padding-left:{indent + 0.5}em">'
                f"<code>{html.escape(step.name)}</code></td>"
                f'{named}<td style="text-align:left">({sizes}){_counted(step)}</td></tr>'
            )
        head = "".join(f'<th style="text-align:left" scope="col">{title}</th>' for title in titles)
        body = "\n".join(rows)
        head = f"<thead><tr>{head}</tr></thead>"
        table = f'<table class="shapes">{head}\n<tbody>\n{body}\n</tbody></table>'
        return table + "".join(f"\n<p>{html.escape(remark)}</p>" for remark in self.remarks)


class _Numbering:
    """Numbers for the steps of a block, and the calls in the order in which they began."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.calls: list[TracedCall] = []

    def number_block(self, block: Call) -> None:
        """Number the block's own steps; where these only name results of the book's functions,
        the calls alone."""
        own, count, block.index = any(not item.is_echo for item in block.items), 0, -1
        if own:
            self._list_call(block, 0)
        for item in block.items:
            inner = self._shown(item.inner, block.index)
            beside = [call for call in inner if call.is_bare or not own]
            count = self._number_all(beside, "", count, 1, item)
            item.number = ""
            if own:
                count += 1
                self._number_item(block, item, str(count))
                beneath = [call for call in inner if not call.is_bare]
                self._number_all(beneath, f"{count}.", 0, 1, item)
        self._number_all(self._shown(block.pending, block.index), "", count, 1)

    def _number_all(
        self, calls: list[Call], prefix: str, count: int, depth: int, under: Item | None = None
    ) -> int:
        for call in calls:
            count = self._number(call, prefix, count, depth, under)
        return count

    def _number(
        self, call: Call, prefix: str, count: int, depth: int, under: Item | None = None
    ) -> int:
        """Number the steps of a call, from `count` on; return the number of the last one."""
        self._list_call(call, depth)
        for item in call.items:
            count += 1
            last = len(self.steps)
            self._number_item(call, item, f"{prefix}{count}")
            inner = self._shown(item.inner, call.index)
            self._number_all(inner, f"{prefix}{count}.", 0, depth + 1, item)
        if call.times > 1 and (under is None or under.times == 1):
            self.steps[last] = self.steps[last]._replace(times=call.times)
        after = self._shown(call.pending, call.index)
        self._number_all(after, f"{prefix}{count + 1}.", 0, depth + 1)
        return count

    def _shown(self, calls: list[Call], index: int) -> list[Call]:
        """Calls with steps; of one without any, the calls within."""
        found = []
        for call in calls:
            if call.items:
                found.append(call)
            else:
                call.index = index
                found += self._shown(call.pending, index)
        return found

    def _list_call(self, call: Call, depth: int) -> None:
        call.index = len(self.calls)
        sizes = call.checked.size if call.table else {}
        self.calls.append(
            TracedCall(call.function, call.code, call.table, call.arguments, sizes, depth)
        )

    def _number_item(self, call: Call, item: Item, number: str) -> None:
        item.number = number
        dims = self._dims(call, item)
        self.steps.append(
            Step(number, item.name, dims, item.shape, call.function, call.index, item.times)
        )

    def _dims(self, call: Call, item: Item) -> tuple[str, ...]:
        """The names of axes: those that a table has given, or those of sizes. Within a call, one
        name is one size."""
        if call.table and item.dims is not None:
            return item.dims
        known = self.calls[call.index].sizes
        dims, sizes = item.dims, item.sizes
        if dims is None or any(known.get(name, size) != size for name, size in sizes.items()):
            here = call.axes.of(item.shape)
            within = item.axes_within.of(item.shape) if item.axes_within else here
            named = [b if a.isdigit() else a for a, b in zip(here, within, strict=True)]
            dims = tuple(
                str(size) if known.get(dim, size) != size else dim
                for dim, size in zip(named, item.shape, strict=True)
            )
            sizes = {
                dim: size for dim, size in zip(dims, item.shape, strict=True) if dim.isidentifier()
            }
        known.update(sizes)
        return dims


def _are_named(steps: list[Step]) -> bool:
    return any(not dim.isdigit() for step in steps for dim in step.dims)


def _counted(step: Step) -> str:
    return "   " + say("{0} in all", step.times) if step.times > 1 else ""


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
