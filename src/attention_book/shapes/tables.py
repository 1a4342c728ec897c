"""Shape tables: stated once in a docstring, read by `help`, checked on each call.

A function decorated with `checked` has in its docstring a table such as

    Shapes:
        queries     (batch, queries, size) or (batch, heads, queries, size)
        keys        (batch, keys, size) or (batch, heads, keys, size)
        valid_lens  (batch) or (batch, queries), integers from 0 to keys
        mask        (queries, keys) or (batch, queries, keys), boolean, sizes may be 1
        scores      (batch, queries, keys) or (batch, heads, queries, keys)
        returns     (batch, queries, keys) or (batch, heads, queries, keys)

A row is

    name[, name …]  (dimension, …) [or (dimension, …) …][, kind][, sizes may be 1]

and goes on in lines that are indented deeper. Each row names an argument, a local variable or the
result. What stands in it:

- A dimension is a name, a number, a product of names such as heads*d_k, or a sum such as
  cached+keys. One name is one size within a call; the first argument that has it fixes it.
- `()` is a tensor without axes, a single number.
- After `or` stands another shape that the tensor may have. The number of axes decides which one
  it is; of two with as many, the one whose 1s are where the tensor's are.
- Floating-point arguments whose rows have the same choice between numbers of axes choose alike:
  with four axes in queries, keys have four. A row with another choice, such as
  `temperature  () or (heads)`, is free; but an axis that a required argument before it may have,
  such as heads, it has only where that one does.
- The kind is `integers`, `integers from 0 to keys`, `integers from cached to cached+keys`,
  `integers below tokens` or `boolean`. Without one, the tensor contains floating-point numbers, of
  one dtype in all arguments. The first of them has the dtype of the module's parameters.
- Where sizes may be 1, any axis may be of size 1 instead, and none fixes a dimension.
- An argument with the default None may be left out.

Besides, an argument `num_keys=10` fixes `keys`. A module fixes the dimensions in its attribute
`sizes`, and so does an argument called `cache`, or the first of those called `caches`: `cached` is
0 without one.

Tables are read when their function is defined. `ATTENTION_BOOK_CHECKS=off` in the environment, when
the package is imported, leaves all calls unchecked; `trace` still reads the tables. Python's option
-OO removes docstrings: then there are no tables, nothing is checked, and `trace` sees nothing.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from attention_book.shapes.errors import ShapeError, at_least, written

F = TypeVar("F", bound=Callable[..., Any])


class Row(NamedTuple):
    """One line of a shape table."""

    name: str
    shapes: Mapping[int, list[tuple[str, ...]]]  # by number of axes
    kind: str  # "floating", "integers" or "boolean"
    lower: str  # the dimension, or the number, at which integers begin
    upper: str | None  # the dimension that bounds integers
    reaches_upper: bool  # whether they may equal it
    stretches: bool  # sizes may be 1
    has_sums: bool  # some dimension is a sum
    borrowed: tuple[str, ...] = ()  # dimensions that it has where a row before it has them

    def choices(self) -> list[tuple[str, ...]]:
        return [dims for shapes in self.shapes.values() for dims in shapes]

    def chosen(self) -> set[str]:
        """The dimensions that some of the shapes have and others have not."""
        choices = [{*dims} for dims in self.choices()]
        return choices[0].union(*choices) - choices[0].intersection(*choices)

    def text(self) -> str:
        return " or ".join(map(written, self.choices()))

    def dims(self, shape: torch.Size) -> tuple[str, ...] | None:
        """The dimensions that stand for `shape`: of its number of axes, with its 1s at the 1s."""
        choices = self.shapes.get(len(shape), [])
        for dims in choices[:-1]:
            if all(not d.isdigit() or int(d) == size for d, size in zip(dims, shape, strict=True)):
                return dims
        return choices[-1] if choices else None


_ROW = re.compile(
    r"(?P<names>\w+(?:, *\w+)*) +(?P<shapes>\([^)]*\)(?: or \([^)]*\))*)"
    r"(?:, (?P<kind>integers|boolean)"
    r"(?: (?P<range>from (?P<lower>\w+) to|below) (?P<upper>[\w+]+))?)?"
    r"(?P<stretches>, sizes may be 1)?"
)


def _parse(docstring: str) -> list[Row]:
    """The rows of the `Shapes:` section; a deeper indented line goes on with the row above."""
    lines = inspect.cleandoc(docstring).splitlines()
    section = itertools.takewhile(str.strip, lines[lines.index("Shapes:") + 1 :])
    joined = re.sub(r"\n {5,}", " ", "\n".join(section))
    rows: list[Row] = []
    for line in joined.splitlines():
        row = _ROW.fullmatch(line.strip())
        if row is None:
            raise ValueError(f"not a row of a shape table: {line.strip()!r}")
        shapes: dict[int, list[tuple[str, ...]]] = {}
        for text in re.findall(r"\(([^)]*)\)", row["shapes"]):
            dims = tuple(part.strip() for part in text.split(",") if part.strip())
            shapes.setdefault(len(dims), []).append(dims)
        names = row["names"].replace(" ", "").split(",")
        bounds = row["lower"] or "0", row["upper"], row["range"] != "below"
        what, stretches = row["kind"] or "floating", row["stretches"] is not None
        rows += [Row(name, shapes, what, *bounds, stretches, "+" in line) for name in names]
    return rows


class Sizes:
    """The sizes met so far in one call, and where each was first seen."""

    def __init__(self, owner: str, of_module: Mapping[str, int] | None = None) -> None:
        self.owner = owner
        self.size: dict[str, int] = dict(of_module or {})
        self.origin: dict[str, str] = {}  # of those that the module has not fixed

    def error(self, form: str, **parts: Any) -> ShapeError:
        return ShapeError(f"{{owner}}: {form}", owner=self.owner, **parts)

    def set(self, dim: str, size: int, origin: str) -> None:
        """Take over the size of a dimension; one that is known must agree."""
        if self.size.get(dim, size) != size:
            parts = {"dim": dim, "got": size, "argument": origin, "expected": self.size[dim]}
            form = "'{dim}' is {got} in {argument}, but {expected} in {origin}"
            raise self.error(form, **parts, origin=self._origin(dim))
        self.size[dim] = size
        self.origin[dim] = origin

    def of(self, dim: str) -> int:
        """The size of a known dimension, of a number, or of a sum of both."""
        if "+" in dim:  # a list, because torch.compile does not follow a generator here
            return sum([self.of(term) for term in dim.split("+")])
        return int(dim) if dim.isdigit() else self.size[dim]

    def without_empty_terms(self, dim: str) -> str:
        """A sum without its leading terms of size 0: with nothing cached, cached+keys is keys."""
        *terms, last = dim.split("+")
        return "+".join([*[term for term in terms if self.size.get(term) != 0], last])

    def dims(self, row: Row, shape: torch.Size) -> tuple[str, ...] | None:
        """The dimensions of `row` that stand for `shape`; None if it has too many axes, or few."""
        dims = row.dims(shape)
        if dims is None or not row.has_sums:
            return dims
        return tuple([self.without_empty_terms(dim) for dim in dims])

    def stretched(self, row: Row, shape: torch.Size) -> tuple[str, ...]:
        """The dimensions of a shape that fits, "1" where an axis of size 1 stands for more."""
        return tuple(
            "1" if row.stretches and size == 1 != self.size.get(dim) else dim
            for dim, size in zip(self.dims(row, shape) or (), shape, strict=True)
        )

    def fit(self, row: Row, shape: torch.Size) -> None:
        """Hold `shape` against `row`: known dimensions must agree, new ones are learned."""
        dims = self.dims(row, shape)
        if dims is None:
            raise self.error(
                "{argument} must have {axes} axes {rows}, but has {number}: {shape}",
                argument=row.name,
                axes=" or ".join(map(str, row.shapes)),
                rows=row.text(),
                number=len(shape),
                shape=shape,
            )
        for dim, size in zip(dims, shape, strict=True):
            expected = self.size.get(dim)
            if size == expected:
                continue
            is_fixed = row.stretches or dim in row.borrowed
            if expected is None and not is_fixed and dim.isidentifier():
                self.size[dim], self.origin[dim] = size, row.name
                continue
            # What a message about this axis is made of.
            parts = {"dim": dim, "got": size, "argument": row.name, "dims": dims, "shape": shape}
            if expected is None:
                expected = self._computed(row, parts)
            if size != expected and not (row.stretches and size == 1):
                or_one = " or 1" if row.stretches else ""
                form = f"{_IN_SHAPE}, but {{expected}}{or_one} in {{origin}}"
                raise self.error(form, **parts, expected=expected, origin=self._origin(dim))

    def _origin(self, dim: str) -> str | dict[str, int]:
        """Where the size of a dimension comes from; that of a product from its factors."""
        if "*" in dim:
            return {factor: self.size[factor] for factor in dim.split("*")}
        return self.origin.get(dim, "this module" if dim in self.size else "its table")

    def _computed(self, row: Row, parts: dict[str, Any]) -> int:
        """The size of a number, a sum or a product; of a product one unknown factor is learned."""
        dim, size = parts["dim"], parts["got"]
        if dim.isdigit() or "+" in dim:
            return self.of(dim)
        if row.stretches or dim in row.borrowed:
            form = (
                "{argument} {dims} = {shape} has an axis '{dim}', but the other arguments have none"
            )
            raise self.error(form, **parts)
        factors = dim.split("*")
        product, unknown = 1, []
        for factor in factors:  # a loop, because torch.compile does not follow a generator here
            if factor in self.size:
                product *= self.size[factor]
            else:
                unknown.append(factor)
        if not unknown:
            return product
        if product == 0 or size % product:
            form = f"{_IN_SHAPE}, which is not divisible by {{origin}}"
            raise self.error(form, **parts, origin={factors[0]: product})
        self.set(unknown[0], size // product, row.name)
        return size


#: How a message begins that is about one axis of an argument.
_IN_SHAPE = "'{dim}' is {got} in {argument} {dims} = {shape}"


class ShapeTable:
    """The shape table of one function, compiled from its docstring."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.rows = {row.name: row for row in _parse(function.__doc__ or "")}
        self.code: CodeType = function.__code__
        self.function_name = function.__name__
        parameters = inspect.signature(function).parameters
        unknown = set(self.rows) - set(self.code.co_varnames) - {"returns"}
        if unknown:
            raise ValueError(f"{function.__qualname__} has no variable named {sorted(unknown)}")
        self.parameters = [*parameters]
        self.optional = {name for name, p in parameters.items() if p.default is None}
        self.arguments: list[Row] = []
        met: set[str] = set()
        for row in [self.rows[name] for name in parameters if name in self.rows]:
            self.arguments.append(row._replace(borrowed=tuple(row.chosen() & met)))
            met |= row.chosen() if row.name not in self.optional else set()
        self.counts = [name for name in parameters if name.startswith("num_")]
        self.cache_name = next((name for name in ("cache", "caches") if name in parameters), None)
        self.is_method = next(iter(parameters), "") == "self"

    def check(self, given: Mapping[str, Any]) -> Sizes:
        """Check the arguments of one call; return the sizes of its dimensions."""
        owner, of_module = self.function_name, None
        if self.is_method:
            owner, of_module = type(given["self"]).__name__, getattr(given["self"], "sizes", None)
        sizes = Sizes(owner, of_module)
        cache = None
        if self.cache_name is not None:
            cache = given.get(self.cache_name)
            if self.cache_name == "caches":  # one for each layer, all of the same sizes
                cache = cache[0] if cache else None
            for dim, size in ({"cached": 0} if cache is None else cache.sizes).items():
                sizes.set(dim, size, "the cache")
        for name in self.counts:
            count = at_least(owner, name, given.get(name), least=0)  # type: ignore[arg-type]
            sizes.set(name.removeprefix("num_"), count, name)
        first: tuple[str, Tensor] | None = None
        chosen: dict[tuple[int, ...], tuple[str, Tensor]] = {}  # by the choice between axes
        for row in self.arguments:
            name, tensor = row.name, given.get(row.name)
            if name not in given and name not in self.optional:
                return sizes  # for a missing argument, Python itself raises TypeError
            if tensor is None and name in self.optional:
                continue
            if not isinstance(tensor, Tensor):
                kind = type(tensor).__name__
                raise TypeError(f"{owner}: {name} must be a torch.Tensor, but is of type {kind}")
            _check_kind(owner, row, tensor)
            is_floating = row.kind == "floating"
            if first is None:
                first = name, tensor
                if self.is_method and is_floating:
                    parameters = "the module's parameters hold"
                    _check_dtype(owner, name, tensor, parameters, _precision(given["self"]))
                if cache is not None and cache.device is not None:
                    _check_device(owner, name, tensor, "the cache is", cache.device)
            else:
                if is_floating and tensor.dtype != first[1].dtype:
                    _check_dtype(owner, name, tensor, f"{first[0]} holds", first[1].dtype)
                _check_device(owner, name, tensor, first[0], first[1].device)
            if len(row.shapes) > 1 and is_floating:
                like = chosen.setdefault((*row.shapes,), (name, tensor))
                _check_axes(sizes, row, tensor, *like)
            sizes.fit(row, tensor.shape)
            if row.upper is not None:
                _check_range(sizes, row, tensor, row.upper)
        return sizes


#: The dtypes with which PyTorch can compare and index.
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def _check_kind(owner: str, row: Row, tensor: Tensor) -> None:
    dtype = tensor.dtype
    if row.kind == "floating":
        fits, needs = dtype.is_floating_point, "hold floating-point numbers, not"
    elif row.kind == "boolean":
        fits, needs = dtype == torch.bool, "be boolean (True = may attend), but holds"
    else:
        fits, needs = dtype in _INTEGERS, "hold integers, uint8 or signed, not"
    if not fits:
        raise TypeError(f"{owner}: {row.name} must {needs} {dtype}")


def _check_dtype(
    owner: str, name: str, tensor: Tensor, other: str, dtype: torch.dtype | None
) -> None:
    # Under autocast PyTorch brings dtypes together.
    if dtype not in (None, tensor.dtype) and not torch.is_autocast_enabled(tensor.device.type):
        raise TypeError(f"{owner}: {name} holds {tensor.dtype}, but {other} {dtype}")


def _check_device(owner: str, name: str, tensor: Tensor, other: str, device: torch.device) -> None:
    if tensor.device != device:
        raise ValueError(f"{owner}: {name} is on {tensor.device}, but {other} on {device}")


def _precision(module: Any) -> torch.dtype | None:
    """The dtype of the first weight of a module or of its parts; None where there is none."""
    parts = [module, *getattr(module, "_modules", {}).values()]
    weights = [getattr(part, "_parameters", {}).get("weight") for part in parts]
    return next((weight.dtype for weight in weights if weight is not None), None)


def _check_axes(sizes: Sizes, row: Row, tensor: Tensor, name: str, other: Tensor) -> None:
    """Rows with the same choice between numbers of axes choose alike; others are free."""
    if tensor.dim() != other.dim() and tensor.dim() in row.shapes and other.dim() in row.shapes:
        raise sizes.error(
            "{argument} has {number} axes {shape}, but {other} has {others}: {others_shape}",
            argument=row.name,
            number=tensor.dim(),
            shape=tensor.shape,
            other=name,
            others=other.dim(),
            others_shape=other.shape,
        )


def _check_range(sizes: Sizes, row: Row, tensor: Tensor, bound: str) -> None:
    """Integers must lie between two bounds. On a GPU this is checked without a synchronisation."""
    lower, upper = sizes.of(row.lower), sizes.of(bound) - (not row.reaches_upper)
    if not tensor.is_cpu or torch.compiler.is_compiling():
        # The message holds no size: under torch.compile each size would make a graph of its own.
        within = ((tensor >= lower) & (tensor <= upper)).all()
        torch._assert_async(within, f"{sizes.owner}: {row.name} is out of range")
        return
    for value in _extremes(tensor):
        if not lower <= value <= upper:
            first = f"the number of {row.lower} keys, {lower}," if lower else "0"
            last = sizes.without_empty_terms(bound).replace("cached+", "cached and new ")
            if last == "length":
                last = "the length"
            else:
                last = f"{'the number of' if row.reaches_upper else 'the last of the'} {last}"
            raise ValueError(
                f"{sizes.owner}: {row.name} holds {value}, but must lie between {first} and "
                f"{last}, {upper}"
            )


def _extremes(tensor: Tensor) -> list[int]:
    """The lowest and the highest value; none of an empty tensor or where none can be read."""
    if tensor.numel() == 0:
        return []
    try:
        return [int(value) for value in tensor.aminmax()]
    except RuntimeError:  # torch.vmap and fake tensors hide the values
        return []


#: Whether calls are checked: ATTENTION_BOOK_CHECKS=off leaves them unchecked.
CHECKS = os.environ.get("ATTENTION_BOOK_CHECKS", "on") != "off"

#: The table of each checked function, by the code that runs it.
TABLES: dict[CodeType, ShapeTable] = {}


def checked(function: F) -> F:
    """Check the arguments of each call against the `Shapes:` table in the docstring.

    Raises:
        ValueError: at definition, for a table that cannot be read or names no variable.
        ShapeError, TypeError, ValueError: on a call whose arguments do not fit the table.
    """
    if function.__doc__ is None and sys.flags.optimize > 1:  # python -OO
        return function
    table = ShapeTable(function)
    TABLES[table.code] = table
    if not CHECKS:
        return function

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        table.check(dict(zip(table.parameters, args, strict=False), **kwargs))
        return function(*args, **kwargs)

    # torch.compile gives up on a code object after eight versions: each function has its own.
    wrapper.__code__ = wrapper.__code__.replace()  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]
