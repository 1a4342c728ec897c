"""Everything that is written beside the results, made anew from them whenever it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from . import archives, gradebook, overview, regrade, report, similarity
from .assignment import Assignment
from .gradebook import Gradebook, Settings
from .marks import Result
from .submissions import Submission, UnreadableError, code_cells


def tables(
    out: Path,
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, Result],
    settings: Settings,
) -> Gradebook:
    """Write the marks and the feedback of what is marked so far.

    Args:
        results: by the key of the file.
    """
    book = gradebook.make(assignment, submissions, results, settings)
    report.write(out, book)
    regrade.write(out, book)
    return book


def rest(out: Path, assignment: Assignment, book: Gradebook) -> None:
    """Write what is of use when everything is marked: archives, statistics, similar code."""
    archives.write(out, book)
    overview.write(out, book, assignment)
    files: dict[str, similarity.File] = {}
    for mark in book.marks:
        one = mark.submission
        if not mark.extra["readable"]:
            continue
        try:
            cells = tuple(code_cells(one))
        except (UnreadableError, OSError):
            continue  # gone or changed since it was marked
        files[one.key] = similarity.File(mark.person.name, one.shown, mark.extra["digest"], cells)
    found = similarity.pairs(list(files.values()), assignment.given)
    similarity.write(out, assignment.title, found)
