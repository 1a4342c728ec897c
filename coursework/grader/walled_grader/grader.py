"""Marks one submission: the tests' calls are recorded, run in the jail, and judged outside."""

from __future__ import annotations

import hashlib
import importlib.util
import queue
import re
import threading
import time
from typing import Any, NamedTuple

import torch
from otter.run import AutograderConfig
from otter.test_files import GradingResults

from . import course, jail, shortcuts
from .assignment import Assignment, Question, Reply
from .marks import Result
from .submissions import Submission, UnreadableError, code_cells
from .text import sentence, told

MAX_NOTES = 10


class Outcome(NamedTuple):
    """What comes of running a notebook's code."""

    results: GradingResults
    notes: list[str]  #: what is to be said about the notebook
    out_of_time: bool  #: whether it lacked time
    forbidden: dict[str, dict[str, Any]]  #: the questions whose answers used what they forbid
    seconds: float = 0.0  #: how long it ran, without the time that it waited for its turn


class CannotGradeError(Exception):
    """Nothing can be graded; the message says why, to the instructor."""


class Grader:
    """Marks submissions of one assignment with one seed; its calls may come from many threads."""

    def __init__(self, assignment: Assignment, seed: int, jobs: int, limits: jail.Limits) -> None:
        torch.set_num_threads(1)
        self.assignment, self.seed = assignment, seed
        self.limits = limits
        self.at_a_time = jobs  #: how many submissions are worth giving it at the same time
        self.running = jobs  #: how many of them run; the others wait
        self.hidden, self.packages = course.hidden_packages(), course.packages()
        self.stop = threading.Event()  #: set, it ends what runs
        self.seconds: dict[str, float] = {}  #: how long each file ran, by its key
        self._slots: queue.Queue[int] = queue.Queue()
        for slot in range(jobs):
            self._slots.put(slot)

    def prove(self) -> None:
        """Make sure that the reference solution gets full marks through the jail, here and now."""
        missing = [name for name in self.packages if not importlib.util.find_spec(name)]
        if missing:
            raise CannotGradeError(
                f"The course allows {', '.join(missing)}, which is not installed here: "
                "install it into the grader's environment, or take it from packages.txt."
            )
        found = self.replay(list(self.assignment.reference_cells), self.seed)
        if found.results.total != found.results.possible or found.forbidden:
            raise CannotGradeError(
                "The reference solution does not get full marks through the jail on this machine, "
                f"so nobody's marks would be right. {' '.join(found.notes)}\n"
                f"{found.results.summary()}{found.forbidden or ''}"
            )

    def grade(self, submission: Submission) -> Result:
        """One submission's results, in Gradescope's format, with ours under `extra_data`."""
        digest = submission.digest()
        said: dict[str, Any] = {"readable": True, "failed": False, "out_of_time": False}
        forbidden: dict[str, Any] = {}
        ran = self.seconds.setdefault(submission.key, 0.0)  # an earlier try counts, too
        try:
            cells = code_cells(submission)
            found = self.replay(cells, self.own_seed(digest))
            self.seconds[submission.key] = ran + found.seconds
            results, said["out_of_time"], forbidden = (
                found.results,
                found.out_of_time,
                found.forbidden,
            )
            notes = [*self._other_variant(cells), *found.notes]
            said["ways"] = self._ways(cells, results)
        except UnreadableError as why:
            said["readable"], results, notes = False, self._nothing(), [str(why)]
        except (CannotGradeError, jail.StoppedError):
            raise
        except Exception as error:
            # One file that the grader fails on must not cost the others their marks.
            what = sentence(f"{type(error).__name__}: {error}")
            note = told(f"The grader itself failed on this file, so the mark is not final: {what}.")
            said["readable"], said["failed"], results, notes = False, True, self._nothing(), [note]
        return {
            **results.to_gradescope_dict(AutograderConfig({"show_hidden": True})),
            "score": round(results.total, 5),
            "extra_data": {
                "key": submission.key,
                "student": submission.student,
                "identifier": submission.identifier,
                "file": submission.shown,
                "digest": digest,
                **said,
                "notes": notes,
                "forbidden": forbidden,
                "questions": [outcome(results, q) for q in self.assignment.questions],
            },
        }

    def _ways(self, cells: list[str], results: GradingResults) -> dict[str, list[str]] | None:
        """What a person should look at in a notebook that has points for what is to be by hand."""
        rules = course.forbidden(self.assignment.name)
        questions = [name for name in rules if results.results[name].score]
        found = list(shortcuts.ways(cells, self.assignment.given)) if questions else []
        return {"questions": questions, "found": found} if found else None

    def _other_variant(self, cells: list[str]) -> list[str]:
        mine, given_out = course.variant(cells), course.variant(self.assignment.reference_cells)
        if not mine or mine == given_out:
            return []
        if given_out:
            return [
                told(
                    f"The notebook is of the variant {mine}, and this course gives out the "
                    f"variant {given_out}."
                )
            ]
        return [told(f"The notebook is of the variant {mine}, and this course has no variants.")]

    def own_seed(self, digest: str) -> int:
        """The seed of one file's hidden tests.

        What a file lets its student find out about them is of no use in the next, or to others.
        """
        return int(hashlib.sha256(f"{self.seed} {digest}".encode()).hexdigest()[:7], 16)

    def replay(self, cells: list[str], seed: int) -> Outcome:
        """Run the calls on a notebook's code, then the tests on what came back."""
        began = time.monotonic()
        calls, replies, notes, out_of_time = self.replies(cells, seed)
        results = self.assignment.grade(seed, calls, replies)
        answers = {question.name: question.answers for question in self.assignment.questions}
        forbidden = shortcuts.apply(results, answers, zip(calls, replies, strict=True))
        return Outcome(results, notes, out_of_time, forbidden, time.monotonic() - began)

    def replies(
        self, cells: list[str], seed: int
    ) -> tuple[list[dict[str, Any]], list[Reply], list[str], bool]:
        """The calls, the reply to each, what is to be said about the notebook, and whether it
        lacked time.
        """
        calls = self.assignment.record(seed)
        rules = course.forbidden(self.assignment.name)
        forbidden = {
            name: rules.get(question.name, [])
            for question in self.assignment.questions
            for name in question.answers
        }
        # Those that forbid the same, one after the other.
        order = sorted(range(len(calls)), key=lambda number: forbidden[calls[number]["name"]])
        asked = [{**calls[n], "forbidden": forbidden[calls[n]["name"]]} for n in order]
        slot = self._slots.get()
        notes = []
        out_of_time = False
        try:
            job = {"cells": cells, "calls": asked, "hidden": self.hidden, "packages": self.packages}
            lines = jail.run(job, self.limits, slot, self.stop)
        except jail.OverrunError as why:
            limit, lines, out_of_time = why.args
            notes.append(told(f"The run of the notebook was ended: {limit}."))
        finally:
            self._slots.put(slot)
        replies: list[Reply] = [None] * len(calls)
        skipped: dict[tuple[int, int], str] = {}
        for line in lines:
            match line:
                case {"call": int(number), "reply": dict(reply)}:
                    replies[order[number]] = reply
                case {"skipped": [int(cell), int(row), str(why)]}:
                    skipped[cell, row] = why
                case {"hurry": str(why)}:
                    notes.append(sentence(why))
                case {"broken": str(why)}:
                    why = sentence(why)
                    notes.append(told(f"The notebook could not be run to its end: {why}."))
            out_of_time |= line.get("late") is True
        first = list(skipped.items())[:MAX_NOTES]
        notes += [_left_out(cells, *place, sentence(why)) for place, why in first]
        if len(skipped) > MAX_NOTES:
            notes.append(told("More statements than these were left out."))
        if all(reply is None for reply in replies) and not notes:
            notes.append(told("The notebook ended the program that runs it."))
        if all(reply is not None and reply.get("absent") for reply in replies):
            absent = told("None of the names asked for is in the notebook: nothing was answered.")
            notes.append(absent)
        return calls, replies, notes, out_of_time

    def _nothing(self) -> GradingResults:
        """The results of a student of whom nothing was run."""
        calls = self.assignment.record(self.seed)
        return self.assignment.grade(self.seed, calls, [None] * len(calls))


def _left_out(cells: list[str], cell: int, line: int, why: str) -> str:
    """Why a statement was left out, with its place as students find it: Jupyter shows no numbers
    of cells, so the line is quoted.
    """
    lines = re.split(r"\r\n?|\n", cells[cell - 1])  # as Python counts them
    first = next((text for text in lines if text.strip()), "")
    quoted = sentence((lines[line - 1] if line else first).strip(), most=60)
    if line:
        return told(f"In code cell {cell}, line {line} (`{quoted}`): {why}.")
    return told(f"In code cell {cell} (`{quoted}`): {why}.")


def outcome(results: GradingResults, question: Question) -> dict[str, Any]:
    """What is stored of one question: its points, and what each of its checks said."""
    tests = results.get_result(question.name)
    return {
        "name": question.name,
        "tests": question.digest,
        "title": question.title,
        "score": round(tests.score, 5),
        "possible": round(tests.possible, 5),
        "cases": [
            {
                "hidden": case.test_case.hidden,
                "points": case.test_case.points,
                "passed": case.passed,
                "message": "" if case.passed else case.message.partition("\n")[2],
            }
            for case in tests.test_case_results
        ],
    }
