"""Marks and comments that an instructor enters by hand; they are kept apart from the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import sheets
from .people import Directory, Person
from .sheets import Row


@dataclass
class ByHand:
    """What is entered for one student."""

    points: dict[str, float] = field(default_factory=dict)  #: by question
    total: float | None = None  #: in place of everything, lateness included
    comments: list[tuple[str, str]] = field(default_factory=list)  #: (question or "", text)


def read(path: Path, students: Directory, possible: Mapping[str, float]) -> dict[Person, ByHand]:
    """Read a table of overrides: student, question (empty: the mark as a whole), points, comment.

    Args:
        possible: the points of each question.

    Raises:
        SheetError: for a student, a question or a number of points that does not exist.
    """
    entered: defaultdict[Person, ByHand] = defaultdict(ByHand)
    for row in sheets.read(path, ("student", "question", "points")):
        by_hand = entered[students.meant(row)]
        question = row["question"]
        if question and question not in possible:
            raise row.error(
                f"there is no question “{question}”; this assignment has {', '.join(possible)}"
            )
        if not row["points"] and not row["comment"]:
            raise row.error("it has neither points nor a comment")
        if row["comment"]:
            by_hand.comments.append((question, row["comment"]))
        if not row["points"]:
            continue
        if question in by_hand.points or (not question and by_hand.total is not None):
            raise row.error(f"{row['student']} already has points for {question or 'the whole'}")
        if question:
            by_hand.points[question] = _points(row, possible[question])
        else:
            by_hand.total = _points(row, sum(possible.values()))
    return entered


def add_rubric(
    path: Path,
    students: Directory,
    rubrics: Mapping[str, Mapping[str, float]],
    entered: dict[Person, ByHand],
) -> None:
    """Add what is entered row by row: student, question, row, points (empty: not marked yet).

    Args:
        rubrics: of each question that has one, the points of its rows.
        entered: what else is entered for each student.

    Raises:
        SheetError: for a student, a question, a row or a number of points that does not exist, and
            where a row of a question is missing while others have points.
    """
    rows: defaultdict[tuple[Person, str], dict[str, Row]] = defaultdict(dict)
    for line in sheets.read(path, ("student", "question", "row", "points")):
        name, row = line["question"], line["row"]
        if name not in rubrics:
            raise line.error(
                f"there is no question “{name}” with a rubric; those with one are "
                f"{', '.join(rubrics) or 'none'}"
            )
        if row not in rubrics[name]:
            raise line.error(
                f"the rubric of {name} has no row “{row}”; it has {', '.join(rubrics[name])}"
            )
        of_question = rows[students.meant(line), name]
        if row in of_question:
            raise line.error(f"{line['student']} has the row “{row}” of {name} twice")
        of_question[row] = line
    for (person, name), lines in rows.items():
        by_hand, rubric = entered.setdefault(person, ByHand()), rubrics[name]
        last = list(lines.values())[-1]
        marked = {row: line for row, line in lines.items() if line["points"]}
        missing = [row for row in rubric if row not in marked]
        if marked and missing:
            raise last.error(
                f"{last['student']} has points for {name}, but none for the row {missing[0]}: "
                "enter 0 if nothing was earned"
            )
        if marked and name in by_hand.points:
            raise last.error(f"{last['student']} has points for {name} in overrides.csv, too")
        if marked:
            by_hand.points[name] = sum(_points(line, rubric[row]) for row, line in marked.items())
        for row, line in lines.items():
            if line["points"] or line["comment"]:
                earned = f"{row}: {line['points'] or '–'} of {rubric[row]:g}"
                said = f"{earned} – {line['comment']}" if line["comment"] else earned
                by_hand.comments.append((name, said))


def _points(row: Row, possible: float) -> float:
    """The points in a row of a table, from 0 to `possible`."""
    # Where a semicolon separates the cells, a comma separates the decimals.
    text = row["points"].replace(",", ".")
    try:
        found = float(text)
    except ValueError:
        raise row.error(f"“{row['points']}” is not a number of points") from None
    if not 0 <= found <= possible:
        raise row.error(f"{row['points']} points are not between 0 and {possible:g}")
    return found
