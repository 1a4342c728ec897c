"""The question bank: questions/*.yaml, the proof that each key is right, and the two forms.

A question has an `id`, a `kind` (choice, several, truth, numeric), a `level`, a `topic`, the
`section` of the book that repairs what a wrong answer shows, a `text`, the `right` answer and why
(`because`), and `wrong` answers, each a known mistake with its feedback. Its `check` is Python that
computes the answer: its value is compared with every option; or it is one truth value for each
option, the right ones first; or, where options are words, it is True because the claim was tested.
"""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = ROOT / "coursework" / "questions"
PAGE = ROOT / "book" / "pretest.md"
KINDS = ("choice", "several", "truth", "numeric")
LEVELS = ("easy", "medium", "hard")
#: How many questions a form has.
FORM = 24
#: Pages outside the book that repair what it takes for granted, with their names.
OUTSIDE = {
    "https://pytorch.org/docs/2.1/notes/modules.html": "Modules",
    "https://pytorch.org/tutorials/beginner/blitz/autograd_tutorial.html": "Autograd",
}
#: Commands of TeX that may be used: MathJax, with which Moodle sets formulas, knows them all.
COMMANDS = {"alpha", "beta", "cdot", "dots", "ell", "frac", "gamma", "infty", "ln", "sqrt", "sum"}
COMMANDS |= {"tanh", "tau", "times", "top", "varepsilon"}


class BadQuestionError(ValueError):
    """What is wrong with the bank, in one sentence that names the question."""


@dataclass(frozen=True)
class Option:
    """An answer with its feedback; `value` is Python for it, where its text is not."""

    answer: str
    feedback: str
    value: str | None = None


@dataclass(frozen=True)
class Question:
    """One question. `page` is the page of its chapter, `right` and `wrong` are in their order."""

    id: str
    kind: str
    level: str
    topic: str
    page: str
    section: str
    text: str
    right: tuple[Option, ...]
    wrong: tuple[Option, ...]
    because: str
    check: str
    within: float = 0.0

    @property
    def options(self) -> tuple[Option, ...]:
        return self.right + self.wrong

    def bad(self, what: str) -> BadQuestionError:
        return BadQuestionError(f"{self.id}: {what}")


@dataclass(frozen=True)
class Place:
    """Where to read: a page of the book, its title, and a heading on it; or an address."""

    page: str
    title: str
    heading: str
    label: str | None = None


def load(folder: Path = QUESTIONS) -> list[Question]:
    """Every question, in the order of the files, none of them computed yet.

    Raises:
        BadQuestionError: for the first one that cannot be used.
    """
    questions: dict[str, Question] = {}
    for path in sorted(folder.glob("[0-9]*.yaml")):
        # With this loader everything is a text: "No" is a word and 0.50 keeps its zero.
        source = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
        for entry in source["questions"]:
            question = _question(source["chapter"], dict(entry))
            if question.id in questions:
                raise question.bad("this id is used twice.")
            _look_at(question)
            questions[question.id] = question
    return list(questions.values())


def _question(page: str, entry: dict[str, Any]) -> Question:
    name = entry.get("id", "a question without an id")
    right = entry.pop("right", "")
    if isinstance(right, str):
        right = [
            {"answer": right, "feedback": entry.get("because"), "value": entry.pop("value", None)}
        ]
    try:
        entry["within"] = float(entry.get("within", 0))
        options = ([Option(**o) for o in side] for side in (right, entry.pop("wrong", [])))
        first, second = options
        return Question(page=page, right=tuple(first), wrong=tuple(second), **entry)
    except (TypeError, ValueError) as error:
        raise BadQuestionError(
            f"{name}: it lacks a field, or has one too many ({error})."
        ) from error


def _look_at(question: Question) -> None:
    """Everything that can be said without computing."""
    if question.kind not in KINDS:
        raise question.bad(f"the kind “{question.kind}” is none of {', '.join(KINDS)}.")
    if question.level not in LEVELS:
        raise question.bad(f"the level “{question.level}” is none of {', '.join(LEVELS)}.")
    answers = [option.answer for option in question.options]
    if len(set(answers)) < len(answers):
        raise question.bad("two of its options are the same text.")
    if not question.wrong or (question.kind == "choice" and len(question.wrong) < 3):
        raise question.bad("it has too few wrong options.")
    if question.kind == "truth" and sorted(answers) != ["False", "True"]:
        raise question.bad("the options of a true-or-false question are True and False.")
    place(question)
    for text in texts(question):
        _formulas_can_be_shown(question, text)


def texts(question: Question) -> list[str]:
    """Every text of a question that a student reads."""
    found = [question.text, question.because]
    for option in question.options:
        found += [option.answer, option.feedback]
    return found


def _formulas_can_be_shown(question: Question, text: str) -> None:
    prose = re.sub(r"`[^`]*`", "", text)
    if prose.count("$") % 2 or "$$" in prose:
        raise question.bad(f"a formula does not end, or stands alone, in “{text[:40]}”.")
    for formula in re.findall(r"\$([^$]*)\$", prose):
        said = f"Moodle cannot show the formula “{formula}”"
        unknown = [c for c in re.findall(r"\\([A-Za-z]+)", formula) if c not in COMMANDS]
        if unknown:
            raise question.bad(f"{said}: \\{unknown[0]} is no command that the bank may use.")
        depth = [formula[:i].count("{") - formula[:i].count("}") for i in range(len(formula) + 1)]
        if min(depth) < 0 or depth[-1]:
            raise question.bad(f"{said}: its braces do not match.")
        if not formula.isascii() or formula != formula.strip() or not formula:
            raise question.bad(f"{said}: it is empty, not ASCII, or begins or ends with a space.")


def place(question: Question) -> Place:
    """The section that repairs what a wrong answer to this question shows.

    Raises:
        BadQuestionError: where the book has no such section.
    """
    if question.section in OUTSIDE:
        return Place(question.section, "PyTorch", OUTSIDE[question.section])
    page, _, name = question.section.rpartition("#")
    page = page or question.page
    if not (ROOT / f"{page}.ipynb").exists():
        raise question.bad(f"there is no page “{page}”.")
    title, headings, labels = _sections(page)
    heading = labels.get(name, name)
    if heading not in headings:
        raise question.bad(f"“{page}” has no section “{name}”.")
    label = next((key for key, value in labels.items() if value == heading), None)
    return Place(page, title, heading, label)


@cache
def _sections(page: str) -> tuple[str, list[str], dict[str, str]]:
    """A notebook's title, its headings, and the heading of each label."""
    cells = json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    lines = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    headings: list[str] = []
    labels: dict[str, str] = {}
    waiting: list[str] = []
    for line in lines.splitlines():
        if found := re.fullmatch(r"\(([\w-]+)\)=", line):
            waiting.append(found[1])
        elif found := re.fullmatch(r"#+ (.*\S)\s*", line):
            headings.append(found[1])
            labels |= dict.fromkeys(waiting, found[1])
            waiting = []
    return headings[0], headings, labels


def compute(check: str) -> Any:
    """The value of a check, as plain Python: its last line, after the lines before it."""
    import torch
    from torch import nn
    from torch.nn import functional

    import attention_book

    names: dict[str, Any] = {name: getattr(attention_book, name) for name in attention_book.__all__}
    names |= {"torch": torch, "nn": nn, "F": functional, "math": math, "T": torch.tensor}
    names["softmax"] = lambda *scores: torch.softmax(torch.tensor(scores).double(), dim=0)
    torch.manual_seed(0)
    *body, last = ast.parse(check).body
    assert isinstance(last, ast.Expr), "a check ends with an expression"
    exec(compile(ast.Module(body, []), "check", "exec"), names)
    return _plain(eval(compile(ast.Expression(last.value), "check", "eval"), names))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def prove(question: Question) -> None:
    """Compute the answer, and compare it with every option.

    Raises:
        BadQuestionError: where the right option is wrong, or a wrong one right.
    """
    try:
        value = compute(question.check)
    except Exception as error:
        raise question.bad(f"its check fails ({type(error).__name__}: {error}).") from error
    options = question.options
    wanted = [option in question.right for option in options]
    if question.kind == "truth":
        found = [str(value) == option.answer for option in options]
    elif isinstance(value, bool):
        found = wanted if value else [False] * len(options)
    elif isinstance(value, list) and len(value) == len(options) and set(value) <= {True, False}:
        found = value if all(isinstance(v, bool) for v in value) else _matches(question, value)
    else:
        found = _matches(question, value)
    for option, right, holds in zip(options, wanted, found, strict=True):
        if right and not holds:
            raise question.bad(
                f"its right option “{option.answer}” is wrong: its check says {value}."
            )
        if holds and not right:
            raise question.bad(f"it has two right options, and “{option.answer}” is one of them.")


def _matches(question: Question, value: Any) -> list[bool]:
    found = []
    for option in question.options:
        printed = re.search(r"\.(\d+)", option.answer)
        rounding = 0.501 * 10 ** -len(printed[1]) if printed else 1e-4
        found.append(_same(_value(question, option), value, question.within or rounding))
    return found


def _value(question: Question, option: Option) -> Any:
    try:
        return compute(option.value or option.answer.strip("$`"))
    except Exception as error:
        raise question.bad(f"“{option.answer}” is no number, and gives no value.") from error


def _same(said: Any, computed: Any, within: float) -> bool:
    """Whether two values agree, as closely as an option is printed or an answer must be met."""
    if isinstance(said, list) and isinstance(computed, list):
        pairs = zip(said, computed, strict=False)
        return len(said) == len(computed) and all(_same(a, b, within) for a, b in pairs)
    if not isinstance(said, int | float) or not isinstance(computed, int | float):
        return bool(said == computed)
    return math.isclose(said, computed, rel_tol=1e-5, abs_tol=within)


def forms(questions: list[Question], folder: Path = QUESTIONS) -> list[tuple[Question, Question]]:
    """The pairs of questions in which form A and form B agree in topic and level.

    Raises:
        BadQuestionError: for a pair that does not match, or another number of pairs than 24.
    """
    known = {question.id: question for question in questions}
    listed = yaml.load((folder / "forms.yaml").read_text(encoding="utf-8"), yaml.BaseLoader)
    pairs = []
    for names in listed["pairs"]:
        if missing := [name for name in names if name not in known]:
            raise BadQuestionError(f"forms.yaml: there is no question “{missing[0]}”.")
        first, second = (known[name] for name in names)
        for what in ("topic", "level", "page"):
            if getattr(first, what) != getattr(second, what):
                raise first.bad(f"it is paired with {second.id}, which has another {what}.")
        pairs.append((first, second))
    if len({q.id for pair in pairs for q in pair}) != 2 * FORM or len(pairs) != FORM:
        raise BadQuestionError(f"forms.yaml: a form needs {FORM} different questions.")
    return pairs


def page(pairs: list[tuple[Question, Question]]) -> str:
    """The page that says which section repairs which mistake; each row serves both forms."""
    head, *parts = re.split(
        r"(?<=\n)(\| question .*\n(?:\|.*\n)+)", PAGE.read_text(encoding="utf-8")
    )
    tables = []
    for part in (True, False):
        rows = ["| question | topic | read |\n|---|---|---|\n"]
        for number, pair in enumerate(pairs, 1):
            if (pair[0].page == "before") == part:
                links = list(dict.fromkeys(_link(place(question)) for question in pair))
                rows.append(f"| {number} | {pair[0].topic} | {' · '.join(links)} |\n")
        tables.append("".join(rows))
    return "".join([head, tables[0], parts[1], tables[1], *parts[3:]])


def _link(place: Place) -> str:
    if place.page.startswith("https://"):
        return f"[{place.title}: {place.heading}]({place.page})"
    if place.label:
        return f"{place.title}: [{place.heading}](#{place.label})"
    return f"[{place.title}](../{place.page}.ipynb): {place.heading}"
