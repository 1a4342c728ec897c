"""Marks as tables and feedback as pages, made from the results that grading stored."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

from coursework.assignment import Assignment

PAGE = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }} · {{ extra.student }}</title>
<style>
:root { color-scheme: light dark; font: 1.125rem/1.5 system-ui, sans-serif; }
body { max-width: 42rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
li { margin: .4rem 0; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p>{{ extra.student }} · {{ extra.file }}</p>
<p><strong>{{ score }} of {{ possible }} points</strong></p>
{% if extra.notes %}
<h2>About your notebook</h2>
<ul>
{% for note in extra.notes %}
<li>{{ note }}</li>
{% endfor %}
</ul>
{% endif %}
{% if extra.readable %}
{% for question in extra.questions %}
<h2>{{ question.title }}: {{ question.score | round(2) }} of {{ question.possible | round(2) }}</h2>
<ul>
{% for case in question.cases %}
<li>{{ "✓" if case.passed else "✗" }}
{{ "Check you do not see" if case.hidden else "Check in the notebook" }},
{{ case.points | round(2) }} {{ "point" if case.points == 1 else "points" }}:
{{ "passed." if case.passed else case.message }}</li>
{% endfor %}
</ul>
{% endfor %}
{% endif %}
</body>
</html>
"""
)


def write(out: Path, assignment: Assignment, results: list[dict[str, Any]]) -> None:
    """Write marks.csv, canvas.csv, moodle.csv and one page of feedback a submission."""
    possible = assignment.possible
    names = [question.name for question in assignment.questions]
    rows = [(result["score"], result["extra_data"]) for result in results]
    _table(
        out / "marks.csv",
        ["student", "file", *names, "score", "possible", "notes"],
        (
            [
                *(extra["student"], extra["file"]),
                *(question["score"] for question in extra["questions"]),
                *(score, possible, " ".join(extra["notes"])),
            ]
            for score, extra in rows
        ),
    )
    # Where a student handed in twice, which file counts is for the instructor to say; where the
    # grader failed, there is no mark yet.
    counted = [
        ("" if extra["twins"] > 1 or extra["failed"] else score, extra)
        for score, extra in {(e["student"], e["identifier"]): (s, e) for s, e in rows}.values()
    ]
    _table(
        out / "canvas.csv",
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", assignment.title],
        [
            ["    Points Possible", "", "", "", "", possible],
            *([e["student"], e["identifier"], "", "", "", score] for score, e in counted),
        ],
    )
    _table(
        out / "moodle.csv",
        ["Identifier", "Full name", "Email address", "Grade", "Maximum Grade", "Feedback comments"],
        (
            [
                f"Participant {extra['identifier']}" if extra["identifier"] else "",
                *(extra["student"], "", score, possible, " ".join(extra["notes"])),
            ]
            for score, extra in counted
        ),
    )
    feedback = out / "feedback"
    feedback.mkdir(exist_ok=True)
    for score, extra in rows:
        page = PAGE.render(title=assignment.title, extra=extra, score=score, possible=possible)
        (feedback / f"{extra['key']}.html").write_text(page, encoding="utf-8")


def _table(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    # Excel reads UTF-8 only where the file begins with a byte order mark.
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows([_harmless(value) for value in row] for row in rows)


def _harmless(value: Any) -> Any:
    """A spreadsheet must not take a student's text for a formula."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        return "'" + value
    return value
