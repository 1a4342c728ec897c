"""A folder of notebooks, marked: what has a result already is not marked again."""

from __future__ import annotations

import fcntl
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import assignment as assignments
from . import course, explain, finish, gradebook, jail, regrade, summary
from .assignment import Assignment
from .gradebook import Gradebook, Settings
from .grader import CannotGradeError, Grader
from .submissions import Submission, collect, variant

SECONDS_BETWEEN_TABLES = 5.0


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
    why: str = "",
) -> Path:
    """Mark every submission in `folder`; returns where the marks are.

    Args:
        only: names of students and questions that are to be marked again.
        scheduler: the address of a Dask cluster that marks in place of this machine.
        why: the student whose mark is to be explained; nothing is marked then.
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
        *(("The course", course.folder()), ("The folder of tables", settings.tables)),
        *(("The folder of submissions", folder), ("The folder of marks", out)),
    ):
        if path and (shown := jail.shows(path)):
            raise CannotGradeError(
                f"{what}, {path}, lies in {shown}, which every submission can read: move it out"
            )
    submissions = collect(folder)
    if not submissions:
        raise CannotGradeError(f"There is no submission in {folder}")
    _check_variant(assignment, submissions)
    # A table that cannot be read is better known before an hour of marking than after it.
    gradebook.make(assignment, submissions, {}, settings)
    (out / "results").mkdir(parents=True, exist_ok=True)
    with _sole_run(out) as run_file:
        seed = _seed(run_file, assignment)
        results = {key: r for one in submissions if (r := _result(out, one)) for key in [one.key]}
        if why:
            _explain(Grader(assignment, seed, 1, limits), why, submissions, settings)
            return out
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


def _check_variant(assignment: Assignment, submissions: Sequence[Submission]) -> None:
    """Stop where most notebooks are of another variant than the course: its seed is another one."""
    own = course.variant(assignment.reference_cells)
    others = [found for one in submissions if (found := variant(one)) and found != own]
    if 2 * len(others) > len(submissions):
        raise CannotGradeError(
            f"{len(others)} of {len(submissions)} notebooks are of the variant {others[0]}, and "
            f"{course.folder()} is {f'of {own}' if own else 'without a seed'}: grade with the "
            "course that they were given out from"
        )


def _explain(
    grader: Grader, why: str, submissions: Sequence[Submission], settings: Settings
) -> None:
    owners = gradebook.owners(submissions, settings)
    chosen = regrade.only([why], grader.assignment, owners.values()).students
    for one in submissions:
        if owners[one.key] in chosen:
            print(explain.file(grader, one))


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
