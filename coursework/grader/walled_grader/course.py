"""Where a course lies: a folder with `assignments`, source notebooks of otter, and more."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

#: What says where, if not the command's own option.
VARIABLE = "GRADER_COURSE"

_folder: Path | None = None


def use(folder: Path) -> None:
    """Take the course in this folder."""
    global _folder
    _folder = folder.resolve()


def folder() -> Path:
    """The folder in use; where none was said, `coursework` below the working directory."""
    return _folder or Path(os.environ.get(VARIABLE, "coursework")).resolve()


def sources() -> Path:
    """The source notebooks of the assignments."""
    return folder() / "assignments"


def mistakes() -> Path:
    """The known mistakes: for each assignment a folder, in it a file for each question."""
    return folder() / "mistakes"


def hidden_packages() -> tuple[str, ...]:
    """Python packages that hold answers: the jail does not show them."""
    return _words("hidden_packages.txt")


def packages() -> tuple[str, ...]:
    """Packages that answers may import beside Python's own; none: all that are installed."""
    return _words("packages.txt")


def forbidden(assignment: str) -> dict[str, list[str]]:
    """For each question that has such a rule, the library's names that its answers may not use."""
    path = sources() / "forbidden.json"
    rules = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return rules.get(assignment, {})


def handed_out(assignment: str) -> tuple[str, ...]:
    """The code cells of the notebook that students were given; none where no copy is kept."""
    path = folder() / "student" / f"{assignment}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.exists() else []
    return tuple("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def variant(cells: Iterable[str]) -> str:
    """The variant of the assignments that a notebook says it is of, as a course's seed drew them.

    Args:
        cells: the notebook's code cells.
    """
    for cell in cells:
        if found := re.match(r'variant = "([0-9a-f]{8})"', cell):
            return found[1]
    return ""


def _words(name: str) -> tuple[str, ...]:
    path = sources() / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return tuple(word for line in lines for word in line.partition("#")[0].split())
