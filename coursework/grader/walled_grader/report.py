"""Marks as tables and feedback as pages, made from the results that grading stored."""

from __future__ import annotations

import html
from collections import defaultdict
from pathlib import Path
from typing import Any

from . import layout, sheets
from .gradebook import Gradebook, Student
from .marks import Mark
from .phrases import Phrases
from .text import sentence

FEEDBACK = "feedback"  #: the folder of the pages
PAGE = layout.ENVIRONMENT.from_string(
    """\
{% extends "frame" %}
{% block content %}
<p>{{ mark.submission.shown }}</p>
{% if mark.value is none %}
<p><strong>{{ say("Your mark is still open.") }}</strong></p>
{% else %}
{% set value, full = mark.value | points, possible | points %}
<p><strong>{{ say("Your mark: {0} of {1} points", value, full) }}</strong></p>
{% endif %}
{% if not counts %}
<p>{{ say("Another file of yours counts, not this one.") }}</p>
{% endif %}
{% if mark.late.days %}
{% set loss = mark.late.loss | points %}
{% if mark.late.days == 1 %}
<p>{{ say("Handed in 1 day late: {0} % of the assignment's points are taken off.", loss) }}</p>
{% else %}
<p>{{ say("Handed in {0} days late: {1} % of the assignment's points are taken off.",
          mark.late.days, loss) }}</p>
{% endif %}
{% endif %}
{% for text in comments[""] %}
<p>{{ say("From your instructor: {0}", text) }}</p>
{% endfor %}
{% if mark.notes %}
<h2>{{ say("About your notebook") }}</h2>
<ul>
{% for note in mark.notes %}
<li>{{ say.told(note) }}</li>
{% endfor %}
</ul>
{% endif %}
{% if mark.extra.readable %}
{% for question in mark.questions %}
{% set title, full = say.told(question.title), question.possible | points %}
{% if question.score is none %}
<h2>{{ say("{0}: not marked yet, out of {1}", title, full) }}</h2>
{% else %}
<h2>{{ say("{0}: {1} of {2}", title, question.score | points, full) }}</h2>
{% endif %}
{% if question.by_hand %}
<p>{{ say("These points were entered by your instructor.") }}</p>
{% endif %}
{% for text in comments[question.name] %}
<p>{{ say("From your instructor: {0}", text) }}</p>
{% endfor %}
<ul>
{% for case in cases[question.name] %}
{% set worth = case.points | points %}
{% set said = say("passed.") if case.passed else say.told(case.message) %}
<li>{{ "✓" if case.passed else "✗" }}
{% if case.number > 1 %}
{{ say("{0} checks ({1}): {2}", case.number, worth, said) }}</li>
{% elif case.hidden %}
{{ say("Check you do not see ({0}): {1}", worth, said) }}</li>
{% else %}
{{ say("Check in the notebook ({0}): {1}", worth, said) }}</li>
{% endif %}
{% endfor %}
</ul>
{% endfor %}
{% endif %}
{% endblock %}
"""
)


def write(out: Path, book: Gradebook, say: Phrases) -> None:
    """Write the tables of marks, the list of what a person should look at, and the feedback.

    Args:
        say: what students read, in their language.
    """
    _write_marks(out, book, say)
    _write_lists(out, book)
    _write_feedback(out / FEEDBACK, book, say)


def _write_marks(out: Path, book: Gradebook, say: Phrases) -> None:
    names = [question.name for question in book.questions]
    sheets.write(
        out / "marks.csv",
        ["student", "file", *names, "score", "possible", "late", "mark", "counts", "notes"],
        (
            [
                *(mark.person.name, mark.submission.shown),
                *(_open(question.score) for question in mark.questions),
                *(_open(mark.result["score"]), _open(book.possible), late(mark)),
                *(_open(mark.value), "yes" if mark is student.counted else "no"),
                sentence(" ".join(mark.extra["notes"]), most=1_000),
            ]
            for student in book.students
            for mark in student.marks
        ),
    )
    who = [(student.person, student) for student in book.students]
    sheets.write(
        out / "canvas.csv",
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", book.column],
        [
            ["    Points Possible", "", "", "", "", _open(book.possible)],
            *([p.name, p.id, p.sis_id, p.login, p.section, _open(one.value)] for p, one in who),
        ],
    )
    sheets.write(
        out / "moodle.csv",
        ["Identifier", "Full name", "Email address", "Grade", "Maximum Grade", "Feedback comments"],
        (
            [
                *(f"Participant {p.id}" if p.id else "", p.name, p.email),
                *(_open(one.value), _open(book.possible), _said(one, say)),
            ]
            for p, one in who
        ),
    )


def _write_lists(out: Path, book: Gradebook) -> None:
    """Write whom to look at, who is missing, and what marking again changed."""
    sheets.write(
        out / "to_check.csv",
        ["student", "ID", "files", "why"],
        (
            [
                *(one.person.name, one.person.id),
                *(" ".join(mark.submission.shown for mark in one.marks), why),
            ]
            for one in book.students
            for why in one.look
        ),
    )
    sheets.write(
        out / "missing.csv",
        ["student", "ID", "Email address"],
        ([p.name, p.id, p.email] for p in book.missing),
    )
    again = [mark for mark in book.marks if "before" in mark.extra]
    rows = [
        [mark.person.name, mark.submission.shown, question["name"], old, question["score"]]
        for mark in again
        for question in mark.extra["questions"]
        if (old := mark.extra["before"][question["name"]]) != question["score"]
    ]
    if again:
        sheets.write(out / "changes.csv", ["student", "file", "question", "old", "new"], rows)


def _write_feedback(folder: Path, book: Gradebook, say: Phrases) -> None:
    folder.mkdir(exist_ok=True)
    pages = {
        folder / f"{mark.page}.html": _page(book, mark, student.counted in (None, mark), say)
        for student in book.students
        for mark in student.marks
    }
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    for path in set(folder.glob("*.html")) - pages.keys():
        path.unlink()  # its file is no longer among the submissions


def _page(book: Gradebook, mark: Mark, counts: bool, say: Phrases) -> str:
    """The page that tells a student what a file earned and why."""
    comments = defaultdict(list)
    for question, text in mark.comments:
        comments[question].append(text)
    cases = defaultdict(list, {q["name"]: _alike(q["cases"]) for q in mark.extra["questions"]})
    about = {"title": f"{say.told(book.title)} · {mark.person.name}", "possible": book.possible}
    words = {"say": say, "language": say.language}
    return PAGE.render(**about, **words, mark=mark, counts=counts, comments=comments, cases=cases)


def _alike(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks of a question, those of which the same is to be said as one."""
    found: dict[str, dict[str, Any]] = {}
    for case in cases:
        one = found.setdefault(case["message"], {**case, "points": 0.0, "number": 0})
        one["points"] += case["points"]
        one["number"] += 1
    return list(found.values())


def _open(value: float | None) -> float | str:
    """A mark as a table has it: nothing where it is open, and a whole number without a point."""
    if value is None:
        return ""
    return int(value) if value == int(value) else value


def late(mark: Mark) -> str:
    """How late a file is and what that costs; nothing where it is not late."""
    if mark.late.unknown:
        return "LATE"
    return f"{mark.late.days} d, −{mark.late.loss:g} %" if mark.late.days else ""


def _said(student: Student, say: Phrases) -> str:
    """What goes into Moodle's comment, which Moodle takes for HTML."""
    if not student.counted:
        return ""
    comments = [text for _, text in student.counted.comments]
    notes = map(say.told, student.counted.notes)
    said = " ".join([*comments, sentence(" ".join(notes), most=1_000)]).strip()
    return html.escape(said, quote=False)
