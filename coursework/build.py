"""Make the student versions of all assignments, and prove that their solutions pass.

    python -m coursework.build

Otter strips solutions and hidden tests; what it leaves to chance (cell ids) is made definite here,
so that building twice gives the same bytes.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from otter.assign import main as otter_assign
from tqdm import tqdm

from coursework import assignment as assignments


def main() -> int:
    for name in tqdm(assignments.names(), unit="assignment"):
        write(name, assignments.STUDENT, prove=True)
    return 0


def write(name: str, folder: Path, *, prove: bool) -> Path:
    """Write one student notebook into `folder`; with `prove`, let otter run its solutions first.

    Raises:
        WrongTestsError, RuntimeError: where the solutions do not pass.
    """
    assignments.load(name).record(seed=0)
    with tempfile.TemporaryDirectory() as scratch:
        # Otter says on the log what it does at each step, and in exceptions what fails.
        logging.getLogger("otter").setLevel(logging.ERROR)
        source = assignments.SOURCES / f"{name}.ipynb"
        here = os.getcwd()
        try:
            otter_assign(str(source), scratch, no_pdfs=True, no_run_tests=not prove)
        finally:
            os.chdir(here)
        notebook = nbformat.read(Path(scratch, "student", source.name), as_version=4)
    # The title comes before otter's first cell, so that the page in the book begins with it.
    notebook.cells[:2] = notebook.cells[1::-1]
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number}"
    nbformat.validate(notebook)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / source.name
    nbformat.write(notebook, target)
    return target


if __name__ == "__main__":
    sys.exit(main())
