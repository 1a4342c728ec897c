"""Sizes that do not fit: what the package says of them, taken from its own checks.

A break gives one axis a size of its own (values with one key fewer), a mask or lengths the wrong
axes, or a module a number of heads that does not divide its width. The package's checker is run on
sizes that agree nowhere by accident. Its error says which axis of which argument it is about, so
its sentence is made again with the names of sizes in place of sizes: a page can say it at any
sizes, and no sentence is written twice.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from attention_book.language import N_
from attention_book.positions import rotary_embedding
from attention_book.shapes import ShapeError, Shapes
from attention_book.shapes.steps import TracedCall
from attention_book.shapes.tables import Row, ShapeTable, Sizes
from attention_book.walk.relations import Relations, value

#: A text with `{0}`, `{1}` … in it, and what stands there; a page translates the text.
Message = list[str]

#: The size of the broken axis, in sentences and conditions.
BROKEN = "own"
#: Parameters of constructors that bear another name than the dimension they fix.
_PARAMETERS = {"hidden_size": "d_model", "num_hiddens": "hidden"}


def breaks(shapes: Shapes, relations: Relations, walk: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What can be broken in the outermost calls of a trace, each with what then happens.

    A break has an `id` and a `label`; `error` and `says`, the sentence with expressions such as
    `{heads*d_k}` in place of sizes; and `cases`. Where two expressions are equal, or where the
    second divides the first, nothing refuses, and `text` says what happens; where an expression is
    `odd`, another check refuses, with an `error` and a sentence of its own. A break that gives a
    size of its own says which size is `expected`, and, of an argument, of which `step` and `axis`;
    others have a `hint` of what to try next. Labels, hints and texts are messages: a text and its
    values.
    """
    sizes = unmistakable_sizes(walk)
    found: list[dict[str, Any]] = []
    for index, call in enumerate(shapes.calls):
        if call.depth == 1 and call.table:
            trial = _Trial(index, call, call.table, relations, sizes)
            for entry in trial.breaks():
                if all(entry["id"] != other["id"] for other in found):
                    found.append(entry)
    return found


def unmistakable_sizes(walk: Mapping[str, Any]) -> dict[str, int]:
    """A size for each free dimension, such that no two expressions are equal by accident and all
    quotients are whole: primes, times what must divide them."""
    under: dict[str, set[str]] = {dim["name"]: set() for dim in walk["dims"]}
    expressions = [axis for step in walk["steps"] for axis in step["axes"]]
    expressions += [link["to"] for link in walk["links"]]
    expressions += ["/".join(pair) for pair in walk["divides"]]
    for expression in expressions:
        whole, *divisors = expression.split("/")
        if divisors:
            under[whole.split("*")[0]] |= set(divisors)
    odd = itertools.count(_Trial.BROKEN_SIZE + 2, 2)
    primes = (n for n in odd if all(n % d for d in range(3, math.isqrt(n) + 1, 2)))
    sizes: dict[str, int] = {}

    def give(name: str) -> int:
        if name not in sizes:
            size = next(primes)
            for divisor in sorted(under[name]):
                size *= int(divisor) if divisor.isdigit() else give(divisor)
            sizes[name] = size
        return sizes[name]

    for name in under:
        give(name)
    return sizes


class _Trial:
    """One call, made again on tensors of distinct sizes that take no memory."""

    BROKEN_SIZE = 97  # a prime below those of `unmistakable_sizes`

    def __init__(
        self,
        index: int,
        call: TracedCall,
        table: ShapeTable,
        relations: Relations,
        sizes: Mapping[str, int],
    ) -> None:
        self.index, self.call, self.relations, self.sizes = index, call, relations, sizes
        self.table = table
        self.traced = Sizes(call.function, call.sizes)
        self.rows = {row.name: row for row in table.arguments}
        self.axes: dict[str, list[str]] = {}
        for name, row in self.rows.items():
            tensor = call.arguments[name]
            if isinstance(tensor, Tensor):
                self.axes[name] = [*self.traced.stretched(row, tensor.shape)]

    def _is_known(self, dim: str) -> bool:
        """Whether a dimension is one of the trace's; a table may fix more than it uses."""
        return all(
            factor.isdigit() or self.relations.is_known(self.index, factor)
            for factor in re.split(r"[*+]", dim)
        )

    def expression(self, dim: str) -> str:
        return self.relations.expression(self.index, dim)

    def breaks(self) -> Iterator[dict[str, Any]]:
        yield from self._axes_of_their_own()
        yield from self._masks()
        yield from self._lengths()
        yield from self._heads()

    # What can be broken

    def _axes_of_their_own(self) -> Iterator[dict[str, Any]]:
        for name, dims in self.axes.items():
            row = self.rows[name]
            if row.kind == "boolean":
                continue
            for axis, dim in enumerate(dims):
                changed = {name: [*dims[:axis], BROKEN, *dims[axis + 1 :]]}
                refused = self._refused(changed)
                # A size that this argument is the first to have is no mistake in it.
                if not isinstance(refused, ShapeError):
                    continue
                if (refused.parts.get("argument"), refused.parts.get("dim")) != (name, dim):
                    continue
                text = self.expression(dim)
                cases = []
                doubled = [*dims[:axis], f"{dim}*2", *dims[axis + 1 :]]
                if "*" in dim and self._refused({name: doubled}) is None:
                    first = self.expression(dim.split("*")[0])
                    silent = N_(
                        "No error is raised: {own} is a multiple of {0}, and the other factor "
                        "becomes {1}."
                    )
                    cases.append(
                        {
                            "divides": [BROKEN, first],
                            "text": [silent, first, f"{{{BROKEN}/{first}}}"],
                        }
                    )
                yield {
                    "id": f"{name}.{dim}",
                    "label": [_another(dim), name, dim],
                    "step": name,
                    "axis": axis,
                    "expected": text,
                    **self._message_of(refused, changed),
                    "cases": cases,
                }

    def _masks(self) -> Iterator[dict[str, Any]]:
        row = self.rows.get("mask")
        if row is None or 2 not in row.shapes:
            return
        queries, keys = row.shapes[2][-1]
        keys = self.traced.without_empty_terms(keys)
        yield from self._hidden(
            "mask.batch",
            ["batch", keys],
            [N_("mask of shape (batch, {0})"), keys],
            [N_("Now make batch and {0} equal."), queries],
            {
                ("batch", "1"): [
                    N_(
                        "No error is raised, and nothing goes wrong: with one example, the one row "
                        "of the mask applies to every query."
                    )
                ],
                ("batch", queries): [
                    N_(
                        "No error is raised, because batch = {0} = {batch}: the mask has the shape "
                        "({0}, {1}) and is read as such. Row i then masks query i of every example "
                        "instead of every query of example i. Every shape is right, but the "
                        "weights are wrong."
                    ),
                    queries,
                    keys,
                ],
            },
        )
        if len(next(iter(self.axes.values()))) < 4 or 4 not in row.shapes:
            return
        heads = row.shapes[4][-1][1]
        yield from self._hidden(
            "mask.heads",
            [heads, queries, keys],
            [N_("mask of shape ({0}, {1}, {2})"), heads, queries, keys],
            [N_("Now make {0} and batch equal."), heads],
            {
                (heads, "1"): [
                    N_(
                        "No error is raised, and nothing goes wrong: the mask of the only head "
                        "applies to every example."
                    )
                ],
                ("batch", heads): [
                    N_(
                        "No error is raised, because {0} = batch = {batch}: a mask of three axes "
                        "is read as one matrix per example. The mask of head i masks every head of "
                        "example i. Every shape is right, but the weights are wrong."
                    ),
                    heads,
                ],
            },
        )

    def _lengths(self) -> Iterator[dict[str, Any]]:
        row = self.rows.get("valid_lens")
        if row is None or not {1, 2} <= row.shapes.keys():
            return
        queries = row.shapes[2][-1][1]
        yield from self._hidden(
            "valid_lens.queries",
            [queries],
            [N_("valid_lens of shape ({0})"), queries],
            [N_("Now make batch and {0} equal."), queries],
            {
                ("batch", queries): [
                    N_(
                        "No error is raised, because batch = {0} = {batch}: the lengths are read "
                        "as one per example, not as one per query. Every shape is right, but the "
                        "wrong keys are masked."
                    ),
                    queries,
                ]
            },
        )

    def _hidden(
        self,
        name: str,
        dims: list[str],
        label: Message,
        hint: Message,
        equal: Mapping[tuple[str, str], Message],
    ) -> Iterator[dict[str, Any]]:
        """An argument with the wrong axes, and what is said where two `equal` sizes hide it."""
        changed = {name.partition(".")[0]: dims}
        refused = self._refused(changed)
        if isinstance(refused, ShapeError):
            yield {
                "id": name,
                "label": label,
                "hint": hint,
                **self._message_of(refused, changed),
                "cases": [
                    {"equal": [self.expression(dim) for dim in pair], "text": text}
                    for pair, text in equal.items()
                ],
            }

    def _heads(self) -> Iterator[dict[str, Any]]:
        """Numbers of heads that do not divide, given to the constructor of the module."""
        module = next(iter(self.call.arguments.values()))
        if not isinstance(module, nn.Module):
            return
        parameters = inspect.signature(type(module)).parameters
        for parameter, whole in (("num_heads", "d_model"), ("num_kv_heads", "heads")):
            if parameter not in parameters or whole not in self.sizes:
                continue
            dims = {
                name: _PARAMETERS.get(name, name.removeprefix("num_"))
                for name, known in parameters.items()
                if known.default is inspect.Parameter.empty
            } | {parameter: BROKEN}
            given = {name: self.sizes.get(dim, 1) for name, dim in dims.items()}
            try:
                with torch.device("meta"):
                    type(module)(**{**given, parameter: self.BROKEN_SIZE})
                continue
            except ShapeError as error:
                refused = error
            # A layer inside may call a number by another name than the constructor called here.
            opened = {
                name: f"{{{dims.get(name, _PARAMETERS.get(name, name))}}}" for name in refused.parts
            }
            dim = parameter.removeprefix("num_")
            yield {
                "id": parameter,
                "label": [N_("{0} that does not divide {1}"), parameter, whole],
                "expected": dim if dim in self.sizes else "heads",
                "error": type(refused).__name__,
                "says": str(ShapeError(refused.form, **opened)),
                "cases": [
                    *self._odd_heads(type(module), given),
                    {
                        "divides": [whole, BROKEN],
                        "text": [
                            N_("No error is raised: {own} divides {0} = {1}."),
                            whole,
                            f"{{{whole}}}",
                        ],
                    },
                ],
            }

    def _odd_heads(self, kind: type, given: Mapping[str, int]) -> Iterator[dict[str, Any]]:
        """Rotary positions refuse heads of an odd size, though their number divides the width."""
        is_rotated = any(c.function == rotary_embedding.__name__ for c in self.relations.calls)
        if not is_rotated or "num_heads" not in given or "num_kv_heads" in given:
            return
        base = {"rotary_base": 1.0} if "rotary_base" in inspect.signature(kind).parameters else {}
        try:
            with torch.device("meta"):
                kind(**{**given, **base, "num_heads": given["d_model"]})
        except ValueError as error:
            size = f"d_model/{BROKEN}"
            yield {
                "odd": size,
                "error": type(error).__name__,
                "says": str(error).replace("d_k = 1 ", f"d_k = {{{size}}} "),
            }

    # What the package says

    def _size(self, dim: str) -> int:
        if dim == BROKEN:
            return self.BROKEN_SIZE
        if dim.endswith("*2"):
            return 2 * self._size(dim[:-2])
        return (
            value(self.expression(dim), self.sizes) if self._is_known(dim) else self.call.sizes[dim]
        )

    def _refused(self, changed: Mapping[str, list[str]]) -> ValueError | None:
        """What the checker says of the call with some arguments changed; None if they pass."""
        arguments = dict(self.call.arguments)
        for name, argument in self.call.arguments.items():
            dims = changed.get(name, self.axes.get(name))
            if dims is not None:
                arguments[name] = self._tensor(self.rows[name], argument, dims)
            elif isinstance(argument, nn.Module) or hasattr(argument, "sizes"):
                arguments[name] = self._stand_in(argument)
            elif name.startswith("num_"):
                arguments[name] = self._size(name.removeprefix("num_"))
        try:
            self.table.check(arguments)
        except ValueError as error:
            return error
        return None

    def _message_of(self, error: ShapeError, changed: Mapping[str, list[str]]) -> dict[str, str]:
        """The name of an error, and its sentence with the sizes left open."""
        parts = dict(error.parts)
        axes = changed.get(parts["argument"], self.axes.get(parts["argument"], []))
        shape = tuple(map(self._placeholder, axes))
        parts |= {"shape": shape, "got": shape[parts["dims"].index(parts["dim"])]}
        if "expected" in parts:
            parts["expected"] = self._placeholder(parts["dim"])
        if isinstance(parts.get("origin"), dict):
            parts["origin"] = {factor: self._placeholder(factor) for factor in parts["origin"]}
        return {"error": type(error).__name__, "says": str(ShapeError(error.form, **parts))}

    def _placeholder(self, dim: str) -> str:
        """The place of a size in a sentence; a size that no step has stands there itself."""
        if dim == BROKEN:
            return f"{{{BROKEN}}}"
        return f"{{{self.expression(dim)}}}" if self._is_known(dim) else str(self._size(dim))

    def _tensor(self, row: Row, argument: Any, dims: list[str]) -> Tensor:
        dtypes = {"floating": torch.float32, "boolean": torch.bool, "integers": torch.int64}
        dtype = argument.dtype if isinstance(argument, Tensor) else dtypes[row.kind]
        number = 0
        if row.upper is not None and row.reaches_upper:
            number = sum(
                self._size(term) for term in self.traced.without_empty_terms(row.upper).split("+")
            )
        return torch.full((), number, dtype=dtype).expand([self._size(dim) for dim in dims])

    def _stand_in(self, owner: Any) -> Any:
        """A module, or a cache, of the marked sizes, as far as the checker looks at it."""
        sizes = {
            dim: self._size(dim) if self.call.sizes.get(dim) else 0
            for dim in getattr(owner, "sizes", {})
        }
        if not isinstance(owner, nn.Module):
            return SimpleNamespace(sizes=sizes, device=None)
        stand_in = copy.copy(owner)
        if sizes:
            stand_in.sizes = sizes  # type: ignore[assignment]
        return stand_in


def _another(dim: str) -> str:
    if dim == "batch":
        return N_("{0} with another batch size")
    return N_("{0} with another number of {1}") if dim.endswith("s") else N_("{0} with another {1}")
