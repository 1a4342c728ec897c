"""The command: mark a folder of notebooks.

    walled-grader ASSIGNMENT SUBMISSIONS [--course FOLDER] [--tables FOLDER] [--only NAME] …

A run that was stopped goes on where it was: what has a result already is not marked again. The
tables are there while it goes on, with what is marked so far.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import psutil

from . import course, jail, phrases
from .grade import grade_folder
from .gradebook import CHOICES, NEWEST, Settings
from .grader import CannotGradeError
from .regrade import NotRegradedError
from .sheets import SheetError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="walled-grader", description=__doc__)
    option = parser.add_argument
    option("assignment", help="the name of a source notebook")
    option("submissions", type=Path, help="a folder of .ipynb files")
    option("--out", type=Path, help="where to write; default: SUBMISSIONS-marks")
    option("--jobs", type=int, default=_jobs(), help="how many at a time; default: all that fit")
    option("--tables", type=Path, help="a folder with roster.csv, deadlines.csv, overrides.csv, …")
    option("--prefer", choices=CHOICES, default=NEWEST, help="which of a student's files counts")
    option("--file-times", action="store_true", help="file times say when they were handed in")
    option("--only", action="append", default=[], help="a student or a question to mark again")
    option("--language", help="of the feedback, such as zh_CN; default: as before, or en")
    option("--why", default="", help="a student whose calls are shown, in place of marking")
    option("--scheduler", help="a Dask cluster that marks, as in tcp://host:8786")
    option("--course", type=Path, help=f"its folder; default: ${course.VARIABLE}, or coursework")
    options = parser.parse_args(arguments)
    if options.course:
        course.use(options.course)
    faults = CannotGradeError, NotRegradedError, SheetError, jail.NoJailError, FileNotFoundError
    faults = *faults, phrases.NoSuchLanguageError
    try:
        out = grade_folder(
            options.assignment,
            options.submissions,
            options.out,
            max(1, options.jobs),
            settings=Settings(options.tables, options.prefer, options.file_times),
            only=options.only,
            scheduler=options.scheduler,
            why=options.why,
            language=options.language,
        )
    except faults as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, for one
        print(
            f"The run ended: {error}. What is marked is stored: the same command goes on.",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print(
            "Stopped. The tables and pages have what is marked so far; statistics, similar files "
            "and archives are written at the end. The same command goes on where this run was.",
            file=sys.stderr,
        )
        return 130
    if not options.why:
        print(f"Marks, results and feedback are in {out}")
    return 0


def _jobs() -> int:
    """As many jails as have a processor each, and their most memory."""
    memory = psutil.virtual_memory().total // jail.Limits.total_memory
    return max(1, min(len(os.sched_getaffinity(0)), memory))
