"""Marks as tables and feedback as pages, made from the results that grading stored."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from . import layout, sheets
from .gradebook import Gradebook, Student
from .marks import Mark
from .text import sentence

FEEDBACK = "feedback"  #: the folder of the pages
PAGE = layout.ENVIRONMENT.from_string(
    """\
{% extends "frame" %}
{% block content %}
<p>{{ mark.submission.shown }}</p>
{% if mark.value is none %}
<p><strong>Your mark is still open.</strong></p>
{% else %}
<p><strong>{{ mark.value | points }} of {{ possible | points }} points</strong></p>
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
{% if mark.extra.notes %}
<h2>About your notebook</h2>
<ul>
{% for note in mark.extra.notes %}
<li>{{ note }}</li>
{% endfor %}
</ul>
{% endif %}
{% if mark.extra.readable %}
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
{% endblock %}
"""
)


def write(out: Path, book: Gradebook) -> None:
    """Write the tables of marks, the list of what a person should look at, and the feedback."""
    _write_marks(out, book)
    _write_lists(out, book)
    _write_feedback(out / FEEDBACK, book)


def _write_marks(out: Path, book: Gradebook) -> None:
    names = [question.name for question in book.questions]
    sheets.write(
        out / "marks.csv",
        ["student", "file", *names, "score", "possible", "late", "mark", "counts", "notes"],
        (
            [
                *(mark.person.name, mark.submission.shown),
                *(_open(question.score) for question in mark.questions),
                *(_open(mark.result["score"]), _open(book.possible), _late(mark)),
                *(_open(mark.value), "yes" if mark is student.counted else "no", _notes(mark)),
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
                *(_open(one.value), _open(book.possible), _said(one)),
            ]
            for p, one in who
        ),
    )


def _write_lists(out: Path, book: Gradebook) -> None:
    """Write whom to look at, who is missing, and what marking again changed."""
    sheets.write(
        out / "to_check.csv",
        ["student", "files", "why"],
        (
            [one.person.name, " ".join(mark.submission.shown for mark in one.marks), why]
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


def _write_feedback(folder: Path, book: Gradebook) -> None:
    folder.mkdir(exist_ok=True)
    pages = {
        folder / f"{mark.page}.html": _page(book, mark, student.counted in (None, mark))
        for student in book.students
        for mark in student.marks
    }
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    for path in set(folder.glob("*.html")) - pages.keys():
        path.unlink()  # its file is no longer among the submissions


def _page(book: Gradebook, mark: Mark, counts: bool) -> str:
    """The page that tells a student what a file earned and why."""
    comments = defaultdict(list)
    for question, text in mark.comments:
        comments[question].append(text)
    cases = defaultdict(list, {q["name"]: q["cases"] for q in mark.extra["questions"]})
    about = {"title": f"{book.title}: {mark.person.name}", "possible": book.possible}
    return PAGE.render(**about, mark=mark, counts=counts, comments=comments, cases=cases)


def _open(value: float | None) -> float | str:
    """A mark as a table has it: nothing where it is open, and a whole number without a point."""
    if value is None:
        return ""
    return int(value) if value == int(value) else value


def _late(mark: Mark) -> str:
    if mark.late.unknown:
        return "LATE"
    return f"{mark.late.days} d, −{mark.late.loss:g} %" if mark.late.days else ""


def _said(student: Student) -> str:
    if not student.counted:
        return ""
    comments = [text for _, text in student.counted.comments]
    return " ".join([*comments, _notes(student.counted)]).strip()


def _notes(mark: Mark) -> str:
    return sentence(" ".join(mark.extra["notes"]), most=1_000)
