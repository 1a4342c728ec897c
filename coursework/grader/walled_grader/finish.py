"""Everything that is written beside the results, made anew from them whenever it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import archives, gradebook, overview, regrade, report, similarity
from .assignment import Assignment
from .gradebook import Gradebook, Settings
from .submissions import Submission, UnreadableError, code_cells


def tables(
    out: Path,
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, dict[str, Any]],
    settings: Settings,
) -> Gradebook:
    """Write the marks and the feedback of what is marked so far.

    Args:
        results: by the key of the file.
    """
    book = gradebook.make(assignment, submissions, results, settings)
    report.write(out, book, results)
    regrade.write(out, book, results)
    return book


def rest(
    out: Path,
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, dict[str, Any]],
    book: Gradebook,
) -> None:
    """Write what is of use when everything is marked: archives, statistics, similar code."""
    archives.write(out, book, report.pages(book, results))
    overview.write(out, book, overview.by_question(book, results, assignment))
    similarity.write(out, assignment.title, _alike(assignment, submissions, results, book))


def _alike(
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, dict[str, Any]],
    book: Gradebook,
) -> list[similarity.Pair]:
    who = {mark.key: student.person.name for student in book.students for mark in student.marks}
    files = []
    for one in submissions:
        if one.key not in results or not results[one.key]["extra_data"]["readable"]:
            continue
        try:
            cells = tuple(code_cells(one))
        except (UnreadableError, OSError):
            continue  # gone or changed since it was marked
        digest = results[one.key]["extra_data"]["digest"]
        files.append(similarity.File(who[one.key], one.shown, digest, cells))
    return similarity.pairs(files, assignment.given)
