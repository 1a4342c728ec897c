"""A question may forbid functions of a library: what it asks for is to be written by the student.

The jail makes the calls of such a question where these functions refuse to run; what gave nothing
there is made once more where they do. What is told of both decides: an answer that called one has
no points, and waits for a person, who may find that it needed none. One that only works where it
may call them keeps its points and waits, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .text import told

if TYPE_CHECKING:
    from otter.test_files import GradingResults


def apply(
    results: GradingResults,
    answers: Mapping[str, tuple[str, ...]],
    made: Iterable[tuple[dict[str, Any], dict[str, Any] | None]],
) -> dict[str, dict[str, Any]]:
    """Take the points of questions whose answers called what they forbid.

    Args:
        answers: of each question.
        made: the calls, each with its reply.

    Returns for each question that a person should look at: the `names` of what was called (none: it
    cannot be told, and nothing was taken), and the `score` that the tests gave.
    """
    used: dict[str, dict[str, None]] = {}
    for call, reply in made:
        if reply is not None and "used" in reply:
            used.setdefault(call["name"], {}).update(dict.fromkeys(reply["used"]))
    verdicts = {}
    for question, own in answers.items():
        if not used.keys() & set(own):
            continue
        names = list(dict.fromkeys(name for answer in own for name in used.get(answer, ())))
        tests = results.results[question]
        verdicts[question] = {"names": names, "score": round(tests.score, 5)}
        if names:
            sentence = told(f"The answer uses {names[0]}, but the task is to write it yourself.")
            tests.test_case_results = [
                dataclasses.replace(case, passed=False, message=f"❌ Test case failed\n{sentence}")
                for case in tests.test_case_results
            ]
    return verdicts
