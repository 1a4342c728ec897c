"""The subject: called with copies, printing nothing, leaving every state as it was.

A subject may write to its inputs, draw random numbers, change the default dtype or keep what it
was given. So each call gets its own inputs and, where the subject is a module, its own copy of it.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import os
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_book.examine.report import CannotExamine

#: Scores of their own, by the words for them.
OTHER = re.compile(r"additive ?attention|bahdanau|cosine|bilinear|\btanh\b")


class Refused(Exception):  # noqa: N818 not an error of the examination
    """The subject raised an error, or gave back what is no tensor."""


@contextlib.contextmanager
def restored(changed: dict[int, Any] | None = None) -> Iterator[None]:
    """Whatever is done inside, the process is afterwards as before; `changed` gets what was not."""
    kept = [(read(), read, write) for read, write in STATES]
    try:
        yield
    finally:
        for i, (value, read, write) in enumerate(kept):
            now = read()
            if now is not value and differs(now, value):  # some writes import for seconds
                write(value)
                if changed is not None:
                    changed[i] = now


def differs(a: Any, b: Any) -> bool:
    """Whether two states are not the same."""
    if isinstance(a, tuple):
        return any(differs(x, y) for x, y in zip(a, b, strict=True))
    return bool(np.any(a != b)) if isinstance(a, np.ndarray) else a != b


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


#: What a call can change in the process: how it is read, and how it is set again. The device comes
#: first, since tensors of the others are made on it.
STATES: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
    (torch.get_default_device, lambda x: torch.set_default_device(None if x.type == "cpu" else x)),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (lambda: torch.get_rng_state().numpy(), lambda x: torch.set_rng_state(torch.from_numpy(x))),
    (np.random.get_state, np.random.set_state),
    (os.getcwd, os.chdir),
    (lambda: dict(os.environ), _set_environment),
    (np.geterr, lambda x: np.seterr(**x)),
    (random.getstate, random.setstate),
]


class Subject:
    """What is examined.

    Attributes:
        written: names of arguments that some call has changed.
        changed: states of the process as the last call left them, where that is not as before.
        tried: calls that failed, each with its error.
        otherwise: whether its documentation tells of a score that is no scaled dot product.
        parts: the modules that it is made of.
        parameters: the signature, as far as it can be read.
        said: its name, documentation and comments, in which conventions are declared; `words` are
            all of them, and `documented` those without the comments.
    """

    def __init__(self, thing: Any, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.seconds = seconds
        self.process = os.getpid()
        self.tried: list[str] = []
        self.written: set[str] = set()
        self.changed: dict[int, Any] = {}
        self.unsettles = False  # whether a call sets a state of the process, such as the seed
        self.name = getattr(thing, "__name__", type(thing).__name__)
        if inspect.isclass(thing):
            thing = self.made(thing, self.name)
        if not callable(thing) or inspect.iscoroutinefunction(thing):
            raise CannotExamine(f"{self.name} is not a function, a module or a class")
        self.thing = thing
        self.module = thing if isinstance(thing, nn.Module) else None
        self.called = getattr(thing, "forward", thing) if self.module is not None else thing
        self.dtype = torch.float64
        self.came: torch.dtype = torch.float64  # the format of the last result
        self.double = True  # whether float64 comes back as float64
        self.numpy = False
        self.by_name: set[str] = set()  # parameters that cannot be given by place
        self.names, self.required, self.defaults = self._signature()
        owner = type(thing) if not inspect.isroutine(thing) else thing
        source = source_of(owner)
        documents = (self.name, inspect.getdoc(owner), inspect.getdoc(self.called))
        self.documented = [part.lower() for part in documents if part]
        self.otherwise = bool(OTHER.search(". ".join(self.documented)))
        comments = [part.lower() for part in re.findall(r"#\s*(.*)", source)]
        self.said = [*self.documented, *comments]
        self.words = ". ".join(self.said)
        self.code = source.lower()
        self.parts = [] if self.module is None else list(self.module.modules())
        parts = {one for part in self.parts for one in type(part).__mro__}
        self.installed = _from_library(owner)
        self.library = (
            self.installed
            or any("Attention" in p.__name__ and _from_library(p) for p in parts)
            or "scaled_dot_product_attention" in self.code
        )

    @staticmethod
    def made(thing: Callable[[], Any], name: str) -> Any:
        """What a class without arguments gives.

        Raises:
            CannotExamine: where it cannot be made so.
        """

        def seeded() -> Any:
            torch.manual_seed(0)
            return thing()

        try:
            return _run(seeded, [], {})
        except Refused as error:
            said = f"{name}() cannot be made without arguments: give a module that is made, or a "
            said += "function that makes the call"
            raise CannotExamine(said, [f"{name}(): {error}"]) from error

    def _signature(self) -> tuple[list[str], list[str], dict[str, Any]]:
        """Names that may be given, those that must be, and defaults."""
        try:
            parameters = list(inspect.signature(self.called).parameters.values())
        except (TypeError, ValueError):
            text = inspect.getdoc(self.called) or ""
            found = re.search(r"^\s*[\w.]+\(([^)]*)\)", text)
            pieces = [p.split(":")[0].strip() for p in found[1].split(",")] if found else []
            pieces = [piece for piece in pieces if piece and piece not in "*/"]
            required = [piece for piece in pieces if "=" not in piece]
            names = [piece.split("=")[0] for piece in pieces]
            return names, required, {name: None for name in names if name not in required}
        named = [x for x in parameters if x.kind not in {x.VAR_POSITIONAL, x.VAR_KEYWORD}]
        self.by_name = {one.name for one in named if one.kind is one.KEYWORD_ONLY}
        defaults = {one.name: one.default for one in named if one.default is not one.empty}
        required = [one.name for one in named if one.default is one.empty]
        if not named and parameters:
            required = ["*"]
        return [one.name for one in named], required, defaults

    def fresh(self) -> Any:
        """The subject in the state that it came in; a module as a copy in eval mode."""
        if self.module is None:
            if not inspect.isroutine(self.thing):
                with contextlib.suppress(Exception):
                    return copy.deepcopy(self.thing)
            return self.thing
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return copy.deepcopy(self.module).to(self.dtype).eval()
        except Exception:
            said = f"{self.name} cannot be copied, and is not examined in place"
            raise CannotExamine(said) from None

    def call(self, args: Any, kwargs: Any, thing: Any = None, grad: bool = False) -> Any:
        """Call with copies, and give back what came.

        Raises:
            Refused: with the subject's error.
            CannotExamine: where the time is over.
        """
        if time.monotonic() > self.ends:
            raise CannotExamine(f"not finished within {self.seconds:g} seconds", self.tried)
        thing = self.fresh() if thing is None else thing
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        handed = {key: self._handed(value, grad) for key, value in given.items()}
        before = {key: _bits(value) for key, value in handed.items()}
        places = [handed[i] for i in range(len(args))]
        named = {key: value for key, value in handed.items() if isinstance(key, str)}
        if grad:
            self.leaves = [x for x in handed.values() if isinstance(x, Tensor) and x.requires_grad]
        self.changed = {}
        try:
            result = _run(thing, places, named, self.changed)
        except Refused as error:
            self.failed(args, kwargs, str(error))
            raise
        finally:
            if os.getpid() != self.process:  # a child that the subject forked
                os._exit(0)
        if not grad:
            for key, value in handed.items():
                if _bits(value) != before[key]:
                    known = isinstance(key, int) and key < len(self.names)
                    self.written.add(str(self.names[key] if known else key))
        return result

    def uncalled(self, kind: str) -> CannotExamine:
        """What is said where no call gave numbers."""
        return CannotExamine(f"{self.name} could not be called as {kind}", self.tried)

    def failed(self, args: Sequence[Any], kwargs: dict[str, Any], why: str) -> None:
        """Remember a call that gave nothing."""
        shapes = [_shape(x) for x in args] + [f"{name}={_shape(x)}" for name, x in kwargs.items()]
        said = f"{self.name}({', '.join(shapes)}): {why}"
        if len(self.tried) < 40 and said not in self.tried:
            self.tried.append(said)

    def _handed(self, value: Any, grad: bool) -> Any:
        if not isinstance(value, Tensor):  # a cache goes on from call to call
            return value
        given = value.clone(memory_format=torch.preserve_format)
        if given.is_floating_point() and given.dtype == torch.float64:
            given = given.to(self.dtype)
        if self.numpy:
            return given.numpy()
        return given.requires_grad_() if grad and given.is_floating_point() else given


def _run(thing: Any, args: Sequence[Any], kwargs: Any, changed: Any = None) -> Any:
    try:
        with restored(changed), _silent():
            return thing(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() too
        raise Refused(_said(error)) from error


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def source_of(thing: Any) -> str:
    """The lines of a function or class; none where they cannot be read."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return ""


def as_tensor(x: Any) -> Tensor:
    """What a subject gave back, as a tensor.

    Raises:
        Refused: for what has no numbers, and for complex numbers.
    """
    if isinstance(x, np.ndarray):
        x = torch.from_numpy(np.ascontiguousarray(x))
    if not isinstance(x, Tensor):
        raise Refused(f"the result is {type(x).__name__}, not a tensor of real numbers")
    if x.is_complex() or x.device.type != "cpu" or x.layout != torch.strided or x.is_nested:
        kind = "nested" if x.is_nested else f"{x.dtype} {x.device} {x.layout}"
        raise Refused(f"the result is a tensor ({kind}), not one of real numbers in memory")
    return x


def parts_of(raw: Any) -> list[Any]:
    """All that a subject gave back; logits first."""
    if hasattr(raw, "logits") and not isinstance(raw, Mapping):
        raw = {"logits": raw.logits, **vars(raw)}
    if isinstance(raw, Mapping):
        raw = list(raw.values())
    if isinstance(raw, list) and raw and all(isinstance(part, float) for part in raw):
        raw = torch.tensor(raw, dtype=torch.float64)  # one row, as Python's numbers
    return [part for part in (raw if isinstance(raw, tuple | list) else [raw]) if part is not None]


def _bits(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, Tensor):
        return value.shape, value.detach().contiguous().numpy().tobytes()
    return None


def _shape(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else repr(value)[:40]


def _said(error: BaseException) -> str:
    said = ""
    with contextlib.suppress(Exception):  # its own words may fail
        said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said[:160]}"


def _from_library(thing: Any) -> bool:
    """Whether the subject is an installed library's, whose conventions are documented."""
    try:
        return "site-packages" in inspect.getfile(thing)
    except (OSError, TypeError):  # written in a notebook, or in C
        return (getattr(thing, "__module__", "") or "torch").startswith("torch")
