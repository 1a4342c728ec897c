"""How the course did: by question and by named mistake, as a page with plots and as tables."""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import layout, mistakes, tables
from .assignment import Assignment, Question
from .gradebook import Gradebook

BINS = 10
NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e[-+]?\d+)?")


@dataclass(frozen=True)
class Mistake:
    """One sentence of the tests, and how many students it was said to."""

    sentence: str
    named: bool  #: whether the tests know this mistake; else it is a general finding
    students: int
    share: float  #: of those whose files were marked


@dataclass(frozen=True)
class Statistics:
    """What the course did on one question."""

    name: str
    title: str
    possible: float
    students: int
    mean: float
    full: float  #: share of the students
    nothing: float  #: share of the students
    mistakes: tuple[Mistake, ...]


def by_question(
    book: Gradebook, results: Mapping[str, dict[str, Any]], assignment: Assignment
) -> list[Statistics]:
    """Statistics of each question, over the files that count and could be marked."""
    counted = [
        student.counted
        for student in book.students
        if student.counted and results[student.counted.key]["extra_data"]["readable"]
    ]
    named = {q.name: sentences(assignment.name, q) for q in assignment.questions}
    said_of: dict[str, Counter[str]] = {question.name: Counter() for question in book.questions}
    for mark in counted:
        for question in results[mark.key]["extra_data"]["questions"]:
            said = {case["message"] for case in question["cases"] if not case["passed"]}
            known = named[question["name"]]
            said_of[question["name"]].update(
                {message if message in known else finding(message) for message in said}
            )
    found = []
    for number, question in enumerate(book.questions):
        scores = [score for mark in counted if (score := mark.questions[number].score) is not None]
        if not scores:
            continue
        mistakes = [
            Mistake(said, said in named.get(question.name, ()), count, count / len(counted))
            for said, count in said_of[question.name].items()
        ]
        found.append(
            Statistics(
                question.name,
                question.title,
                question.possible,
                len(scores),
                statistics.fmean(scores),
                sum(score == question.possible for score in scores) / len(scores),
                sum(score == 0 for score in scores) / len(scores),
                tuple(sorted(mistakes, key=lambda m: (not m.named, -m.students, m.sentence))),
            )
        )
    return found


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
        # What comes after an error's name are the student's own words.
        return f"{text}{stopped}{why.partition(': ')[0][:60]}"
    return NUMBER.sub("…", message)


def write(out: Path, book: Gradebook, questions: list[Statistics]) -> None:
    """Write statistics.html, statistics.csv and mistakes.csv."""
    tables.write(
        out / "statistics.csv",
        ["question", "title", "possible", "students", "mean", "full marks", "nothing"],
        (
            [
                *(q.name, q.title, q.possible, q.students),
                *(round(q.mean, 3), round(q.full, 3), round(q.nothing, 3)),
            ]
            for q in questions
        ),
    )
    tables.write(
        out / "mistakes.csv",
        ["question", "finding", "named mistake", "students", "share"],
        (
            [q.name, m.sentence, "yes" if m.named else "no", m.students, round(m.share, 3)]
            for q in questions
            for m in q.mistakes
        ),
    )
    values = [student.value for student in book.students if student.value is not None]
    page = PAGE.render(
        title=f"{book.title}: how the course did",
        book=book,
        questions=questions,
        values=values,
        mean=statistics.fmean(values) if values else 0,
        median=statistics.median(values) if values else 0,
        bins=bins(values, book.possible),
    )
    (out / "statistics.html").write_text(page, encoding="utf-8")


def bins(values: list[float], possible: float) -> list[tuple[float, float, int]]:
    """How many marks lie in each tenth of the points: from, up to, number."""
    width = possible / BINS
    counts = Counter(min(int(value / width), BINS - 1) for value in values) if width else Counter()
    return [(i * width, (i + 1) * width, counts[i]) for i in range(BINS)]


PAGE = layout.ENVIRONMENT.from_string(
    """\
{% extends "frame" %}
{% macro percent(share) %}{{ (100 * share) | round | int }} %{% endmacro %}
{% block content %}
{% if values %}
<p>{{ values | length }} marks. The mean is {{ mean | round(1) }} and the median
{{ median | round(1) }} of {{ book.possible | round(1) }} points.
{% set open = book.students | length - values | length %}
{% if open %}{{ open }} {{ "mark is" if open == 1 else "marks are" }} still open.{% endif %}
{% if book.missing %}{{ book.missing | length }} on the roster handed in nothing.{% endif %}</p>
<h2 id="marks">Marks</h2>
{% set most = bins | map(attribute=2) | max %}
<svg viewBox="0 0 340 172" role="img" aria-labelledby="marks" aria-describedby="marks-table">
{% for low, high, number in bins %}
{% set height = 112 * number / most %}
<rect x="{{ 10 + 32 * loop.index0 + 2 }}" y="{{ (132 - height) | round(1) }}" width="28"
 height="{{ height | round(1) }}"/>
{% if number %}
<text x="{{ 26 + 32 * loop.index0 }}" y="{{ (128 - height) | round(1) }}"
 text-anchor="middle">{{ number }}</text>
{% endif %}
<text x="{{ 10 + 32 * loop.index0 }}" y="147" text-anchor="middle">{{ "%g" % low }}</text>
{% endfor %}
<text x="330" y="147" text-anchor="middle">{{ "%g" % book.possible }}</text>
<line x1="10" x2="330" y1="132" y2="132"/>
<text x="170" y="166" text-anchor="middle">points; above each bar, the number of students</text>
</svg>
<details><summary>The same as a table</summary>
<table id="marks-table"><thead><tr><th scope="col">points</th>
<th scope="col" class="number">students</th></tr></thead><tbody>
{% for low, high, number in bins %}
<tr><th scope="row">{{ "%g" % low }} {{ "to" if loop.last else "to below" }}
{{ "%g" % high }}</th><td class="number">{{ number }}</td></tr>
{% endfor %}
</tbody></table></details>
{% else %}
<p>There is no mark yet.</p>
{% endif %}
<h2>Questions</h2>
<div class="wide" tabindex="0" role="region" aria-label="Questions">
<table><thead><tr><th scope="col">question</th><th scope="col" class="number">mean</th>
<th scope="col" class="number">of</th><th scope="col" class="bar">mean, as a bar</th>
<th scope="col" class="number">full marks</th><th scope="col" class="number">nothing</th>
</tr></thead><tbody>
{% for q in questions %}
<tr><th scope="row">{{ q.title }}</th><td class="number">{{ "%.1f" % q.mean }}</td>
<td class="number">{{ "%g" % q.possible }}</td>
<td class="bar"><span style="width:{{ (100 * q.mean / (q.possible or 1)) | round(1) }}%"></span>
</td><td class="number">{{ percent(q.full) }}</td>
<td class="number">{{ percent(q.nothing) }}</td></tr>
{% endfor %}
</tbody></table></div>
<h2>Mistakes</h2>
<p class="quiet">How many students a sentence was said to; one student can be in several rows. Named
mistakes, which the tests recognize, come first.</p>
{% for q in questions if q.mistakes %}
<h3 id="{{ q.name }}">{{ q.title }}</h3>
<div class="wide" tabindex="0" role="region" aria-labelledby="{{ q.name }}">
<table><thead><tr><th scope="col">what was said</th>
<th scope="col" class="number">students</th><th scope="col" class="number">share</th>
<th scope="col" class="bar">share, as a bar</th></tr></thead><tbody>
{% for m in q.mistakes %}
<tr><th scope="row"{% if not m.named %} class="quiet"{% endif %}>{{ m.sentence }}</th>
<td class="number">{{ m.students }}</td><td class="number">{{ percent(m.share) }}</td>
<td class="bar"><span style="width:{{ (100 * m.share) | round(1) }}%"></span></td></tr>
{% endfor %}
</tbody></table></div>
{% endfor %}
{% endblock %}
"""
)
