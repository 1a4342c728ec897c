"""A folder of handed-in files: who handed in what, and the code in it, which is not run here."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .text import printable

MAX_BYTES = 20 * 2**20

#: Names that Canvas and Moodle give to what they export; they end in what the student called it.
#: Canvas's have one of the student and one of the file, also where it withholds the names.
CANVAS = re.compile(
    r"(?:(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)|(?P<late_too>LATE_)?(?P<anonymous>anon_[^_]+))"
    r"_(?P<number>\d+)_.+"
)
MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_file(_.*)?")


class UnreadableError(Exception):
    """The file cannot be marked; the message says why, to the student."""


@dataclass(frozen=True)
class Submission:
    """One file of one student, or the lack of one."""

    student: str
    identifier: str  #: the number Canvas or Moodle knows the student by, else ""
    path: Path
    shown: str  #: the path inside the folder, printable
    late: bool = False  #: whether Canvas says so
    #: Canvas's number of the file and the file's time in ns: larger where it is newer.
    order: tuple[int, int] = (0, 0)

    @property
    def key(self) -> str:
        """A file name for this submission's results, whatever its own name holds."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", self.student).strip("-")[:40] or "student"
        return f"{plain}-{hashlib.sha256(self.shown.encode()).hexdigest()[:10]}"

    def digest(self) -> str:
        """What the file holds, as one number; changes when the student hands in again."""
        if not self.path.is_file() or self.path.is_symlink():
            return "no file"
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return "cannot be opened"


def collect(folder: Path) -> list[Submission]:
    """Every submission in a folder: a notebook each, or a folder each."""
    found = []
    for entry in sorted(folder.iterdir()):
        if _is_litter(entry.name):
            continue
        if entry.is_dir() and not entry.is_symlink():
            notebooks = sorted(_notebooks(entry)) or [entry]
            found += [_submission(folder, entry.name, path) for path in notebooks]
        else:
            found.append(_submission(folder, entry.stem, entry))
    # A report beside somebody's notebook is not a second hand-in.
    have_one = {(one.student, one.identifier) for one in found if _is_notebook(one.path.name)}
    return [
        one
        for one in found
        if _is_notebook(one.path.name) or (one.student, one.identifier) not in have_one
    ]


def _is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def _is_litter(name: str) -> bool:
    """Whether a system left this behind; nobody handed it in."""
    if name.startswith(".") and not _is_notebook(name):
        return True
    return name.startswith(("._", "__MACOSX"))


def _notebooks(folder: Path) -> list[Path]:
    return [
        Path(place, name)
        for place, folders, names in os.walk(folder)
        for name in names
        if _is_notebook(name) and not _is_litter(name)
        if ".ipynb_checkpoints" not in Path(place).parts
    ]


def _submission(folder: Path, name: str, path: Path) -> Submission:
    # Canvas first: what one of its students called a file may look like a name of Moodle's.
    canvas, moodle = CANVAS.fullmatch(name), MOODLE.fullmatch(name)
    student, identifier = name, ""
    if canvas:
        student, identifier = canvas["name"] or canvas["anonymous"], canvas["id"] or ""
    elif moodle:
        student, identifier = moodle["name"], moodle["id"]
    return Submission(
        printable(student),
        identifier,
        path,
        printable(path.relative_to(folder)),
        late=bool(canvas and (canvas["late"] or canvas["late_too"])),
        order=(int(canvas["number"]) if canvas else 0, path.lstat().st_mtime_ns),
    )


def code_cells(path: Path) -> list[str]:
    """The sources of a notebook's code cells.

    Raises:
        UnreadableError: for anything but a Python notebook of moderate size.
    """
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        raise UnreadableError("The folder holds no notebook: hand in the .ipynb file.")
    if not stat.S_ISREG(mode):
        raise UnreadableError(
            "This is a link or a device, not a file: hand in the .ipynb file itself."
        )
    if not _is_notebook(path.name):
        raise UnreadableError(
            f"This is no notebook ({path.suffix or 'no ending'}): hand in the .ipynb."
        )
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise UnreadableError(
            f"The file has {size / 2**20:.0f} MiB and {MAX_BYTES // 2**20} is the most: clear the "
            "outputs and hand in again."
        )
    try:
        notebook = json.loads(path.read_bytes())
    except OSError as error:
        raise UnreadableError(f"The file cannot be opened: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise UnreadableError("The file is damaged: it is not the JSON of a notebook.") from None
    return _sources(notebook)


def _sources(notebook: Any) -> list[str]:
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise UnreadableError("The file is JSON, but no notebook: it has no cells.")
    language = _language(notebook)
    if language != "python":
        raise UnreadableError(f"The notebook's kernel speaks {language}, but Python is asked for.")
    sources = []
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            lines = cell.get("source", "")
            lines = [lines] if isinstance(lines, str) else lines
            if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
                raise UnreadableError("The file is damaged: a code cell holds no text.")
            sources.append("".join(lines))
    if not sources:
        raise UnreadableError("The notebook has no code cell: nothing was answered.")
    return sources


def _language(notebook: dict[str, Any]) -> str:
    """The language of a notebook's kernel; Python where none is named, as some editors save it."""
    metadata = notebook.get("metadata")

    def said(part: str, field: str) -> str:
        held = metadata.get(part) if isinstance(metadata, dict) else None
        return str(held.get(field) or "").lower()[:40] if isinstance(held, dict) else ""

    # A kernel's name is free (myenv, .venv), so it is asked only where nothing says the language.
    return (
        said("kernelspec", "language")
        or said("language_info", "name")
        or re.sub(r"\d+$", "", said("kernelspec", "name"))
        or "python"
    )
