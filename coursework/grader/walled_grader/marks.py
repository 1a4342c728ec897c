"""What a file is worth in the end: the tests' score, points by hand, and what lateness costs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .lateness import Lateness
from .overrides import ByHand
from .people import Person
from .submissions import Submission


@dataclass(frozen=True)
class QuestionMark:
    """The points of one question; None where nobody has entered them yet."""

    name: str
    title: str
    score: float | None
    possible: float
    by_hand: bool = False
    rubric: Mapping[str, float] = field(default_factory=dict, hash=False)  #: points by row


@dataclass(frozen=True)
class Mark:
    """The mark of one file."""

    person: Person
    page: str  #: the name of the feedback
    file: str
    key: str
    digest: str
    order: tuple[int, int]  #: of two files of a student, the newer has the larger
    score: float  #: what the tests gave
    questions: tuple[QuestionMark, ...]
    possible: float
    late: Lateness
    value: float | None  #: what counts; None while a person must decide
    look: tuple[str, ...]  #: why a person should look at it
    comments: tuple[tuple[str, str], ...] = ()  #: (question or "", what the instructor says)


def mark(
    person: Person,
    submission: Submission,
    result: Mapping[str, Any],
    manual: tuple[QuestionMark, ...],
    late: Lateness,
    by_hand: ByHand,
    owner: Person,
) -> Mark:
    """Combine a file's result with what an instructor entered.

    Args:
        owner: whose file it is; another member of the same group has a page of their own.
        manual: the questions that no test marks.
    """
    extra = result["extra_data"]
    tested = (
        QuestionMark(q["name"], q["title"], q["score"], q["possible"]) for q in extra["questions"]
    )
    questions = tuple(
        QuestionMark(q.name, q.title, by_hand.points[q.name], q.possible, by_hand=True)
        if q.name in by_hand.points
        else q
        for q in (*tested, *manual)
    )
    possible = round(sum(question.possible for question in questions), 5)
    waiting = [question.name for question in questions if question.score is None]
    total = sum(question.score or 0.0 for question in questions)
    value: float | None = round(max(0.0, total - late.loss / 100 * possible), 5)
    undecided = []
    if extra["failed"]:
        undecided.append("the grader itself failed on this file")
    elif not extra["readable"]:
        undecided.append("this file cannot be marked")
    if waiting:
        undecided.append(f"points for {', '.join(waiting)} are to be entered by hand")
    for name, verdict in extra.get("forbidden", {}).items():
        if name not in by_hand.points:
            undecided.append(_forbidden(name, verdict))
    if undecided:
        value = None
    if by_hand.total is not None:
        value, undecided = by_hand.total, []
    elif value == 0 and late.loss < 100:
        undecided.append("nothing was earned")
    if late.unknown:
        undecided.append("it is marked as late, and the time is not known")
    return Mark(
        person=person,
        page=submission.key if person == owner else f"{submission.key}-{_short(person)}",
        file=submission.shown,
        key=submission.key,
        digest=extra["digest"],
        order=submission.order,
        score=result["score"],
        questions=questions,
        possible=possible,
        late=late,
        value=value,
        look=tuple(undecided),
        comments=tuple(by_hand.comments),
    )


def _short(person: Person) -> str:
    return hashlib.sha256(f"{person.name} {person.id}".encode()).hexdigest()[:6]


def _forbidden(question: str, verdict: Mapping[str, Any]) -> str:
    """What a person is asked about a question whose answer uses what it forbids."""
    earned = f"{verdict['score']:g} by its tests"
    if not verdict["names"]:
        return (
            f"the code is too long to look for what {question} forbids: read it, and enter the "
            f"points of {question} by hand ({earned})"
        )
    return (
        f"the answer to {question} seems to use {', '.join(verdict['names'])}, which the question "
        f"forbids: read it, and enter the points of {question} by hand (0 if so, else {earned})"
    )
