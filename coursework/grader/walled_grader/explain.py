"""Why a file has its mark: the calls of each question, what was expected and what came back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from .assignment import NoResultError, Reply, result_in
from .gradebook import Gradebook
from .grader import Grader, outcome
from .report import late
from .submissions import Submission, UnreadableError, code_cells
from .text import sentence
from .wire import MalformedError, decode

#: Of a tensor, so many characters.
SHOWN = 700


def marks(book: Gradebook, submission: Submission, changed: Sequence[str]) -> list[str]:
    """What a file is worth, and what made it so beside its tests: a line each.

    Args:
        changed: the questions whose tests are not those that made the mark.
    """
    lines = []
    for student in book.students:  # one, or each member of a group
        for mark in student.marks:
            if mark.submission.key != submission.key:
                continue
            value = "open" if mark.value is None else f"{mark.value:g} of {book.possible:g}"
            by_hand = ", entered by hand" if mark.by_hand else ""
            counts = "" if student.counted in (None, mark) else " (another file counts)"
            lines.append(f"  {mark.person.name}: {value}{by_hand}{counts}")
            lines += [
                f"  {question.title}: {question.score:g} of {question.possible:g}, entered by hand"
                for question in mark.questions
                if question.by_hand
            ]
            lines += [f"  late: {late(mark)}"] if late(mark) else []
            lines += [f"  to check: {why}" for why in student.look]
    if changed:
        lines.append(f"  the tests of {', '.join(changed)} have changed since")
    return [submission.shown, *(lines or ["  no mark yet"])]


def file(grader: Grader, submission: Submission) -> str:
    """What an instructor reads of one file, which is run again with the numbers that it had."""
    try:
        cells = code_cells(submission)
    except UnreadableError as why:
        return f"  {why}"
    seed = grader.own_seed(submission.digest())
    calls, replies, notes, _ = grader.replies(cells, seed)
    results = grader.assignment.grade(seed, calls, replies)
    lines = [f"  {note}" for note in notes]
    for question in grader.assignment.questions:
        told = outcome(results, question)
        lines += ["", f"{told['title']}: {told['score']:g} of {told['possible']:g} by its tests"]
        for case in told["cases"]:
            hidden = "hidden" if case["hidden"] else "visible"
            said = "passed" if case["passed"] else case["message"]
            lines.append(f"  {hidden} check, {case['points']:g} points: {said}")
        for call, reply in zip(calls, replies, strict=True):
            if call["name"] in question.answers and call["mode"] in ("call", "value"):
                lines += _differs(grader.assignment.names, call, reply)
                if reply and reply.get("used"):
                    lines.append(
                        f"  {call['name']} calls {', '.join(reply['used'])}, forbidden here"
                    )
    return "\n".join(lines)


def _differs(names: dict[str, Any], call: dict[str, Any], reply: Reply) -> list[str]:
    """A call and both results, where they differ."""
    name, right, given = call["name"], names[call["name"]], ""
    if call["mode"] == "call":
        arguments, named = decode(call["args"]), decode(call["kwargs"])
        given = ", ".join([*map(show, arguments), *(f"{k}={show(v)}" for k, v in named.items())])
        right, given = right(*arguments, **named), f"({given})"
    try:
        got = result_in(name, reply)
        text = show(got)
        if isinstance(got, int | float) and isinstance(right, torch.Tensor):
            got = torch.tensor(got, dtype=right.dtype)  # as the tests take it
    except (NoResultError, MalformedError, OverflowError, RuntimeError) as why:
        got, text = None, sentence(why)
    both = isinstance(got, torch.Tensor) and isinstance(right, torch.Tensor)
    if names["same"](got, right) if both else got == right and got is not None:
        return []
    return ["", f"  {name}{given}", f"    expected: {show(right)}", f"    returned: {text}"]


def show(value: Any) -> str:
    """A value on one line, as an instructor can compare it."""
    if not isinstance(value, torch.Tensor):
        return sentence(repr(value), most=SHOWN)
    numbers = re.sub(r"\d+\.\d+(e-?\d+)?", lambda n: f"{float(n[0]):.4g}", str(value.tolist()))
    short = numbers if len(numbers) <= SHOWN else numbers[:SHOWN] + " …"
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)} {short}"
