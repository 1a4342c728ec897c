"""Who is meant by a name: on a file, on the roster, in a table of deadlines or overrides."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import sheets
from .sheets import Row

#: The columns of Canvas's gradebook export and of Moodle's grading worksheet, by our names.
EXPORTED = {
    "Student": "name",
    "Full name": "name",
    "student": "name",
    "ID": "id",
    "Identifier": "id",
    "SIS User ID": "sis_id",
    "SIS Login ID": "login",
    "Section": "section",
    "Email address": "email",
}


@dataclass(frozen=True)
class Person:
    """A student, as the roster has them or, without a roster, as their files say."""

    name: str
    id: str = ""  #: the number Canvas or Moodle knows the student by
    sis_id: str = ""
    login: str = ""
    section: str = ""
    email: str = ""


@dataclass(frozen=True)
class Roster:
    """Everyone in the course, and the headings of the columns beside their names."""

    people: tuple[Person, ...] = ()
    headings: tuple[str, ...] = ()

    def column_of(self, title: str) -> str:
        """The heading under which Canvas keeps this assignment, or its bare title."""
        theirs = re.compile(re.escape(title) + r" \(\d+\)")
        return next((heading for heading in self.headings if theirs.fullmatch(heading)), title)


def letters(name: str) -> str:
    """A name without accents, case, spaces and signs: what all its spellings have in common."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(character for character in plain if character.isalnum()) or name


def spellings(name: str) -> set[str]:
    """A name's letters in the orders in which systems write it.

    Canvas calls the file of “Lovelace, Ada” lovelaceada, where Moodle writes Ada Lovelace.
    """
    family, comma, given = name.partition(",")
    words = name.split()
    return {
        letters(name),
        letters(given + family) if comma else letters(" ".join([*words[-1:], *words[:-1]])),
    }


def read_roster(path: Path) -> Roster:
    """Read who is in the course; Canvas's and Moodle's own exports can be used as they are.

    Raises:
        SheetError: for a student who is listed twice.
    """
    rows = [row for row in sheets.read(path, ("name",), EXPORTED) if not _is_no_student(row)]
    people = []
    listed: dict[str, tuple[Row, Person]] = {}
    for row in rows:
        number = row["id"].removeprefix("Participant").strip()
        others = (row[column] for column in ("sis_id", "login", "section", "email"))
        person = Person(row["name"], number, *others)
        if not person.name:
            raise row.error("there is no name")
        keys = {f"ID {person.id}"} if person.id else set()
        for key in sorted(keys | spellings(person.name)):
            earlier, other = listed.setdefault(key, (row, person))
            if other is person:
                continue
            if person.id and person.id == other.id:
                raise row.error(f"the ID {person.id} is in row {earlier.number}, too")
            if not (person.id and other.id):
                raise row.error(
                    f"{person.name} is in row {earlier.number}, too; if these are two students, "
                    "give each an ID"
                )
        people.append(person)
    return Roster(tuple(people), tuple(rows[0].cells) if rows else ())


def _is_no_student(row: Row) -> bool:
    """Whether Canvas put this row into its export beside those of the students."""
    name = row["name"]
    return name.startswith(("Points Possible", "Student, Test")) or not (name or row["id"])


def told_apart(people: Iterable[Person], most: int = 5) -> str:
    """The first of several people whom one name can mean, each with the ID if there is one."""
    found = [f"{one.name} ({one.id})" if one.id else one.name for one in people]
    rest = [f"{len(found) - most} more"] if len(found) > most else []
    return " or ".join(found[:most] + rest)


class Directory:
    """Finds people by any name that a file or a table gives them."""

    def __init__(self, people: Iterable[Person]) -> None:
        self._exact: defaultdict[str, list[Person]] = defaultdict(list)
        self._spelled: defaultdict[str, list[Person]] = defaultdict(list)
        for person in people:
            for sign in {person.id, person.sis_id, person.login, person.email} - {""}:
                self._exact[sign].append(person)
            for spelling in spellings(person.name):
                self._spelled[spelling].append(person)

    def find(self, named: str) -> list[Person]:
        """Everyone whom a name, an ID, a login or an address can mean."""
        if named in self._exact:
            return self._exact[named]
        # A dictionary keeps the order and leaves nobody in twice.
        found = [one for spelling in spellings(named) for one in self._spelled.get(spelling, ())]
        return list({id(person): person for person in found}.values())

    def with_word(self, word: str) -> list[Person]:
        """Everyone whose name has this word in it, a family name for example."""
        everyone = {id(one): one for people in self._spelled.values() for one in people}
        signs = letters(word)
        return [p for p in everyone.values() if signs in map(letters, re.split(r"[\s,]+", p.name))]

    def meant(self, row: Row) -> Person:
        """The one person whom the row of an instructor's table means.

        Raises:
            SheetError: where that is nobody, or could be several.
        """
        found = self.find(row["student"])
        if not found:
            raise row.error(
                f"nobody called “{row['student']}” is on the roster or has handed in anything"
            )
        if len(found) > 1:
            several = told_apart(found)
            raise row.error(
                f"“{row['student']}” could be {several}: write the ID in place of the name"
            )
        return found[0]

    def rows(self, rows: Iterable[Row]) -> dict[Person, Row]:
        """Each student's row, in a table that has one for each.

        Raises:
            SheetError: for a student who does not exist, or has two rows.
        """
        found: dict[Person, Row] = {}
        for row in rows:
            person = self.meant(row)
            if person in found:
                raise row.error(f"{person.name} already has a row")
            found[person] = row
        return found
