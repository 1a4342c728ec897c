"""An instructor's folder of tables for one assignment; each of them may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import counting, lateness, manual, overrides, sheets
from .lateness import Policy
from .marks import QuestionMark
from .overrides import ByHand
from .people import Directory, Person, Roster, read_roster
from .sheets import SheetError

ROSTER, DEADLINES, OVERRIDES = "roster.csv", "deadlines.csv", "overrides.csv"
CHOSEN, GROUPS, RUBRIC = "chosen.csv", "groups.csv", "rubric.csv"


@dataclass(frozen=True)
class Course:
    """What an instructor says beside the submissions."""

    roster: Roster | None = None
    policy: Policy = field(default_factory=Policy)
    by_hand: Mapping[Person, ByHand] = field(default_factory=dict)
    #: For each student, the file that counts; read only where a list decides.
    chosen: Mapping[Person, str] = field(default_factory=dict)
    #: For each student of a group, all of its members: a file of one is a file of each.
    groups: Mapping[Person, tuple[Person, ...]] = field(default_factory=dict)


def read_people(folder: Path | None) -> Roster | None:
    """The roster in an instructor's folder, or None where there is none.

    Raises:
        SheetError: where the folder does not exist, or has a table that this program does not know.
    """
    if folder is None:
        return None
    if not folder.is_dir():
        raise SheetError(f"There is no folder {folder} with tables of the course.")
    known = (ROSTER, DEADLINES, OVERRIDES, RUBRIC, CHOSEN, GROUPS)
    for path in sorted(folder.glob("*.csv")):
        if path.name not in known:
            raise SheetError(f"{path.name} is none of {', '.join(known)}: rename it or move it.")
    path = folder / ROSTER
    return read_roster(path) if path.exists() else None


def has_list(folder: Path | None) -> bool:
    return folder is not None and (folder / CHOSEN).exists()


def read(
    folder: Path | None,
    roster: Roster | None,
    everyone: Directory,
    questions: Sequence[QuestionMark],
) -> Course:
    """Read the tables of an instructor's folder.

    Args:
        everyone: those on the roster and those who handed in.
        questions: those of the assignment.

    Raises:
        SheetError: for whatever cannot be meant so.
    """
    if folder is None:
        return Course()

    def there(name: str) -> Path | None:
        return folder / name if (folder / name).exists() else None

    deadlines, by_hand, chosen = there(DEADLINES), there(OVERRIDES), there(CHOSEN)
    groups, rubric = there(GROUPS), there(RUBRIC)
    possible = {question.name: question.possible for question in questions}
    entered = overrides.read(by_hand, everyone, possible) if by_hand else {}
    return Course(
        roster,
        lateness.read(deadlines, everyone) if deadlines else Policy(),
        manual.add(rubric, everyone, questions, entered) if rubric else entered,
        counting.read(chosen, everyone) if chosen else {},
        read_groups(groups, everyone) if groups else {},
    )


def read_groups(path: Path, everyone: Directory) -> dict[Person, tuple[Person, ...]]:
    """Read a table of who hands in together: a row for each student, with the group's name.

    Raises:
        SheetError: for a student who does not exist, or is in two groups.
    """
    members: dict[str, list[Person]] = {}
    groups: dict[Person, str] = {}
    for row in sheets.read(path, ("group", "student")):
        person = everyone.meant(row)
        if not row["group"]:
            raise row.error("there is no group")
        if person in groups:
            raise row.error(f"{person.name} is in the group {groups[person]}, too")
        groups[person] = row["group"]
        members.setdefault(row["group"], []).append(person)
    return {person: tuple(members[group]) for person, group in groups.items()}
