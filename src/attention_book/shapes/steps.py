"""What a trace has seen: its steps, printed, as a table in colour, and as a list; and what ran.

The steps need none of the calls into PyTorch. The walk reads these, to say what a step costs and
what it is made of.
"""

from __future__ import annotations

import html
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_book.language import say
from attention_book.shapes.dimensions import DIMENSIONS
from attention_book.shapes.errors import written
from attention_book.shapes.lines import fields_of
from attention_book.shapes.tables import ShapeTable, Sizes


class Step(NamedTuple):
    """One named tensor of a traced call."""

    number: str  # "7", or "7.1" for the first tensor of a call made to compute step 7
    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    function: str
    call: int = 0  # of the trace's `calls`
    times: int = 1  # how often its line bound it, where later times are not listed


#: How arguments and attributes are called that are the size of an axis.
_SIZE = re.compile(
    r"d_[a-z]+|(num|n)_(kv_|key_value_|attention_)?heads?|n_?heads?|n_embd|bsz|"
    r"(batch|head|hidden|vocab|embed|embedding|intermediate)_(size|dim)|embed_dim|dim_head|"
    r"(seq|sequence)_?(len|length)|vocab_size|num_(queries|keys)"
)


#: How those of them end that are not how wide a vector is.
_COUNTS = ("heads", "head", "queries", "keys", "length", "len", "batch", "batch_size", "bsz")


def _is_count(name: str) -> bool:
    return name.endswith(_COUNTS) and name != "dim_head"


class AxisNames:
    """Names for the axes of tensors in one function without a shape table: found, never guessed."""

    def __init__(self, given: Mapping[str, int]) -> None:
        self.given = given
        self.declared: dict[str, int] = {}  # in arguments and attributes called like sizes
        self._read: dict[str, int] = {}  # from a shape; 0 for a name that was of two sizes
        self.parameters: set[int] = set()  # sizes of those that it uses
        # Sizes of last axes of floating-point tensors, of all others, and of two of one tensor.
        self._last, self._others, self._twice = set[int](), set[int](), set[int]()
        self._no_width = set[int]()  # of tensors of integers, and of any two axes of one

    def declare(self, values: Iterable[tuple[str, object]]) -> None:
        """Take the sizes among named values."""
        for name, value in values:
            if type(value) is int and (name in DIMENSIONS or _SIZE.fullmatch(name)):
                plain = name.removeprefix("num_")
                self.declared[plain if plain in DIMENSIONS else name] = value

    def read(self, name: str, size: int) -> None:
        """Take a size that a line has read from a shape."""
        self._read[name] = size if self._read.get(name, size) == size else 0

    def add_parameters(self, module: object) -> None:
        with torch._C.DisableTorchFunction():
            for each in fields_of(module).get("_parameters", {}).values():
                if isinstance(each, Tensor) and not hasattr(each, "materialize"):  # a lazy one
                    self.parameters.update(each.shape)

    def meet(self, tensor: Seen) -> None:
        """Take up a tensor of the function; that of scores is square."""
        shape, is_vector = tensor.shape, tensor.dtype.is_floating_point
        self._last.update(shape[-1:] if is_vector and len(shape) > 2 else ())
        self._others.update(shape[:-1] if is_vector else shape)
        twice = {size for size in shape if shape.count(size) > 1 and len(shape) > 2}
        self._twice.update(twice.intersection(shape[:-2]))
        self._no_width.update(twice if is_vector else shape)

    def of(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """A name for each axis; its size as a number where it has none, or more than one could."""
        return tuple(
            self._name(size, i, len(shape)) if size > 1 and shape.count(size) == 1 else str(size)
            for i, size in enumerate(shape)
        )

    def _may_be(self, name: str, size: int, axis: int, axes: int) -> bool:
        """Whether an axis is where one of a declared name stands: a width last, heads between."""
        if not _is_count(name):
            return axis == axes - 1 and size not in self._no_width
        return "head" not in name or (axes > 3 and 0 < axis < axes - 1)

    def _name(self, size: int, *place: int) -> str:
        given, declared, read = (
            {name for name, value in names.items() if value == size}
            for names in (self.given, self.declared, self._read)
        )
        declared = {name for name in declared if self._may_be(name, size, *place)}
        # What is read has one more name where one is given.
        names = given | declared if given else declared | read
        if len(names) != 1 or len(read) > 1:
            return str(size)
        (name,) = names
        is_width = size in self._last - self._others
        if name in self.declared:
            is_width = not _is_count(name)
        is_two = size in self._twice or (size in self.parameters and not is_width)
        return str(size) if is_two and not given else name


class Seen(NamedTuple):
    """A tensor as a trace met it: one `number` is one tensor, one `memory` is shared memory."""

    number: int
    memory: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class Register:
    """A number for each tensor and for each memory, for as long as they live: identities are used
    again."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[weakref.ref[Tensor], Seen]] = {}
        self._memory: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._count = 0

    def see(self, tensors: list[Tensor]) -> list[Seen]:
        """The tensors as they are now. One loop, because a trace is told of each call it makes."""
        found = []
        for tensor in tensors:
            alive, seen = self._seen.get(id(tensor), (None, None))
            if alive is None or seen is None or alive() is not tensor:
                self._count += 1
                memory, is_strided = self._count, tensor.layout == torch.strided
                try:
                    storage = tensor.untyped_storage()
                except RuntimeError:  # sparse tensors have none, those of torch.func hide it
                    storage = None
                if storage is not None:
                    holder, known = self._memory.get(id(storage), (None, memory))
                    if holder is not None and holder() is storage:
                        memory = known
                    self._memory[id(storage)] = weakref.ref(storage), memory
                stride = tensor.stride() if is_strided else ()
                seen = Seen(self._count, memory, tuple(tensor.shape), stride, tensor.dtype)
                self._seen[id(tensor)] = weakref.ref(tensor), seen
            found.append(seen)
        return found


@dataclass(eq=False, repr=False)
class Item:
    """A step before it has its number, and the calls made on the way to it."""

    name: str
    shape: tuple[int, ...]
    tensor: weakref.ref[Tensor]
    line: int  # that made it, 0 for an argument
    seen: Seen
    inner: list[TracedCall] = field(default_factory=list)
    dims: tuple[str, ...] | None = None  # by a shape table, with the sizes of its names
    sizes: Mapping[str, int] = field(default_factory=dict)
    is_result: bool = False  # it has no name yet
    is_echo: bool = False  # it is what a function of the book has returned
    times: int = 1
    number: str = ""  # none while it is not listed


@dataclass(eq=False, repr=False)
class TracedCall:
    """One call as it is seen: its steps so far, what it is called from, and the sizes of its
    dimensions."""

    function: str
    code: CodeType
    axes: AxisNames
    table: ShapeTable | None = None  # None for a function that is not the book's
    checked: Sizes | None = None  # what the table has found
    # The book's arguments: tensors without their numbers, on the meta device.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    pending: list[TracedCall] = field(default_factory=list)  # made on the way to the next step
    is_bare: bool = False  # its result is bound to no name
    times: int = 1
    index: int = -1  # of the trace's `calls`
    depth: int = 0  # 1 for a call made in the block itself, 0 for the block

    def drop(self, item: Item) -> None:
        """Forget a result that the caller has a name for."""
        self.items.remove(item)
        self.pending = item.inner + self.pending


class Operation(NamedTuple):
    """One call into PyTorch: the tensors that it was given, and the one that it made.

    `function` is None in a pass of a loop that is not listed: what it costs belongs to no step.
    """

    function: Any
    given: tuple[Seen, ...]
    made: Seen
    call: TracedCall


class Shapes:
    """The steps that `trace` saw, as text (`print`), as a coloured table, and as `steps`.

    `every_step` also has those of deeper calls than were asked for; `calls` has all calls, and
    `log` what ran, in its order. `remarks` are sentences about what is not listed.
    """

    def __init__(self, depth: int | None) -> None:
        self.depth = depth
        self.remarks: dict[str, None] = {}
        self.blocks: list[TracedCall] = []  # the functions whose lines are those of the block
        self._log: list[Item | Operation] = []
        self._is_numbered = False
        self._steps: list[Step] = []
        self._calls: list[TracedCall] = []

    @property
    def every_step(self) -> list[Step]:
        self._number_all()
        return self._steps

    @property
    def calls(self) -> list[TracedCall]:
        self._number_all()
        return self._calls

    @property
    def log(self) -> list[Item | Operation]:
        self._number_all()
        return [each for each in self._log if isinstance(each, Operation) or each.number]

    @property
    def steps(self) -> list[Step]:
        most = float("inf") if self.depth is None else self.depth
        return [step for step in self.every_step if self.calls[step.call].depth <= most]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def saw(self, *events: Item | Operation) -> None:
        """Take up what ran; from now on, or where something is counted anew, numbers are others."""
        self._log += events
        self._is_numbered = False

    def remark(self, sentence: str) -> None:
        self.remarks[sentence] = None

    def _number_all(self) -> None:
        if not self._is_numbered:
            self._is_numbered, self._steps, self._calls = True, [], []
            self._number(self.blocks, "", 0, 0)

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
        steps = self.steps
        titles = [say("step"), say("tensor"), say("dimensions"), say("shape")]
        is_named = _are_named(steps)
        if not is_named:
            del titles[2]
        rows = []
        for step in steps:
            indent = f";padding-left:{1.2 * step.number.count('.') + 0.5}em"
            dims = ", ".join(_coloured(dim, dim) for dim in step.dims)
            pairs = zip(step.dims, step.shape, strict=True)
            sizes = ", ".join(_coloured(dim, size) for dim, size in pairs)
            cells = [
                _cell(step.number, indent),
                _cell(f"<code>{html.escape(step.name)}</code>", indent),
                _cell(f"({dims})") if is_named else "",
                _cell(f"({sizes}){_counted(step)}"),
            ]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        heads = (f'<th style="text-align:left" scope="col">{title}</th>' for title in titles)
        head = f"<thead><tr>{''.join(heads)}</tr></thead>"
        body = "\n".join(rows)
        table = f'<table class="shapes">{head}\n<tbody>\n{body}\n</tbody></table>'
        return table + "".join(f"\n<p>{html.escape(remark)}</p>" for remark in self.remarks)

    def _number(
        self,
        calls: list[TracedCall],
        prefix: str,
        count: int,
        depth: int,
        under: Item | None = None,
    ) -> int:
        """Number the steps of calls, from `count` on; return the number of the last one."""
        for call in calls:
            # A block whose steps only name results of the book's functions has none of its own.
            has_own = depth > 0 or any(not item.is_echo for item in call.items)
            call.index, call.depth = len(self._calls) if has_own else -1, depth
            if has_own:
                self._calls.append(call)
            if call.table is None:
                call.sizes = {}
            for item in call.items:
                inner = shown(item.inner, call.index)
                beside = [each for each in inner if each.is_bare or not has_own]
                count = self._number(beside, prefix, count, depth + 1, item)
                item.number = f"{prefix}{count + 1}" if has_own else ""
                if has_own:
                    count, last = count + 1, len(self._steps)
                    named = (item.number, item.name, self._dims(call, item), item.shape)
                    self._steps.append(Step(*named, call.function, call.index, item.times))
                    beneath = [each for each in inner if not each.is_bare]
                    self._number(beneath, f"{item.number}.", 0, depth + 1, item)
            if call.times > 1 and (under is None or under.times == 1):
                self._steps[last] = self._steps[last]._replace(times=call.times)
            after = shown(call.pending, call.index)
            if depth:
                self._number(after, f"{prefix}{count + 1}.", 0, depth + 1)
            else:
                count = self._number(after, prefix, count, 1)
        return count

    def _dims(self, call: TracedCall, item: Item) -> tuple[str, ...]:
        """The names of axes: those that a table has given, or those of sizes. Within a call, one
        name is one size."""
        if call.table and item.dims is not None:
            return item.dims
        known, dims, sizes = call.sizes, item.dims, item.sizes
        if dims is None or any(known.get(name, size) != size for name, size in sizes.items()):
            dims = tuple(
                str(size) if known.get(dim, size) != size else dim
                for dim, size in zip(call.axes.of(item.shape), item.shape, strict=True)
            )
            sizes = {
                dim: size for dim, size in zip(dims, item.shape, strict=True) if dim.isidentifier()
            }
        known.update(sizes)
        return dims


def names_in(*expressions: str) -> list[str]:
    """The names of dimensions in expressions such as heads*d_k."""
    return re.findall(r"[^\W\d]\w*", " ".join(expressions))


def shown(calls: list[TracedCall], within: int = -1) -> list[TracedCall]:
    """Calls with steps; of one without any, which has no number of its own, the calls within."""
    found = []
    for call in calls:
        if not call.items:
            call.index = within
        found += [call] if call.items else shown(call.pending, within)
    return found


def _are_named(steps: list[Step]) -> bool:
    return any(not dim.isdigit() for step in steps for dim in step.dims)


def _counted(step: Step) -> str:
    return "   " + say("{0} in all", step.times) if step.times > 1 else ""


def _cell(content: str, style: str = "") -> str:
    return f'<td style="text-align:left{style}">{content}</td>'


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
