"""The trace of a block: every tensor that its lines, and what they call, bind to a name."""

from __future__ import annotations

import inspect
import re
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode

from attention_book.shapes.arguments import at_least
from attention_book.shapes.errors import ShapeError
from attention_book.shapes.explaining import explain, show_steps
from attention_book.shapes.lines import Lines, Run, fields_of, lines_of
from attention_book.shapes.naming import AxisNames
from attention_book.shapes.steps import Call, Item, Shapes, Step, TracedCall
from attention_book.shapes.tables import TABLES, Row
from attention_book.shapes.watch import Operation, Register, Watch, tensors_in

__all__ = ["Shapes", "Step", "TracedCall", "trace"]

#: How many passes of a loop are listed, and how many calls of one function within each other.
PASSES, RECURSION = 2, 8
#: How many operations a trace records for the walk.
MOST_OPERATIONS = 100_000

#: Whose code a function is: the reader's; what is part of the reader's function around it, as a
#: comprehension or a lambda is; a module of a library; one with a table; what enters a compiled
#: function; the rest of this package, and of the libraries.
YOURS, PART, MODULE, TABLE, COMPILED, HOUSE, HIDDEN = range(7)

_PACKAGE = str(Path(__file__).parents[1])
_PLACES = (
    *(_PACKAGE, str(Path(torch.__file__).parent), "<frozen", "<eval_with_key>"),
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib")},
)
_CHECKS = str(Path(__file__).with_name("tables.py"))  # what stands around a checked function
_INSTALLED = ("site-packages", "dist-packages", "torchinductor_")
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


#: What has been found of functions, each kept, so that no other gets its identity.
_KINDS: dict[int, tuple[int, CodeType]] = {}
_MOST = 10_000


def _whose(code: CodeType) -> int:
    if code in TABLES:
        return TABLE
    file, name = code.co_filename, code.co_name
    if name == "compile_wrapper" and file.endswith("eval_frame.py"):
        return COMPILED
    if file == _CHECKS:
        return HIDDEN
    if file.startswith(_PLACES) or any(part in file for part in _INSTALLED):
        is_module = name == "forward" and code.co_varnames[:1] == ("self",)
        return HOUSE if file.startswith(_PACKAGE) else MODULE if is_module else HIDDEN
    if "__create_fn__" in code.co_qualname or name.startswith("__torch_"):
        return HIDDEN  # written by dataclasses, or standing behind each operation
    return PART if name.startswith("<") and name != "<module>" else YOURS


class trace:  # noqa: N801, a context manager reads as a verb
    """List every tensor that the lines of the block bind to a name, with its shape.

    >>> with trace(batch=2, heads=4) as shapes:
    ...     output = my_attention(queries, keys, values)
    >>> print(shapes)

    What is called is listed as well: the arguments of your functions, and what their lines bind.
    Calls made on the way to a step come below it, numbered 7.1, 7.2 …. PyTorch and other libraries
    are left out; one of their modules is one step, its result, unless the line has a name for it.
    `depth=1` lists the calls made in the block and none that these make, `depth=2` one level more,
    and then the modules of libraries are opened to that depth, too. Of a loop, the first two passes
    are listed, and how many there were.

    A function of this book names its dimensions by its shape table; the block's exit raises
    `ShapeError` if a table says another shape than a tensor has. In your own code an axis has a
    name where one of that size is given, as `batch=2` is above, where a line reads it from a shape,
    as `B, T, C = x.shape` does, and where an argument or an attribute such as `num_heads` has it.
    Where two names have one size, or two axes of a tensor, the axis is shown as its number.

    An operation that fails gets a note: the line, its operands with their names and shapes, which
    axis meets which, and what mends it, where one operation would. The steps up to it are shown.

    The traced code computes the same numbers. Only names and shapes are kept, no tensor. Outside
    the block nothing is installed. What runs in other threads or inside a compiled function is not
    listed, and the trace says so. A block within a block keeps to itself.

    Raises:
        TypeError, ValueError: for a size that is not an integer from 0 on.
    """

    def __init__(self, depth: int | None = None, **sizes: int) -> None:
        self._given = {name: at_least("trace", name, size, 0) for name, size in sizes.items()}
        block = Call("", trace.__init__.__code__, AxisNames(self._given))
        self.shapes = Shapes(depth, block)
        self._block = _Level(block, TABLE)
        self._stack = [self._block]
        self._named: dict[int, Item] = {}  # by the identity of their tensors, from tables
        self._suspended: dict[int, tuple[int, _Watcher]] = {}
        self.returned: tuple[Callable[[], Tensor | None], AxisNames | None] = (_nothing, None)
        self._register = Register()
        self._operations = Watch(self._note, self._explain)
        self._muted = 0
        self._left = MOST_OPERATIONS
        self._lies: list[str] = []

    def __enter__(self) -> Shapes:
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_code.co_filename.endswith("contextlib.py"):
            frame = frame.f_back
        self._watcher = None
        if frame and self._kind(frame.f_code) == YOURS:
            code = frame.f_code
            self._block.call.function, self._block.call.code = _title(code), code
            self._block.kind = YOURS
            self._watcher = _Watcher(self, self._block, lines_of(code))
            self._watcher.enter(frame, lines_of(code).run(frame.f_lasti))
            self._frame, self._frame_traced = frame, frame.f_trace
            frame.f_trace = self._watcher
        self._before = sys.gettrace(), threading.gettrace()
        self._operations.__enter__()
        threading.settrace(self._enter_thread)
        sys.settrace(self._enter_call)
        return self.shapes

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: Any) -> None:
        sys.settrace(self._before[0])
        threading.settrace(self._before[1])
        self._operations.__exit__(kind, error, traceback)
        if self._watcher is not None:
            frame = self._frame
            self._watcher.leave(frame)
            frame.f_trace = self._frame_traced
            if sys.version_info < (3, 13) and frame.f_locals is not frame.f_globals:
                frame.f_locals.clear()  # a copy, which would keep tensors that are deleted later
            del self._frame, self._frame_traced, self._watcher
        del self._operations
        self._stack.clear()
        self._named.clear()
        self._suspended.clear()
        if kind is None and self._lies:
            raise ShapeError("; ".join(self._lies))
        while traceback is not None and traceback.tb_next is not None:
            if traceback.tb_next.tb_frame.f_code is Watch.__torch_function__.__code__:
                traceback.tb_next = traceback.tb_next.tb_next  # no line that a reader wrote
            traceback = traceback.tb_next
        if isinstance(error, Exception) and len(self.shapes):
            show_steps(error, str(self.shapes))

    def _kind(self, code: CodeType) -> int:
        known = _KINDS.get(id(code))
        if known is None:
            if len(_KINDS) >= _MOST:
                _KINDS.clear()
            known = _KINDS[id(code)] = _whose(code), code
        return known[0]

    # Calls

    def _enter_thread(self, frame: FrameType, event: str, arg: object) -> None:
        sys.settrace(None)
        self.shapes.remark("What ran in other threads is not listed.")

    def _enter_compiled(self, frame: FrameType) -> Any:
        """Leave a compiled function alone: compiled under a trace, it would be another one."""
        self.shapes.remark("What ran inside a compiled function is not listed.")
        self._muted += 1
        watch = self._operations if _get_current_function_mode() is self._operations else None
        if watch:
            watch.__exit__(None, None, None)
        frame.f_trace_lines = False

        def leave(frame: FrameType, event: str, arg: object) -> Any:
            if event == "return":
                self._muted -= 1
                if watch:
                    watch.__enter__()
            return leave

        return leave

    def _enter_call(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        known = _KINDS.get(id(code))
        kind = self._kind(code) if known is None else known[0]
        if kind >= HOUSE or kind == PART or self._muted:
            return None
        if kind == COMPILED:
            return self._enter_compiled(frame)
        top = self._stack[-1]
        if kind == YOURS and code.co_flags & _SUSPENDS:
            offset, waiting = self._suspended.pop(id(frame), (-1, None))
            # One that begins is at its first instruction, another with the same identity.
            if waiting and waiting.lines.code is code and frame.f_lasti >= offset:
                self._stack.append(waiting.level)
                return waiting
        elif kind == MODULE:
            if top.kind in (MODULE, TABLE) or "_modules" not in fields_of(frame.f_locals["self"]):
                return None
            depth = self.shapes.depth
            if depth is not None and sum(each.kind != MODULE for each in self._stack) <= depth:
                kind = YOURS
        site = self._site(top, frame)
        if kind == MODULE and site is not None and self._kind(site.f_code) == HOUSE:
            return None
        call = Call(_title(code), code, top.call.axes)
        if site is not None and not self._is_listed(top, call, site):
            self._muted += 1
            frame.f_trace_lines = False
            return self._leave_muted
        top.call.pending.append(call)
        if kind == TABLE:
            return self._enter_table(_Level(call, kind), frame)
        level = _Level(call, kind)
        self._stack.append(level)
        if kind == MODULE:
            name = top.name_of(frame.f_locals["self"])
            frame.f_trace_lines = False
            return lambda frame, event, arg: self._leave_module(level, name, event, arg)
        call.axes = AxisNames(self._given)
        self._list_arguments(level, frame)
        return _Watcher(self, level, lines_of(code))

    def _site(self, top: _Level, frame: FrameType) -> FrameType | None:
        """The frame whose line makes a call: the reader's, or this package's; None inside a
        function of the book."""
        site = frame.f_back if top.kind != TABLE else None
        while site and site.f_code is not top.call.code:
            if self._kind(site.f_code) in (YOURS, PART, HOUSE):
                break
            site = site.f_back
        return site

    def _is_listed(self, top: _Level, call: Call, site: FrameType) -> bool:
        """Whether a call belongs to the first passes of a loop, and is not too deep in itself."""
        if sum(level.call.code is call.code for level in self._stack) >= RECURSION:
            self.shapes.remark(f"{call.function} calls itself; {RECURSION} calls deep are listed.")
            return False
        if top is self._block:
            around = site
            while around.f_code is not top.call.code and around.f_back:
                around = around.f_back
            call.is_bare = not lines_of(around.f_code).binds(around.f_lasti)
        if self._kind(site.f_code) == HOUSE:
            return True  # the package has loops of its own
        key = id(site.f_code), site.f_lasti, id(call.code)
        count, last = top.sites.get(key, (0, call))
        top.sites[key] = count + 1, call if count < PASSES else last
        if count >= PASSES:
            last.times = count + 1
            self.shapes.changed()
        return count < PASSES

    def _leave_muted(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "return":
            self._muted -= 1
        return self._leave_muted

    def suspend(self, frame: FrameType, watcher: _Watcher) -> None:
        """A generator or a coroutine waits; its frame comes back as it is."""
        self._suspended[id(frame)] = frame.f_lasti, watcher

    def leave(self, level: _Level) -> None:
        if self._stack and self._stack[-1] is level:
            self._stack.pop()

    def _leave_module(self, level: _Level, name: str, event: str, result: object) -> None:
        if event == "return":
            self.list_steps(level, [*_tensors_named(name, result)], 0, is_result=True)
            self.leave(level)

    def _list_arguments(self, level: _Level, frame: FrameType) -> None:
        values, given = frame.f_locals, inspect.getargs(frame.f_code)
        names = [n for n in (*given.args, given.varargs, given.varkw) if n in values]
        if "self" in names[:1]:
            level.owner = values["self"]
            level.call.axes.declare(fields_of(level.owner).items())
        level.call.axes.declare((name, values[name]) for name in names)
        found = [each for name in names for each in _tensors_named(name, values[name])]
        for _, tensor, _ in found:
            _drop_result(self._stack[-2].call.pending, tensor, "returns")
        self.list_steps(level, found, 0)

    def _enter_table(self, level: _Level, frame: FrameType) -> Any:
        """Check the arguments of a function of the book, and list the rows of its table."""
        call, values = level.call, frame.f_locals
        table = call.table = TABLES[frame.f_code]
        call.checked = table.check(tuple(values[name] for name in table.positions), {})
        call.function = call.checked.owner
        call.arguments = {name: _without_numbers(values[name]) for name in table.positions}
        self._stack.append(level)
        for row in table.arguments:
            if row.kind == "floating":
                self._see(level, row, values[row.name], 0)
        line = 0

        def on_event(frame: FrameType, event: str, arg: object) -> Any:
            nonlocal line
            values = frame.f_locals
            for name, row in table.rows.items():
                if name not in table.positions and name in values:
                    self._see(level, row, values[name], line)
            if event != "return":
                line = frame.f_lineno  # of the statement about to run
            else:
                if "returns" in table.rows:
                    self._see(level, table.rows["returns"], arg, line)
                self.leave(level)
            return on_event

        return on_event

    # Steps

    def _see(self, level: _Level, row: Row, tensor: object, line: int) -> None:
        """List the tensor of a row of a table."""
        known = level.listed.get(row.name, _nothing)
        if not isinstance(tensor, Tensor) or known() is tensor:
            return
        sizes = level.call.checked
        try:
            sizes.fit(row, tensor.shape)
        except ShapeError as lie:
            self._lies.append(f"the shape table is wrong: {lie}")
            return
        # A second name for a tensor is no step of its own; three arguments may be one tensor.
        is_argument = row in TABLES[level.call.code].arguments
        if row.name in level.listed or (level.has_listed(tensor) and not is_argument):
            return
        dims = tuple(
            "1" if row.stretches and size == 1 != sizes.size.get(dim) else dim
            for dim, size in zip(sizes.dims(row, tensor.shape) or (), tensor.shape, strict=True)
        )
        item = Item(row.name, tensor, level.call.pending)
        item.dims = dims
        item.sizes = {name: sizes.size[name] for name in _names_in(dims) if name in sizes.size}
        self._add(level, item, tensor, line)
        self._named[id(tensor)] = item

    def list_steps(
        self,
        level: _Level,
        found: list[tuple[str, Tensor, int]],
        line: int,
        is_result: bool = False,
    ) -> None:
        """List tensors that a line binds; line 0 is that of arguments and results."""
        call = level.call
        for _, tensor, _ in found:
            _drop_result(call.pending, tensor)
        for name, tensor, times in found:
            if line:
                count, last = level.counts.get((name, line), (0, None))
                if last is not None and count >= PASSES:
                    level.counts[name, line] = count + 1, last
                    last.times = count + 1
                    self.shapes.changed()
                    continue
            if times and not is_result and level.has_listed(tensor):
                continue  # in a list of tensors that have names
            item = Item(name, tensor, call.pending)
            table = self._named.get(id(tensor))
            if table is not None and table.tensor() is tensor:
                item.dims, item.sizes = table.dims, table.sizes
            elif self.returned[0]() is tensor:
                item.axes_within = self.returned[1]
            item.times, item.is_result = max(times, 1), is_result
            item.is_echo = level is self._block and _is_of_table(call.pending, tensor)
            self._add(level, item, tensor, line)
            if line:
                level.counts[name, line] = count + 1, item

    def _add(self, level: _Level, item: Item, tensor: Tensor, line: int) -> None:
        level.call.add(item)
        level.listed[item.name] = item.tensor
        self.shapes.saw_item(item, self._register.see(tensor), line)

    # What PyTorch is asked for

    def _note(self, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        made = tensors_in([result])
        if not made or self._left <= 0 or not self._stack:
            return
        self._left -= len(made)
        given = tuple(self._register.see_all(tensors_in([*args, *kwargs.values()])))
        call, function = self._stack[-1].call, None if self._muted else function
        for seen in self._register.see_all(made):
            operation = tuple.__new__(Operation, (function, given, seen, -1))
            self.shapes.saw_operation(call, operation)

    def _explain(self, function: Any, args: Any, kwargs: Any, error: Exception) -> None:
        frame = sys._getframe(2)
        site: FrameType | None = frame
        while site and self._kind(site.f_code) > PART:
            site = site.f_back
        if site is not None:
            explain(error, function, args, kwargs, frame, site)


class _Level:
    """One of the calls that are running: what it has listed, and how often its lines ran."""

    def __init__(self, call: Call, kind: int) -> None:
        self.call, self.kind = call, kind
        self.owner: object = None  # the module whose method it is
        self.listed: dict[str, weakref.ref[Tensor]] = {}
        self.counts: dict[tuple[str, int], tuple[int, Item]] = {}
        self.sites: dict[tuple[int, int, int], tuple[int, Call]] = {}

    def has_listed(self, tensor: Tensor) -> bool:
        return any(listed() is tensor for listed in self.listed.values())

    def name_of(self, module: object) -> str:
        """A module as the part of its owner that it is, or by its class."""
        for name, part in fields_of(self.owner).get("_modules", {}).items():
            if part is module:
                return f"{name}()"
            for inner, each in fields_of(part).get("_modules", {}).items():
                if each is module:
                    return f"{name}.{inner}()"
        return f"{type(module).__name__}()"


class _Watcher:
    """Follows the lines of one function, and lists what each of them binds once it has run."""

    def __init__(self, tracer: trace, level: _Level, lines: Lines) -> None:
        self.tracer, self.level, self.lines = tracer, level, lines
        self.run: Run | None = None
        self.before: dict[str, int] = {}

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            if self.run is not None:
                self.leave(frame)
            now = frame.f_lasti  # of the line that begins
            run = self.lines.runs.get(now) or self.lines.run(now)
            if run.stores:
                self.enter(frame, run)
        elif event == "exception":
            if not self.lines.expects_end(frame.f_lasti):
                self.run = None
        elif event == "return":
            self.leave(frame)
            tracer = self.tracer
            if frame.f_code.co_flags & _SUSPENDS and self.lines.suspends(frame.f_lasti):
                tracer.suspend(frame, self)
                self.enter(frame, self.lines.run(frame.f_lasti))
            elif isinstance(arg, Tensor):
                if self.level.call.items and not self.level.has_listed(arg):
                    tracer.list_steps(self.level, [("returns", arg, 0)], 0, is_result=True)
                tracer.returned = weakref.ref(arg), self.level.call.axes
            tracer.leave(self.level)
        return self

    def enter(self, frame: FrameType, run: Run) -> None:
        """A line that binds something begins."""
        self.run = run
        if run.may_skip:
            values = frame.f_locals
            self.before = {store.target: id(store.value(frame, values)) for store in run.stores}

    def leave(self, frame: FrameType) -> None:
        """A line has ended, or waits: list what it has bound."""
        run, self.run = self.run, None
        if run is None:
            return
        stores = run.bound(frame.f_lasti)
        if not stores:
            return
        values = frame.f_locals
        found: list[tuple[str, Tensor, int]] = []
        for store in stores:
            value = store.value(frame, values)
            kind = type(value)
            if kind in _PLAIN and not (run.reads_shape and kind is int):
                continue
            if run.may_skip and self.before.get(store.target) == id(value):
                continue
            if kind is int:
                if store.name.isascii():
                    self.level.call.axes.read(store.name, value)
            else:
                found += _tensors_named(store.target, value)
        if found:
            self.tracer.list_steps(self.level, found, run.line)


#: What holds no tensor, most often.
_PLAIN = {int, float, bool, str, type(None), torch.Size, torch.dtype, torch.device}


def _nothing() -> None:
    return None


def _title(code: CodeType) -> str:
    """A function as a walk names it: a method `forward` by its class."""
    names = code.co_qualname.replace("<locals>.", "").split(".")
    return names[-2] if names[-1] == "forward" and len(names) > 1 else names[-1]


def _names_in(dims: tuple[str, ...]) -> list[str]:
    return re.findall(r"[^\W\d]\w*", " ".join(dims))


def _tensors_named(name: str, value: Any) -> Iterator[tuple[str, Tensor, int]]:
    """A tensor with its name; of a list, tuple or dictionary the tensors in it, each with their
    number if it is the last of those that are listed, else 1; 0 for a tensor that is bound."""
    kind = type(value)
    if issubclass(kind, Tensor):
        yield name, value, 0
    elif issubclass(kind, (tuple, list, dict)):
        parts: list[tuple[str, Tensor]] = []
        if issubclass(kind, dict):
            for key, part in dict.items(value):
                is_field = isinstance(key, str) and key in getattr(kind, "__annotations__", {})
                parts.append((f"{name}.{key}" if is_field else f"{name}[{key!r}]", part))
        else:
            fields = getattr(kind, "_fields", None)
            base = tuple if issubclass(kind, tuple) else list
            for index, part in enumerate(base.__iter__(value)):
                parts.append((f"{name}.{fields[index]}" if fields else f"{name}[{index}]", part))
        parts = [(named, part) for named, part in parts if issubclass(type(part), Tensor)]
        few = parts if len(parts) <= PASSES + 1 else parts[:PASSES]
        for named, part in few:
            yield named, part, len(parts) if part is few[-1][1] and few is not parts else 1


def _without_numbers(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return value


def _drop_result(calls: list[Call], tensor: Tensor, name: str = "") -> None:
    """Forget results that are now bound to a name; of one `name` alone, if it is given."""
    for call in calls:
        for item in call.items[::-1]:
            if item.is_result and name in ("", item.name) and item.tensor() is tensor:
                call.drop(item)
        if not call.items:
            _drop_result(call.pending, tensor, name)


def _is_of_table(calls: list[Call], tensor: Tensor) -> bool:
    """Whether a tensor is a step of a function of the book."""
    return any(
        any(item.tensor() is tensor for item in call.items)
        if call.table
        else not call.items and _is_of_table(call.pending, tensor)
        for call in calls
    )
