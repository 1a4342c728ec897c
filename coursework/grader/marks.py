"""What a file is worth in the end: the tests' score, points by hand, and what lateness costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Mark:
    """The mark of one file."""

    person: Person
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
) -> Mark:
    """Combine a file's result with what an instructor entered.

    Args:
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
