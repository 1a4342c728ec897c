"""What an instructor wants to know when a run has ended, in a few lines."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from .gradebook import Gradebook

#: Of longer lists, the tables have the rest.
SHOWN = 10


def lines(book: Gradebook, seconds: Mapping[str, float]) -> list[str]:
    """The summary of a run.

    Args:
        seconds: how long each file took that was marked in this run, by the file's key.
    """
    files = [mark for student in book.students for mark in student.marks]
    values = [student.value for student in book.students if student.value is not None]
    said = [f"{_many(len(files), 'file')} of {_many(len(book.students), 'student')}."]
    if values:
        said.append(
            f"Mean {statistics.fmean(values):.1f} and median {statistics.median(values):.1f} of "
            f"{book.possible:g} points."
        )
    if len(values) < len(book.students):
        said.append(f"{_many(len(book.students) - len(values), 'mark')} still open.")
    if seconds:
        names = {mark.key: mark.file for mark in files}
        slowest = max(seconds, key=lambda key: seconds[key])
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
