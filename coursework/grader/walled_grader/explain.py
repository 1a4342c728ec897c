"""Why a file has its mark: the calls of each question, what was expected and what came back."""

from __future__ import annotations

import re
from typing import Any

import torch

from .assignment import NoResultError, Replayed, keyed
from .grader import Grader
from .submissions import Submission, UnreadableError, code_cells
from .text import sentence
from .wire import decode

#: Of a tensor, so many characters.
SHOWN = 700


def file(grader: Grader, submission: Submission) -> str:
    """What an instructor reads of one file, which is run again with the numbers that it had."""
    lines = [submission.shown]
    try:
        cells = code_cells(submission)
    except UnreadableError as why:
        return f"{lines[0]}: {why}"
    seed = grader.own_seed(submission.digest())
    calls, replies, notes, _ = grader.replies(cells, seed)
    assignment = grader.assignment
    results = assignment.grade(seed, calls, replies)
    by_key = keyed(calls, replies)
    lines += [f"  {note}" for note in notes]
    for question in assignment.questions:
        tests = results.get_result(question.name)
        lines += ["", f"{question.title}: {tests.score:g} of {tests.possible:g} by its tests"]
        for case in tests.test_case_results:
            hidden = "hidden" if case.test_case.hidden else "visible"
            said = "passed" if case.passed else case.message.partition("\n")[2]
            lines.append(f"  {hidden} check, {case.test_case.points:g} points: {said}")
        for call in calls:
            if call["name"] in question.answers and call["mode"] in ("call", "value"):
                lines += _differs(grader, call, by_key)
    return "\n".join(lines)


def _differs(grader: Grader, call: dict[str, Any], by_key: dict[str, Any]) -> list[str]:
    """A call and both results, where they differ."""
    name, names = call["name"], grader.assignment.names
    arguments, named = decode(call["args"]), decode(call["kwargs"])
    answer = names[name]
    right = answer(*arguments, **named) if call["mode"] == "call" else answer
    replayed = Replayed(name, by_key)
    try:
        got = decode(replayed.reply(call["mode"], arguments, named)["value"])
        text = show(got)
    except NoResultError as why:
        got, text = None, sentence(why)
    both = isinstance(got, torch.Tensor) and isinstance(right, torch.Tensor)
    if names["same"](got, right) if both else got == right and got is not None:
        return []
    given = [show(one) for one in arguments] + [f"{k}={show(one)}" for k, one in named.items()]
    return [
        "",
        f"  {name}" + (f"({', '.join(given)})" if call["mode"] == "call" else ""),
        f"    expected: {show(right)}",
        f"    returned: {text}",
    ]


def show(value: Any) -> str:
    """A value on one line, as an instructor can compare it."""
    if not isinstance(value, torch.Tensor):
        return sentence(repr(value), most=SHOWN)
    numbers = re.sub(r"\d+\.\d+(e-?\d+)?", lambda n: f"{float(n[0]):.4g}", str(value.tolist()))
    short = numbers if len(numbers) <= SHOWN else numbers[:SHOWN] + " …"
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)} {short}"
