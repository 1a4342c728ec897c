"""A folder of notebooks, marked: what has a result already is not marked again."""

from __future__ import annotations

import fcntl
import json
import secrets
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import (
    archives,
    course,
    explain,
    gradebook,
    instructor,
    jail,
    overview,
    phrases,
    regrade,
    report,
    similarity,
)
from . import assignment as assignments
from .assignment import Assignment
from .gradebook import Gradebook, Settings
from .grader import CannotGradeError, Grader
from .marks import Result
from .people import Person
from .phrases import Phrases
from .submissions import Submission, code_cells, collect

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
    language: str | None = None,
) -> Path:
    """Mark every submission in `folder`; returns where the marks are.

    Args:
        only: names of students and questions that are to be marked again.
        scheduler: the address of a Dask cluster that marks in place of this machine.
        why: the student whose mark is to be explained; nothing is marked then.
        language: of the feedback; the course has a table of it, if it is not English. Without one
            it is that of the run before.
    """
    if why or not scheduler:
        jail.check()
    assignment = assignments.load(name)
    phrases.read(language or phrases.ENGLISH)  # known, before anything is marked
    if not folder.is_dir():
        raise CannotGradeError(f"There is no folder {folder}")
    folder = folder.resolve()
    out = (out or folder.with_name(f"{folder.name}-marks")).resolve()
    _check_folders(folder, out, settings.tables)
    submissions = collect(folder)
    if not submissions:
        raise CannotGradeError(f"There is no submission in {folder}")
    # A table that cannot be read is better known before an hour of marking than after it.
    gradebook.make(assignment, submissions, {}, settings)
    owner_of = gradebook.owners(submissions, instructor.read_people(settings.tables))
    chosen = regrade.only([why] if why else only, assignment, owner_of.values())
    named = {key for key, person in owner_of.items() if chosen.holds(person)}
    if why:
        run = _Run(assignment, submissions, out, settings)
        _explain(run, named, limits)
        return out
    _check_variant(assignment, submissions, owner_of)
    (out / "results").mkdir(parents=True, exist_ok=True)
    with _sole_run(out) as run_file:
        about = _about(run_file, assignment)
        say = phrases.read(language or about.get("language", phrases.ENGLISH))
        run = _Run(assignment, submissions, out, settings, say)
        if regrade.check(assignment, run.results.values(), chosen):
            # A run that was stopped goes on: it has marked some files by the new tests already.
            done = {k for k, r in run.results.items() if not regrade.changed_since(assignment, [r])}
            named -= done
        with _grader(assignment, about["seed"], jobs, limits, scheduler) as grader:
            grader.prove()
            if language:
                _remember(language, about, out)
            # Made at the end, of all files: a run that is stopped leaves no older ones behind.
            for name in (*archives.FILES, *overview.FILES, *similarity.FILES):
                (out / name).unlink(missing_ok=True)
            try:
                run.mark(grader, named, chosen.questions)
            finally:
                book = run.tell()
        archives.write(out, book)
        overview.write(out, book, assignment)
        similarity.write(out, book, assignment)
        print("\n".join(overview.lines(book, grader.seconds)))
        run.forget()
    return out


def _check_folders(folder: Path, out: Path, tables: Path | None) -> None:
    """Make sure that no submission can read what the course keeps to itself."""
    if out.is_relative_to(folder):
        raise CannotGradeError("The marks may not lie among the submissions: give another --out")
    for what, path in (
        *(("The course", course.folder()), ("The folder of tables", tables)),
        *(("The folder of submissions", folder), ("The folder of marks", out)),
    ):
        if path and (shown := jail.shows(path)):
            raise CannotGradeError(
                f"{what}, {path}, lies in {shown}, which every submission can read: move it out"
            )


def _check_variant(
    assignment: Assignment, submissions: Sequence[Submission], owner_of: Mapping[str, Person]
) -> None:
    """Stop where most students' notebooks are of another variant than the course: its seed is
    another one. However many files one of them has, they are one voice.
    """
    own = course.variant(assignment.reference_cells)
    others: defaultdict[Person, list[str]] = defaultdict(list)  # "" for a file that may be ours
    for one in submissions:
        try:
            found = course.variant(code_cells(one))
        except Exception:  # it is told where the file is marked, and ends nobody else's marking
            found = ""
        others[owner_of[one.key]].append(found if found != own else "")
    foreign = {who: max(all_) for who, all_ in others.items() if 2 * all_.count("") < len(all_)}
    if 2 * len(foreign) > len(others):
        first = [f"{who.name}: {variant}" for who, variant in islice(foreign.items(), 3)]
        raise CannotGradeError(
            f"{len(foreign)} of {len(others)} students handed in another variant than that of "
            f"{course.folder()}, which is {own or 'without a seed'} (the first: {'; '.join(first)})"
            ": grade with the course that the notebooks were given out from"
        )


def _grader(
    assignment: Assignment, seed: int, jobs: int, limits: jail.Limits, scheduler: str | None
) -> AbstractContextManager[Grader]:
    """What marks: the jails of this machine, or those of a cluster."""
    if not scheduler:
        return nullcontext(Grader(assignment, seed, jobs, limits))
    from .cluster import ClusterGrader

    return ClusterGrader(scheduler, assignment, seed, limits)


@contextmanager
def _sole_run(out: Path) -> Iterator[Any]:
    with (out / "run.json").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotGradeError(f"Another run is writing to {out}") from None
        yield file


def _about(run_file: Any, assignment: Assignment) -> dict[str, Any]:
    """What is known of a run: the seed of its hidden tests, which is fresh in a new one."""
    run_file.seek(0)
    text = run_file.read()
    out = Path(run_file.name).parent
    if not text and run_file.writable() and not any((out / "results").iterdir()):
        run = {"assignment": assignment.name, "digest": assignment.digest}
        run["seed"] = secrets.randbelow(2**31)
        run_file.write(json.dumps(run) + "\n")
        run_file.flush()
        return run
    try:
        run = json.loads(text)
        name, run["seed"] = run["assignment"], int(run["seed"])
    except (ValueError, TypeError, KeyError):
        raise CannotGradeError(
            f"{run_file.name} is {'damaged' if text else 'empty'}, and with it the seed of the "
            "marks beside it is lost: give another --out"
        ) from None
    if name != assignment.name:
        raise CannotGradeError(f"{out} has the marks of {name}: give another --out")
    return run


def _remember(language: str, about: dict[str, Any], out: Path) -> None:
    """Keep the language of a folder's feedback; where it is another one than before, say so."""
    before = about.get("language", phrases.ENGLISH)
    if language == before:
        return
    with (out / "run.json").open("r+") as file:
        file.write(json.dumps({**about, "language": language}) + "\n")
        file.truncate()
    if any((out / "results").iterdir()):
        print(f"The feedback is written anew in {language}; it was in {before}.")


def _explain(run: _Run, named: Collection[str], limits: jail.Limits) -> None:
    """Show how these files got their marks. It writes nothing, so another run may go on."""
    try:
        with (run.out / "run.json").open() as run_file:
            seed = _about(run_file, run.assignment)["seed"]
    except FileNotFoundError:
        raise CannotGradeError(f"There are no marks in {run.out} yet") from None
    book, grader = run.book(), Grader(run.assignment, seed, 1, limits)
    for one in run.submissions:
        if one.key in named:
            made = [run.results[one.key]] if one.key in run.results else []
            changed = regrade.changed_since(run.assignment, made)
            print(*explain.marks(book, one, changed), explain.file(grader, one), sep="\n")


class _Run:
    """The marking of a folder: the results so far, and what is made of them."""

    def __init__(
        self,
        assignment: Assignment,
        submissions: Sequence[Submission],
        out: Path,
        settings: Settings,
        say: Phrases | None = None,
    ) -> None:
        self.assignment, self.submissions = assignment, submissions
        self.out, self.settings, self.say = out, settings, say or Phrases({})
        found = {one.key: _stored(out, one) for one in submissions}
        self.results = {key: result for key, result in found.items() if result}
        self._told, self._pause = time.monotonic(), SECONDS_BETWEEN_TABLES

    def book(self) -> Gradebook:
        """The marks so far."""
        return gradebook.make(self.assignment, self.submissions, self.results, self.settings)

    def tell(self) -> Gradebook:
        """Write the tables and the feedback of what is marked so far."""
        book = self.book()
        report.write(self.out, book, self.say)
        return book

    def mark(self, grader: Grader, named: Collection[str], questions: frozenset[str]) -> None:
        """Mark what is not marked, or is to be marked again, and tell of it now and then.

        Args:
            named: the keys of the files to mark again.
            questions: those of these files to mark again; none are all of them.
        """
        pending = [
            one for one in self.submissions if one.key in named or one.key not in self.results
        ]
        now: dict[str, None] = {}  # who is being marked
        slow = []

        def mark(one: Submission) -> Result:
            now[one.student] = None
            bar.set_postfix_str(", ".join(list(now)[: grader.running]))
            try:
                return grader.grade(one)
            finally:
                now.pop(one.student, None)

        total = len(self.submissions)
        with (
            tqdm(total=total, initial=total - len(pending), unit="file") as bar,
            ThreadPoolExecutor(grader.at_a_time) as pool,
        ):
            waiting = {pool.submit(mark, one): one for one in pending}
            try:
                for done in as_completed(waiting):
                    if done.result()["extra_data"]["out_of_time"]:
                        slow.append(waiting[done])
                    else:
                        self._keep(waiting[done], done.result(), questions)
                        bar.update()
                # Who ran out of time may have had greedy neighbours: the time alone counts.
                for one in slow:
                    self._keep(one, pool.submit(mark, one).result(), questions)
                    bar.update()
            except BaseException:
                grader.stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _keep(self, one: Submission, result: Result, questions: frozenset[str]) -> None:
        if one.key in self.results:  # it is marked again
            result = regrade.merge(self.results[one.key], result, questions)
        self.results[one.key] = result
        _store(self.out, one, result)
        if time.monotonic() > self._told + self._pause:
            began = time.monotonic()
            self.tell()
            self._told = time.monotonic()
            # However many there are, tables take a twentieth of the time.
            self._pause = max(SECONDS_BETWEEN_TABLES, 20 * (self._told - began))

    def forget(self) -> None:
        """Remove the results of files that are no longer among the submissions."""
        known = {_file(self.out, one) for one in self.submissions}
        for path in set((self.out / "results").iterdir()) - known:
            path.unlink()


def _file(out: Path, submission: Submission) -> Path:
    return out / "results" / f"{submission.key}.json"


def _store(out: Path, submission: Submission, result: Result) -> None:
    path = _file(out, submission)
    unfinished = path.with_suffix(".part")
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    # Half a surrogate pair in a student's message cannot be written, here or in a table.
    unfinished.write_text(text, encoding="utf-8", errors="replace")
    unfinished.replace(path)  # a result is there whole or not at all


def _stored(out: Path, submission: Submission) -> Result | None:
    """The final result of this file as it is now; None where there is none that can be read."""
    try:
        result = json.loads(_file(out, submission).read_text(encoding="utf-8"))
        extra = result["extra_data"]
        is_final = extra["failed"] is False and extra["digest"] == submission.digest()
        return result if is_final else None
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
