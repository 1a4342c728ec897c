"""The trace of a block: every tensor that its lines, and what they call, bind to a name."""

from __future__ import annotations

import inspect
import sys
import sysconfig
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode
from torch.utils._pytree import tree_map_only

from attention_book.shapes.errors import ShapeError, at_least
from attention_book.shapes.explaining import explain, flat, show_steps
from attention_book.shapes.lines import Lines, Run, fields_of, lines_of
from attention_book.shapes.steps import (
    AxisNames,
    Item,
    Operation,
    Register,
    Shapes,
    TracedCall,
    names_in,
    shown,
)
from attention_book.shapes.tables import TABLES, Row

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
_PAUSES = ("YIELD_VALUE", "RESUME")  # the second from Python 3.13 on
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


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


class trace(TorchFunctionMode):  # noqa: N801, a context manager reads as a verb
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
    Where two dimensions have one size, as far as names, axes of a tensor or the parameters that are
    used tell, the axis is shown as its number.

    An operation that fails gets a note: the line, its operands with their names and shapes, which
    axis meets which, and what mends it, where one operation would. The steps up to it are shown.

    The traced code computes the same numbers. Only names and shapes are kept, no tensor. Outside
    the block nothing is installed. What runs in other threads or inside a compiled function is not
    listed, and the trace says so. A block within a block keeps to itself. One that a function opens
    and leaves open, as a context manager of your own or a fixture does, goes on in its caller.

    Raises:
        TypeError, ValueError: for a size that is not an integer from 0 on, or a depth that is not
            one from 1 on.
        RuntimeError: on entering it a second time.
    """

    def __init__(self, depth: int | None = None, **sizes: int) -> None:
        super().__init__()
        self._given = {name: at_least("trace", name, size, 0) for name, size in sizes.items()}
        self.shapes = Shapes(None if depth is None else at_least("trace", "depth", depth))
        self._before: Any = None
        self._stack: list[_Running] = []  # empty before and after the block
        self._named: dict[int, Item] = {}  # by the identity of their tensors, from tables
        # What has been found of functions, each kept, so that no other gets its identity.
        self._kinds: dict[int, tuple[int, CodeType]] = {}
        self._register = Register()
        self._muted = 0
        self._left = MOST_OPERATIONS
        self._lies: list[str] = []

    def __enter__(self) -> Shapes:
        if self._before is not None:
            raise RuntimeError("trace: this one has been entered before: each block needs its own")
        self._before = sys.gettrace(), threading.gettrace()
        self._open(sys._getframe(1))
        super().__enter__()
        threading.settrace(self._enter_thread)
        sys.settrace(self._enter_call)
        return self.shapes

    def _open(self, frame: FrameType | None) -> None:
        """Follow the lines of a frame, or of that of the reader which has called it."""
        while frame and self.kind(frame.f_code) not in (YOURS, TABLE, HOUSE):
            frame = frame.f_back
        call = TracedCall("", trace.__init__.__code__, AxisNames(self._given))
        block = _Running(self, call, TABLE)
        self.shapes.blocks.append(call)
        self._stack.append(block)
        if frame and self.kind(frame.f_code) == YOURS:
            block.kind, call.function, call.code = YOURS, _title(frame.f_code), frame.f_code
            block.enter(frame)
            block.frame, block.traced_by = frame, frame.f_trace
            frame.f_trace = block

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: Any) -> None:
        sys.settrace(self._before[0])
        threading.settrace(self._before[1])
        super().__exit__(kind, error, traceback)
        for running in self._stack:
            running.close()
        self._stack.clear()
        if kind is None and self._lies:
            raise ShapeError("; ".join(self._lies))
        while traceback is not None and traceback.tb_next is not None:
            if traceback.tb_next.tb_frame.f_code is trace.__torch_function__.__code__:
                traceback.tb_next = traceback.tb_next.tb_next  # no line that a reader wrote
            traceback = traceback.tb_next
        if isinstance(error, Exception) and len(self.shapes):
            show_steps(error, str(self.shapes))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take note of a call into PyTorch that makes tensors, and explain one that fails."""
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self.explain(error, sys._getframe(1), func, args, kwargs)
            raise
        made = [x for x in flat([result]) if _has_shape(x)]
        if made and self._left > 0 and self._stack:
            self._left -= len(made)
            given = [x for x in flat([*args, *kwargs.values()]) if _has_shape(x)]
            see, call = self._register.see, self._stack[-1].call
            function, operands = None if self._muted else func, tuple(see(given))
            self.shapes.saw(*[Operation(function, operands, seen, call) for seen in see(made)])
        return result

    def explain(self, error: Exception, frame: FrameType, *operation: Any) -> None:
        site: FrameType | None = frame
        while site and self.kind(site.f_code) > PART:
            site = site.f_back
        if site:
            explain(error, frame, site, *operation)

    def kind(self, code: CodeType) -> int:
        known = self._kinds.get(id(code))
        if known is None:
            known = self._kinds[id(code)] = _whose(code), code
        return known[0]

    # Calls

    def _enter_thread(self, frame: FrameType, event: str, arg: object) -> None:
        sys.settrace(None)
        self.shapes.remark("What ran in other threads is not listed.")

    def _mute(self, frame: FrameType) -> Any:
        """List nothing of a call, nor of what it calls, until it returns."""
        self._muted += 1
        frame.f_trace_lines = False
        return self._unmute

    def _unmute(self, frame: FrameType, event: str, arg: object) -> Any:
        self._muted -= event == "return"
        return self._unmute

    def _enter_call(self, frame: FrameType, event: str, arg: object) -> Any:
        if not self._stack:  # it has ended, and one that began in it goes on
            return sys.settrace(None)
        kind = self.kind(frame.f_code)
        is_apart = kind == COMPILED or (kind == MODULE and _may_be_fused(frame))
        follow = self._follow(frame, kind)
        if not is_apart or _get_current_function_mode() is not self:
            return follow
        # Told of the calls into PyTorch, it would not be the same.
        TorchFunctionMode.__exit__(self, None, None, None)

        def apart(frame: FrameType, event: str, arg: object) -> Any:
            if follow:
                follow(frame, event, arg)
            if event == "return":
                TorchFunctionMode.__enter__(self)
            return apart

        return apart

    def _follow(self, frame: FrameType, kind: int) -> Any:
        """What is told of the lines of a call; None if nothing is."""
        code, follow = frame.f_code, frame.f_trace
        if kind >= HOUSE or kind == PART or self._muted:
            return None
        if kind == COMPILED:
            self.shapes.remark("What ran inside a compiled function is not listed.")
        if kind == COMPILED or follow == self._unmute:
            return self._mute(frame)
        if isinstance(follow, _Running) and follow.tracer is self:
            self._stack.append(follow)
            return follow  # a generator, or a coroutine, goes on
        top = self._stack[-1]
        if kind == MODULE:
            module = frame.f_locals["self"]
            if "_modules" not in fields_of(module):
                return None
            top.call.axes.add_parameters(module)
            if top.kind in (MODULE, TABLE):
                return None
            if sum(each.kind != MODULE for each in self._stack) <= (self.shapes.depth or 0):
                kind = YOURS
        site = self._site(top, frame)
        if kind == MODULE and site is not None and self.kind(site.f_code) == HOUSE:
            return None
        # The axes of a module of a library have the names of its caller.
        axes = top.call.axes if kind == MODULE else AxisNames(self._given)
        call = TracedCall(_title(code), code, axes)
        if site is not None and not self._is_listed(top, call, site):
            return self._mute(frame)
        top.call.pending.append(call)
        running = _Running(self, call, kind)
        if kind == MODULE:
            running.name = top.name_of(frame.f_locals["self"])
            frame.f_trace_lines = False
        else:
            self._list_arguments(running, frame, top)
        self._stack.append(running)
        return running

    def _site(self, top: _Running, frame: FrameType) -> FrameType | None:
        """The frame whose line makes a call: the reader's, or this package's; None inside a
        function of the book."""
        site = frame.f_back if top.kind != TABLE else None
        while site and site.f_code is not top.call.code:
            if self.kind(site.f_code) in (YOURS, PART, HOUSE):
                break
            site = site.f_back
        return site

    def _is_listed(self, top: _Running, call: TracedCall, site: FrameType) -> bool:
        """Whether a call belongs to the first passes of a loop, and is not too deep in itself."""
        if sum(level.call.code is call.code for level in self._stack) >= RECURSION:
            self.shapes.remark(f"{call.function} calls itself; {RECURSION} calls deep are listed.")
            return False
        if top.frame is not None:
            call.is_bare = not top.lines.binds(top.frame.f_lasti)
        if self.kind(site.f_code) == HOUSE:
            return True  # the package has loops of its own
        key = id(site.f_code), site.f_lasti, id(call.code)
        is_first = top.is_first(key)
        if is_first:
            top.last[key] = call
        return is_first

    def leave(self, running: _Running, caller: FrameType | None) -> None:
        if not self._stack or self._stack[-1] is not running:
            return
        self._stack.pop()
        if self._stack:
            self._stack[-1].call.axes.parameters |= running.call.axes.parameters
        else:
            self._open(caller)

    def _list_arguments(self, running: _Running, frame: FrameType, caller: _Running) -> None:
        values, call = frame.f_locals, running.call
        if running.kind == TABLE:
            call.table = table = TABLES[frame.f_code]
            arguments = {name: values[name] for name in table.parameters}
            call.checked = checked = table.check(arguments)
            call.function, call.sizes = checked.owner, checked.size
            call.arguments = tree_map_only(Tensor, _without_numbers, arguments)
            for row in table.arguments:
                if row.kind == "floating":
                    self.see(running, row, values[row.name], 0)
            return
        given = inspect.getargs(frame.f_code)
        names = [n for n in (*given.args, given.varargs, given.varkw) if n in values]
        if "self" in names[:1]:
            running.owner = values["self"]
            call.axes.declare(fields_of(running.owner).items())
            call.axes.add_parameters(running.owner)
        call.axes.declare((name, values[name]) for name in names)
        found = [each for name in names for each in _tensors_named(name, values[name])]
        for _, tensor, _ in found:
            _drop_result(caller.call.pending, tensor, "returns")
        self.list_steps(running, found, 0)

    # Steps

    def see(self, running: _Running, row: Row, tensor: object, line: int) -> None:
        """List the tensor of a row of a table."""
        call, sizes = running.call, running.call.checked
        if sizes is None or not isinstance(tensor, Tensor):
            return
        try:
            sizes.fit(row, tensor.shape)
        except ShapeError as lie:
            self._lies.append(f"the shape table is wrong: {lie}")
            return
        # A second name for a tensor is no step of its own; three arguments may be one tensor.
        is_argument = row in TABLES[call.code].arguments
        if row.name in running.listed or (running.has_listed(tensor) and not is_argument):
            return
        item = self._list(running, row.name, tensor, line)
        item.dims = sizes.stretched(row, tensor.shape)
        item.sizes = {name: sizes.size[name] for name in names_in(*item.dims) if name in sizes.size}
        self._named[id(tensor)] = item

    def list_steps(
        self,
        running: _Running,
        found: list[tuple[str, Tensor, int]],
        line: int,
        is_result: bool = False,
    ) -> None:
        """List tensors that a line binds; line 0 is that of arguments and results."""
        call = running.call
        found = [each for each in found if _has_shape(each[1])]
        for _, tensor, _ in found:
            _drop_result(call.pending, tensor)
        for name, tensor, times in found:
            if times and not is_result and running.has_listed(tensor):
                continue  # in a list of tensors that have names
            if line and not running.is_first((name, line)):
                continue
            is_echo = running.frame is not None and any(
                each.table and any(item.tensor() is tensor for item in each.items)
                for each in shown(call.pending)
            )
            item = running.last[name, line] = self._list(running, name, tensor, line)
            item.times, item.is_result, item.is_echo = max(times, 1), is_result, is_echo
            table = self._named.get(id(tensor))
            if table is not None and table.tensor() is tensor:
                item.dims, item.sizes = table.dims, table.sizes

    def _list(self, running: _Running, name: str, tensor: Tensor, line: int) -> Item:
        alive, (seen,) = weakref.ref(tensor), self._register.see([tensor])
        item = Item(name, tuple(tensor.shape), alive, line, seen)
        item.inner, running.call.pending = running.call.pending, []
        running.call.axes.meet(seen)
        running.call.items.append(item)
        running.listed[name] = alive
        self.shapes.saw(item)
        return item


class _Running:
    """One of the calls that are running: follows its lines, and lists what each of them binds
    once it has run."""

    def __init__(self, tracer: trace, call: TracedCall, kind: int) -> None:
        self.tracer, self.call, self.kind = tracer, call, kind
        self.owner: object = None  # the module whose method it is
        self.name = ""  # of a module of a library, in its caller
        self.listed: dict[str, weakref.ref[Tensor]] = {}
        self.passes: Counter[Any] = Counter()  # how often a line bound a name, or made a call
        self.last: dict[Any, Item | TracedCall] = {}  # what it listed last of that
        self.run: Run | None = None
        self.before: dict[str, int] = {}
        # Where its lines are those of the block: their frame, and what traced it before.
        self.frame: FrameType | None = None
        self.traced_by: Any = None

    @cached_property
    def lines(self) -> Lines:
        return lines_of(self.call.code)

    def has_listed(self, tensor: Tensor) -> bool:
        return any(listed() is tensor for listed in self.listed.values())

    def is_first(self, key: tuple[Any, ...]) -> bool:
        """Whether a pass of a loop is one that is listed; the last of these counts them all."""
        self.passes[key] = passes = self.passes[key] + 1
        if passes > PASSES:
            self.last[key].times = passes
            self.tracer.shapes.saw()
        return passes <= PASSES

    def name_of(self, module: object) -> str:
        """A module as the part of its owner that it is, or by its class."""
        for name, part in fields_of(self.owner).get("_modules", {}).items():
            if part is module:
                return f"{name}()"
            for inner, each in fields_of(part).get("_modules", {}).items():
                if each is module:
                    return f"{name}.{inner}()"
        return f"{type(module).__name__}()"

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.leave(frame)
            self.enter(frame)
        elif event == "exception":
            # One of these takes what comes next, and goes on where nothing does.
            takes = self.lines.names.get(frame.f_lasti) in ("SEND", "END_SEND", "FOR_ITER")
            if not takes or arg[0] is StopAsyncIteration:
                self.run = None
            found = [(each, self.tracer.kind(each.f_code)) for each, _ in walk_tb(arg[2])]
            inner, kind = next((each for each in found[::-1] if each[1] != HIDDEN), (frame, YOURS))
            if kind == MODULE:  # a library has raised it
                self.tracer.explain(arg[1], inner)
        elif event == "return":
            self.leave(frame)
            is_open = frame.f_code.co_flags & _SUSPENDS  # a generator, or a coroutine, that waits
            if is_open and self.lines.names.get(frame.f_lasti) in _PAUSES:
                self.enter(frame)
            else:
                self.frame = None
                self.give_back(arg, frame.f_lineno)
            self.tracer.leave(self, frame.f_back)
        return self

    def give_back(self, result: Any, line: int) -> None:
        table = self.call.table
        if self.kind == MODULE:
            self.tracer.list_steps(self, [*_tensors_named(self.name, result)], 0, is_result=True)
        elif table:
            if "returns" in table.rows:
                self.tracer.see(self, table.rows["returns"], result, line)
        elif isinstance(result, Tensor) and self.call.items and not self.has_listed(result):
            self.tracer.list_steps(self, [("returns", result, 0)], 0, is_result=True)

    def close(self) -> None:
        """The block ends: list what its last line has bound, and leave the frame as it was."""
        frame, self.frame = self.frame, None
        if frame is not None:
            self.leave(frame)
            frame.f_trace = self.traced_by
            # Before Python 3.13, a function has a copy, which would keep tensors that are deleted
            # later; with these two references, nobody has asked for it.
            is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
            if is_function and sys.getrefcount(frame.f_locals) == 2:
                frame.f_locals.clear()

    def enter(self, frame: FrameType) -> None:
        """A line begins."""
        run = self.lines[frame.f_lasti]
        self.run = run if run.stores else None
        if run.may_skip:
            values = frame.f_locals
            self.before = {store.target: id(store.value(frame, values)) for store in run.stores}

    def leave(self, frame: FrameType) -> None:
        """A line has ended, or waits: list what it has bound."""
        run, self.run = self.run, None
        stores = run.bound(frame.f_lasti) if run else ()
        if run is None or not stores:
            return
        values, table = frame.f_locals, self.call.table
        found: list[tuple[str, Tensor, int]] = []
        for store in stores:
            value = store.value(frame, values)
            if run.may_skip and self.before.get(store.target) == id(value):
                continue
            if type(value) is int:
                name = store.target.rpartition(".")[2]
                if run.reads_shape and name.isascii() and name != "_":
                    self.call.axes.read(name, value)
            elif table is None:
                found += _tensors_named(store.target, value)
            elif store.target in table.rows and store.target not in table.parameters:
                self.tracer.see(self, table.rows[store.target], value, run.line)
        if found:
            self.tracer.list_steps(self, found, run.line)


def _title(code: CodeType) -> str:
    """A function as a walk names it: a method `forward` by its class."""
    names = code.co_qualname.replace("<locals>.", "").split(".")
    return names[-2] if names[-1] == "forward" and len(names) > 1 else names[-1]


def _tensors_named(name: str, value: Any) -> Iterator[tuple[str, Tensor, int]]:
    """A tensor with its name; of a list, tuple or dictionary the tensors in it, each with their
    number if it is the last of those that are listed, else 1; 0 for a tensor that is bound."""
    kind = type(value)
    if issubclass(kind, Tensor):
        yield name, value, 0
        return
    if issubclass(kind, dict):
        fields, items = getattr(kind, "__annotations__", ()), dict.items(value)
    elif issubclass(kind, (tuple, list)):
        fields = getattr(kind, "_fields", ())
        parts = (tuple if issubclass(kind, tuple) else list).__iter__(value)
        items = dict(zip(fields or count(), parts, strict=False)).items()
    else:
        return
    found = [
        (_part(name, key, fields), part) for key, part in items if issubclass(type(part), Tensor)
    ]
    few = found if len(found) <= PASSES + 1 else found[:PASSES]
    for named, part in few:
        yield named, part, len(found) if part is few[-1][1] and few is not found else 1


def _part(name: str, key: object, fields: Any) -> str:
    """A part as it is written; a key that is an object as its class, whose code does not run."""
    if type(key) is str and key in fields:
        return f"{name}.{key}"
    is_plain = all(type(each) in (str, int, float, bool) for each in flat([key]))
    return f"{name}[{repr(key) if is_plain else type(key).__name__}]"


#: What PyTorch may compute in one step, of other rounding, where it tells nobody of its calls.
_FUSED = ("MultiheadAttention.", "TransformerEncoderLayer.", "TransformerEncoder.")


def _may_be_fused(frame: FrameType) -> bool:
    module = frame.f_locals["self"]
    if not frame.f_code.co_qualname.startswith(_FUSED) or module.training:
        return False
    return not (torch.is_grad_enabled() and any(x.requires_grad for x in module.parameters()))


def _has_shape(value: object) -> bool:
    return isinstance(value, Tensor) and not value.is_nested


def _without_numbers(tensor: Tensor) -> Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def _drop_result(calls: list[TracedCall], tensor: Tensor, name: str = "") -> None:
    """Forget results that are now bound to a name; of one `name` alone, if it is given."""
    for call in calls:
        for item in call.items[::-1]:
            if item.is_result and name in ("", item.name) and item.tensor() is tensor:
                call.drop(item)
        if not call.items:
            _drop_result(call.pending, tensor, name)
