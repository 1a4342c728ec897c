"""The exercises' checkers: right answers are right, and each known mistake is named."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from answering import CHAPTERS, in_python
from answers_to_exercises import CASES, work_of
from scripts import tool

import attention_book
from attention_book import language
from attention_book.exercises import check
from attention_book.exercises.checker import Part, exercises, judge, numbers, option_text, say


def said(capsys: pytest.CaptureFixture[str], name: str, answer: object) -> str:
    check(name, answer)
    return capsys.readouterr().out


@pytest.mark.parametrize(("name", "answer", "words"), CASES)
def test_the_check_names_the_mistake(capsys, name, answer, words):
    assert words in said(capsys, name, answer)


#: The exercises by name; those whose answer is their parts, as declared.
EVERY = {name: one for chapter in CHAPTERS for name, one in exercises(chapter).items()}
DECLARED = {name: one for name, one in EVERY.items() if one.parts and not one.question}


def with_part(name: str, at: int, value: Any) -> Any:
    """The right answer to a declared exercise with one of its parts replaced."""
    parts = DECLARED[name].parts
    values = [value if at == place else part.right for place, part in enumerate(parts)]
    if len(parts) == 1:
        return value
    names = [part.name for part in parts]
    return tuple(values) if name == "10.1" else dict(zip(names, values, strict=True))


def wrong_values(part: Part) -> Iterator[tuple[Any, Any]]:
    """The wrong values of a part that are known, and one that is not, with what is said of each."""
    yield from part.mistakes.items()
    if part.kind == "choice":
        known = [part.right, *part.mistakes]
        others = [option for option in part.options if option not in known]
    elif part.kind == "shape":
        others = [(97,)]
    elif part.kind == "letters":
        others = ["ijk,ikm->mji"]
    else:
        others = [torch.full_like(torch.as_tensor(part.right).double(), 97.5)]
    yield from ((other, part.otherwise) for other in others)


WRONG = [
    (name, with_part(name, at, wrong), f"{part.name}: {why}" if part.words else why)
    for name, exercise in DECLARED.items()
    for at, part in enumerate(exercise.parts)
    for wrong, why in wrong_values(part)
] + [
    (name, in_python(exercise, [str(part.options.index(wrong))]), why)
    for name, exercise in EVERY.items()
    if exercise.question
    for part in exercise.parts
    for wrong, why in part.mistakes.items()
]


@pytest.mark.parametrize(("name", "wrong", "sentence"), WRONG)
def test_each_declared_mistake_is_named(name, wrong, sentence):
    said = sentence if isinstance(sentence, str) else say(*sentence)
    assert judge(name, wrong) == ("wrong", said)


CHOICES = [
    (name, at, option)
    for name, exercise in DECLARED.items()
    for at, part in enumerate(exercise.parts)
    if part.kind == "choice"
    for option in part.options
]


@pytest.mark.parametrize(("name", "at", "option"), CHOICES)
def test_a_choice_may_be_written_in_capitals(name, at, option):
    written = option_text(option)
    for styled in (written.upper(), f" {written.lower()} "):
        assert judge(name, with_part(name, at, styled)) == judge(name, with_part(name, at, option))


def test_a_comma_before_three_digits_parts_thousands_and_any_other_is_a_decimal_comma():
    assert judge("4.5", work_of(positions="1,536"))[0] == "right"
    assert judge("1.5", "0,5")[0] == "right"


def published() -> dict[str, tuple[str, str, str]]:
    """Each exercise's folded solution: its notebook, its code, and what it printed when stored."""
    found = {}
    for path in CHAPTERS.values():
        for cell in nbformat.read(path, as_version=4).cells:
            name = re.search(r'^check\("([\d.]+)"', cell.source, re.MULTILINE)
            if name and "hide-cell" in cell.metadata.get("tags", []):
                printed = "".join(output.get("text", "") for output in cell.outputs)
                found[name[1]] = (path.name, cell.source, printed)
    return found


PUBLISHED = published()


def solution(name: str) -> Any:
    """The published answer, from the cell's code."""
    answers = []
    space = {"torch": torch, "math": math, "check": lambda name, answer: answers.append(answer)}
    space |= {name: getattr(attention_book, name) for name in attention_book.__all__}
    exec(compile(PUBLISHED[name][1], f"solution {name}", "exec"), space)
    return answers[0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_solution_says_right(capsys, name):
    notebook, _, printed = PUBLISHED[name]
    assert ": right." in printed, f"{notebook} stores: {printed}"
    assert ": right." in said(capsys, name, solution(name))


def test_each_exercise_has_a_published_solution_and_a_wrong_answer_here():
    asked = set()
    for path in CHAPTERS.values():
        asked |= set(re.findall(r'check\(\\"([\d.]+)\\"', path.read_text(encoding="utf-8")))
    wrong = {name for name, _, words in CASES if words != ": right."} | {name for name, *_ in WRONG}
    assert set(PUBLISHED) == asked == wrong


@pytest.mark.parametrize(
    ("name", "piece"), [("1.99", r"; chapter 1 has 1\.1, 1\.2, .*1\.\d$"), ("99.1", "checker$")]
)
def test_an_exercise_that_the_book_does_not_have_is_refused(name, piece):
    with pytest.raises(KeyError, match=rf"no exercise '{name}'.*{piece}"):
        check(name, 1)


class Nonsense:
    """Raises whatever is done with it."""

    def __getattribute__(self, name):
        raise ZeroDivisionError("nonsense")


def otherwise(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same answer with another tensor in it, one after the other where there are several."""
    if isinstance(value, tuple) and all(isinstance(one, torch.Tensor) for one in value):
        return tuple(change(one) for one in value)
    return change(value if isinstance(value, torch.Tensor) else torch.as_tensor(value))


def shaken(tensor: torch.Tensor) -> torch.Tensor:
    """Of the same shape and dtype, with other entries."""
    if tensor.dtype == torch.bool:
        return tensor ^ (torch.arange(tensor.numel()).reshape(tensor.shape) % 3 == 0)
    return tensor + 1 + torch.arange(tensor.numel()).reshape(tensor.shape) % 3


CHANGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "other numbers": shaken,
    "one axis more": lambda tensor: tensor.unsqueeze(-1),
    "two of each": lambda tensor: torch.stack([tensor, tensor]),
    "NaN": lambda tensor: torch.full_like(tensor.double(), torch.nan),
    "infinity": lambda tensor: torch.full_like(tensor.double(), torch.inf),
    "empty": lambda tensor: tensor.reshape(-1)[:0],
}
WRONG_KINDS: dict[str, Any] = {
    "None": None,
    "string": "nonsense",
    "bytes": b"nonsense",
    "list": ["a", None],
    "rows of different lengths": [[1, 2], [3]],
    "empty list": [],
    "dict": {},
    "set": {1, 2},
    "complex": 1j,
    "type": dict,
    "module": math,
    "nonsense": Nonsense(),
}
EQUIVALENTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "itself": lambda tensor: tensor,
    "with a gradient": lambda tensor: (
        tensor.detach().clone().requires_grad_() if tensor.is_floating_point() else tensor
    ),
    "not contiguous": lambda tensor: torch.stack([tensor, tensor], -1)[..., 0],
    "rounded to float32": lambda tensor: tensor.float() if tensor.is_floating_point() else tensor,
}
FUNCTIONS = [name for name in PUBLISHED if callable(solution(name))]
PLAIN = [name for name in PUBLISHED if name not in FUNCTIONS]


def is_honest(line: str, wrong: Any) -> bool:
    """Whether what a line says about kind and shape is true of the answer."""
    told = re.search(r"Expected (.*), but got (.*?)\.$", line.strip())
    if not told:
        return True
    expected, got = told.groups()
    found = numbers(wrong)
    if shape := re.search(r"a tensor of shape (\(.*?\))", got):
        return expected != got and found is not None and str(tuple(found.shape)) == shape[1]
    if count := re.fullmatch(r"(\d+) numbers|a list of (one) number|(one) number", got):
        size = {"one": 1}.get(count[0].split()[-2], 0) or int(count[1] or 1)
        return expected != got and found is not None and found.numel() == size
    return expected != got


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_message_is_false_about_a_functions_result(capsys, name, change):
    right = solution(name)

    def changed(*arguments):
        return otherwise(right(*arguments), CHANGES[change])

    line = said(capsys, name, changed)
    assert ": not right. " in line
    assert len(line.strip()) > len(f"{name}: not right. ")
    assert "raises" not in line
    assert "cannot read" not in line
    if change == "other numbers":
        assert "but got" not in line, "the shape is right"
    results = recorded(changed, name)
    spoken_of = [
        one for value in results for one in (value, *(value if isinstance(value, tuple) else ()))
    ]
    assert any(is_honest(line, one) for one in [*spoken_of, results])


def recorded(function: Callable, name: str) -> list[Any]:
    """What a function returned each time that the check called it."""
    results = []

    def recording(*arguments):
        results.append(function(*arguments))
        return results[-1]

    check(name, recording)
    return results


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_exercise_that_is_left_as_it_was_is_not_answered_yet(capsys, name):
    assert said(capsys, name, ...) == f"{name}: not answered yet\n"
    if name in FUNCTIONS:
        assert said(capsys, name, lambda *arguments: ...) == f"{name}: not answered yet\n"


@pytest.mark.parametrize("kind", WRONG_KINDS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_an_answer_of_another_kind_is_told_what_it_is(capsys, name, kind):
    wrong = WRONG_KINDS[kind]
    lines = [said(capsys, name, wrong)]
    if name in FUNCTIONS:
        lines.append(said(capsys, name, lambda *arguments: wrong))
    for line in lines:
        assert ": not right. " in line
        assert "raises" not in line or kind in ("type", "nonsense")
        assert not re.search(r"\b(TypeError|ValueError|KeyError|IndexError)\b", line) or (
            kind == "type"
        )
    if kind == "None":
        assert "None" in lines[-1]


@pytest.mark.parametrize("name", PLAIN)
def test_a_field_of_another_kind_is_told_what_it_is(capsys, name):
    right = solution(name)
    for wrong in (None, "nonsense", [[1, 2], [3]], 1j, Nonsense(), {}):
        for place in right if isinstance(right, dict) else ():
            line = said(capsys, name, right | {place: wrong})
            assert ": not right. " in line
            assert "Error" not in line
    if isinstance(right, dict):
        for place in right:
            assert ": not right. " in said(
                capsys, name, {key: right[key] for key in right if key != place}
            )
            assert "not answered yet" in said(capsys, name, right | {place: ...})


@pytest.mark.parametrize("style", EQUIVALENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_equivalent_result_is_right(capsys, name, style):
    right = solution(name)

    def restyled(*arguments):
        return otherwise(right(*arguments), EQUIVALENTS[style])

    if name == "3.4" and style == "with a gradient":
        return  # a gradient of its own cuts off the one that the exercise asks for
    assert ": right." in said(capsys, name, restyled)


@pytest.mark.parametrize("name", PLAIN)
def test_an_equivalent_answer_is_right(capsys, name):
    right = solution(name)
    found = numbers(right)
    if found is not None:
        for same in (found, found.tolist(), found.numpy(), found.float()):
            assert ": right." in said(capsys, name, same)
        # To two decimals, where the answer is worked out by hand.
        if found.dim() == 1 and len(found) > 2:
            rounded = [round(number, 2) for number in found.tolist()]
            assert ": right." in said(capsys, name, rounded)
    elif isinstance(right, dict) and isinstance(next(iter(right.values())), tuple):
        assert ": right." in said(capsys, name, {key: list(right[key]) for key in right})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_raises_is_quoted(capsys, name):
    def raising(*arguments):
        raise ValueError("of my own\nwith a second line")

    line = said(capsys, name, raising)
    assert "Your function raises ValueError: of my own" in line
    assert "second line" not in line


@pytest.mark.parametrize(
    ("variables", "spoken"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zha_CN"}, "en"),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANGUAGE": "zh_CN:en", "LC_ALL": "en_US.UTF-8"}, "zh"),
        ({"LANGUAGE": "en:zh_CN", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANGUAGE": "fr:zh_CN"}, "zh"),
        ({"ATTENTION_BOOK_LANGUAGE": "zh-Hans", "LANGUAGE": "en", "LANG": "en_US.UTF-8"}, "zh"),
        ({"ATTENTION_BOOK_LANGUAGE": "en", "LANGUAGE": "zh", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"ATTENTION_BOOK_LANGUAGE": "", "LANG": "zh_CN.UTF-8"}, "zh"),
    ],
)
def test_the_first_variable_that_is_set_chooses_the_language(monkeypatch, variables, spoken):
    for name in ("ATTENTION_BOOK_LANGUAGE", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language.language() == spoken


@pytest.fixture
def in_chinese(monkeypatch):
    monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", "zh_CN")


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("1.3", 5, "1.3：正确。"),
        ("1.3", 4, "1.3：不正确。"),
        ("1.1", "1/7", "3 个数"),
        ("2.6", {"queries": [[1], [2], [3]], "keys": [[1], [2]]}, "3 个查询、2 个键"),
        ("3.2", lambda tokens: tokens != 0, "(batch, length)"),
        ("10.1", (4, 2, 72.5), "m、ℓ、o"),
        ("1.3", ..., "1.3：还没有作答"),
    ],
)
def test_a_reader_who_works_in_chinese_is_answered_in_chinese(
    capsys, in_chinese, name, answer, words
):
    line = said(capsys, name, answer)
    assert words in line
    assert re.search("[\u4e00-\u9fff]", line.partition("：")[2])
    assert not re.search("[a-z]+ [a-z]+", line), "English words are left"


def test_the_language_is_read_at_each_call(capsys, monkeypatch):
    for chosen, words in (("en", "right."), ("zh_CN", "正确。"), ("en", "right.")):
        monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", chosen)
        assert words in said(capsys, "1.3", 5)


def test_a_message_without_a_translation_stays_english(capsys, monkeypatch, in_chinese):
    sentence = "4 is not enough: the best key gets 0.98."
    known = {old: new for old, new in language.translations().items() if old != sentence}
    monkeypatch.setattr(language, "translations", lambda: known)
    assert said(capsys, "1.3", 4) == f"1.3：不正确。{sentence}\n"
    monkeypatch.setattr(language, "translations", dict)
    assert said(capsys, "1.3", 4) == f"1.3: not right. {sentence}\n"
    assert said(capsys, "1.1", 1) == "1.1: not right. Expected 3 numbers, but got one number.\n"


def exercise_messages() -> set[str]:
    """What a translator of the checks gets."""
    from messages_ext import exercise_messages

    return {text for _, _, text in exercise_messages()}


#: Names that stay in every language: of Python and PyTorch, and those that the task itself uses.
NAMES = {
    *("None", "True", "False", "list", "tuple", "torch", "float", "bool", "int"),
    *("set", "bytes", "complex", "type", "module", "Nonsense", "Tensor"),
    *("source", "target", "_the", "_th", "_t", "_he", "he"),
    *("merge_heads", "causal_mask", "queries", "keys", "values", "error"),
}


def test_whatever_the_check_says_can_be_translated(capsys, monkeypatch, in_chinese):
    # A translation of which only the values are left.
    values = {text: " ".join(re.findall(r"\{\d\}", text)) for text in exercise_messages()}
    monkeypatch.setattr(language, "translations", lambda: values)
    fields_of = {
        name: set(re.findall(r"\w+", " ".join(solution(name))))
        for name in PLAIN
        if isinstance(solution(name), dict)
    }
    answers = [(name, answer) for name, answer, _ in CASES]
    for name in PUBLISHED:
        answers += [(name, solution(name)), (name, ...)]
        for wrong in WRONG_KINDS.values():
            answers.append((name, wrong))
            if name in FUNCTIONS:
                answers.append((name, lambda *arguments, wrong=wrong: wrong))
    for name, answer in answers:
        line = re.sub(r"\w+Error .*", "", said(capsys, name, answer))  # an error is quoted
        words = set(re.findall(r"[^\W\d]{2,}", line)) - NAMES - fields_of.get(name, set())
        assert not words, line


def test_no_words_of_a_checker_are_kept_from_the_translators():
    known = exercise_messages()
    for path in (Path(language.__file__).parent / "exercises").glob("chapter_*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                words = re.search(r"[^\W\d_]{2,} [^\W\d_]{2,}", str(node.value))
                assert not words or node.value in known, f"{path.name}, line {node.lineno}"


def test_the_package_carries_the_finished_translations():
    translations = tool("translations")
    for catalogue, path in translations.SAID.items():
        assert path.read_text(encoding="utf-8") == translations.said(catalogue)
    assert len(language.translations()) > 400
