"""All marks of an assignment: each file's, which one of a student's counts, and who is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import counting, instructor
from .assignment import Assignment
from .marks import Mark, QuestionMark, mark
from .overrides import ByHand
from .people import Directory, Person, Roster
from .sheets import SheetError
from .submissions import Submission


@dataclass(frozen=True)
class Settings:
    """How an instructor wants the marks to be made from the results."""

    tables: Path | None = None  #: the folder of roster.csv and its like
    prefer: str = counting.NEWEST
    file_times: bool = False  #: whether the files' own times say when they were handed in


@dataclass(frozen=True)
class Student:
    """One student with their files, and the mark that counts."""

    person: Person
    marks: tuple[Mark, ...]
    counted: Mark | None
    look: tuple[str, ...]  #: why a person should look at this

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
    def possible(self) -> float:
        return round(sum(question.possible for question in self.questions), 5)


def people(submissions: Sequence[Submission], roster: Roster | None) -> dict[str, Person]:
    """Who handed in each file, by the file's key; a person of their own where nobody fits."""
    known = Directory(roster.people if roster else ())
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


def owners(submissions: Sequence[Submission], settings: Settings) -> dict[str, Person]:
    """Who handed in each file, by the file's key; on the roster, where there is one."""
    return people(submissions, instructor.read_people(settings.tables))


def make(
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, dict[str, Any]],
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
    owner_of = people(submissions, roster)
    listed = roster.people if roster else ()
    if settings.prefer == counting.LIST and not instructor.has_list(settings.tables):
        raise SheetError(
            f"A list is to say which file counts, but there is no {instructor.CHOSEN}."
        )
    tables = instructor.read(
        settings.tables,
        roster,
        Directory(dict.fromkeys((*listed, *owner_of.values()))),
        questions,
    )
    files: defaultdict[Person, list[Mark]] = defaultdict(list)
    for submission in submissions:
        if submission.key not in results:
            continue
        owner = owner_of[submission.key]
        time = _time(submission) if settings.file_times else None
        result = results[submission.key]
        for person in tables.groups.get(owner, (owner,)):
            late = tables.policy.judge(person, time, submission.late)
            by_hand = tables.by_hand.get(person, ByHand())
            files[person].append(
                mark(person, submission, result, assignment.manual, late, by_hand, owner)
            )
    handed_in = {
        person for owner in owner_of.values() for person in tables.groups.get(owner, (owner,))
    }
    students = []
    for person, marks in files.items():
        counted, why = counting.choose(marks, settings.prefer, tables.chosen)
        look = [*(counted.look if counted else ()), *([why] if why else [])]
        if roster and person not in listed:
            what = f"the ID {person.id}" if person.id else "this name"
            look.append(f"nobody on the roster has {what}")
        students.append(Student(person, tuple(marks), counted, tuple(look)))
    return Gradebook(
        title=assignment.title,
        column=roster.column_of(assignment.title) if roster else assignment.title,
        questions=questions,
        students=tuple(students),
        missing=tuple(person for person in listed if person not in handed_in),
    )


def _time(submission: Submission) -> datetime | None:
    return datetime.fromtimestamp(submission.order[1] / 1e9, UTC) if submission.order[1] else None
