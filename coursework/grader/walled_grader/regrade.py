"""Marking again what has a mark: one student or one question, with the old marks beside the new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .assignment import Assignment
from .marks import Result
from .people import Directory, Person, told_apart


class NotRegradedError(Exception):
    """What is to be marked again cannot be; the message says why."""


@dataclass(frozen=True)
class Only:
    """What to mark again; without students, all of them, and without questions, all of them."""

    students: frozenset[Person] = frozenset()
    questions: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.students or self.questions)

    def holds(self, person: Person) -> bool:
        return bool(self) and (not self.students or person in self.students)


def only(named: Sequence[str], assignment: Assignment, people: Iterable[Person]) -> Only:
    """Understand the names of students and questions that are to be marked again.

    Raises:
        NotRegradedError: for a name that is neither, or could be several students.
    """
    known = Directory(dict.fromkeys(people))
    questions = {question.name for question in assignment.questions}
    students = set()
    # A comma separates names, and is part of “Lovelace, Ada”.
    whole = [[name] if known.find(name) else name.split(",") for name in named]
    names = [part.strip() for parts in whole for part in parts if part.strip()]
    for name in names:
        if name in questions:
            continue
        found = known.find(name) or known.with_word(name)
        if len(found) != 1:
            several = f"could be {told_apart(found)}: give the ID"
            what = several if found else "is nobody who handed in a file"
            raise NotRegradedError(
                f"“{name}” {what}; the questions are {', '.join(sorted(questions))}."
            )
        students.add(found[0])
    return Only(frozenset(students), frozenset(questions.intersection(names)))


def changed_since(assignment: Assignment, results: Iterable[Result]) -> list[str]:
    """The questions whose tests have changed since these results were made.

    Raises:
        NotRegradedError: where there were other questions.
    """
    now = {question.name: question.digest for question in assignment.questions}
    before = [{q["name"]: q["tests"] for q in one["extra_data"]["questions"]} for one in results]
    if any(list(digests) != list(now) for digests in before):
        raise NotRegradedError(
            "This folder was marked when there were other questions: give another --out "
            "(make: OUT=…)."
        )
    return [name for name in sorted(now) if any(one[name] != now[name] for one in before)]


def check(assignment: Assignment, results: Iterable[Result], chosen: Only) -> list[str]:
    """Make sure that no mark will be made of tests of different versions; the questions whose tests
    have changed since.

    Raises:
        NotRegradedError: where tests have changed and their questions are not marked again.
    """
    changed = changed_since(assignment, results)
    if set(changed) <= chosen.questions and not (changed and chosen.students):
        return changed
    raise NotRegradedError(
        f"The tests of {', '.join(changed)} have changed since this folder was marked: mark these "
        f"questions again for everybody (--only {','.join(changed)}; make: "
        f"ONLY={','.join(changed)}), or give another --out (make: OUT=…)."
    )


def merge(old: Result, new: Result, questions: frozenset[str]) -> Result:
    """The new result, or the old one with some of its questions new; both keep the old points."""
    before = {q["name"]: q["score"] for q in old["extra_data"]["questions"]}
    extra = {**new["extra_data"], "before": before}
    if not questions:
        return {**new, "extra_data": extra}

    def mixed(olds: list[Result], news: list[Result]) -> list[Result]:
        of_new = {one["name"]: one for one in news}
        return [of_new[one["name"]] if one["name"] in questions else one for one in olds]

    extra["questions"] = mixed(old["extra_data"]["questions"], new["extra_data"]["questions"])
    return {
        **new,
        "tests": mixed(old["tests"], new["tests"]),
        "score": round(sum(question["score"] for question in extra["questions"]), 5),
        "extra_data": extra,
    }
