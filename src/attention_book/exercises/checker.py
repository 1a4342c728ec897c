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
    except UnusableError as error:
        mistake = str(error)
    except Exception:  # an object may raise anything when it is looked at
        mistake = f"The check cannot read this answer, which is {kind(answer)}."
    print(f"{name}: right. {why}" if mistake is None else f"{name}: not right. {mistake}")


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
        return f"Expected {_amount(wanted)}, but got {kind(got)}."
    if given.shape != wanted.shape:
        return f"Expected {_amount(wanted)}, but got {_amount(given)}."
    return "The result contains NaN." if given.isnan().any() else None


def _amount(numbers: Tensor) -> str:
    if numbers.dim() == 0:
        return "one number"
    if numbers.dim() == 1:
        return f"{len(numbers)} numbers" if len(numbers) != 1 else "a list of one number"
    return f"a tensor of shape {tuple(numbers.shape)}"


def kind(value: Any) -> str:
    """What `value` is, in words that fit after "but got"; asks its type alone, never itself."""
    of_type = type(value)
    if value is None or of_type is bool:
        return str(value)
    if issubclass(of_type, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and of {value.dtype}"
    if issubclass(of_type, list | tuple):
        words = f"a {of_type.__name__}"
        return words if numbers(value) is not None else f"{words} that is not all numbers"
    for known, words in (
        (str, "a string"),
        (int, "a whole number"),
        (Real, "a number"),
        (dict, "a dictionary"),
        (types.FunctionType, "a function"),
    ):
        if issubclass(of_type, known):
            return words
    return f"an object of type {of_type.__name__}"


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
        f"A shape is a tuple of whole numbers, such as (2, 3), but got {kind(value)}."
    )


def fields(answer: Any, *names: str) -> list[Any]:
    """The entries of a dictionary under these names."""
    if not isinstance(answer, dict):
        raise UnusableError(f"Expected a dictionary, but got {kind(answer)}.")
    for name in names:
        if name not in answer:
            raise UnusableError(f"The dictionary has no entry {name!r}.")
        if answer[name] is ...:
            raise NotAnsweredError
    return [answer[name] for name in names]


def parts(answer: Any, count: int, what: str) -> list[Any]:
    """The `count` entries of a tuple or list; `what` says which they are."""
    if not isinstance(answer, list | tuple):
        found = numbers(answer)
        if found is not None and found.dim() > 0:
            answer = list(found)
    if not isinstance(answer, list | tuple):
        raise UnusableError(f"Expected a tuple of {what}, but got {kind(answer)}.")
    if len(answer) != count:
        raise UnusableError(f"Expected {count} entries, {what}, but got {len(answer)}.")
    if any(part is ... for part in answer):
        raise NotAnsweredError
    return list(answer)


def boolean(mask: Any) -> Tensor:
    """A mask, which must be a boolean tensor."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise UnusableError(f"The mask must be a boolean tensor, but got {kind(mask)}.")
    return mask


def result(answer: Any, *arguments: Any, given: str = "") -> Any:
    """Call the reader's function on copies of the arguments; stop quietly where it returns `...`.

    `given` says what is special about these arguments, where they are not of the usual kind.
    """
    if not callable(answer):
        raise UnusableError(f"Expected a function, but got {kind(answer)}.")
    copies = [one.clone() if isinstance(one, Tensor) else one for one in arguments]
    start = f"With {given}, your" if given else "Your"
    try:
        value = answer(*copies)
    except Exception as error:  # the reader's own code may raise anything
        message = str(error).partition("\n")[0][:300]
        raise UnusableError(f"{start} function raises {type(error).__name__}: {message}") from None
    if value is ...:
        raise NotAnsweredError
    if value is None:
        raise UnusableError(f"{start} function returns None: is the `return` missing?")
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
