"""What is refused in one sentence: shapes that do not fit, and plain arguments such as sizes,
counts, factors and probabilities. A notebook shows the reader's line, without our own frames."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import torch

#: Frames of these packages stand between the reader's line and the sentence.
_INSIDE = ("attention_book", "torch")


def _readers(frames: TracebackType | None) -> TracebackType | None:
    """The frames before the first of this package or of PyTorch."""
    if frames is None:
        return None
    module = str(frames.tb_frame.f_globals.get("__name__"))
    if module.partition(".")[0] in _INSIDE:
        return None
    rest = _readers(frames.tb_next)
    return TracebackType(rest, frames.tb_frame, frames.tb_lasti, frames.tb_lineno)


class BriefError(Exception):
    """An error whose sentence says all; outside a notebook it is shown like any other."""

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows, which asks an error for them."""
        shell = sys.modules["IPython"].get_ipython()
        frames = _readers(self.__traceback__) or self.__traceback__
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, frames)
        return lines


class ShapeError(BriefError, ValueError):
    """A shape or a size that does not fit; the message names argument, dimension and sizes.

    The message is `form` with its `parts` filled in, and the error keeps both: who wants to say the
    same of other sizes makes another error of that form.
    """

    def __init__(self, form: str, **parts: Any) -> None:
        said = {name: _said(part) for name, part in parts.items()}
        super().__init__(form.format(**said) if parts else form)
        self.form, self.parts = form, parts


def _said(part: Any) -> str:
    """One part of a message: axes or sizes in parentheses, named sizes one after another."""
    if isinstance(part, dict):
        return " and ".join(f"{name} = {size}" for name, size in part.items())
    return written(part) if isinstance(part, tuple) else str(part)


def written(items: Iterable[object]) -> str:
    return "(" + ", ".join(map(str, items)) + ")"


# An abstract class takes long to ask, so `int` and `float` come before theirs.


def at_least(owner: object, name: str, value: int, least: int = 1) -> int:
    """Return `value`, an integer of at least `least`.

    `owner` is the module whose argument it is, or the name of a function; messages begin with it.
    A symbolic size of torch.export is an integer too.

    Raises:
        TypeError, ValueError: for anything else.
    """
    if not isinstance(value, (int, numbers.Integral, torch.SymInt)) or isinstance(value, bool):
        raise TypeError(
            f"{_name(owner)}: {name} must be an integer, but is of type {type(value).__name__}"
        )
    if value < least:
        raise ValueError(f"{_name(owner)}: {name} must be at least {least}, but is {value}")
    return value


def number(owner: object, name: str, value: float) -> float:
    """Return `value`, an integer or a float; raise TypeError otherwise."""
    if not isinstance(value, (int, float, numbers.Real)) or isinstance(value, bool):
        raise TypeError(
            f"{_name(owner)}: {name} must be a number, but is of type {type(value).__name__}"
        )
    return value


def probability(owner: object, name: str, value: float) -> float:
    """Return `value`, a number from 0 to 1; raise TypeError or ValueError otherwise."""
    if not 0 <= number(owner, name, value) <= 1:
        raise ValueError(f"{_name(owner)}: {name} must lie between 0 and 1, but is {value}")
    return value


def _name(owner: object) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__
