"""How an answer is checked: one function per exercise, which returns the mistake that it finds."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_book.exercises.language import say

#: A checker takes the answer and returns what is wrong with it, or None.
Checker = Callable[[Any], str | None]
#: Wrong answers, each with the sentence that explains it.
Mistakes = Iterable[tuple[Any, str]]

#: A number worked out by hand counts as right when it is rounded to two decimals.
TWO_DECIMALS = 0.006

_CHECKERS: dict[str, tuple[Checker, str]] = {}


class NotAnsweredError(Exception):
    """The answer is still the `...` of the empty exercise."""


class UnusableError(Exception):
    """The answer cannot be compared with the right one; the message says why."""


def exercise(name: str, why: str) -> Callable[[Checker], Checker]:
    """Register the checker of exercise `name`; `why` is said after a right answer."""

    def register(checker: Checker) -> Checker:
        _CHECKERS[name] = (checker, why)
        return checker

    return register


def check(name: str, answer: Any) -> None:
    """Print one line: the answer is right and why, not yet given, or wrong and how.

    The line is in Chinese for a reader who works in Chinese: where ATTENTION_BOOK_LANGUAGE or else
    the system's language is zh_CN, for example. Otherwise it is in English.

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
        print(say("{0}: not answered yet", name))
        return
    except UnusableError as error:
        mistake = str(error)
    except Exception:  # an object may raise anything when it is looked at
        mistake = say("The check cannot read this answer, which is {0}.", kind(answer))
    if mistake is None:
        print(say("{0}: right. {1}", name, say(why)))
    else:
        print(say("{0}: not right. {1}", name, say(mistake)))


def first_mistake(
    got: Any, right: Any, mistakes: Mistakes, otherwise: str, tolerance: float = 1e-5
) -> str | None:
    """Compare `got` with the right answer, then with each known mistake, in this order.

    A tuple as right answer is a shape. Anything else is one or more numbers: a number, a list or
    a tensor. `otherwise` is a hint, said only where kind and shape of the answer are right.
    """
    if isinstance(right, tuple):
        got = shape(got)
        if got == right:
            return None
        return next((sentence for wrong, sentence in mistakes if got == wrong), otherwise)
    if got is ...:
        raise NotAnsweredError
    if same(got, right, tolerance):
        return None
    for wrong, sentence in mistakes:
        if same(got, wrong, tolerance):
            return sentence
    return _mismatch(got, right) or otherwise


def same(value: Any, expected: Any, tolerance: float = 1e-5) -> bool:
    """Whether `value` has the shape and the numbers of `expected`; both as `numbers` takes them."""
    got, wanted = numbers(value), numbers(expected)
    if got is None or wanted is None or got.shape != wanted.shape:
        return False
    return torch.allclose(got, wanted, rtol=0.0, atol=tolerance, equal_nan=True)


def numbers(value: Any) -> Tensor | None:
    """A number (also a fraction), a nested list or a tensor as float64; None for anything else."""
    try:
        if isinstance(value, list | tuple):
            rows = [numbers(row) for row in value]
            return None if any(row is None for row in rows) else torch.stack(rows)  # type: ignore[arg-type]
        if value is None or isinstance(value, str | bytes | complex):
            return None
        number = float(value) if isinstance(value, Real | Decimal) else value
        tensor = torch.as_tensor(number)
        return None if tensor.is_complex() else tensor.detach().cpu().double()
    except Exception:  # rows of different lengths, or whatever an object's own conversion raises
        return None


def _mismatch(got: Any, right: Any) -> str | None:
    """What kind of thing `got` is, where it is not of the kind or shape of `right`."""
    given, wanted = numbers(got), numbers(right)
    assert wanted is not None
    if given is None:
        return say("Expected {0}, but got {1}.", _amount(wanted), kind(got))
    if given.shape != wanted.shape:
        return say("Expected {0}, but got {1}.", _amount(wanted), _amount(given))
    return "The result contains NaN." if given.isnan().any() else None


def _amount(numbers: Tensor) -> str:
    if numbers.dim() == 0:
        return say("one number")
    if numbers.dim() == 1:
        count = len(numbers)
        return say("{0} numbers", count) if count != 1 else say("a list of one number")
    return say("a tensor of shape {0}", tuple(numbers.shape))


def kind(value: Any) -> str:
    """What `value` is, in words that fit after "but got"; asks its type alone, never itself."""
    of_type = type(value)
    if value is None or of_type is bool:
        return str(value)
    if issubclass(of_type, Tensor):
        return say("a tensor of shape {0} and of {1}", tuple(value.shape), value.dtype)
    if issubclass(of_type, list | tuple):
        if numbers(value) is not None:
            return say("a {0}", of_type.__name__)
        return say("a {0} that is not all numbers", of_type.__name__)
    for known, words in (
        (str, say("a string")),
        (int, say("a whole number")),
        (Real, say("a number")),
        (dict, say("a dictionary")),
        (types.FunctionType, say("a function")),
    ):
        if issubclass(of_type, known):
            return words
    return say("an object of type {0}", of_type.__name__)


def shape(value: Any) -> tuple[int, ...]:
    """A shape as a tuple of whole numbers; it may be written as a list, a Size or a tensor."""
    if value is ...:
        raise NotAnsweredError
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if any(size is ... for size in value):
            raise NotAnsweredError
        if all(isinstance(size, int) for size in value):
            return tuple(value)
    raise UnusableError(
        say("A shape is a tuple of whole numbers, such as (2, 3), but got {0}.", kind(value))
    )


def fields(answer: Any, *names: str) -> list[Any]:
    """The entries of a dictionary under these names."""
    if not isinstance(answer, dict):
        raise UnusableError(say("Expected a dictionary, but got {0}.", kind(answer)))
    for name in names:
        if name not in answer:
            raise UnusableError(say("The dictionary has no entry {0}.", repr(name)))
        if answer[name] is ...:
            raise NotAnsweredError
    return [answer[name] for name in names]


def parts(answer: Any, count: int, what: str) -> list[Any]:
    """The `count` entries of a tuple or list; `what` says in the reader's language which."""
    if not isinstance(answer, list | tuple):
        found = numbers(answer)
        if found is not None and found.dim() > 0:
            answer = list(found)
    if not isinstance(answer, list | tuple):
        raise UnusableError(say("Expected a tuple of {0}, but got {1}.", what, kind(answer)))
    if len(answer) != count:
        raise UnusableError(
            say("Expected {0} entries, {1}, but got {2}.", count, what, len(answer))
        )
    if any(part is ... for part in answer):
        raise NotAnsweredError
    return list(answer)


def boolean(mask: Any) -> Tensor:
    """A mask, which must be a boolean tensor."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise UnusableError(say("The mask must be a boolean tensor, but got {0}.", kind(mask)))
    return mask


def result(answer: Any, *arguments: Any, given: str = "") -> Any:
    """Call the reader's function on copies of the arguments; stop quietly where it returns `...`.

    `given` says what is special about these arguments, in the reader's language, where they are not
    of the usual kind.
    """
    if not callable(answer):
        raise UnusableError(say("Expected a function, but got {0}.", kind(answer)))
    copies = [one.clone() if isinstance(one, Tensor) else one for one in arguments]
    try:
        value = answer(*copies)
    except Exception as error:  # the reader's own code may raise anything
        raised = type(error).__name__, str(error).partition("\n")[0][:300]
        raise UnusableError(
            say("With {0}, your function raises {1}: {2}", given, *raised)
            if given
            else say("Your function raises {0}: {1}", *raised)
        ) from None
    if value is ...:
        raise NotAnsweredError
    if value is None:
        raise UnusableError(
            say("With {0}, your function returns None: is the `return` missing?", given)
            if given
            else say("Your function returns None: is the `return` missing?")
        )
    return value


class _Listening(TorchFunctionMode):
    """Notes the name of each PyTorch function that is called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def called(answer: Callable, *arguments: Any) -> list[str]:
    """The names of the PyTorch functions that the reader's function calls, in order."""
    with _Listening() as listening:
        answer(*arguments)
    return listening.names


def borrowed(answer: Any) -> list[str]:
    """The names in the reader's function that stand for something of this package."""
    code, space = getattr(answer, "__code__", None), getattr(answer, "__globals__", {})
    waiting, found = [code] if code else [], []
    while waiting:
        code = waiting.pop()
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        for name in code.co_names:
            thing = space.get(name)
            if _is_ours(getattr(thing, "__module__", None)):
                found.append(name)
            elif isinstance(thing, types.ModuleType) and _is_ours(thing.__name__):
                found += [other for other in code.co_names if hasattr(thing, other)]
    return found


def _is_ours(module: Any) -> bool:
    return str(module).partition(".")[0] == __name__.partition(".")[0]
