"""The program inside the jail: run one student's definitions on recorded inputs.

It reads a job from its input and writes one JSON line a call to its output. The student's code
runs only in processes forked from this one: a *loader*, which executes the notebook's statements,
and one child of the loader for each call. Whatever they do, this process goes on: it is the first
of its namespace, so that they cannot send it signals, and they may not look into its memory and its
files.

A call's inputs lie in memory that this process shares with them. So it sees for itself whether a
function wrote into what its caller gave it.

A call of a question that forbids functions is made in a loader in which these refuse; see `watch`.
Where it gives nothing there, it is made once more as any other, and both is told.
"""

from __future__ import annotations

import ast
import base64
import codeop
import contextlib
import ctypes
import gc
import json
import linecache
import mmap
import os
import re
import resource
import select
import signal
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

#: In all, by the clock, a statement or call gets this many times its seconds.
CLOCK_FACTOR = 6
SECONDS_BETWEEN_LOOKS = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
#: Of what went wrong in loading, no more is told.
MAX_TOLD = 1_000
MAX_USED = 10
PR_SET_DUMPABLE = 4

HURRY = (
    "The notebook's statements took more than {:g} seconds, so that of the others only "
    "definitions, imports, plain values and what takes no time were run before the answers were "
    "called."
)

#: Cells that Jupyter gives to another program, and those that it writes to a file.
TO_OTHERS = re.compile(
    r"\s*%%(?:bash|cmd|html|javascript|js|latex|markdown|perl|ruby|script|sh|svg|sx|system)\b",
    re.IGNORECASE,
)
TO_A_FILE = re.compile(r"\s*%%(?:writefile|file)\b")

USES_CHECKS = "it was left out, because it uses `grader`, the checks in your notebook"

TOO_MUCH, FORGED = "it returned too much", "it wrote into the grader's pipe"
RAN_LONGER, RAN_OUT = "it ran longer than {:g} s", "it had run out of time before"
ENDED_ALL, ENDED = "it ended the process of the notebook", "its process ended before it returned"
ABSENT = "there is no {} in the notebook"
#: Why a call gave nothing, where the notebook raised no error.
REASONS = TOO_MUCH, FORGED, RAN_LONGER, RAN_OUT, ENDED_ALL, ENDED, ABSENT

#: A cell and a line of the notebook, from 1 on; line 0 is the whole cell.
Place = tuple[int, int]

#: A function that ran out of time this often is not called again, …
MAX_TIMEOUTS = 2
#: … and after so many statements that did, only definitions are loaded.
MAX_STATEMENTS_TIMED_OUT = 5
#: A statement that took no longer is not left out where time is short.
QUICK = 0.1
#: … and what no longer took in the first loading, where that took long, not in the second one.
QUICK_AGAIN, LONG = 1.0, 15.0


class StoppedError(Exception):
    """The loader ended, said what it must not, or nothing in time."""

    def __init__(self, what: str, timeout: bool = False, by_the_clock: bool = False) -> None:
        super().__init__(what)
        self.timeout = timeout
        self.by_the_clock = by_the_clock  #: whether others may have kept the processors


class LoadingTooLongError(StoppedError):
    """The notebook's statements take too long in all."""


@dataclass
class Waste:
    """Seconds that statements ran until they were ended, and that calls took.

    Once it is as much as one of them may take, the others get less: a notebook full of loops leaves
    time for its answers, and for other notebooks.
    """

    seconds: float = 0.0


@dataclass
class Progress:
    """What is known of the statements from the loaders before."""

    waste: Waste = field(default_factory=Waste)
    skipped: dict[Place, str] = field(default_factory=dict)  #: why
    reported: dict[Place, str] = field(default_factory=dict)  #: what went wrong
    passed: dict[Place, float] = field(default_factory=dict)  #: and how long each took
    timeouts: int = 0
    loading_time_is_up: bool = False
    quick: float = QUICK
    spent: float = 0.0  #: seconds of loading, of the notebook's own time …
    elapsed: float = 0.0  #: … and by the clock

    def watched(self) -> Progress:
        """What is known to a loader that refuses functions: nobody need be told of it."""
        known = self.waste, dict(self.skipped), dict(self.reported), self.passed, self.timeouts
        is_long = sum(self.passed.values()) > LONG
        return Progress(*known, loading_time_is_up=is_long, quick=QUICK_AGAIN)


def main() -> None:
    job = json.loads(_read(int(_read(16))))
    _confine(job)
    try:
        for line in _answers(job):
            print(json.dumps(line), flush=True)
    except Exception as error:
        print(json.dumps({"broken": f"{type(error).__name__}: {error}"}), flush=True)


def _read(size: int) -> bytes:
    """The next bytes of the job, and no more: a later call is unknown while this one is made."""
    found = os.read(0, size)
    assert len(found) == size
    return found


def _confine(job: dict[str, Any]) -> None:
    """Close this process to others, import torch, and set the limits that children inherit."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would let it through
    # Here, so that every child has them from the start.
    import IPython.core.inputtransformer2  # noqa: F401
    import torch
    import wire  # noqa: F401

    torch.set_num_threads(1)
    torch.compile = _as_it_is
    if any("checkpoint" in cell for cell in job["cells"]):
        # It imports this when it is called, which would take seconds in every call anew.
        import torch._dynamo
    with open("/proc/self/statm") as sizes:
        in_use = int(sizes.read().split()[0]) * resource.getpagesize()
    for what, limit in (
        (resource.RLIMIT_AS, in_use + job["memory"]),
        (resource.RLIMIT_NPROC, job["processes"]),
        (resource.RLIMIT_FSIZE, job["file_size"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (limit, limit))


def _as_it_is(model: Any = None, **settings: Any) -> Any:
    """In place of `torch.compile`: it gives the same numbers, without a compiler in the jail."""
    return (lambda function: function) if model is None else model


def _answers(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Load the definitions, then answer each call; what goes wrong in loading is told at once."""
    yield {"started": True}
    answering = Answering(job)
    again = []
    for number, size in enumerate(job["calls"]):
        call = json.loads(_read(size))
        forbidden = tuple(call.pop("forbidden", ()))
        line = yield from answering.answer(call, forbidden)
        if forbidden and _is_worth_another_try(line):
            again.append((number, call, line))
        else:
            yield {"call": number, **line}
    for number, call, watched in again:
        line = yield from answering.answer(call, ())
        used = watched["reply"].get("used", [])
        if used or "value" in line["reply"]:
            line["reply"] |= {"used": used, "slow": watched.get("slow", False)}
        yield {"call": number, **line}


def _is_worth_another_try(line: dict[str, Any]) -> bool:
    """Whether a call gave nothing where functions refuse, and may give something elsewhere."""
    reply = line["reply"]
    return not line.get("late") and "absent" not in reply and ("used" in reply or "error" in reply)


class Answering:
    """The loader that answers now, and what is known from those before."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        # Written as JSON, inputs take more room than in memory, but for the gaps between them.
        self._memory = Arena(2 * max(job["calls"], default=1))
        self._loader: Loader | None = None
        self._forbidden: tuple[str, ...] = ()  #: what this loader refuses
        self._progress: dict[tuple[str, ...], Progress] = {}
        self._timeouts: Counter[tuple[str, bool]] = Counter()
        self._waste = Waste()

    def answer(
        self, call: dict[str, Any], forbidden: tuple[str, ...]
    ) -> Generator[dict[str, Any], None, dict[str, Any]]:
        """The line that tells of a call, made where these functions refuse."""
        # Where functions refuse, a program takes longer.
        name = call["name"], bool(forbidden)
        most = 1 if self._waste.seconds >= self.job["seconds"] else MAX_TIMEOUTS
        if self._timeouts[name] >= most:
            reply = {"error": RAN_OUT}
            return {"reply": reply, "late": False, "slow": True}
        try:
            if not self._progress:
                yield from self._load(())
            if self._loader is None or forbidden != self._forbidden:
                yield from self._load(forbidden)
            assert self._loader is not None
            return {"reply": self._loader.call(call)}
        except StoppedError as why:
            self._timeouts[name] += why.timeout
            self._end()
            return {"reply": {"error": str(why)}, "late": why.by_the_clock, "slow": why.timeout}

    def _end(self) -> None:
        if self._loader is not None:
            self._loader.kill()
        self._loader = None

    def _load(self, forbidden: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Start loaders until one gets through; each leaves out what stopped the one before."""
        if forbidden not in self._progress:
            plain = self._progress.get((), Progress(self._waste))
            self._progress[forbidden] = plain.watched() if forbidden else plain
        progress, self._forbidden = self._progress[forbidden], forbidden
        while True:
            self._end()  # no process of the student's is alive when another one starts
            if forbidden:  # nothing is left of where functions could be called
                self._memory.empty()
            loader = self._loader = Loader(self.job, progress, self._memory, forbidden)
            try:
                for place, what in loader.load():
                    if progress.reported.get(place) != what and len(progress.reported) < MAX_TOLD:
                        progress.reported[place] = what
                        if not forbidden:
                            yield {"skipped": [*place, what]}
                return
            except LoadingTooLongError as why:
                progress.loading_time_is_up = True
                yield {"hurry": str(why), "late": why.by_the_clock}
            except StoppedError as why:
                if loader.at is None or loader.at in progress.skipped:
                    self._end()
                    raise RuntimeError(f"the definitions cannot be loaded: {why}") from why
                progress.skipped[loader.at] = str(why)
                progress.timeouts += why.timeout
                self._waste.seconds += why.timeout * loader.patience()
                if progress.timeouts == MAX_STATEMENTS_TIMED_OUT:
                    progress.loading_time_is_up = True
                if not forbidden:
                    yield {"skipped": [*loader.at, str(why)], "late": why.by_the_clock}


class Loader:
    """A process that holds the student's definitions, as seen from this side."""

    def __init__(
        self, job: dict[str, Any], progress: Progress, memory: Arena, forbidden: tuple[str, ...]
    ) -> None:
        self.job = job
        self.progress = progress
        self.at: Place | None = None
        self._clock = Clock()
        self._pending = b""
        self._memory = memory
        orders, self._orders = os.pipe()
        self._messages, messages = os.pipe()
        self._process = os.fork()
        self._is_over = False  # it ended; a copy may still hold its end of the pipe
        if self._process == 0:
            os.close(self._orders)
            os.close(self._messages)
            _be_loader(job, progress, memory.bytes, forbidden, orders, messages)
        os.close(orders)
        os.close(messages)

    def load(self) -> Iterator[tuple[Place, str]]:
        """Wait until every statement ran; tells what went wrong, with its place."""
        began, known = time.monotonic(), self.progress
        before = known.spent, known.elapsed
        while True:
            message = self._next(self.patience(self.at in known.passed))
            known.spent = before[0] + self._clock.spent()
            known.elapsed = before[1] + self._clock.elapsed()
            limit = self.job["loading_seconds"]
            if known.spent > 3 * limit:  # it says what it likes of where it is
                raise RuntimeError("the definitions cannot be loaded: they take too long")
            if not known.loading_time_is_up and (
                known.spent > limit or known.elapsed > 1.5 * limit
            ):
                raise LoadingTooLongError(HURRY.format(limit), by_the_clock=known.spent <= limit)
            if "used" in message:
                continue  # refused; it ends its process
            if "failed" in message:
                yield self.at or (1, 0), str(message["failed"])[:300]
                continue
            if self.at is not None:
                known.passed[self.at] = time.monotonic() - began
            began = time.monotonic()
            if "at" in message:
                self.at = self._place(message["at"])
            elif "ready" in message:
                return

    def _place(self, said: Any) -> Place:
        """A place of the notebook, whatever the loader says."""
        match said:
            case [cell, line] if type(cell) is type(line) is int and line >= 0:
                cells = self.job["cells"]
                if 1 <= cell <= len(cells) and line <= len(cells[cell - 1].splitlines()):
                    return cell, line
        raise StoppedError(FORGED)

    def patience(self, known: bool = False) -> float:
        """Seconds for a statement or a call; one that is known to get through has all its time."""
        if known or self.progress.waste.seconds < self.job["seconds"]:
            return self.job["seconds"]
        return min(self.job["seconds"], self.job["later_seconds"])

    def call(self, call: dict[str, Any]) -> dict[str, Any]:
        """Have one call made; returns its reply, what it wrote into its inputs, and what it used of
        what it may not use.
        """
        reply: dict[str, Any] = {"error": ENDED}
        order = json.dumps(self._memory.place(call)).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, order)
        used: dict[str, None] = {}
        seconds, before = self.patience(), self._clock.spent()
        try:
            while "ended" not in (message := self._next(seconds)):
                if isinstance(message.get("reply"), dict):
                    reply = message["reply"]
                elif "used" in message and len(used) < MAX_USED:
                    used[re.sub(r"[^\w.]+", " ", str(message["used"]))[:60]] = None
        finally:
            self.progress.waste.seconds += self._clock.spent() - before
        known = {key: reply[key] for key in ("value", "error", "absent") if key in reply}
        known |= {"used": list(used)} if used else {}
        return {**known, "changed": self._memory.changed()}

    def kill(self) -> None:
        """End the loader and every other process of the student's, also those that hid."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        os.close(self._orders)
        os.close(self._messages)

    def _next(self, seconds: float) -> dict[str, Any]:
        from wire import MAX_LINE, MalformedError, parse

        clock = self._clock
        spent, elapsed = clock.spent(), clock.elapsed()
        while b"\n" not in self._pending:
            if not select.select([self._messages], [], [], SECONDS_BETWEEN_LOOKS)[0]:
                if self._is_over:
                    raise StoppedError(ENDED_ALL)
                used = clock.spent() - spent
                if used > seconds or clock.elapsed() - elapsed > CLOCK_FACTOR * seconds:
                    by_the_clock = used <= seconds
                    raise StoppedError(RAN_LONGER.format(seconds), True, by_the_clock)
                self._is_over = self._process in set(_ended())
                _count_files(self.job["files"])
                continue
            chunk = os.read(self._messages, 2**16)
            if not chunk:
                raise StoppedError(ENDED_ALL)
            self._pending += chunk
            if len(self._pending) > MAX_LINE + 2**16:
                raise StoppedError(TOO_MUCH)
        line, self._pending = self._pending.split(b"\n", 1)
        try:
            return parse(line)
        except MalformedError as why:
            raise StoppedError(TOO_MUCH if str(why) == "too much" else FORGED) from None


def _ended() -> Iterator[int]:
    """The processes that ended since the last look, also those whom their parents left behind."""
    with contextlib.suppress(ChildProcessError):
        while process := os.waitpid(-1, os.WNOHANG)[0]:
            yield process


def _count_files(most: int) -> None:
    """End the run where there are too many: they fill the kernel's memory, which nothing counts."""
    room = os.statvfs("/tmp")
    if room.f_files - room.f_ffree > most:
        raise RuntimeError(f"it made more than {most} files")


class Clock:
    """The time that the student's processes spend: at work, or asleep while nobody hinders them."""

    def __init__(self) -> None:
        self._began = self._looked = time.monotonic()
        self._worked = self._until_now = _processes()[0]
        self._slept = 0.0

    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def spent(self) -> float:
        worked, is_one_awake = _processes()
        now = time.monotonic()
        if not is_one_awake:
            self._slept += max(0.0, now - self._looked - (worked - self._until_now))
        self._looked, self._until_now = now, worked
        return self._slept + worked - self._worked


def _processes() -> tuple[float, bool]:
    """Seconds of a processor that all here used, and whether any but this process is awake."""
    ticks, is_one_awake = 0, False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", errors="replace") as file:
            # After the name, which may hold anything: state, …, and from the 12th on the ticks of
            # the process and of its children that ended.
            state, *fields = file.read().rpartition(")")[2].split()
            ticks += sum(map(int, fields[10:14]))
            # A process that waits for the disk is awake.
            is_one_awake |= pid != "1" and state in "RD"
    return ticks / TICKS, is_one_awake


class Arena:
    """Memory that the student's processes share with this one, for the inputs of one call."""

    def __init__(self, size: int) -> None:
        self.bytes = mmap.mmap(-1, size)
        self._inputs: list[tuple[int, bytes]] = []

    def empty(self) -> None:
        self.bytes[:] = bytes(len(self.bytes))

    def place(self, call: dict[str, Any]) -> dict[str, Any]:
        """Put the tensors of a call into the memory; returns the call with their places."""
        self._inputs = []
        self._end = 0
        return {**call, "args": self._placed(call["args"]), "kwargs": self._placed(call["kwargs"])}

    def _placed(self, data: Any) -> Any:
        match data:
            case {"tensor": [name, shape, text]}:
                raw, offset = base64.b64decode(text), self._end
                self.bytes[offset : offset + len(raw)] = raw
                self._inputs.append((offset, raw))
                self._end = offset + -(-len(raw) // 64) * 64
                return {"shared": [name, shape, offset]}
            case {"list": list(items)}:
                return {"list": [self._placed(item) for item in items]}
            case {"tuple": list(items)}:
                return {"tuple": [self._placed(item) for item in items]}
            case {"dict": dict(items)}:
                return {"dict": {key: self._placed(item) for key, item in items.items()}}
        return data

    def changed(self) -> list[list[Any]]:
        """The tensors that are no longer what they were: their numbers, and their bytes now."""
        now = [self.bytes[offset : offset + len(raw)] for offset, raw in self._inputs]
        return [
            [number, base64.b64encode(after).decode()]
            for number, ((_, before), after) in enumerate(zip(self._inputs, now, strict=True))
            if after != before
        ]


def _be_loader(
    job: dict[str, Any],
    progress: Progress,
    memory: mmap.mmap,
    forbidden: tuple[str, ...],
    orders: int,
    messages: int,
) -> None:
    """Execute the statements, then fork for each call. Never returns."""
    import watch

    watch.refuse_calls()
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(job["uid"])
        os.setuid(job["uid"])
    # What belongs to the student, the student may look into, as any program may into itself; but
    # through /proc/self/mem a watch could be ended, by whatever path it is opened.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, int(not forbidden), 0, 0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)

    def say(**message: Any) -> None:
        text = memoryview(json.dumps(message).encode() + b"\n")
        while text:
            text = text[os.write(messages, text) :]

    def end_if_not(process: int) -> None:
        """End here if this is a copy that the student's code forked: it has nothing to say."""
        if os.getpid() != process:
            os._exit(0)

    if forbidden:
        _empty("/tmp")
    notebook = types.ModuleType("__main__")
    notebook.__dict__["display"] = print
    sys.modules["__main__"] = notebook
    loader = os.getpid()
    if forbidden:
        watch.install(forbidden, messages)
    for statement in _statements(job["cells"], progress, say, job.get("packages", ())):
        try:
            exec(statement, notebook.__dict__)
            end_if_not(loader)
        except BaseException as error:
            end_if_not(loader)
            say(failed=_sentence(error))
        if forbidden:
            gc.collect()
    say(ready=True)
    for line in os.fdopen(orders):
        child = os.fork()
        if child == 0:
            caller = os.getpid()
            try:
                reply = _perform(json.loads(line), notebook.__dict__, memory)
            except BaseException as error:
                reply = {"error": _sentence(error)}
            end_if_not(caller)
            say(reply=reply)
            os._exit(0)
        os.waitpid(child, 0)
        say(ended=True)
    os._exit(0)


def _empty(folder: str) -> None:
    """Remove what lies in a folder, however deep it is nested, but for what is mounted there."""
    before: list[str] = []
    while (found := os.listdir(folder)) != before:
        before = found
        for path in (os.path.join(folder, name) for name in found):
            with contextlib.suppress(OSError):
                os.unlink(path)
                continue
            with contextlib.suppress(OSError):
                os.chmod(path, 0o700)
                for name in os.listdir(path):
                    inner = os.path.join(path, name)
                    with contextlib.suppress(OSError):
                        if not os.path.islink(inner):
                            os.chmod(inner, 0o700)  # else a folder cannot be moved
                        os.rename(inner, os.path.join(folder, os.urandom(16).hex()))
                os.rmdir(path)


def _statements(
    cells: list[str],
    progress: Progress,
    say: Callable[..., None],
    packages: Collection[str] = (),
) -> Iterator[types.CodeType]:
    """The notebook's top-level statements one by one, so that a bad one costs only itself.

    Args:
        packages: which may be imported beside Python's own; none: all that there are.
    """
    # As Jupyter does: a `from __future__` of the notebook holds from there on, and none of ours.
    compiled = codeop.Compile()
    for number, source in enumerate(cells, 1):
        place = number, 0
        if place in progress.skipped:
            continue
        say(at=place)
        try:
            tree = parse_cell(source)
        except Exception as error:
            say(failed=_sentence(error))
            continue
        # Where TorchScript, and a traceback, looks for the source.
        file = f"<cell {number}>"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        for statement in tree.body:
            place = number, statement.lineno
            if place in progress.skipped:
                continue
            is_quick = progress.passed.get(place, progress.quick) < progress.quick
            if progress.loading_time_is_up and not is_quick and not _is_needed(statement):
                continue
            say(at=place)
            try:
                imports = _Imports(packages)
                statement = imports.visit(statement)
                if imports.forbidden:
                    other = imports.forbidden[0]
                    say(failed=f"{other} is not among the packages that may be used")
                is_definition = isinstance(statement, ast.FunctionDef | ast.ClassDef)
                if not is_definition and _uses_checks(statement):
                    if not _is_handed_out(statement):
                        say(failed=USES_CHECKS)
                    continue
                module = ast.Module(body=[statement], type_ignores=[])
                code = compiled(module, file, "exec")
            except Exception as error:
                say(failed=_sentence(error))
                continue
            yield code


def _is_needed(statement: ast.stmt) -> bool:
    """Whether a statement defines something in no time, so that it is left when time is short."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
        return True
    try:
        return isinstance(statement, ast.Assign) and bool(ast.literal_eval(statement.value) or True)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def parse_cell(source: str) -> ast.Module:
    """The cell as Python; where it is the notebook's own language, its magics do nothing."""
    try:
        return ast.parse(source, "this cell")
    except SyntaxError:
        if TO_OTHERS.match(source):
            return ast.parse("")
        # %%time, %%capture: what comes below is Python all the same.
        below = re.sub(r"\A(\s*)%%.*", r"\1pass", source)
        from IPython.core.inputtransformer2 import TransformerManager

        try:
            below = TransformerManager().transform_cell(below)
            return _Magics().visit(ast.parse(below, "this cell"))
        except SyntaxError:
            if TO_A_FILE.match(source):
                return ast.parse("")
            raise


class _Magics(ast.NodeTransformer):
    """Empties the statements %…, !… and …? as IPython writes them: calls on get_ipython()."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")))):
                return ast.copy_location(ast.Pass(), node)
        return node


class _Imports(ast.NodeTransformer):
    """Takes out of imports otter and what is not allowed, and leaves what is imported beside it."""

    def __init__(self, packages: Collection[str]) -> None:
        self.packages = packages
        self.forbidden: list[str] = []  #: what was taken out because it is not allowed

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        node.names = [one for one in node.names if self._stays(one.name)]
        return node if node.names else ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        stays = self._stays(node.module or "")
        return node if stays else ast.copy_location(ast.Pass(), node)

    def _stays(self, module: str) -> bool:
        name = module.partition(".")[0]
        known = {"", "otter", *self.packages, *sys.stdlib_module_names}
        if self.packages and name not in known:
            self.forbidden.append(name)
        return name != "otter" and name not in self.forbidden


def _uses_checks(statement: ast.stmt) -> bool:
    """Whether a statement talks to the student's own checks, which mean nothing here."""
    names = (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
    return "grader" in names


def _is_handed_out(statement: ast.stmt) -> bool:
    """Whether the notebook came with such a statement, so that nobody need be told."""
    handed_out = r"grader = (otter\.Notebook|checks_of)\(.*\)|grader\.\w+\(.*\)"
    return re.fullmatch(handed_out, ast.unparse(statement)) is not None


def _perform(
    call: dict[str, Any], space: dict[str, Any], memory: mmap.mmap | None = None
) -> dict[str, Any]:
    """Make one recorded call, in a process of its own."""
    import torch
    from wire import decode, encode

    name = call["name"]
    if name not in space:
        return {"error": ABSENT.format(name), "absent": True}
    if call["mode"] == "value":
        return {"value": encode(space[name])}
    arguments = decode(call["args"], memory)
    named = decode(call["kwargs"], memory)
    if call["mode"] == "call":
        return {"value": encode(space[name](*arguments, **named))}
    with torch.enable_grad():
        if call["mode"] == "gradient":
            by = arguments[0].requires_grad_()
        else:
            by = torch.ones((), requires_grad=True)
            arguments[0] = by * arguments[0]
        result = space[name](*arguments, **named)
        if not isinstance(result, torch.Tensor):
            return {"value": encode(result)}
        return {"value": encode(torch.autograd.grad(result.square().sum(), by)[0])}


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
