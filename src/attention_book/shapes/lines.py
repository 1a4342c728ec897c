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

    def value(self, frame: FrameType, values: Mapping[str, Any]) -> Any:
        """What is bound now, read without running code of the object; None if nothing is."""
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


class Run:
    """The instructions from where a line is entered to where another line begins."""

    def __init__(self, line: int, first: int) -> None:
        self.line = line
        self.first = self.last = first  # offsets of its instructions
        self.stores: list[Store] = []
        self.loops: list[tuple[int, int]] = []  # from a `for` to where it goes in the end
        self.jumps_back: list[tuple[int, int]] = []
        self.may_skip = False  # a condition, or a comprehension, may leave names as they were
        self.reads_shape = False
        self._bound: dict[int, list[Store]] = {}

    def bound(self, now: int) -> list[Store]:
        """What has been bound in it, where the instruction at `now` comes next."""
        found = self._bound.get(now)
        if found is None:
            found = self._bound[now] = self._bound_at(now)
        return found

    def _bound_at(self, now: int) -> list[Store]:
        back = max((at for at, to in self.jumps_back if to == now), default=None)
        if back is not None:  # a loop in one line
            done = [store for store in self.stores if store.offset < back]
        else:
            is_inside = self.first <= now <= self.last  # suspended there, or returning
            done = [
                store
                for store in self.stores
                if not (is_inside and store.offset >= now)
                and all(not at < store.offset < over or at < now < over for at, over in self.loops)
            ]
        return [*{store.target: store for store in done}.values()]


class Lines:
    """The lines of one function, by the instruction at which they are entered."""

    def __init__(self, code: CodeType) -> None:
        self.code = code  # kept, so that no other code gets its identity
        self._instructions = [*dis.get_instructions(code)]
        self._names = {each.offset: each.opname for each in self._instructions}
        self.runs: dict[int, Run] = {}
        self._bound: dict[int, bool] = {}

    def suspends(self, offset: int) -> bool:
        """Whether a generator or a coroutine waits at an instruction."""
        return self._names.get(offset) == "YIELD_VALUE"

    def expects_end(self, offset: int) -> bool:
        """Whether an instruction takes what comes next, and goes on where nothing does."""
        return self._names.get(offset) in ("SEND", "FOR_ITER")

    def run(self, offset: int) -> Run:
        """The run that is entered at an instruction."""
        if offset not in self.runs:
            self.runs[offset] = self._run_from(offset)
        return self.runs[offset]

    def binds(self, offset: int) -> bool:
        """Whether the result of the call at an instruction goes into a statement that binds."""
        if offset not in self._bound:
            ends = ("STORE_", "POP_TOP", "RETURN_", "POP_JUMP")
            after = (each.opname for each in self._instructions if each.offset > offset)
            end = next((name for name in after if name.startswith(ends)), "")
            self._bound[offset] = end.startswith("STORE_") and end != "STORE_SUBSCR"
        return self._bound[offset]

    def _run_from(self, offset: int) -> Run:
        run, line, before = Run(0, offset), None, None
        for each in itertools.dropwhile(lambda each: each.offset < offset, self._instructions):
            here = each.positions.lineno if each.positions else None
            if line is not None and here not in (line, None):
                break
            line = line or here
            run.last, name = each.offset, each.opname
            run.stores += _stores(each, before)
            if name == "FOR_ITER":
                run.loops.append((each.offset, each.argval))
            elif name.startswith("JUMP_BACKWARD"):
                run.jumps_back.append((each.offset, each.argval))
            run.may_skip |= "JUMP_IF" in name or name == "LOAD_FAST_AND_CLEAR"
            run.reads_shape |= name.startswith("LOAD_") and each.argval in ("shape", "size")
            before = each
        run.line = line or 0
        # One instruction that binds two names binds the last one first.
        order = {name: i for i, name in enumerate(self.code.co_varnames)}
        run.stores.sort(key=lambda store: (store.column, order.get(store.name, 0)))
        return run


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
