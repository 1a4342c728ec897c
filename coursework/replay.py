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
from collections.abc import Iterator
from typing import Any

#: A function that ran out of time this often is not called again.
MAX_TIMEOUTS = 2


class StoppedError(Exception):
    """The loader ended, or said what it must not."""


class OutOfTimeError(StoppedError):
    """The loader said nothing in time."""


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
    import torch
    import wire  # noqa: F401  (here, so that every child has it from the start)

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
    """Load the definitions, then answer each call; last, tell which statements were left out."""
    skipped: dict[str, str] = {}
    notes: dict[str, str] = {}
    loader: Loader | None = None
    timeouts: dict[str, int] = {}
    for number, call in enumerate(job["calls"]):
        if timeouts.get(call["name"], 0) >= MAX_TIMEOUTS:
            yield {"call": number, "reply": {"error": "it had run out of time twice before"}}
            continue
        if loader is None:
            loader, notes = _load(job, skipped)
        try:
            reply = loader.call(number)
        except StoppedError as why:
            reply = {"error": str(why)}
            timeouts[call["name"]] = timeouts.get(call["name"], 0) + isinstance(why, OutOfTimeError)
            loader.kill()
            loader = None
        yield {"call": number, "reply": reply}
    yield {"skipped": {**notes, **skipped}}


def _load(job: dict[str, Any], skipped: dict[str, str]) -> tuple[Loader, dict[str, str]]:
    """Start loaders until one gets through; each leaves out what stopped the one before."""
    while True:
        loader = Loader(job, skipped)
        try:
            return loader, loader.load()
        except StoppedError as why:
            loader.kill()
            if loader.at is None or loader.at in skipped:
                raise RuntimeError(f"the definitions cannot be loaded: {why}") from why
            skipped[loader.at] = str(why)


class Loader:
    """A process that holds the student's definitions, as seen from this side."""

    def __init__(self, job: dict[str, Any], skipped: dict[str, str]) -> None:
        self.job = job
        self.at: str | None = None
        self._pending = b""
        orders, self._orders = os.pipe()
        self._messages, messages = os.pipe()
        if os.fork() == 0:
            os.close(self._orders)
            os.close(self._messages)
            _be_loader(job, skipped, orders, messages)
        os.close(orders)
        os.close(messages)

    def load(self) -> dict[str, str]:
        """Wait until every statement ran; returns what went wrong, by place."""
        notes = {}
        while True:
            message = self._next()
            if "at" in message:
                self.at = str(message["at"])
            elif "failed" in message:
                notes[self.at or "?"] = str(message["failed"])[:300]
            elif "ready" in message:
                return notes

    def call(self, number: int) -> dict[str, Any]:
        """Have one call made; returns its reply."""
        reply = {"error": "its process ended before it returned"}
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, b"%d\n" % number)
        while True:
            message = self._next()
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

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + self.job["seconds"]
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._messages], [], [], left)[0]:
                raise OutOfTimeError(f"it ran longer than {self.job['seconds']} seconds")
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
    for place, statement in _statements(job["cells"], say):
        if place in skipped:
            continue
        say(at=place)
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


def _statements(cells: list[str], say: Any) -> Iterator[tuple[str, types.CodeType]]:
    """The notebook's top-level statements one by one, so that a bad one costs only itself."""
    for number, source in enumerate(cells, 1):
        say(at=f"code cell {number}")
        try:
            tree = _parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            say(failed=_sentence(error))
            continue
        for statement in tree.body:
            if not _belongs_to_checks(statement):
                place = f"code cell {number}, line {statement.lineno}"
                module = ast.Module(body=[statement], type_ignores=[])
                try:
                    yield place, builtins.compile(module, f"<cell {number}>", "exec")
                except (SyntaxError, ValueError, RecursionError) as error:
                    say(failed=_sentence(error))


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        # Lines of the notebook's own language (%matplotlib, !pip) are not Python.
        return ast.parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source))


def _belongs_to_checks(statement: ast.stmt) -> bool:
    """Whether a statement only talks to the student's own checks, which mean nothing here."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return False
    return any(
        (isinstance(node, ast.Name) and node.id == "grader")
        or (isinstance(node, ast.alias) and node.name.partition(".")[0] == "otter")
        for node in ast.walk(statement)
    )


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
