"""How an answer is checked: one function per exercise, which returns the mistake that it finds."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_book.exercises import parsing
from attention_book.language import N_, say
from attention_book.shapes.errors import BriefError

#: A checker takes the answer and returns what is wrong with it, or None.
Checker = Callable[[Any], str | None]
#: Wrong answers, each with the sentence that explains it.
Mistakes = Iterable[tuple[Any, str]]

#: A number worked out by hand counts as right when it is rounded to two decimals.
TWO_DECIMALS = 0.006


class Part(NamedTuple):
    """One thing that an exercise asks for. The check and the page judge it by the same rules.

    `kind` is "number", "numbers", "rows" (of a matrix), "shape", "letters" (of an einsum),
    "choice", or "line" (a choice of code, on the page alone). `mistakes` are known wrong answers,
    each with its sentence, and `otherwise` is said of any other wrong answer of the right form.
    The sentence of a choice may be a tuple, of a text with {0}, {1} … and what stands there.
    """

    kind: str
    right: Any
    mistakes: Mapping[Any, Any]
    otherwise: str
    name: str = ""  # its key in the dictionary, where an answer has several parts
    label: str = ""  # what the page writes before its field, where that is not the name
    tolerance: float = 1e-5
    unit: str = ""  # may be typed behind a number
    words: tuple[str, ...] = ()  # what else may be typed for a shape; all mean the first
    options: tuple[Any, ...] = ()  # what a choice chooses from; the shapes that letters stand for


class Exercise(NamedTuple):
    """What the book knows of an exercise beyond its text."""

    name: str
    why: str  # said after a right answer
    checker: Checker  # of the answer in Python
    parts: tuple[Part, ...]  # what the page asks; nothing where it can ask nothing
    question: str  # what the page asks instead of the code that the text asks for, or nothing
    hints: tuple[str, ...]  # the first says where to look, the second how to begin
    importance: int  # 3: do it; 2: worth doing; 1: if there is time


_EXERCISES: dict[str, Exercise] = {}


class UnknownExerciseError(BriefError, KeyError):
    """The book has no exercise of this name."""

    __str__ = Exception.__str__  # a KeyError would quote its sentence


class NotAnsweredError(Exception):
    """The answer is still the `...` of the empty exercise."""


class UnusableError(Exception):
    """The answer cannot be compared with the right one; the message says why."""


def exercise(
    name: str,
    why: str,
    *parts: Part,
    question: str = "",
    hints: tuple[str, ...] = (),
    importance: int = 2,
) -> Callable[[Checker], Checker]:
    """Register the checker of exercise `name`; `why` is said after a right answer.

    The page cannot run a reader's code: there `question` and `parts` ask something about it.
    """

    def register(checker: Checker) -> Checker:
        _EXERCISES[name] = Exercise(name, why, checker, parts, question, hints, importance)
        return checker

    return register


def answered(
    name: str,
    why: str,
    *parts: Part,
    as_tuple: str = "",
    hints: tuple[str, ...] = (),
    importance: int = 2,
) -> None:
    """Declare an exercise whose answer is its parts: one, a dictionary of several, or a tuple,
    where `as_tuple` says of what.
    """

    def checker(answer: Any) -> str | None:
        if len(parts) == 1:
            given = [answer]
        elif as_tuple:
            given = in_parts(answer, len(parts), say(as_tuple))
        else:
            given = fields(answer, *(part.name for part in parts))
        read = [read_as(part, one) for part, one in zip(parts, given, strict=True)]
        found = (mistake_in(part, one) for part, one in zip(parts, read, strict=True))
        return next((mistake for mistake in found if mistake), None)

    _EXERCISES[name] = Exercise(name, why, checker, parts, "", hints, importance)


def lines(right: str, at: int, mistakes: Mapping[str, str]) -> Part:
    """A choice between lines of code, the right one at the place `at`. A wrong one and its sentence
    are written once: the check says it of a function that returns the same (`wrong_lines`).
    """
    options = [*mistakes]
    return Part("line", right, mistakes, "", options=(*options[:at], right, *options[at:]))


def wrong_lines(name: str, **given: Any) -> list[tuple[Any, str]]:
    """What the wrong lines of exercise `name` give, each with its sentence; they see what is given
    and torch.
    """
    wrong = next(part.mistakes for part in _EXERCISES[name].parts if part.kind == "line")
    return [(eval(code, {"torch": torch, **given}), why) for code, why in wrong.items()]


def sentences(name: str) -> list[Any]:
    """What is said of each known wrong answer of exercise `name`, as declared, in that order."""
    return [why for part in _EXERCISES[name].parts for why in part.mistakes.values()]


def exercises(chapter: int) -> dict[str, Exercise]:
    """The exercises of a chapter, by name and in order; none where it has no checkers."""
    module = f"attention_book.exercises.chapter_{chapter:02}"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
    found = [name for name in _EXERCISES if name.partition(".")[0] == str(chapter)]
    found.sort(key=lambda name: int(name.partition(".")[2]))
    return {name: _EXERCISES[name] for name in found}


def judge(name: str, answer: Any) -> tuple[str, str]:
    """ "right", "wrong" or "unreadable", and the sentence that says why, in the reader's language.

    Raises:
        KeyError: for an exercise that the book does not have.
        NotAnsweredError: where the answer, or a part of it, is `...`.
    """
    chapter = name.partition(".")[0]
    known = exercises(int(chapter)) if chapter.isdecimal() else {}
    if name not in known:
        there = f"; chapter {chapter} has {', '.join(known)}" if known else ""
        raise UnknownExerciseError(f"the book has no exercise {name!r} with a checker{there}")
    try:
        if answer is ...:
            raise NotAnsweredError
        mistake = known[name].checker(answer)
    except NotAnsweredError:
        raise
    except UnusableError as error:
        return "unreadable", str(error)
    except Exception:  # an object may raise anything when it is looked at
        return "unreadable", say("The check cannot read this answer, which is {0}.", kind(answer))
    return ("right", say(known[name].why)) if mistake is None else ("wrong", say(mistake))


def check(name: str, answer: Any) -> None:
    """Print one line: the answer is right and why, not yet given, or wrong and how.

    The line is in Chinese for a reader who works in Chinese: where ATTENTION_BOOK_LANGUAGE or else
    the system's language is zh_CN, for example. Otherwise it is in English.

    Raises:
        KeyError: for an exercise that the book does not have.
    """
    try:
        verdict, sentence = judge(name, answer)
    except NotAnsweredError:
        print(say("{0}: not answered yet", name))
        return
    if verdict == "right":
        print(say("{0}: right. {1}", name, sentence))
    else:
        print(say("{0}: not right. {1}", name, sentence))


# --- Answers that the page can judge too -------------------------------------------------------


def form(part: Part, say: Callable[[str], str] = say) -> str:
    """The sentence that says how the answer is written; the page brings its own translations."""
    sentence, values = _form(part)
    return say(sentence).format(*values)


def _form(part: Part) -> tuple[str, tuple[object, ...]]:
    if part.kind == "number":
        return N_("Write one number, such as 0.25, 1/4 or 25%."), ()
    if part.kind == "numbers":
        return N_("Write {0} numbers with commas between them."), (len(part.right),)
    if part.kind == "rows":
        size = len(part.right), len(part.right[0])
        return N_("Write {0} rows of {1} numbers, one row a line."), size
    if part.kind == "shape" and part.words:
        return N_('Write a shape such as (2, 3), or "{0}".'), part.words[:1]
    if part.kind == "shape":
        return N_("Write a shape as whole numbers, such as (2, 3)."), ()
    if part.kind == "letters":
        return N_("Write a string such as ij,jk->ik."), ()
    return N_("Choose one of the answers."), ()


def read_as(part: Part, given: Any) -> Any:
    """An answer, or what was typed, as the kind of thing that the part asks for."""
    if given is ...:
        raise NotAnsweredError
    if part.kind == "choice":
        return _chosen(part, given)
    if part.kind == "letters" and not isinstance(given, str):
        raise UnusableError(say("Expected a string such as 'ij,jk->ik', but got {0}.", kind(given)))
    if not isinstance(given, str):
        return shape(given) if part.kind == "shape" else given
    try:
        if part.kind == "number":
            return parsing.number(given, part.unit)
        if part.kind == "shape":
            return parsing.shape(given, part.words)
        return getattr(parsing, part.kind)(given)
    except parsing.UnreadError:
        raise UnusableError(form(part)) from None


def _chosen(part: Part, given: Any) -> Any:
    if isinstance(given, list | tuple):
        given = tuple(given)
        if any(word is ... for word in given):
            raise NotAnsweredError
    if type(given) is str:  # as the page shows it, in capitals or not
        shown = {option_text(option).lower(): option for option in part.options}
        given = shown.get(given.strip().lower(), given)
    for option in part.options:
        if type(given) is type(option) and given == option:
            return option
    if given == "":
        raise UnusableError(form(part))
    choices = ", ".join(option_text(option) for option in part.options)
    raise UnusableError(say("Expected one of {0}, but got {1}.", choices, kind(given)))


def refused(letters: str, *shapes: tuple[int, ...]) -> str | None:
    """What to say of the letters of an einsum that PyTorch does not take for these shapes."""
    inputs, output = letters.split("->")
    sizes: dict[str, int] = {}
    fits = len(set(output)) == len(output) and set(output) <= set(inputs)
    for names, shape in zip(inputs.split(","), shapes, strict=True):
        fits = fits and len(names) == len(shape)
        for letter, size in zip(names, shape, strict=False):
            fits = fits and sizes.setdefault(letter, size) == size
    if fits:
        return None
    return say(
        "PyTorch refuses these letters for tensors of the shapes {0} and {1}. Each tensor needs "
        "three letters, and axes that share a letter must have the same size.",
        *shapes,
    )


def option_text(option: Any) -> str:
    """An option of a choice as the page shows it."""
    return "({})".format(", ".join(option)) if isinstance(option, tuple) else str(option)


def mistake_in(part: Part, got: Any) -> str | None:
    """What is wrong with an answer that has been read; None where it is right."""
    if part.kind == "letters":
        return refused(got, *part.options) or _first_equal(part, got)
    if part.kind in ("shape", "choice"):
        return _first_equal(part, got)
    return first_mistake(got, part.right, part.mistakes.items(), part.otherwise, part.tolerance)


def _first_equal(part: Part, got: Any) -> str | None:
    if got == part.right:
        return None
    sentence = part.mistakes.get(got, part.otherwise)
    # Where an answer has several words or shapes, the sentence does not say which one is wrong.
    return say("{0}: {1}", part.name, say(sentence)) if part.words else sentence


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
    if equal_numbers(got, right, tolerance):
        return None
    for wrong, sentence in mistakes:
        if equal_numbers(got, wrong, tolerance):
            return sentence
    return _mismatch(got, right) or otherwise


def equal_numbers(value: Any, expected: Any, tolerance: float = 1e-5) -> bool:
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
    return N_("The result contains NaN.") if given.isnan().any() else None


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


def in_parts(answer: Any, count: int, what: str) -> list[Any]:
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


def drawn(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Numbers in these shapes, one after the other from one seed, the same everywhere."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


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
