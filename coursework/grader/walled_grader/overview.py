"""How the course did: in a few lines, and by question and by mistake as tables and as a page."""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import layout, mistakes, replay, sheets
from .assignment import Assignment, Question
from .gradebook import Gradebook
from .marks import Mark

FILES = "statistics.html", "statistics.csv", "mistakes.csv"
BINS = 10
#: Of longer lists of students, the tables have the rest.
SHOWN = 10
NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e[-+]?\d+)?")
#: Why the jail says that a call gave nothing.
OURS = re.compile("|".join(re.sub(r"\\\{.*?\}", r"\\S+", re.escape(why)) for why in replay.REASONS))
QUESTIONS = ["question", "title", "possible", "students", "mean", "full marks", "nothing"]
MISTAKES = ["question", "finding", "named mistake", "students", "share"]
PAGE = layout.ENVIRONMENT.from_string(
    """\
{% extends "frame" %}
{% block content %}
<p>{{ totals | join(" ") }}
{% if book.missing %}{{ book.missing | length }} on the roster handed in nothing.{% endif %}
{% if not marks %}There is no mark yet.{% endif %}</p>
{% for name, (header, rows) in tables.items() if rows %}
<h2>{{ name }}</h2>
<div class="wide" tabindex="0" role="region" aria-label="{{ name }}">
<table><thead><tr>
{% for column in header %}
<th scope="col">{{ column }}</th>
{% endfor %}
</tr></thead><tbody>
{% for row in rows %}
<tr>
{% for cell in row %}
{% if header[loop.index0] in ("full marks", "nothing", "share") %}
<td>{{ cell | percent }}<span class="bar" style="width:{{ 100 * cell }}%"></span></td>
{% else %}
<td>{{ cell }}</td>
{% endif %}
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div>
{% endfor %}
<p class="quiet">A finding counts the students to whom it was said; one student can be in several
rows. Named mistakes are those that the tests recognize.</p>
{% endblock %}
"""
)


def write(out: Path, book: Gradebook, assignment: Assignment) -> None:
    """Write statistics.html, statistics.csv and mistakes.csv."""
    counted = [
        student.counted
        for student in book.enrolled
        if student.counted and student.counted.extra["readable"]
    ]
    questions = list(by_question(book, counted))
    found = list(by_mistake(counted, assignment))
    sheets.write(out / "statistics.csv", QUESTIONS, questions)
    sheets.write(out / "mistakes.csv", MISTAKES, found)
    values = [one.value for one in book.enrolled if one.value is not None]
    marks = [
        [f"{low:g} to {'below ' if number < BINS - 1 else ''}{high:g}", count, count / len(values)]
        for number, (low, high, count) in enumerate(bins(values, book.possible) if values else ())
    ]
    page = PAGE.render(
        title=f"{book.title}: how the course did",
        book=book,
        totals=totals(book),
        marks=marks,
        tables={
            "Marks": (["points", "students", "share"], marks),
            "Questions": (QUESTIONS, questions),
            "Mistakes": (MISTAKES, found),
        },
    )
    (out / "statistics.html").write_text(page, encoding="utf-8")


def by_question(book: Gradebook, counted: list[Mark]) -> Iterator[list[Any]]:
    """A row for each question: how many points its students have."""
    for number, question in enumerate(book.questions):
        scores = [score for mark in counted if (score := mark.questions[number].score) is not None]
        if scores:
            means = (
                statistics.fmean(scores),
                statistics.fmean(score == question.possible for score in scores),
                statistics.fmean(score == 0 for score in scores),
            )
            about = question.name, question.title, question.possible, len(scores)
            yield [*about, *(round(mean, 3) for mean in means)]


def by_mistake(counted: list[Mark], assignment: Assignment) -> Iterator[list[Any]]:
    """A row for each sentence of the tests: to how many students it was said; named ones first."""
    for number, question in enumerate(assignment.questions):
        known = sentences(assignment.name, question)
        said: Counter[str] = Counter()
        for mark in counted:
            cases = mark.extra["questions"][number]["cases"]
            failed = {case["message"] for case in cases if not case["passed"]}
            said.update({text if text in known else finding(text) for text in failed})
        for text in sorted(said, key=lambda text: (text not in known, -said[text], text)):
            named = "yes" if text in known else "no"
            yield [question.name, text, named, said[text], round(said[text] / len(counted), 3)]


def sentences(assignment: str, question: Question) -> set[str]:
    """The sentences that a question's tests can say of known mistakes.

    They stand in the tests, or begin the wrong solutions that the tests compare with.
    """
    solutions = mistakes.of_question(f"{assignment}/{question.name}")
    return {one.sentence for one in solutions if not one.right} | {
        node.value
        for node in ast.walk(ast.parse(question.source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    }


def finding(message: str) -> str:
    """A message without what differs from student to student."""
    text, stopped, why = message.partition(" gave no result: ")
    if stopped:
        # What is neither an error's name nor a sentence of ours are the student's own words.
        said = why.partition(": ")[0]
        kept = said.isidentifier() or OURS.fullmatch(said)
        return f"{text}{stopped}{said[:60] if kept else '…'}"
    return NUMBER.sub("…", message)


def bins(values: list[float], possible: float) -> list[tuple[float, float, int]]:
    """How many marks lie in each tenth of the points: from, up to, number."""
    width = possible / BINS
    counts = Counter(min(int(value / width), BINS - 1) for value in values) if width else Counter()
    return [(i * width, (i + 1) * width, counts[i]) for i in range(BINS)]


def totals(book: Gradebook) -> list[str]:
    """How many marks there are and how good they are, without a name."""
    values = [one.value for one in book.enrolled if one.value is not None]
    said = [f"{_many(len(book.marks), 'file')} of {_many(len(book.students), 'student')}."]
    if values:
        said.append(
            f"Mean {statistics.fmean(values):.1f} and median {statistics.median(values):.1f} of "
            f"{book.possible:g} points."
        )
    if strangers := len(book.students) - len(book.enrolled):
        said.append(f"{_many(strangers, 'student')} not on the roster, counted in no mean.")
    if len(values) < len(book.enrolled):
        said.append(f"{_many(len(book.enrolled) - len(values), 'mark')} still open.")
    return said


def lines(book: Gradebook, seconds: Mapping[str, float]) -> list[str]:
    """The summary of a run.

    Args:
        seconds: how long each file ran that was marked in this run, by the file's key.
    """
    said = totals(book)
    if seconds:
        names = {mark.submission.key: mark.submission.shown for mark in book.marks}
        slowest = max(seconds, key=seconds.__getitem__)
        said.append(
            f"{len(seconds)} marked now, {statistics.fmean(seconds.values()):.1f} s each; the "
            f"longest, {names.get(slowest, slowest)}, took {seconds[slowest]:.0f} s."
        )
    look = [f"{one.person.name}: {'; '.join(one.look)}" for one in book.students if one.look]
    said += _listed("To check (to_check.csv)", look)
    said += _listed("Not handed in (missing.csv)", [person.name for person in book.missing])
    return said


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(heading: str, items: list[str]) -> list[str]:
    if not items:
        return []
    rest = [f"  … and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return [f"{heading}: {len(items)}", *(f"  {item}" for item in items[:SHOWN]), *rest]
