"""Marks and comments that an instructor enters by hand; they are kept apart from the results."""

from __future__ import annotations

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
    entered: dict[Person, ByHand] = {}
    for row in sheets.read(path, ("student", "question", "points")):
        by_hand = entered.setdefault(students.meant(row), ByHand())
        question = row["question"]
        if question and question not in possible:
            raise row.error(
                f"there is no question “{question}”; this assignment has {', '.join(possible)}"
            )
        if row["points"]:
            known = question in by_hand.points if question else by_hand.total is not None
            if known:
                raise row.error(
                    f"{row['student']} already has points for {question or 'the whole'}"
                )
            entry = points(row, possible[question] if question else sum(possible.values()))
            if question:
                by_hand.points[question] = entry
            else:
                by_hand.total = entry
        if row["comment"]:
            by_hand.comments.append((question, row["comment"]))
        if not row["points"] and not row["comment"]:
            raise row.error("it has neither points nor a comment")
    return entered


def points(row: Row, possible: float) -> float:
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
