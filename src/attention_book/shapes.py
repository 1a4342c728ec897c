"""Shape tables: stated once in a docstring, checked on each call, printed by `trace`.

A function decorated with `checked` holds in its docstring a table such as

    Shapes:
        queries     (batch, queries, size) or (batch, heads, queries, size)
        keys        (batch, keys, size) or (batch, heads, keys, size)
        valid_lens  (batch) or (batch, queries), integers from 0 to keys
        mask        (queries, keys) or (batch, queries, keys), boolean, sizes may be 1
        scores      (batch, queries, keys) or (batch, heads, queries, keys)
        returns     (batch, queries, keys) or (batch, heads, queries, keys)

Each row names an argument, a local variable or the result. The names in parentheses are
dimensions: one name, one size within a call. `num_keys=10` as an argument fixes `keys`, and a
module fixes further sizes in its attribute `sizes`. A row without a kind holds floating-point
numbers.
"""

from __future__ import annotations

import functools
import html
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class ShapeError(ValueError):
    """A tensor whose shape does not fit; the message names argument, dimension and sizes."""


def positive(name: str, value: int, *, least: int = 1) -> int:
    """Return `value`, an int of at least 1; raise TypeError or ValueError otherwise."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, but is of type {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, but is {value}")
    return value


def number(name: str, value: float) -> float:
    """Return `value`, an int or a float; raise TypeError otherwise."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, but is of type {type(value).__name__}")
    return value


def probability(name: str, value: float) -> float:
    """Return `value`, a number from 0 to 1; raise TypeError or ValueError otherwise."""
    if not 0 <= number(name, value) <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, but is {value}")
    return value


class Dimension(NamedTuple):
    """The one colour of a dimension in text, figures and drawings, and what it counts."""

    colour: str
    meaning: str


#: Mid-tones that keep 3:1 contrast on white and on near-black, told apart by colour-blind readers
#: where they meet in one formula; names always stand beside them.
DIMENSIONS: Mapping[str, Dimension] = {
    "batch": Dimension("#808080", "examples computed together"),
    "queries": Dimension("#0077BB", "queries of one example"),
    "keys": Dimension("#D55E00", "keys of one example; there are as many values"),
    "length": Dimension("#5B74D6", "positions of a sequence that attends to itself"),
    "heads": Dimension("#C4569A", "attention heads"),
    "size": Dimension("#00916A", "numbers in one query and in one key"),
    "d_k": Dimension("#00916A", "numbers in one query and in one key of one head"),
    "query_size": Dimension("#2E8FA3", "numbers in one query, where keys have another size"),
    "key_size": Dimension("#7D8B1B", "numbers in one key, where queries have another size"),
    "hidden": Dimension("#8F63D9", "hidden units of additive attention"),
    "value_size": Dimension("#B07A00", "numbers in one value"),
    "d_v": Dimension("#B07A00", "numbers in one value of one head"),
    "d_model": Dimension("#A0603A", "numbers in one position, in and out of a layer"),
    "tokens": Dimension("#8F63D9", "different tokens a model knows"),
}


class Row(NamedTuple):
    """One line of a shape table."""

    name: str
    shapes: Mapping[int, list[tuple[str, ...]]]  # by number of axes
    kind: str  # "floating", "integers" or "boolean"
    upper: str | None  # the dimension that bounds integers, from 0 on
    reaches_upper: bool  # whether they may equal it
    stretches: bool  # sizes may be 1

    def text(self) -> str:
        return " or ".join(_written(dims) for shapes in self.shapes.values() for dims in shapes)

    def dims(self, shape: torch.Size) -> tuple[str, ...] | None:
        """The dimensions that stand for `shape`: of its number of axes, with its 1s at the 1s."""
        choices = self.shapes.get(len(shape))
        if choices is None:
            return None
        for dims in choices[:-1]:
            if all(not d.isdigit() or int(d) == size for d, size in zip(dims, shape, strict=True)):
                return dims
        return choices[-1]


def _written(items: tuple[Any, ...] | torch.Size) -> str:
    return "(" + ", ".join(map(str, items)) + ")"


_ROW = re.compile(
    r"^(?P<names>\w+(?:, *\w+)*) +(?P<shapes>\([^)]*\)(?: or \([^)]*\))*)(?P<kind>.*)$"
)
_KIND = re.compile(
    r"^(?:, (?P<kind>integers|boolean)(?: (?P<range>from 0 to|below) (?P<upper>\w+))?)?"
    r"(?P<stretches>, sizes may be 1)?$"
)


def _parse(docstring: str) -> list[Row]:
    """The rows of the `Shapes:` section; a deeper indented line goes on with the row above."""
    lines = inspect.cleandoc(docstring).splitlines()
    section = itertools.takewhile(str.strip, lines[lines.index("Shapes:") + 1 :])
    joined = re.sub(r"\n {5,}", " ", "\n".join(section))
    rows: list[Row] = []
    for line in joined.splitlines():
        row = _ROW.match(line.strip())
        kind = _KIND.match(row["kind"]) if row else None
        if row is None or kind is None:
            raise ValueError(f"not a row of a shape table: {line.strip()!r}")
        shapes: dict[int, list[tuple[str, ...]]] = {}
        for text in re.findall(r"\(([^)]*)\)", row["shapes"]):
            dims = tuple(part.strip() for part in text.split(",") if part.strip())
            shapes.setdefault(len(dims), []).append(dims)
        for name in row["names"].replace(" ", "").split(","):
            stretches = kind["stretches"] is not None
            what = kind["kind"] or "floating"
            rows.append(Row(name, shapes, what, kind["upper"], kind["range"] != "below", stretches))
    return rows


class _Sizes:
    """The sizes met so far in one call, and the argument that each was first seen in."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.size: dict[str, int] = {}
        self.origin: dict[str, str] = {}

    def set(self, dim: str, size: int, origin: str) -> None:
        self.size[dim] = size
        self.origin[dim] = origin

    def fit(self, row: Row, shape: torch.Size) -> None:
        """Hold `shape` against `row`: known dimensions must agree, new ones are learnt."""
        dims = row.dims(shape)
        if dims is None:
            axes = " or ".join(map(str, row.shapes))
            raise ShapeError(
                f"{self.owner}: {row.name} must have {axes} axes {row.text()}, "
                f"but has {len(shape)}: {_written(shape)}"
            )
        known = self.size
        for dim, size in zip(dims, shape, strict=True):
            expected = known.get(dim)
            if expected is None:
                if dim.isidentifier() and not row.stretches:
                    self.set(dim, size, row.name)
                    continue
                expected = self._computed(dim, size, row, dims, shape)
            if size != expected and not (row.stretches and size == 1):
                or_one = " or 1" if row.stretches else ""
                raise ShapeError(
                    f"{self.owner}: '{dim}' is {size} in {row.name} {_written(dims)} = "
                    f"{_written(shape)}, "
                    f"but {expected}{or_one} in {self.origin.get(dim, 'its table')}"
                )

    def _computed(
        self, dim: str, size: int, row: Row, dims: tuple[str, ...], shape: torch.Size
    ) -> int:
        """The size of a number or of a product such as heads*size; learns one unknown factor."""
        if row.stretches:
            raise ShapeError(
                f"{self.owner}: {row.name} {_written(dims)} = {_written(shape)} has an axis "
                f"'{dim}', but the other arguments have none"
            )
        if dim.isdigit():
            return int(dim)
        factors = dim.split("*")
        product, unknown = 1, []
        for factor in factors:  # a loop, because torch.compile does not follow a generator here
            if factor in self.size:
                product *= self.size[factor]
            else:
                unknown.append(factor)
        if unknown:
            if product == 0 or size % product:
                raise ShapeError(
                    f"{self.owner}: '{dim}' is {size} in {row.name} {_written(dims)} = "
                    f"{_written(shape)}, which {product} {factors[0]} do not divide"
                )
            self.set(unknown[0], size // product, row.name)
            return size
        self.origin[dim] = " and ".join(f"{factor} = {self.size[factor]}" for factor in factors)
        return product


class ShapeTable:
    """The shape table of one function, compiled from its docstring."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.rows = {row.name: row for row in _parse(function.__doc__ or "")}
        self.code: CodeType = function.__code__  # type: ignore[attr-defined]
        self.function_name = function.__name__
        parameters = inspect.signature(function).parameters
        unknown = set(self.rows) - set(self.code.co_varnames) - {"returns"}
        if unknown:
            raise ValueError(f"{function.__qualname__} has no variable named {sorted(unknown)}")
        self.positions = {name: index for index, name in enumerate(parameters)}
        self.arguments = [self.rows[name] for name in parameters if name in self.rows]
        self.ranged = [row for row in self.arguments if row.upper is not None]
        self.optional = {name for name, p in parameters.items() if p.default is None}
        self.counts = [name for name in parameters if name.startswith("num_")]
        self.is_method = next(iter(parameters), "") == "self"
        self._passed: dict[tuple[Any, ...], _Sizes] = {}

    def check_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Check the arguments of one call; of a call like one that passed, only their values."""
        if torch.compiler.is_compiling():
            self.check(args, kwargs)
            return
        looks = self._looks(args, kwargs)
        sizes = self._passed.get(looks)
        if sizes is None:
            sizes = self.check(args, kwargs)
            if len(self._passed) >= 256:
                self._passed.clear()
            self._passed[looks] = sizes
            return
        for row in self.ranged:
            tensor = self._argument(row.name, args, kwargs)
            if tensor is not None:
                _check_range(sizes, row, tensor)

    def _looks(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """All that the check of a call rests on, but for the numbers in its tensors."""
        looks: list[Any] = [*kwargs]
        for argument in (*args, *kwargs.values()):
            if isinstance(argument, Tensor):
                looks += argument.shape, argument.dtype, argument.device
            else:
                looks.append(type(argument))
                if isinstance(argument, int):  # a number of keys or heads
                    looks.append(argument)
        if self.is_method:
            module = args[0]
            looks += getattr(module, "sizes", {}).values()
            looks.append(_precision(module))
            looks.append(torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"))
        return tuple(looks)

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Sizes:
        """Check the arguments of one call; return the sizes of its dimensions."""
        sizes = _Sizes(type(args[0]).__name__ if self.is_method else self.function_name)
        if self.is_method:
            for dim, size in getattr(args[0], "sizes", {}).items():
                sizes.set(dim, size, "this module")
        for name in self.counts:
            count = self._argument(name, args, kwargs)
            positive(f"{sizes.owner}: {name}", count, least=0)
            sizes.set(name.removeprefix("num_"), count, name)
        first: tuple[str, Tensor] | None = None
        for row in self.arguments:
            tensor = self._argument(row.name, args, kwargs)
            if tensor is None and (
                row.name in self.optional or not self._given(row.name, args, kwargs)
            ):
                continue  # of one that is missing Python speaks itself
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"{sizes.owner}: {row.name} must be a torch.Tensor, "
                    f"but is of type {type(tensor).__name__}"
                )
            _check_kind(sizes.owner, row, tensor)
            if first is None:
                first = row.name, tensor
                if self.is_method and row.kind == "floating":
                    _check_precision(sizes.owner, row.name, tensor, args[0])
            elif row.kind == "floating":
                _check_alike(sizes.owner, row, tensor, *first, in_module=self.is_method)
            elif tensor.device != first[1].device:
                raise ValueError(
                    f"{sizes.owner}: {row.name} is on {tensor.device}, "
                    f"but {first[0]} is on {first[1].device}"
                )
            sizes.fit(row, tensor.shape)
            if row.upper is not None:
                _check_range(sizes, row, tensor)
        return sizes

    def _given(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        return name in kwargs or self.positions[name] < len(args)

    def _argument(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        position = self.positions[name]
        return args[position] if position < len(args) else kwargs.get(name)


#: The dtypes with which the framework can compare and index.
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def _check_kind(owner: str, row: Row, tensor: Tensor) -> None:
    dtype = tensor.dtype
    if row.kind == "floating":
        if not dtype.is_floating_point:
            raise TypeError(f"{owner}: {row.name} must hold floating-point numbers, not {dtype}")
    elif row.kind == "boolean":
        if dtype != torch.bool:
            raise TypeError(
                f"{owner}: {row.name} must be boolean (True = may attend), but holds {dtype}"
            )
    elif dtype not in _INTEGERS:
        raise TypeError(f"{owner}: {row.name} must hold integers, uint8 or signed, not {dtype}")


def _check_precision(owner: str, name: str, tensor: Tensor, module: Any) -> None:
    """Hold a dtype against the module's parameters; under autocast the framework casts."""
    precision = _precision(module)
    if precision in (None, tensor.dtype) or torch.is_autocast_enabled(tensor.device.type):
        return
    raise TypeError(
        f"{owner}: {name} holds {tensor.dtype}, but the module's parameters hold {precision}"
    )


def _precision(module: Any) -> torch.dtype | None:
    """The dtype of the first weight of a module or of its parts."""
    for part in (module, *module._modules.values()):
        weight = part._parameters.get("weight")
        if weight is not None:
            return weight.dtype
    return None


def _check_alike(
    owner: str, row: Row, tensor: Tensor, name: str, other: Tensor, *, in_module: bool
) -> None:
    # In a module autocast brings dtypes together.
    if tensor.dtype != other.dtype and not (
        in_module and torch.is_autocast_enabled(tensor.device.type)
    ):
        raise TypeError(f"{owner}: {row.name} holds {tensor.dtype}, but {name} holds {other.dtype}")
    if tensor.device != other.device:
        raise ValueError(f"{owner}: {row.name} is on {tensor.device}, but {name} on {other.device}")
    if len(row.shapes) > 1 and tensor.dim() != other.dim():
        raise ShapeError(
            f"{owner}: {row.name} has {tensor.dim()} axes {_written(tensor.shape)}, "
            f"but {name} has {other.dim()}: {_written(other.shape)}"
        )


def _check_range(sizes: _Sizes, row: Row, tensor: Tensor) -> None:
    """Integers must lie in 0 … upper. On a GPU the check runs there, without a synchronisation."""
    assert row.upper is not None
    upper = sizes.size[row.upper] - (not row.reaches_upper)
    if torch._C._functorch.is_batchedtensor(tensor):
        return  # under vmap no single value can be looked at
    if tensor.is_cpu and not torch.compiler.is_compiling():
        if tensor.numel() == 0:
            return
        # A batch of lengths is short, and Python looks through it in half the time.
        extremes = tensor.tolist() if tensor.dim() == 1 else [int(x) for x in tensor.aminmax()]
        lowest, highest = min(extremes), max(extremes)
        if lowest < 0 or highest > upper:
            wrong = lowest if lowest < 0 else highest
            raise ValueError(f"{sizes.owner}: {row.name} holds {wrong}, but {_range(row, upper)}")
    else:
        within = ((tensor >= 0) & (tensor <= upper)).all()
        torch._assert_async(within, f"{sizes.owner}: {row.name} {_range(row, upper)}")


def _range(row: Row, upper: int) -> str:
    what = "the number of" if row.reaches_upper else "the last of the"
    return f"must lie between 0 and {what} {row.upper}, {upper}"


_TABLES: dict[CodeType, ShapeTable] = {}


def checked(function: F) -> F:
    """Check the arguments of each call against the `Shapes:` table in the docstring.

    Raises:
        ValueError: at definition, for a table that cannot be read or names no variable.
        ShapeError, TypeError, ValueError: on a call whose arguments do not fit the table.
    """
    table = ShapeTable(function)
    _TABLES[table.code] = table

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        table.check_call(args, kwargs)
        return function(*args, **kwargs)

    # torch.compile gives up on a code object after eight versions: each function has its own.
    wrapper.__code__ = wrapper.__code__.replace()  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


def unchecked(function: F) -> F:
    """The function that `checked` wraps, for a caller that has checked the arguments itself."""
    return function.__wrapped__  # type: ignore[attr-defined,no-any-return]


class Step(NamedTuple):
    """One named tensor of a traced call."""

    number: str  # "7", or "7.1" for the first tensor of a call made to compute step 7
    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    function: str


class Shapes:
    """The steps that `trace` saw, as text (`print`), as a coloured table, and as `steps`."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not self.steps:
            return "no step was traced: no function with a shape table ran inside the block"
        indents = ["  " * step.number.count(".") for step in self.steps]
        columns = [
            [i + s.number for i, s in zip(indents, self.steps, strict=True)],
            [i + s.name for i, s in zip(indents, self.steps, strict=True)],
            [_written(s.dims) for s in self.steps],
        ]
        padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
        shapes = [_written(s.shape) for s in self.steps]
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
    """`text` underlined in the colour of the dimension; a product takes its first factor's."""
    known = [DIMENSIONS[factor].colour for factor in dim.split("*") if factor in DIMENSIONS]
    style = f' style="border-bottom:3px solid {known[0]}"' if known else ""
    return f'<span class="dim"{style}>{text}</span>'


class trace:  # noqa: N801, a context manager reads as a verb
    """List every named tensor of the calls made inside the block, with its shape.

    >>> with trace() as shapes:
    ...     attention(queries, keys, values)
    >>> print(shapes)

    Only functions with a shape table are listed. Calls made on the way to a step stand beneath it,
    numbered 7.1, 7.2 …; `depth=1` leaves them out. The block's exit raises `ShapeError` if a table
    says another shape than a tensor has. Outside the block nothing is installed.
    """

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth
        self.shapes = Shapes()
        self._calls = [_Call("", [], None)]
        self._lies: list[str] = []

    def __enter__(self) -> Shapes:
        self._previous = sys.gettrace()
        sys.settrace(self._enter_call)
        return self.shapes

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        sys.settrace(self._previous)
        if kind is None and self._lies:
            raise ShapeError("; ".join(self._lies))

    def _enter_call(self, frame: FrameType, event: str, arg: object) -> Any:
        table = _TABLES.get(frame.f_code)
        if table is None or (self.depth is not None and len(self._calls) > self.depth):
            return None
        parent = self._calls[-1]
        call = _Call(parent.pending(), self.shapes.steps, table)
        if parent.table is None:  # calls at the top level are numbered on
            call.prefix, call.count = "", parent.count
        self._calls.append(call)
        values = frame.f_locals
        call.sizes = table.check(tuple(values[name] for name in table.positions), {})
        for row in table.arguments:
            if row.kind == "floating":
                self._see(call, row, values[row.name])

        def on_event(frame: FrameType, event: str, arg: object) -> Any:
            values = frame.f_locals
            for name, row in table.rows.items():
                if name not in table.positions and name in values:
                    self._see(call, row, values[name])
            if event == "return":
                if "returns" in table.rows:
                    self._see(call, table.rows["returns"], arg)
                self._calls.pop()
                if self._calls[-1].table is None:
                    self._calls[-1].count = call.count
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
        is_listed = any(tensor is listed for listed in call.tensors.values())
        if row.name in call.tensors or (row.name == "returns" and is_listed):
            return
        dims = tuple(
            "1" if row.stretches and size == 1 != call.sizes.size.get(dim) else dim
            for dim, size in zip(row.dims(tensor.shape) or (), tensor.shape, strict=True)
        )
        call.record(
            Step(call.pending()[:-1], row.name, dims, tuple(tensor.shape), call.sizes.owner)
        )
        call.tensors[row.name] = tensor


class _Call:
    """One traced call: its number, and where its next step belongs in the list of steps."""

    sizes: _Sizes

    def __init__(self, prefix: str, steps: list[Step], table: ShapeTable | None) -> None:
        self.prefix = prefix
        self.steps = steps
        self.table = table
        self.count = 0
        self.place = len(steps)
        self.tensors: dict[str, Tensor] = {}

    def pending(self) -> str:
        """The number of the step to come, as a prefix for the calls made on the way to it."""
        return f"{self.prefix}{self.count + 1}."

    def record(self, step: Step) -> None:
        self.steps.insert(self.place, step)  # before the calls that were made to compute it
        self.count += 1
        self.place = len(self.steps)
