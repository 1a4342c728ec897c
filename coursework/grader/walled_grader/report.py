"""Marks as tables and feedback as pages, made from the results that grading stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from . import tables
from .gradebook import Gradebook, Student
from .marks import Mark
from .text import sentence

ENVIRONMENT = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
ENVIRONMENT.filters["points"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
PAGE = ENVIRONMENT.from_string(
    """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }} · {{ mark.person.name }}</title>
<style>
:root { color-scheme: light dark; font: 1.125rem/1.5 system-ui, sans-serif; }
body { max-width: 42rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
li { margin: .4rem 0; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p>{{ mark.person.name }} · {{ extra.file }}</p>
{% if mark.value is none %}
<p><strong>Your mark is still open.</strong></p>
{% else %}
<p><strong>{{ mark.value | points }} of {{ mark.possible | points }} points</strong></p>
{% endif %}
{% if not counts %}
<p>Another file of yours counts, not this one.</p>
{% endif %}
{% if mark.late.days %}
<p>Handed in {{ mark.late.days }} {{ "day" if mark.late.days == 1 else "days" }} late:
{{ mark.late.loss | points }} % of the points are taken off.</p>
{% endif %}
{% for text in comments[""] %}
<p>From your instructor: {{ text }}</p>
{% endfor %}
{% if extra.notes %}
<h2>About your notebook</h2>
<ul>
{% for note in extra.notes %}
<li>{{ note }}</li>
{% endfor %}
</ul>
{% endif %}
{% if extra.readable %}
{% for question in mark.questions %}
<h2>{{ question.title }}:
{{ "not marked yet, out of" if question.score is none else question.score | points ~ " of" }}
{{ question.possible | points }}</h2>
{% if question.by_hand %}
<p>These points were entered by your instructor.</p>
{% endif %}
{% for text in comments[question.name] %}
<p>From your instructor: {{ text }}</p>
{% endfor %}
<ul>
{% for case in cases[question.name] %}
<li>{{ "✓" if case.passed else "✗" }}
{{ "Check you do not see" if case.hidden else "Check in the notebook" }},
{{ case.points | points }} {{ "point" if case.points == 1 else "points" }}:
{{ "passed." if case.passed else case.message }}</li>
{% endfor %}
</ul>
{% endfor %}
{% endif %}
</body>
</html>
"""
)


def write(out: Path, book: Gradebook, results: Mapping[str, dict[str, Any]]) -> None:
    """Write the tables of marks, the list of what a person should look at, and the feedback."""
    names = [question.name for question in book.questions]
    counted = [(one.person, one.value, one) for one in book.students]
    tables.write(
        out / "marks.csv",
        [
            *("student", "file", *names, "score", "possible", "late", "mark", "counts", "notes"),
        ],
        (
            [
                *(mark.person.name, mark.file),
                *(_open(question.score) for question in mark.questions),
                *(_open(mark.score), _open(mark.possible), _late(mark), _open(mark.value)),
                "yes" if mark is student.counted else "no",
                _notes(results[mark.key]),
            ]
            for student in book.students
            for mark in student.marks
        ),
    )
    tables.write(
        out / "canvas.csv",
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", book.column],
        [
            ["    Points Possible", "", "", "", "", _open(book.possible)],
            *(
                [who.name, who.id, who.sis_id, who.login, who.section, _open(value)]
                for who, value, _ in counted
            ),
        ],
    )
    tables.write(
        out / "moodle.csv",
        ["Identifier", "Full name", "Email address", "Grade", "Maximum Grade", "Feedback comments"],
        (
            [
                f"Participant {who.id}" if who.id else "",
                *(who.name, who.email, _open(value), _open(book.possible), _said(student, results)),
            ]
            for who, value, student in counted
        ),
    )
    tables.write(
        out / "to_check.csv",
        ["student", "files", "why"],
        (
            [student.person.name, " ".join(mark.file for mark in student.marks), why]
            for student in book.students
            for why in student.look
        ),
    )
    tables.write(
        out / "missing.csv",
        ["student", "ID", "Email address"],
        ([who.name, who.id, who.email] for who in book.missing),
    )
    feedback = out / "feedback"
    feedback.mkdir(exist_ok=True)
    written = pages(book, results)
    for name, text in written.items():
        (feedback / name).write_text(text, encoding="utf-8")
    for path in feedback.glob("*.html"):
        if path.name not in written:
            path.unlink()  # its file is no longer among the submissions


def pages(book: Gradebook, results: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """One page of feedback per file, by its name in the folder `feedback`."""
    return {
        f"{mark.page}.html": page(
            book.title, mark, results[mark.key], counts=student.counted in (None, mark)
        )
        for student in book.students
        for mark in student.marks
    }


def page(title: str, mark: Mark, result: Mapping[str, Any], counts: bool) -> str:
    """The page that tells a student what a file earned and why."""
    extra = result["extra_data"]
    comments = defaultdict(list)
    for question, text in mark.comments:
        comments[question].append(text)
    cases = defaultdict(list, {q["name"]: q["cases"] for q in extra["questions"]})
    return PAGE.render(
        title=title, extra=extra, mark=mark, counts=counts, comments=comments, cases=cases
    )


def _open(value: float | None) -> float | str:
    """A mark as a table has it: nothing where it is open, and a whole number without a point."""
    if value is None:
        return ""
    return int(value) if value == int(value) else value


def _late(mark: Mark) -> str:
    if mark.late.unknown:
        return "LATE"
    return f"{mark.late.days} d, −{mark.late.loss:g} %" if mark.late.days else ""


def _said(student: Student, results: Mapping[str, dict[str, Any]]) -> str:
    if not student.counted:
        return ""
    comments = [text for _, text in student.counted.comments]
    return " ".join([*comments, _notes(results[student.counted.key])]).strip()


def _notes(result: Mapping[str, Any]) -> str:
    return sentence(" ".join(result["extra_data"]["notes"]), most=1_000)
