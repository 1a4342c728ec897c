"""Mark a folder of notebooks: record the tests' calls, replay them in the jail, grade outside.

    python -m coursework.grade ASSIGNMENT SUBMISSIONS [--out FOLDER] [--jobs N]

A run that was stopped goes on where it was: what has a result already is not marked again.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import queue
import secrets
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from otter.run import AutograderConfig
from otter.test_files import GradingResults
from tqdm import tqdm

from coursework import assignment as assignments
from coursework import jail, report
from coursework.assignment import Assignment
from coursework.submissions import Submission, UnreadableError, code_cells, collect


class CannotGradeError(Exception):
    """Nothing can be graded; the message says why, to the instructor."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m coursework.grade", description=__doc__)
    parser.add_argument("assignment", help=f"one of {', '.join(assignments.names())}")
    parser.add_argument("submissions", type=Path, help="a folder of .ipynb files")
    parser.add_argument("--out", type=Path, help="where to write; default: SUBMISSIONS-marks")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    options = parser.parse_args(arguments)
    try:
        out = grade_folder(
            options.assignment, options.submissions, options.out, max(1, options.jobs)
        )
    except (CannotGradeError, jail.NoJailError, FileNotFoundError) as why:
        print(why, file=sys.stderr)
        return 2
    print(f"Marks, results and feedback are in {out}")
    return 0


def grade_folder(
    name: str,
    folder: Path,
    out: Path | None = None,
    jobs: int = 1,
    limits: jail.Limits = jail.Limits(),  # noqa: B008  (frozen)
) -> Path:
    """Mark every submission in `folder`; returns where the marks are."""
    jail.check()
    assignment = assignments.load(name)
    if not folder.is_dir():
        raise CannotGradeError(f"There is no folder {folder}")
    folder = folder.resolve()
    out = (out or folder.with_name(f"{folder.name}-marks")).resolve()
    if out.is_relative_to(folder):
        raise CannotGradeError("The marks may not lie among the submissions: give another --out")
    submissions = collect(folder)
    if not submissions:
        raise CannotGradeError(f"There is no submission in {folder}")
    (out / "results").mkdir(parents=True, exist_ok=True)
    with _sole_run(out) as run_file:
        seed = _seed(run_file, assignment)
        grader = Grader(assignment, seed, jobs, limits)
        grader.prove()
        _grade_all(grader, submissions, out, jobs)
        report.write(out, assignment, [_result(out, one) for one in submissions])
    return out


@contextmanager
def _sole_run(out: Path) -> Iterator[Any]:
    with (out / "run.json").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotGradeError(f"Another run is writing to {out}") from None
        yield file


def _seed(run_file: Any, assignment: Assignment) -> int:
    """The seed of this run's hidden tests: fresh in a new run, the same in one that goes on."""
    run_file.seek(0)
    text = run_file.read()
    if text:
        run = json.loads(text)
        if run["digest"] != assignment.digest:
            raise CannotGradeError(
                f"The marks in {Path(run_file.name).parent} were made with another version of the "
                "assignment: give another --out"
            )
        return int(run["seed"])
    run = {
        "assignment": assignment.name,
        "digest": assignment.digest,
        "seed": secrets.randbelow(2**31),
    }
    run_file.write(json.dumps(run) + "\n")
    run_file.flush()
    return run["seed"]


def _grade_all(grader: Grader, submissions: list[Submission], out: Path, jobs: int) -> None:
    pending = [one for one in submissions if not _is_done(out, one)]
    with (
        ThreadPoolExecutor(jobs) as pool,
        tqdm(total=len(submissions), initial=len(submissions) - len(pending), unit="file") as bar,
    ):
        waiting = {pool.submit(grader.grade, one): one for one in pending}
        try:
            for done in as_completed(waiting):
                _store(out, waiting[done], done.result())
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _file(out: Path, submission: Submission) -> Path:
    return out / "results" / f"{submission.key}.json"


def _store(out: Path, submission: Submission, result: dict[str, Any]) -> None:
    path = _file(out, submission)
    unfinished = path.with_suffix(".part")
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    # Half a surrogate pair in a student's message cannot be written, here or in a table.
    unfinished.write_text(text, encoding="utf-8", errors="replace")
    unfinished.replace(path)  # a result is there whole or not at all


def _result(out: Path, submission: Submission) -> dict[str, Any]:
    return json.loads(_file(out, submission).read_text(encoding="utf-8"))


def _is_done(out: Path, submission: Submission) -> bool:
    if not _file(out, submission).exists():
        return False
    extra = _result(out, submission)["extra_data"]
    # An older grader's result does not say whether it failed.
    return (
        extra.get("failed") is False
        and extra["digest"] == submission.digest()
        and extra["twins"] == submission.twins
    )


class Grader:
    """Marks submissions of one assignment with one seed; its calls may come from many threads."""

    def __init__(self, assignment: Assignment, seed: int, jobs: int, limits: jail.Limits) -> None:
        torch.set_num_threads(1)
        self.assignment, self.seed = assignment, seed
        self.calls = assignment.record(seed)
        self.limits = limits
        self._slots: queue.Queue[int] = queue.Queue()
        for slot in range(jobs):
            self._slots.put(slot)

    def prove(self) -> None:
        """Make sure that the reference solution gets full marks through the jail, here and now."""
        results, notes = self.replay(list(self.assignment.reference_cells))
        if results.total != results.possible:
            raise CannotGradeError(
                "The reference solution does not get full marks through the jail on this machine, "
                f"so nobody's marks would be right. {' '.join(notes)}\n{results.summary()}"
            )

    def grade(self, submission: Submission) -> dict[str, Any]:
        """One submission's results, in Gradescope's format, with ours under `extra_data`."""
        digest = submission.digest()
        readable, failed = True, False
        try:
            results, notes = self.replay(code_cells(submission.path))
        except UnreadableError as why:
            readable, results, notes = False, self._nothing(), [str(why)]
        except Exception as error:
            # One file that the grader fails on must not cost the others their marks.
            what = f"{type(error).__name__}: {error}"[:300]
            note = f"The grader itself failed on this file, so the mark is not final: {what}."
            readable, failed, results, notes = False, True, self._nothing(), [note]
        if submission.twins > 1:
            notes.append(
                f"{submission.student} handed in {submission.twins} files: each is marked in a row "
                "of its own, and the tables for Canvas and Moodle leave the mark open."
            )
        return {
            **results.to_gradescope_dict(AutograderConfig({"show_hidden": True})),
            "score": round(results.total, 5),
            "extra_data": {
                "key": submission.key,
                "student": submission.student,
                "identifier": submission.identifier,
                "file": submission.shown,
                "digest": digest,
                "twins": submission.twins,
                "readable": readable,
                "failed": failed,
                "notes": notes,
                "questions": [_question(results, q) for q in self.assignment.questions],
            },
        }

    def replay(self, cells: list[str]) -> tuple[GradingResults, list[str]]:
        """Run the recorded calls on a notebook's code, then the tests on what came back."""
        slot = self._slots.get()
        notes = []
        skipped: dict[str, str] = {}
        try:
            lines = jail.run({"cells": cells, "calls": self.calls}, self.limits, slot)
        except jail.OverrunError as why:
            sentence, lines = why.args
            notes.append(f"The run of the notebook was ended: {sentence}.")
        finally:
            self._slots.put(slot)
        replies: list[dict[str, Any] | None] = [None] * len(self.calls)
        for line in lines:
            number, reply = line.get("call"), line.get("reply")
            if isinstance(number, int) and 0 <= number < len(replies) and isinstance(reply, dict):
                replies[number] = reply
            if isinstance(line.get("skipped"), dict):
                skipped.update(line["skipped"])
            if "broken" in line:
                notes.append(
                    f"The notebook could not be run to its end: {str(line['broken'])[:300]}."
                )
        notes += [f"In {at}: {str(why)[:300]}." for at, why in skipped.items()]
        if all(reply is None for reply in replies) and not notes:
            notes.append("The notebook ended the program that runs it.")
        if all(reply is not None and reply.get("absent") for reply in replies):
            notes.append("None of the names asked for is in the notebook: nothing was answered.")
        return self.assignment.grade(self.seed, self.calls, replies), notes

    def _nothing(self) -> GradingResults:
        """The results of a student of whom nothing was run."""
        return self.assignment.grade(self.seed, self.calls, [None] * len(self.calls))


def _question(results: GradingResults, question: assignments.Question) -> dict[str, Any]:
    tests = results.get_result(question.name)
    return {
        "name": question.name,
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


if __name__ == "__main__":
    sys.exit(main())
