"""Mark a folder of notebooks: record the tests' calls, replay them in the jail, grade outside.

    python -m coursework.grader ASSIGNMENT SUBMISSIONS [--tables FOLDER] [--only NAME] …

A run that was stopped goes on where it was: what has a result already is not marked again. The
tables are there while it goes on, with what is marked so far.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import torch
from otter.run import AutograderConfig
from otter.test_files import GradingResults
from tqdm import tqdm

from . import assignment as assignments
from . import counting, finish, gradebook, jail, regrade, shortcuts, summary
from .assignment import Assignment
from .gradebook import Gradebook, Settings
from .regrade import NotRegradedError
from .sheets import SheetError
from .submissions import Submission, UnreadableError, code_cells, collect
from .text import sentence

MAX_NOTES = 10
SECONDS_BETWEEN_TABLES = 5.0


class CannotGradeError(Exception):
    """Nothing can be graded; the message says why, to the instructor."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m coursework.grader", description=__doc__)
    parser.add_argument("assignment", help=f"one of {', '.join(assignments.names())}")
    parser.add_argument("submissions", type=Path, help="a folder of .ipynb files")
    parser.add_argument("--out", type=Path, help="where to write; default: SUBMISSIONS-marks")
    parser.add_argument(
        "--jobs",
        type=int,
        default=_jobs(),
        help="how many at a time; default: what processors and memory allow",
    )
    parser.add_argument(
        "--tables", type=Path, help="a folder with roster.csv, deadlines.csv, overrides.csv"
    )
    parser.add_argument(
        "--prefer",
        choices=(counting.NEWEST, counting.HIGHEST, counting.LIST),
        default=counting.NEWEST,
        help="which of a student's files counts; a list is chosen.csv in the folder of tables",
    )
    parser.add_argument(
        "--file-times",
        action="store_true",
        help="the files' own times say when they were handed in",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="mark this student or this question again; may be given several times",
    )
    parser.add_argument("--scheduler", help="a Dask cluster that marks, as in tcp://host:8786")
    options = parser.parse_args(arguments)
    try:
        out = grade_folder(
            options.assignment,
            options.submissions,
            options.out,
            max(1, options.jobs),
            settings=Settings(options.tables, options.prefer, options.file_times),
            only=options.only,
            scheduler=options.scheduler,
        )
    except (
        *(CannotGradeError, NotRegradedError, SheetError, jail.NoJailError, FileNotFoundError),
    ) as why:
        print(why, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped. The same command goes on where this run was.", file=sys.stderr)
        return 130
    print(f"Marks, results and feedback are in {out}")
    return 0


def _jobs() -> int:
    """As many jails as have a processor each, and their most memory."""
    memory = psutil.virtual_memory().total // jail.Limits.total_memory
    return max(1, min(len(os.sched_getaffinity(0)), memory))


def grade_folder(
    name: str,
    folder: Path,
    out: Path | None = None,
    jobs: int = 1,
    limits: jail.Limits = jail.Limits(),  # noqa: B008  (frozen)
    *,
    settings: Settings = Settings(),  # noqa: B008  (frozen)
    only: Sequence[str] = (),
    scheduler: str | None = None,
) -> Path:
    """Mark every submission in `folder`; returns where the marks are.

    Args:
        only: names of students and questions that are to be marked again.
        scheduler: the address of a Dask cluster that marks in place of this machine.
    """
    if not scheduler:
        jail.check()
    assignment = assignments.load(name)
    if not folder.is_dir():
        raise CannotGradeError(f"There is no folder {folder}")
    folder = folder.resolve()
    out = (out or folder.with_name(f"{folder.name}-marks")).resolve()
    if out.is_relative_to(folder):
        raise CannotGradeError("The marks may not lie among the submissions: give another --out")
    for what, path in (
        *(("The grader", jail.HERE), ("The folder of assignments", assignments.SOURCES)),
        *(("The folder of submissions", folder), ("The folder of marks", out)),
    ):
        if shown := jail.shows(path):
            raise CannotGradeError(
                f"{what}, {path}, lies in {shown}, which every submission can read: move it out"
            )
    submissions = collect(folder)
    if not submissions:
        raise CannotGradeError(f"There is no submission in {folder}")
    # A table that cannot be read is better known before an hour of marking than after it.
    gradebook.make(assignment, submissions, {}, settings)
    (out / "results").mkdir(parents=True, exist_ok=True)
    with _sole_run(out) as run_file:
        seed = _seed(run_file, assignment)
        results = {key: r for one in submissions if (r := _result(out, one)) for key in [one.key]}
        again = _again(only, assignment, submissions, results, settings)
        seconds: dict[str, float] = {}

        def tell() -> Gradebook:
            return finish.tables(out, assignment, submissions, results, settings)

        with _grader(assignment, seed, jobs, limits, scheduler) as grader:
            grader.prove()
            try:
                _grade_all(grader, submissions, out, results, again, seconds, tell)
            finally:
                book = tell()
        finish.rest(out, assignment, submissions, results, book)
        print("\n".join(summary.lines(book, seconds)))
        _forget(out, submissions)
    return out


@contextmanager
def _grader(
    assignment: Assignment, seed: int, jobs: int, limits: jail.Limits, scheduler: str | None
) -> Iterator[Grader]:
    """What marks: the jails of this machine, or those of a cluster."""
    if not scheduler:
        yield Grader(assignment, seed, jobs, limits)
        return
    from .cluster import ClusterGrader

    with ClusterGrader(scheduler, assignment, seed, limits) as grader:
        yield grader


def _again(
    only: Sequence[str],
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, dict[str, Any]],
    settings: Settings,
) -> dict[str, frozenset[str]]:
    """The files to mark again, by their keys, each with its questions (none: all of them)."""
    owners = gradebook.owners(submissions, settings)
    chosen = regrade.only(only, assignment, owners.values())
    regrade.check(assignment, results.values(), chosen)
    return {key: chosen.questions for key, person in owners.items() if chosen.holds(person)}


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
    out = Path(run_file.name).parent
    if not text and any((out / "results").iterdir()):
        raise CannotGradeError(
            f"{run_file.name} is empty, and with it the seed of the marks beside it is lost: give "
            "another --out"
        )
    if text:
        try:
            run = json.loads(text)
            run["assignment"], int(run["seed"])
        except (ValueError, TypeError, KeyError):
            raise CannotGradeError(
                f"{run_file.name} is damaged, and with it the seed of the marks beside it is lost: "
                "give another --out"
            ) from None
        if run["assignment"] != assignment.name:
            raise CannotGradeError(
                f"{out} has the marks of {run['assignment']}: give another --out"
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


def _grade_all(
    grader: Grader,
    submissions: Sequence[Submission],
    out: Path,
    results: dict[str, dict[str, Any]],
    again: Mapping[str, frozenset[str]],
    seconds: dict[str, float],
    tell: Callable[[], object],
) -> None:
    """Mark what is not marked, or is to be marked again, and tell of it now and then.

    Args:
        results: by the key of the file; it grows by each.
        again: the questions to mark again, by the key of the file; none are all of them.
        seconds: how long each file took, by its key; it grows, too.
    """
    pending = [
        one for one in submissions if one.key in again or not is_done(results.get(one.key), one)
    ]
    before = {key: results[key] for key in again if key in results}
    now: dict[str, None] = {}  # who is being marked
    told, pause = time.monotonic(), SECONDS_BETWEEN_TABLES

    def mark(one: Submission) -> dict[str, Any]:
        now[one.student] = None
        bar.set_postfix_str(", ".join(list(now)))
        start = time.monotonic()
        try:
            return grader.grade(one)
        finally:
            seconds[one.key] = time.monotonic() - start - grader.waited()
            now.pop(one.student, None)

    def keep(one: Submission, result: dict[str, Any]) -> None:
        nonlocal told, pause
        if is_done(before.get(one.key), one):
            result = regrade.merge(before[one.key], result, again[one.key])
        results[one.key] = result
        _store(out, one, result)
        bar.update()
        if time.monotonic() > told + pause:
            began = time.monotonic()
            tell()
            told = time.monotonic()
            # However many there are, tables take a twentieth of the time.
            pause = max(SECONDS_BETWEEN_TABLES, 20 * (told - began))

    for one in pending:
        if one.key not in again:
            results.pop(one.key, None)
    slow = []
    with (
        tqdm(total=len(submissions), initial=len(submissions) - len(pending), unit="file") as bar,
        ThreadPoolExecutor(grader.at_a_time) as pool,
    ):
        waiting = {pool.submit(mark, one): one for one in pending}
        try:
            for done in as_completed(waiting):
                if done.result()["extra_data"]["out_of_time"]:
                    slow.append(waiting[done])
                else:
                    keep(waiting[done], done.result())
            # Who ran out of time may have had greedy neighbours: what counts is the time alone.
            for one in slow:
                keep(one, pool.submit(mark, one).result())
        except BaseException:
            grader.stop.set()
            pool.shutdown(cancel_futures=True)
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


def _result(out: Path, submission: Submission) -> dict[str, Any] | None:
    """A submission's stored result; None where there is none that can be read."""
    try:
        result = json.loads(_file(out, submission).read_text(encoding="utf-8"))
        # An older grader's result does not say whether it failed.
        return result if result["extra_data"]["failed"] in (True, False) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def is_done(result: Mapping[str, Any] | None, submission: Submission) -> bool:
    """Whether this is a submission's result, and final."""
    if result is None:
        return False
    extra = result["extra_data"]
    return not extra["failed"] and extra["digest"] == submission.digest()


def _forget(out: Path, submissions: Sequence[Submission]) -> None:
    """Remove the results of files that are no longer among the submissions."""
    keys = {one.key for one in submissions}
    for path in (out / "results").iterdir():
        if path.stem not in keys:
            path.unlink()


class Grader:
    """Marks submissions of one assignment with one seed; its calls may come from many threads."""

    def __init__(self, assignment: Assignment, seed: int, jobs: int, limits: jail.Limits) -> None:
        torch.set_num_threads(1)
        self.assignment, self.seed = assignment, seed
        self.limits = limits
        self.at_a_time = jobs  #: how many submissions are worth giving it at the same time
        self.hidden = assignments.hidden_packages()
        self.stop = threading.Event()  #: set, it ends what runs
        self._slots: queue.Queue[int] = queue.Queue()
        for slot in range(jobs):
            self._slots.put(slot)

    def prove(self) -> None:
        """Make sure that the reference solution gets full marks through the jail, here and now."""
        results, notes, _ = self.replay(list(self.assignment.reference_cells), self.seed)
        if results.total != results.possible:
            raise CannotGradeError(
                "The reference solution does not get full marks through the jail on this machine, "
                f"so nobody's marks would be right. {' '.join(notes)}\n{results.summary()}"
            )

    def waited(self) -> float:
        """How many seconds of this thread's last submission nothing was done for it."""
        return 0.0

    def grade(self, submission: Submission) -> dict[str, Any]:
        """One submission's results, in Gradescope's format, with ours under `extra_data`."""
        digest = submission.digest()
        seed = self.own_seed(digest)
        readable, failed, out_of_time = True, False, False
        try:
            results, notes, out_of_time = self.replay(code_cells(submission.path), seed)
        except UnreadableError as why:
            readable, results, notes = False, self._nothing(), [str(why)]
        except (CannotGradeError, jail.StoppedError):
            raise
        except Exception as error:
            # One file that the grader fails on must not cost the others their marks.
            what = sentence(f"{type(error).__name__}: {error}")
            note = f"The grader itself failed on this file, so the mark is not final: {what}."
            readable, failed, results, notes = False, True, self._nothing(), [note]
        return {
            **results.to_gradescope_dict(AutograderConfig({"show_hidden": True})),
            "score": round(results.total, 5),
            "extra_data": {
                "key": submission.key,
                "student": submission.student,
                "identifier": submission.identifier,
                "file": submission.shown,
                "digest": digest,
                "readable": readable,
                "failed": failed,
                "out_of_time": out_of_time,
                "notes": notes,
                "questions": [_question(results, q) for q in self.assignment.questions],
            },
        }

    def own_seed(self, digest: str) -> int:
        """The seed of one file's hidden tests.

        What a file lets its student find out about them is of no use in the next, or to others.
        """
        return int(hashlib.sha256(f"{self.seed} {digest}".encode()).hexdigest()[:7], 16)

    def replay(self, cells: list[str], seed: int) -> tuple[GradingResults, list[str], bool]:
        """Run the calls on a notebook's code, then the tests on what came back.

        Returns the results, what is to be said about the notebook, and whether it lacked time.
        """
        calls = self.assignment.record(seed)
        slot = self._slots.get()
        notes = []
        out_of_time = False
        try:
            job = {"cells": cells, "calls": calls, "hidden": self.hidden}
            lines = jail.run(job, self.limits, slot, self.stop)
        except jail.OverrunError as why:
            limit, lines, out_of_time = why.args
            notes.append(f"The run of the notebook was ended: {limit}.")
        finally:
            self._slots.put(slot)
        replies: list[dict[str, Any] | None] = [None] * len(calls)
        skipped: dict[tuple[int, int], str] = {}
        for line in lines:
            match line:
                case {"call": int(number), "reply": dict(reply)}:
                    replies[number] = reply
                case {"skipped": [int(cell), int(row), str(why)]}:
                    skipped[cell, row] = why
                case {"broken": str(why)}:
                    notes.append(f"The notebook could not be run to its end: {sentence(why)}.")
            out_of_time |= line.get("late") is True
        notes += [
            f"In {_place(cells, *place)}: {sentence(why)}."
            for place, why in list(skipped.items())[:MAX_NOTES]
        ]
        if len(skipped) > MAX_NOTES:
            notes.append("More statements than these were left out.")
        if all(reply is None for reply in replies) and not notes:
            notes.append("The notebook ended the program that runs it.")
        if all(reply is not None and reply.get("absent") for reply in replies):
            notes.append("None of the names asked for is in the notebook: nothing was answered.")
        results = self.assignment.grade(seed, calls, replies)
        shortcuts.apply(results, self.assignment, cells)
        return results, notes, out_of_time

    def _nothing(self) -> GradingResults:
        """The results of a student of whom nothing was run."""
        calls = self.assignment.record(self.seed)
        return self.assignment.grade(self.seed, calls, [None] * len(calls))


def _place(cells: list[str], cell: int, line: int) -> str:
    """A place as students find it: Jupyter shows no numbers of cells, so the line is quoted."""
    lines = cells[cell - 1].splitlines()
    first = next((text for text in lines if text.strip()), "")
    quoted = sentence((lines[line - 1] if line else first).strip(), most=60)
    return f"code cell {cell}" + (f", line {line}" if line else "") + f" (`{quoted}`)"


def _question(results: GradingResults, question: assignments.Question) -> dict[str, Any]:
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


if __name__ == "__main__":
    sys.exit(main())
