"""What a line of code binds to names, read from its bytecode, which is there without a source."""

from __future__ import annotations

import dis
import itertools
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

_STORES = {"STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL"}


class Store(NamedTuple):
    """One instruction that binds a name, or sets an attribute of what a name stands for."""

    offset: int
    name: str
    attribute: str = ""
    column: int = 0

    @property
    def target(self) -> str:
        return f"{self.name}.{self.attribute}" if self.attribute else self.name

    def value(self, frame: FrameType) -> Any:
        """What is bound now, read without running code of the object; None if nothing is."""
        values = frame.f_locals
        value = values[self.name] if self.name in values else frame.f_globals.get(self.name)
        if not self.attribute or value is None:
            return value
        fields = fields_of(value)
        for place in (fields, fields.get("_parameters"), fields.get("_buffers")):
            if isinstance(place, dict) and self.attribute in place:
                return place[self.attribute]
        return None


def fields_of(value: object) -> Mapping[str, Any]:
    """The attributes that an object itself has, read without running code of its class."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


class Run(NamedTuple):
    """The instructions from where a line is entered to where another line begins."""

    line: int
    first: int  # offsets of its first and last instruction
    last: int
    stores: tuple[Store, ...]
    loops: tuple[tuple[int, int], ...]  # from a `for` to where it goes when nothing is left
    jumps_back: tuple[tuple[int, int], ...]
    may_skip: bool  # whether a condition, or a comprehension, may leave names as they were
    reads_shape: bool

    def bound(self, now: int) -> list[Store]:
        """What has been bound in it, where the instruction at `now` comes next."""
        back = max((at for at, to in self.jumps_back if to == now), default=None)
        if back is not None:  # a loop in one line
            done = [store for store in self.stores if store.offset < back]
        else:
            is_inside = self.first <= now <= self.last  # suspended there, or returning
            done = [
                store
                for store in self.stores
                if not (is_inside and store.offset >= now)
                and all(
                    not at < store.offset < over or at < now < over for at, over in self.loops
                )
            ]
        return [*{store.target: store for store in done}.values()]


class Lines:
    """The lines of one function, by the instruction at which they are entered."""

    def __init__(self, code: CodeType) -> None:
        self.code = code  # kept, so that no other code gets its identity
        self._instructions = [*dis.get_instructions(code)]
        self._names = {each.offset: each.opname for each in self._instructions}
        self._runs: dict[int, Run] = {}
        self._bound: dict[int, bool] = {}

    def suspends(self, offset: int) -> bool:
        """Whether a generator or a coroutine waits at an instruction."""
        return self._names.get(offset) == "YIELD_VALUE"

    def run(self, offset: int) -> Run:
        if offset not in self._runs:
            self._runs[offset] = self._run_from(offset)
        return self._runs[offset]

    def binds(self, offset: int) -> bool:
        """Whether the result of the call at an instruction goes into a statement that binds."""
        if offset not in self._bound:
            ends = ("STORE_", "POP_TOP", "RETURN_", "POP_JUMP")
            after = (each.opname for each in self._instructions if each.offset > offset)
            end = next((name for name in after if name.startswith(ends)), "")
            self._bound[offset] = end.startswith("STORE_") and end != "STORE_SUBSCR"
        return self._bound[offset]

    def _run_from(self, offset: int) -> Run:
        stores: list[Store] = []
        loops, back = [], []
        may_skip = reads_shape = False
        line, before, last = None, None, offset
        for each in itertools.dropwhile(lambda each: each.offset < offset, self._instructions):
            here = each.positions.lineno if each.positions else None
            if line is not None and here not in (line, None):
                break
            line = line or here
            last, name = each.offset, each.opname
            stores += _stores(each, before)
            if name == "FOR_ITER":
                loops.append((last, each.argval))
            elif name.startswith("JUMP_BACKWARD"):
                back.append((last, each.argval))
            may_skip |= "JUMP_IF" in name or name == "LOAD_FAST_AND_CLEAR"
            reads_shape |= name.startswith("LOAD_") and each.argval in ("shape", "size")
            before = each
        # One instruction that binds two names binds the last one first.
        order = {name: i for i, name in enumerate(self.code.co_varnames)}
        stores.sort(key=lambda store: (store.column, order.get(store.name, 0)))
        return Run(
            line or 0, offset, last, tuple(stores), tuple(loops), tuple(back), may_skip, reads_shape
        )


def _stores(each: dis.Instruction, before: dis.Instruction | None) -> Iterator[Store]:
    """What one instruction binds; from Python 3.13 on, one may do the work of two."""
    column = (each.positions.col_offset if each.positions else None) or 0
    if each.opname in _STORES:
        yield Store(each.offset, each.argval, column=column)
    elif each.opname == "STORE_FAST_STORE_FAST":
        yield from (Store(each.offset, name, column=column) for name in each.argval)
    elif each.opname == "STORE_FAST_LOAD_FAST":
        yield Store(each.offset, each.argval[0], column=column)
    elif each.opname == "STORE_ATTR" and before is not None:
        of = before.argval[-1] if isinstance(before.argval, tuple) else before.argval
        is_name = before.opname.startswith("LOAD_") and "ATTR" not in before.opname
        if is_name and isinstance(of, str):
            yield Store(each.offset, of, each.argval, column)


_KNOWN: dict[int, Lines] = {}
_MOST = 1000


def lines_of(code: CodeType) -> Lines:
    """The lines of a function, kept from one trace to the next."""
    lines = _KNOWN.get(id(code))
    if lines is None:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        lines = _KNOWN[id(code)] = Lines(code)
    return lines
