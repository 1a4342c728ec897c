"""What a file is worth in the end: the tests' score, points by hand, and what lateness costs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .lateness import Lateness
from .overrides import ByHand
from .people import Person
from .submissions import Submission

#: What grading stores of a file, in Gradescope's format, with ours under `extra_data`.
Result = dict[str, Any]


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
    """The mark of one file; where a group hands in together, each member has one."""

    person: Person
    page: str  #: the name of the feedback
    submission: Submission
    result: Result
    questions: tuple[QuestionMark, ...]
    late: Lateness
    value: float | None  #: what counts; None while a person must decide
    by_hand: bool  #: whether the whole of it was entered by hand
    look: tuple[str, ...]  #: why a person should look at it
    comments: tuple[tuple[str, str], ...]  #: (question or "", what the instructor says)

    @property
    def extra(self) -> dict[str, Any]:
        return self.result["extra_data"]

    @property
    def notes(self) -> list[str]:
        """What the student reads of the notebook: nothing of how to hand in a file that could not
        be read, once a person has marked it."""
        return [] if self.by_hand and not self.extra["readable"] else self.extra["notes"]


def mark(
    person: Person,
    submission: Submission,
    result: Result,
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
        replace(q, score=by_hand.points[q.name], by_hand=True) if q.name in by_hand.points else q
        for q in (*tested, *manual)
    )
    loss = late.loss / 100 * sum(question.possible for question in questions)
    earned = sum(question.score or 0.0 for question in questions)
    value: float | None = round(max(0.0, earned - loss), 5)
    look = _undecided(extra, questions, by_hand)
    if look:
        value = None
    if by_hand.total is not None:
        value, look = by_hand.total, []
    elif value == 0 and late.loss < 100:
        look.append("nothing was earned")
    ways = extra.get("ways") or {"questions": (), "found": ()}
    asked = [name for name in ways["questions"] if name not in by_hand.points]
    if asked and by_hand.total is None:
        found, names = "; ".join(ways["found"]), ", ".join(asked)
        look.append(f"{found}: see whether the answers to {names} were written by hand")
    if late.unknown and by_hand.total is None:
        look.append("it may be late: the time is not known")
    short = hashlib.sha256(f"{person.name} {person.id}".encode()).hexdigest()[:6]
    page = submission.key if person == owner else f"{submission.key}-{short}"
    comments = tuple(by_hand.comments)
    entered = by_hand.total is not None
    rest = late, value, entered, tuple(look), comments
    return Mark(person, page, submission, result, questions, *rest)


def _undecided(
    extra: Mapping[str, Any], questions: tuple[QuestionMark, ...], by_hand: ByHand
) -> list[str]:
    """Why a file's mark is open."""
    found = []
    if extra["failed"]:
        found.append("the grader itself failed on this file")
    elif not extra["readable"]:
        found.append(" ".join(["this file cannot be marked:", *extra["notes"]]))
    if waiting := [question.name for question in questions if question.score is None]:
        found.append(f"points for {', '.join(waiting)} are to be entered by hand")
    for name, verdict in extra.get("forbidden", {}).items():
        if name in by_hand.points:
            continue
        why = f"the answer to {name} works only where what it forbids may be called"
        if verdict.get("slow"):
            why = f"the answer to {name} ran out of time only where what it forbids refuses"
        earned = f"{verdict['score']:g} by its tests"
        if verdict["names"]:
            uses = ", ".join(verdict["names"])
            why = f"the answer to {name} calls {uses}, which the question forbids"
            earned = f"0, or {earned} where the call decides nothing"
        found.append(f"{why}: read it, and enter the points of {name} by hand ({earned})")
    return found
