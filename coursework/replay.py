"""The program inside the jail: run one student's definitions on recorded inputs.

It reads a job as JSON from its input and writes one JSON line a call to its output. The student's
code runs only in processes forked from this one: a *loader*, which executes the notebook's
statements, and one child of the loader for each call. Whatever they do, this process goes on.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import os
import re
import resource
import select
import signal
import sys
import time
import types
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

#: A function that ran out of time this often is not called again. After as many statements that
#: did, those that never ran get less time: a notebook full of them has some left for its answers.
MAX_TIMEOUTS = 2


class StoppedError(Exception):
    """The loader ended, or said what it must not."""


class OutOfTimeError(StoppedError):
    """The loader said nothing in time."""


@dataclass
class Progress:
    """What is known of the statements from the loaders before."""

    skipped: dict[str, str] = field(default_factory=dict)  #: why, by place
    told: dict[str, str] = field(default_factory=dict)  #: what went wrong, by place
    passed: set[str] = field(default_factory=set)
    timeouts: int = 0


def main() -> None:
    job = json.load(sys.stdin)
    _confine(job)
    try:
        for line in _answers(job):
            print(json.dumps(line), flush=True)
    except Exception as error:
        print(json.dumps({"broken": f"{type(error).__name__}: {error}"}), flush=True)


def _confine(job: dict[str, Any]) -> None:
    """Give up root where it was held, import torch, and set the limits that children inherit."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(job["uid"])
        os.setuid(job["uid"])
    # Here, so that every child has them from the start.
    import IPython.core.inputtransformer2  # noqa: F401
    import torch
    import wire  # noqa: F401

    torch.set_num_threads(1)
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


def _answers(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Load the definitions, then answer each call; what goes wrong in loading is told at once."""
    yield {"started": True}
    progress = Progress()
    loader: Loader | None = None
    timeouts: dict[str, int] = {}
    for number, call in enumerate(job["calls"]):
        if timeouts.get(call["name"], 0) >= MAX_TIMEOUTS:
            yield {"call": number, "reply": {"error": "it had run out of time twice before"}}
            continue
        if loader is None:
            loader = yield from _load(job, progress)
        try:
            reply = loader.call(number)
        except StoppedError as why:
            reply = {"error": str(why)}
            timeouts[call["name"]] = timeouts.get(call["name"], 0) + isinstance(why, OutOfTimeError)
            loader.kill()
            loader = None
        yield {"call": number, "reply": reply}


def _load(job: dict[str, Any], progress: Progress) -> Generator[dict[str, Any], None, Loader]:
    """Start loaders until one gets through; each leaves out what stopped the one before."""
    while True:
        loader = Loader(job, progress)
        try:
            for place, what in loader.load():
                if progress.told.get(place) != what:
                    progress.told[place] = what
                    yield {"skipped": {place: what}}
            return loader
        except StoppedError as why:
            loader.kill()
            if loader.at is None or loader.at in progress.skipped:
                raise RuntimeError(f"the definitions cannot be loaded: {why}") from why
            progress.skipped[loader.at] = str(why)
            progress.timeouts += isinstance(why, OutOfTimeError)
            yield {"skipped": {loader.at: str(why)}}


class Loader:
    """A process that holds the student's definitions, as seen from this side."""

    def __init__(self, job: dict[str, Any], progress: Progress) -> None:
        self.job = job
        self.progress = progress
        self.at: str | None = None
        self._pending = b""
        orders, self._orders = os.pipe()
        self._messages, messages = os.pipe()
        if os.fork() == 0:
            os.close(self._orders)
            os.close(self._messages)
            _be_loader(job, progress.skipped, orders, messages)
        os.close(orders)
        os.close(messages)

    def load(self) -> Iterator[tuple[str, str]]:
        """Wait until every statement ran; tells what went wrong, with its place."""
        while True:
            message = self._next(self._patience())
            if "failed" in message:
                yield self.at or "?", str(message["failed"])[:300]
                continue
            if self.at is not None:
                self.progress.passed.add(self.at)
            if "at" in message:
                self.at = str(message["at"])
            elif "ready" in message:
                return

    def _patience(self) -> float:
        """Seconds for the statement that runs now."""
        if self.progress.timeouts < MAX_TIMEOUTS or self.at in self.progress.passed:
            return self.job["seconds"]
        return min(self.job["seconds"], self.job["later_seconds"])

    def call(self, number: int) -> dict[str, Any]:
        """Have one call made; returns its reply."""
        reply = {"error": "its process ended before it returned"}
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, b"%d\n" % number)
        while True:
            message = self._next(self.job["seconds"])
            if isinstance(message.get("reply"), dict):
                reply = message["reply"]
            elif "ended" in message:
                return reply

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
        deadline = time.monotonic() + seconds
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._messages], [], [], left)[0]:
                raise OutOfTimeError(f"it ran longer than {seconds:g} s")
            chunk = os.read(self._messages, 2**20)
            if not chunk:
                raise StoppedError("it ended the process of the notebook")
            self._pending += chunk
            if len(self._pending) > self.job["reply_size"]:
                raise StoppedError("it returned too much")
        line, self._pending = self._pending.split(b"\n", 1)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise StoppedError("it wrote into the grader's pipe")
        return message


def _be_loader(job: dict[str, Any], skipped: dict[str, str], orders: int, messages: int) -> None:
    """Execute the statements, then fork for each call. Never returns."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)

    def say(**message: Any) -> None:
        text = memoryview(json.dumps(message).encode() + b"\n")
        while text:
            text = text[os.write(messages, text) :]

    notebook = types.ModuleType("__main__")
    notebook.__dict__["display"] = print
    sys.modules["__main__"] = notebook
    for statement in _statements(job["cells"], skipped, say):
        try:
            exec(statement, notebook.__dict__)
        except BaseException as error:
            say(failed=_sentence(error))
    say(ready=True)
    for line in os.fdopen(orders):
        child = os.fork()
        if child == 0:
            try:
                reply = _perform(job["calls"][int(line)], notebook.__dict__)
            except BaseException as error:
                reply = {"error": _sentence(error)}
            say(reply=reply)
            os._exit(0)
        os.waitpid(child, 0)
        say(ended=True)
    os._exit(0)


def _statements(
    cells: list[str], skipped: dict[str, str], say: Callable[..., None]
) -> Iterator[types.CodeType]:
    """The notebook's top-level statements one by one, so that a bad one costs only itself."""
    for number, source in enumerate(cells, 1):
        place = f"code cell {number}"
        if place in skipped:
            continue
        say(at=place)
        try:
            tree = _parse(source)
        except Exception as error:
            say(failed=_sentence(error))
            continue
        for statement in tree.body:
            place = f"code cell {number}, line {statement.lineno}"
            if place in skipped:
                continue
            say(at=place)
            try:
                if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    statement = _Otter().visit(statement)
                    if _uses_checks(statement):
                        if not _is_handed_out(statement):
                            say(failed="it was left out, because it uses grader, your own checks")
                        continue
                module = ast.Module(body=[statement], type_ignores=[])
                code = builtins.compile(module, f"<cell {number}>", "exec")
            except Exception as error:
                say(failed=_sentence(error))
                continue
            yield code


def _parse(source: str) -> ast.Module:
    """The cell as Python; where it is the notebook's own language, its magics do nothing."""
    try:
        return ast.parse(source)
    except SyntaxError:
        # %%time, %%capture: what comes below is Python all the same.
        source = re.sub(r"\A(\s*)%%.*", r"\1pass", source)
        from IPython.core.inputtransformer2 import TransformerManager

        return _Magics().visit(ast.parse(TransformerManager().transform_cell(source)))


class _Magics(ast.NodeTransformer):
    """Empties the statements %…, !… and …? as IPython writes them: calls on get_ipython()."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")))):
                return ast.copy_location(ast.Pass(), node)
        return node


class _Otter(ast.NodeTransformer):
    """Takes otter out of imports, and leaves what is imported beside it."""

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        node.names = [one for one in node.names if not _is_otter(one.name)]
        return node if node.names else ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if _is_otter(node.module or "") else node


def _is_otter(module: str) -> bool:
    return module.partition(".")[0] == "otter"


def _uses_checks(statement: ast.stmt) -> bool:
    """Whether a statement talks to the student's own checks, which mean nothing here."""
    names = (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
    return "grader" in names


def _is_handed_out(statement: ast.stmt) -> bool:
    """Whether the notebook came with such a statement, so that nobody need be told."""
    handed_out = r"grader = otter\.Notebook\(.*\)|grader\.\w+\(.*\)"
    return re.fullmatch(handed_out, ast.unparse(statement)) is not None


def _perform(call: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    """Make one recorded call, in a process of its own."""
    import torch
    from wire import decode, encode

    name = call["name"]
    if name not in space:
        return {"error": f"there is no {name} in the notebook", "absent": True}
    if call["mode"] == "value":
        return {"value": encode(space[name])}
    arguments = decode(call["args"])
    named = decode(call["kwargs"])
    if call["mode"] == "gradient":
        with torch.enable_grad():
            first = arguments[0].requires_grad_()
            result = space[name](*arguments, **named)
            (gradient,) = torch.autograd.grad(result.square().sum(), first)
        return {"value": encode(gradient)}
    result = space[name](*arguments, **named)
    now = [encode(argument) for argument in arguments]
    changed = [
        [place, after]
        for place, (before, after) in enumerate(zip(call["args"]["list"], now, strict=True))
        if before != after
    ]
    return {"value": encode(result), "changed": changed}


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
