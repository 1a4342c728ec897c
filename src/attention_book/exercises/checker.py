"""How an answer is checked: a function an exercise, returning the mistake that it finds."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

#: A checker takes the answer and returns what is wrong with it, or None.
Checker = Callable[[Any], str | None]

_CHECKERS: dict[str, tuple[Checker, str]] = {}


class NotAnsweredError(Exception):
    """The answer is still the `...` of the empty exercise."""


def exercise(name: str, why: str) -> Callable[[Checker], Checker]:
    """Register the checker of exercise `name`; `why` is said after a right answer."""

    def register(checker: Checker) -> Checker:
        _CHECKERS[name] = (checker, why)
        return checker

    return register


def check(name: str, answer: Any) -> None:
    """Print one line: the answer is right and why, not yet given, or wrong and how.

    Raises:
        KeyError: for an exercise that the book does not have.
    """
    chapter = f"attention_book.exercises.chapter_{name.partition('.')[0]:0>2}"
    if name not in _CHECKERS:
        try:
            importlib.import_module(chapter)
        except ModuleNotFoundError as error:
            if error.name != chapter:
                raise
    if name not in _CHECKERS:
        raise KeyError(f"the book has no exercise {name!r}")
    checker, why = _CHECKERS[name]
    try:
        if answer is ...:
            raise NotAnsweredError
        mistake = checker(answer)
    except NotAnsweredError:
        print(f"{name}: not answered yet")
        return
    except Exception as error:  # the reader's own code may raise anything
        mistake = f"your answer raises {type(error).__name__}: {error}"
    print(f"{name}: right. {why}" if mistake is None else f"{name}: not right. {mistake}")


def result(answer: Any, *arguments: Any) -> Any:
    """Call the reader's function; stop quietly where it still returns `...`."""
    if not callable(answer):
        raise TypeError(f"expected a function, but got a {type(answer).__name__}")
    value = answer(*arguments)
    if value is ...:
        raise NotAnsweredError
    return value


def same(value: Any, expected: Tensor | float, tolerance: float = 1e-5) -> bool:
    """Whether `value`, a tensor or a number, has the shape and the numbers of `expected`."""
    try:
        got = torch.as_tensor(value).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError):
        return False
    wanted = torch.as_tensor(expected).detach().cpu().double()
    return got.shape == wanted.shape and torch.allclose(got, wanted, rtol=0.0, atol=tolerance)
