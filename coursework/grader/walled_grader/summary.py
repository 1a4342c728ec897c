"""What an instructor wants to know when a run has ended, in a few lines."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from .gradebook import Gradebook

#: Of longer lists, the tables have the rest.
SHOWN = 10


def totals(book: Gradebook) -> list[str]:
    """How many marks there are and how good they are, without a name."""
    values = [student.value for student in book.students if student.value is not None]
    said = [f"{_many(len(book.marks), 'file')} of {_many(len(book.students), 'student')}."]
    if values:
        said.append(
            f"Mean {statistics.fmean(values):.1f} and median {statistics.median(values):.1f} of "
            f"{book.possible:g} points."
        )
    if len(values) < len(book.students):
        said.append(f"{_many(len(book.students) - len(values), 'mark')} still open.")
    return said


def lines(book: Gradebook, seconds: Mapping[str, float]) -> list[str]:
    """The summary of a run.

    Args:
        seconds: how long each file took that was marked in this run, by the file's key.
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
