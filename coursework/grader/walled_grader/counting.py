"""Which file counts, where a student handed in several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from . import sheets
from .marks import Mark
from .people import Directory, Person

NEWEST, HIGHEST, LIST, ON_TIME = "newest", "highest", "list", "latest-on-time"
CHOICES = (NEWEST, ON_TIME, HIGHEST, LIST)


def read(path: Path, students: Directory) -> dict[Person, str]:
    """Read a table that says which file of a student counts.

    Raises:
        SheetError: for a student who does not exist, or has two rows.
    """
    chosen: dict[Person, str] = {}
    for row in sheets.read(path, ("student", "file")):
        person = students.meant(row)
        if person in chosen:
            raise row.error(f"{person.name} already has a row")
        chosen[person] = row["file"]
    return chosen


def choose(
    marks: Sequence[Mark], prefer: str, chosen: Mapping[Person, str]
) -> tuple[Mark | None, str]:
    """The mark that counts among those of one student, or a sentence why none does."""
    # The same bytes twice are one hand-in.
    several = list({mark.digest: mark for mark in marks}.values())
    if len(several) == 1:
        return several[0], ""
    if prefer == LIST:
        file = chosen.get(marks[0].person)
        listed = [mark for mark in marks if mark.file == file]
        if listed:
            return listed[0], ""
        why = f"the list names {file}, which is not among them" if file else "the list names none"
        return None, f"{len(marks)} files, and {why}"
    if prefer == HIGHEST:
        if any(mark.value is None for mark in several):
            return None, f"{len(several)} files, and one of them has no mark yet"
        return max(several, key=lambda mark: mark.value or 0.0), ""
    if prefer == ON_TIME:
        if any(mark.late.unknown for mark in several):
            return None, f"{len(several)} files, and of one it is not known when it was handed in"
        several = [mark for mark in several if not mark.late.days] or several
    newest = max(mark.order for mark in several)
    latest = [mark for mark in several if mark.order == newest]
    if len(latest) > 1:
        return None, f"{len(latest)} files of the same time: say in a list which one counts"
    return latest[0], ""
