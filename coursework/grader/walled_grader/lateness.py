"""A late policy: one deadline for everyone, extensions for some, a loss per day."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from . import sheets
from .people import Directory, Person
from .sheets import Row

EVERYONE = "*"
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Deadline:
    """What holds for one student; a deadline of None means that nothing is ever late."""

    due: datetime | None = None
    closes: datetime | None = None  #: from then on nothing counts
    loss: float = 0.0  #: percent of the points of the assignment, per day that has begun
    handed_in: datetime | None = None  #: known better than from the file


@dataclass(frozen=True)
class Lateness:
    """How late a file is, and what that costs."""

    days: int = 0
    loss: float = 0.0  #: percent of the points of the assignment
    unknown: bool = False  #: marked as late where it was collected, but the time is not known


@dataclass(frozen=True)
class Policy:
    """The deadlines of a course."""

    everyone: Deadline = Deadline()
    extensions: Mapping[Person, Deadline] = field(default_factory=dict)

    def judge(self, person: Person, file_time: datetime | None, marked_late: bool) -> Lateness:
        """How late a student's file is, by the best time that is known for it.

        Args:
            file_time: the file's own time, or None where it cannot be trusted.
            marked_late: whether Canvas says so in the file's name.
        """
        deadline = self.extensions.get(person, self.everyone)
        time = deadline.handed_in or file_time
        if time is None or deadline.due is None:
            return Lateness(unknown=marked_late and time is None)
        days = max(0, math.ceil((time - deadline.due) / DAY))
        if deadline.closes and time >= deadline.closes:
            return Lateness(days, 100.0)
        return Lateness(days, min(100.0, days * deadline.loss))


def read(path: Path, students: Directory) -> Policy:
    """Read a table of deadlines: a row with `*` for everyone, other rows for extensions.

    An extension takes over what its row leaves empty. Times are written as 2026-10-12 23:59, in
    the time zone of this machine, or with their own as in 2026-10-12 23:59+02:00.

    Raises:
        SheetError: for a bad date or loss, and for a student who is not in `students`.
    """
    rows = sheets.read(path, ("student", "due"))
    common = [row for row in rows if row["student"] == EVERYONE]
    if len(common) > 1:
        raise common[1].error(f"row {common[0].number} is for everyone (*), too")
    if common and common[0]["handed_in"]:
        raise common[0].error("handed_in is one student's, and this row is for everyone (*)")
    everyone = _deadline(common[0], Deadline()) if common else Deadline()
    own = students.rows(row for row in rows if row not in common)
    return Policy(everyone, {person: _deadline(row, everyone) for person, row in own.items()})


def _deadline(row: Row, otherwise: Deadline) -> Deadline:
    due = _time(row, "due") or otherwise.due
    closes = _time(row, "closes") or otherwise.closes
    if due and closes and closes < due:
        if row["closes"] or otherwise.due is None:
            raise row.error(f"it closes at {closes:%Y-%m-%d %H:%M}, before it is due")
        closes = None  # the extension is longer than the time for everyone
    loss = _loss(row) if row["loss_per_day"] else otherwise.loss
    return Deadline(due, closes, loss, _time(row, "handed_in"))


def _time(row: Row, column: str) -> datetime | None:
    if not row[column]:
        return None
    try:
        time = datetime.fromisoformat(row[column]).astimezone()
    except (ValueError, OverflowError, OSError):
        raise row.error(
            f"“{row[column]}” in the column {column} is not a date: write it as 2026-10-12 23:59"
        ) from None
    if not re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", row[column]):
        raise row.error(
            f"“{row[column]}” in the column {column} has no time of day, and would mean the "
            "midnight before it: write it as 2026-10-12 23:59"
        )
    return time


def _loss(row: Row) -> float:
    text = row["loss_per_day"]
    try:
        loss = float(text.removesuffix("%"))
    except ValueError:
        loss = -1.0
    if not 0 <= loss <= 100:
        raise row.error(f"the loss per day is “{text}”, but a percentage from 0 to 100 is needed")
    if 0 < loss < 1:
        raise row.error(
            f"a loss of {loss:g} % per day is hardly anything: write 10 for ten percent"
        )
    return loss
