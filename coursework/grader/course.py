"""An instructor's folder of tables for one assignment; each of them may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import counting, lateness, overrides
from .lateness import Policy
from .overrides import ByHand
from .people import Directory, Person, Roster, read_roster
from .sheets import SheetError

ROSTER, DEADLINES, OVERRIDES, CHOSEN = (
    "roster.csv",
    "deadlines.csv",
    "overrides.csv",
    "chosen.csv",
)


@dataclass(frozen=True)
class Course:
    """What an instructor says beside the submissions."""

    roster: Roster | None = None
    policy: Policy = field(default_factory=Policy)
    by_hand: Mapping[Person, ByHand] = field(default_factory=dict)
    #: For each student, the file that counts; read only where a list decides.
    chosen: Mapping[Person, str] = field(default_factory=dict)


def read_people(folder: Path | None) -> Roster | None:
    """The roster in an instructor's folder, or None where there is none.

    Raises:
        SheetError: where the folder does not exist, or has a table that this program does not know.
    """
    if folder is None:
        return None
    if not folder.is_dir():
        raise SheetError(f"There is no folder {folder} with tables of the course.")
    known = (ROSTER, DEADLINES, OVERRIDES, CHOSEN)
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
    possible: Mapping[str, float],
) -> Course:
    """Read the tables of an instructor's folder.

    Args:
        everyone: those on the roster and those who handed in.
        possible: the points of each question.

    Raises:
        SheetError: for whatever cannot be meant so.
    """
    if folder is None:
        return Course()

    def there(name: str) -> Path | None:
        return folder / name if (folder / name).exists() else None

    deadlines, by_hand, chosen = there(DEADLINES), there(OVERRIDES), there(CHOSEN)
    return Course(
        roster,
        lateness.read(deadlines, everyone) if deadlines else Policy(),
        overrides.read(by_hand, everyone, possible) if by_hand else {},
        counting.read(chosen, everyone) if chosen else {},
    )
