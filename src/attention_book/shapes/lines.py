"""What a line of code binds to names, read from its bytecode, which is there without a source."""

from __future__ import annotations

import dis
import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

#: How many of its names an instruction binds; from Python 3.13 on, one may do the work of two.
_STORES = {
    **dict.fromkeys(("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL"), 1),
    **{"STORE_FAST_STORE_FAST": 2, "STORE_FAST_LOAD_FAST": 1},
}


class Store(NamedTuple):
    """One instruction that binds a name, or sets an attribute of what a name stands for."""

    offset: int
    column: int
    target: str  # name, or name.attribute

    def value(self, frame: FrameType, values: Mapping[str, Any]) -> Any:
        """What is bound now, read without running code of the object; None if nothing is."""
        name, _, attribute = self.target.partition(".")
        value = values[name] if name in values else frame.f_globals.get(name)
        return attributes_of(value).get(attribute) if attribute else value


def attributes_of(value: object) -> dict[str, Any]:
    """The fields of an object, and of a module its parameters and buffers."""
    fields = fields_of(value)
    places = (fields.get("_buffers"), fields.get("_parameters"), fields)
    return {
        name: part for place in places if isinstance(place, dict) for name, part in place.items()
    }


def fields_of(value: object) -> Mapping[str, Any]:
    """The attributes that an object itself has, read without running code of its class."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


@dataclass
class Run:
    """The instructions from where a line is entered to where another line begins."""

    first: int  # offsets of its instructions
    last: int
    line: int = 0
    stores: list[Store] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)  # from a `for` to where it ends
    jumps_back: list[tuple[int, int]] = field(default_factory=list)
    may_skip: bool = False  # a condition, or a comprehension, may leave names as they were
    reads_shape: bool = False

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
                and all(not at < store.offset < over or at < now < over for at, over in self.loops)
            ]
        return [*{store.target: store for store in done}.values()]


class Lines(dict[int, Run]):
    """The lines of one function, by the instruction at which they are entered."""

    def __init__(self, code: CodeType) -> None:
        self._order = {name: i for i, name in enumerate(code.co_varnames)}
        self._instructions = [*dis.get_instructions(code)]
        self.names = {each.offset: each.opname for each in self._instructions}

    def binds(self, offset: int) -> bool:
        """Whether the result of the call at an instruction goes into a statement that binds."""
        ends = ("STORE_", "POP_TOP", "RETURN_", "POP_JUMP")
        # A comprehension is left by two instructions, of which the second pops its iterator.
        names = itertools.pairwise(self.names.items())
        after = (name for (_, left), (at, name) in names if at > offset and left != "END_FOR")
        end = next((name for name in after if name.startswith(ends)), "")
        return end.startswith("STORE_") and end != "STORE_SUBSCR"

    def __missing__(self, offset: int) -> Run:
        run, line, before = Run(offset, offset), None, None
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
        run.stores.sort(key=lambda store: (store.column, self._order.get(store.target, 0)))
        self[offset] = run
        return run


def _stores(each: dis.Instruction, before: dis.Instruction | None) -> Iterator[Store]:
    """What one instruction binds."""
    column = (each.positions.col_offset if each.positions else None) or 0
    for name in _names(each)[: _STORES.get(each.opname, 0)]:
        yield Store(each.offset, column, name)
    if each.opname == "STORE_ATTR" and before is not None:
        is_name = before.opname.startswith("LOAD_") and "ATTR" not in before.opname
        of = _names(before)[-1]
        if is_name and isinstance(of, str):
            yield Store(each.offset, column, f"{of}.{each.argval}")


def _names(each: dis.Instruction) -> tuple[Any, ...]:
    return each.argval if isinstance(each.argval, tuple) else (each.argval,)


#: The lines of a function, kept from one trace to the next.
lines_of = functools.lru_cache(maxsize=1000)(Lines)
