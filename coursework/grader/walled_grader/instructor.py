"""An instructor's folder of tables for one assignment; each of them may be missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import lateness, overrides, sheets
from .lateness import Policy
from .marks import QuestionMark
from .overrides import ByHand
from .people import Directory, Person, Roster, read_roster
from .sheets import SheetError

ROSTER, DEADLINES, OVERRIDES = "roster.csv", "deadlines.csv", "overrides.csv"
RUBRIC, CHOSEN, GROUPS = "rubric.csv", "chosen.csv", "groups.csv"
WITHDRAWN = "withdrawn.csv"
KNOWN = (ROSTER, DEADLINES, OVERRIDES, RUBRIC, CHOSEN, GROUPS, WITHDRAWN)


@dataclass(frozen=True)
class Tables:
    """What an instructor says beside the roster and the submissions."""

    policy: Policy = field(default_factory=Policy)
    by_hand: Mapping[Person, ByHand] = field(default_factory=dict)
    #: For each student, the file that counts where a list decides.
    chosen: Mapping[Person, str] = field(default_factory=dict)
    #: For each student of a group, all of its members: a file of one is a file of each.
    groups: Mapping[Person, tuple[Person, ...]] = field(default_factory=dict)
    withdrawn: frozenset[Person] = frozenset()  #: who has left the course and gets no mark


def read_people(folder: Path | None) -> Roster:
    """The roster in an instructor's folder; nobody is on it where there is none.

    Raises:
        SheetError: where the folder does not exist, or has a table that this program does not know.
    """
    if folder is None:
        return Roster()
    if not folder.is_dir():
        raise SheetError(f"There is no folder {folder} with tables of the course.")
    for path in sorted(folder.glob("*.csv")):
        if path.name not in KNOWN:
            raise SheetError(f"{path.name} is none of {', '.join(KNOWN)}: rename it or move it.")
    return read_roster(folder / ROSTER)


def read(folder: Path | None, everyone: Directory, questions: Sequence[QuestionMark]) -> Tables:
    """Read the tables of an instructor's folder.

    Args:
        everyone: those on the roster and those who handed in.
        questions: those of the assignment.

    Raises:
        SheetError: for whatever cannot be meant so.
    """
    if folder is None:
        return Tables()
    possible = {question.name: question.possible for question in questions}
    rubrics = {question.name: question.rubric for question in questions if question.rubric}
    by_hand = overrides.read(folder / OVERRIDES, everyone, possible)
    overrides.add_rubric(folder / RUBRIC, everyone, rubrics, by_hand)
    return Tables(
        lateness.read(folder / DEADLINES, everyone),
        by_hand,
        read_chosen(folder / CHOSEN, everyone),
        read_groups(folder / GROUPS, everyone),
        frozenset(everyone.rows(sheets.read(folder / WITHDRAWN, ("student",)))),
    )


def read_chosen(path: Path, everyone: Directory) -> dict[Person, str]:
    """Read a table that says which file of a student counts.

    Raises:
        SheetError: for a student who does not exist, or has two rows.
    """
    rows = everyone.rows(sheets.read(path, ("student", "file")))
    return {person: row["file"] for person, row in rows.items()}


def read_groups(path: Path, everyone: Directory) -> dict[Person, tuple[Person, ...]]:
    """Read a table of who hands in together: a row for each student, with the group's name.

    Raises:
        SheetError: for a student who does not exist, or is in two groups.
    """
    members: defaultdict[str, list[Person]] = defaultdict(list)
    groups: dict[Person, str] = {}
    for row in sheets.read(path, ("group", "student")):
        person = everyone.meant(row)
        if not row["group"]:
            raise row.error("there is no group")
        if person in groups:
            raise row.error(f"{person.name} is in the group {groups[person]}, too")
        groups[person] = row["group"]
        members[row["group"]].append(person)
    return {person: tuple(members[group]) for person, group in groups.items()}
