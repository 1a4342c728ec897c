"""All marks of an assignment: each file's, which one of a student's counts, and who is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from . import instructor
from .assignment import Assignment
from .marks import Mark, QuestionMark, Result, mark
from .overrides import ByHand
from .people import Directory, Person, Roster
from .sheets import SheetError
from .submissions import Submission

NEWEST, HIGHEST, LIST, ON_TIME = "newest", "highest", "list", "latest-on-time"
CHOICES = (NEWEST, ON_TIME, HIGHEST, LIST)


@dataclass(frozen=True)
class Settings:
    """How an instructor wants the marks to be made from the results."""

    tables: Path | None = None  #: the folder of roster.csv and its like
    prefer: str = NEWEST  #: which of a student's files counts
    file_times: bool = False  #: whether the files' own times say when they were handed in


@dataclass(frozen=True)
class Student:
    """One student with their files, and the mark that counts."""

    person: Person
    marks: tuple[Mark, ...]
    counted: Mark | None
    look: tuple[str, ...]  #: why a person should look at this
    is_stranger: bool = False  #: nobody on the roster, so that no mean counts them

    @property
    def value(self) -> float | None:
        return self.counted.value if self.counted else None


@dataclass(frozen=True)
class Gradebook:
    """The marks of one assignment."""

    title: str
    column: str  #: what Canvas calls the assignment
    questions: tuple[QuestionMark, ...]  #: as nobody has answered them
    students: tuple[Student, ...]
    missing: tuple[Person, ...]  #: on the roster, without a file

    @property
    def enrolled(self) -> list[Student]:
        """Those that the statistics are about."""
        return [student for student in self.students if not student.is_stranger]

    @property
    def possible(self) -> float:
        return round(sum(question.possible for question in self.questions), 5)

    @property
    def marks(self) -> list[Mark]:
        """Those of all files, with those that do not count."""
        return [mark for student in self.students for mark in student.marks]


def owners(submissions: Iterable[Submission], roster: Roster) -> dict[str, Person]:
    """Who handed in each file, by its key: one of the roster, else a person of their own."""
    known = Directory(roster.people)
    owner_of: dict[str, Person] = {}
    for one in submissions:
        found = known.find(one.identifier) if one.identifier else []
        # A name never overrules a number: of two students called the same, one would be the other.
        found = found or [
            person
            for person in known.find(one.student)
            if not (one.identifier and person.id and one.identifier != person.id)
        ]
        unknown = Person(one.student, one.identifier)
        owner_of[one.key] = found[0] if len(found) == 1 else unknown
    return owner_of


def make(
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, Result],
    settings: Settings,
) -> Gradebook:
    """Make the marks of an assignment.

    Args:
        results: by the key of the file; while a run goes on, some files have none yet.

    Raises:
        SheetError: where a table of the instructor's cannot be meant so.
    """
    questions = (
        *(QuestionMark(q.name, q.title, None, q.tests().possible) for q in assignment.questions),
        *assignment.manual,
    )
    roster = instructor.read_people(settings.tables)
    owner_of = owners(submissions, roster)
    everyone = Directory(dict.fromkeys((*roster.people, *owner_of.values())))
    tables = instructor.read(settings.tables, everyone, questions)
    if settings.prefer == LIST and not tables.chosen:
        raise SheetError(
            f"A list is to say which file counts, but there is no {instructor.CHOSEN} with any row."
        )
    files: dict[Person, list[Mark]] = defaultdict(list)
    for one in submissions:
        owner, time, is_wrong = owner_of[one.key], None, False
        if settings.file_times:
            time = datetime.fromtimestamp(one.order[1] / 1e9, UTC)
            is_wrong = time > datetime.now(UTC)  # somebody's clock is
            time = None if is_wrong else time
        for person in tables.groups.get(owner, (owner,)):
            marks = files[person]  # also of a file that has no result yet
            if result := results.get(one.key):
                late = tables.policy.judge(person, time, one.late or is_wrong)
                by_hand = tables.by_hand.get(person, ByHand())
                marks.append(mark(person, one, result, assignment.manual, late, by_hand, owner))
    students = []
    for person, marks in files.items():
        if not marks or person in tables.withdrawn:
            continue
        counted, why = _choose(marks, settings.prefer, tables.chosen.get(person, ""))
        look = [*(counted.look if counted else ()), *([why] if why else [])]
        is_stranger = bool(roster.people) and person not in roster.people
        if is_stranger:
            what = f"the ID {person.id}" if person.id else "this name"
            look.append(f"nobody on the roster has {what}")
        students.append(Student(person, tuple(marks), counted, tuple(look), is_stranger))
    there = files.keys() | tables.withdrawn
    missing = tuple(person for person in roster.people if person not in there)
    column = roster.column_of(assignment.title)
    return Gradebook(assignment.title, column, questions, tuple(students), missing)


def _choose(marks: Sequence[Mark], prefer: str, listed: str) -> tuple[Mark | None, str]:
    """The mark that counts among those of one student, or a sentence why none does.

    Args:
        listed: the file that the instructor's list names, if any.
    """
    # The same bytes twice are one hand-in.
    several = list({mark.extra["digest"]: mark for mark in marks}.values())
    if len(several) == 1:
        return several[0], ""
    if prefer == LIST:
        if named := [mark for mark in marks if mark.submission.shown == listed]:
            return named[0], ""
        why = f"{listed}, which is not among them" if listed else "none"
        return None, f"{len(marks)} files, and the list names {why}"
    if prefer == HIGHEST:
        if any(mark.value is None for mark in several):
            return None, f"{len(several)} files, and one of them has no mark yet"
        return max(several, key=lambda mark: mark.value or 0.0), ""
    if prefer == ON_TIME:
        if any(mark.late.unknown for mark in several):
            return None, f"{len(several)} files, and of one it is not known when it was handed in"
        several = [mark for mark in several if not mark.late.days] or several
    newest = max(mark.submission.order for mark in several)
    latest = [mark for mark in several if mark.submission.order == newest]
    if len(latest) > 1:
        return None, f"{len(latest)} files of the same time: say in a list which one counts"
    return latest[0], ""
