"""A folder of handed-in files: who handed in what, and the code in it, which is not run here."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from .text import printable, sentence, told

MAX_BYTES = 20 * 2**20
#: Of JSON: each takes some fifty bytes when it is read.
MAX_PARTS = 3_000_000
#: Characters and lines of code: an assignment's answers have less than a tenth of it.
MAX_CODE, MAX_STATEMENTS = 500_000, 20_000
MAX_ENTRIES = 2_000
#: How a zip may be packed: of other ways, `zipfile` unpacks more than it is asked for.
STREAMED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

#: What a zip raises that is none, or whose table of contents tells of places where nothing is.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, ValueError, OverflowError),
)

#: Names that Canvas and Moodle give to what they export; they end in what the student called it.
#: Canvas's have one of the student and one of the file, also where it withholds the names.
CANVAS = re.compile(
    r"(?:(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)|(?P<late_too>LATE_)?(?P<anonymous>anon_[^_]+))"
    r"_(?P<number>\d+)_.+"
)
MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_file(_.*)?")

#: Usual names of kernels that do not speak Python.
OTHER_KERNELS = re.compile(r"(ir|julia|scala|javascript|deno|bash|octave|matlab|sos|java|rust)\b")


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
    name: bytes = b""  #: the path inside the folder as it is: two may be shown alike

    @property
    def key(self) -> str:
        """A file name for this submission's results, whatever its own name holds."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", self.student).strip("-")[:40] or "student"
        return f"{plain}-{hashlib.sha256(self.name or self.shown.encode()).hexdigest()[:10]}"

    def digest(self) -> str:
        """What the file holds, as one number; changes when the student hands in again."""
        if not self.path.is_file() or self.path.is_symlink():
            return "no file"
        try:
            with self.path.open("rb") as file:
                # Of a file that is too large to be marked, its size and its beginning will do.
                content = file.read(MAX_BYTES + 1)
                size = f"{os.fstat(file.fileno()).st_size}" if len(content) > MAX_BYTES else ""
                return hashlib.sha256(content + size.encode()).hexdigest()
        except OSError:
            return "cannot be opened"


def collect(folder: Path) -> list[Submission]:
    """Every submission in a folder: a notebook each, or a folder each."""
    found = []
    for entry in sorted(folder.iterdir()):
        if _is_litter(PurePath(entry.name)):
            continue
        if entry.is_dir() and not entry.is_symlink():
            files = [Path(place, name) for place, _, names in os.walk(entry) for name in names]
            inside = [
                path
                for path in sorted(files)
                if _rank(path) and not _is_litter(path.relative_to(folder))
            ]
            found += [_submission(folder, entry.name, path) for path in inside or [entry]]
        else:
            found.append(_submission(folder, entry.stem, entry))
    # A report, or a zip, beside somebody's notebook is not a second hand-in.
    best: defaultdict[tuple[str, str], int] = defaultdict(int)
    for one in found:
        who = one.student, one.identifier
        best[who] = max(best[who], _rank(one.path))
    return [one for one in found if _rank(one.path) == best[one.student, one.identifier]]


def _rank(path: PurePath) -> int:
    """2 for a notebook, 1 for a zip, which may hold one, and 0 for anything else."""
    name = path.name.lower()
    return 2 if name.endswith(".ipynb") else int(name.endswith(".zip"))


def _is_litter(path: PurePath) -> bool:
    """Whether a system left this behind; nobody handed it in."""
    if any(part == ".ipynb_checkpoints" or part.startswith("__MACOSX") for part in path.parts):
        return True
    return path.name.startswith("._") or (path.name.startswith(".") and _rank(path) < 2)


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
        name=os.fsencode(path.relative_to(folder)),
    )


def code_cells(submission: Submission) -> list[str]:
    """The sources of a notebook's code cells.

    Raises:
        UnreadableError: for anything but a Python notebook of moderate size.
    """
    content = _content(submission.path)
    if sum(map(content.count, (b"{", b"[", b","))) > MAX_PARTS:
        raise UnreadableError(
            "The file has too many parts for a notebook: clear the outputs and hand in again."
        )
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError):
        raise UnreadableError("The file is damaged: it is not the JSON of a notebook.") from None
    cells = _sources(notebook)
    code = "\n".join(cells)
    if len(code) > MAX_CODE:
        raise UnreadableError(
            f"The notebook has {len(code) / 1000:.0f} kB of code and {MAX_CODE // 1000} is the "
            "most: hand in your answers alone."
        )
    if code.count("\n") + code.count(";") > MAX_STATEMENTS:
        raise UnreadableError(
            f"The notebook has more than {MAX_STATEMENTS} lines of code: hand in your answers "
            "alone."
        )
    return cells


def _content(path: Path) -> bytes:
    """The bytes of the notebook that was handed in, as it is or as the only one in a zip."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        raise UnreadableError("The folder holds no notebook: hand in the .ipynb file.")
    if not stat.S_ISREG(mode):
        raise UnreadableError(
            "This is a link or a device, not a file: hand in the .ipynb file itself."
        )
    if not _rank(path):
        ending = sentence(path.suffix, most=40) or told("no ending")
        raise UnreadableError(f"This is not a notebook ({ending}): hand in the .ipynb.")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise UnreadableError(
            f"The file has {size / 2**20:.0f} MiB and {MAX_BYTES // 2**20} is the most: clear the "
            "outputs and hand in again."
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"The file cannot be opened: {error.strerror}.") from None
    return _unzipped(content) if _rank(path) == 1 else content


def _unzipped(content: bytes) -> bytes:
    """The one notebook in a zip. Nothing is written, so no name in it can lead anywhere."""
    # Each entry of the table of contents begins so: known before it is read.
    if content.count(b"PK\1\2") > MAX_ENTRIES:
        raise UnreadableError("The zip has too many entries: hand in the .ipynb.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            notebook, room = b"", MAX_BYTES  # for all notebooks together, whatever its table says
            for entry in archive.infolist():
                path = PurePosixPath(entry.filename)
                if entry.is_dir() or _rank(path) < 2 or _is_litter(path):
                    continue
                if entry.compress_type not in STREAMED:
                    raise NotImplementedError(entry.compress_type)
                with archive.open(entry) as file:
                    found = file.read(room + 1)
                room -= len(found)
                if room < 0:
                    name = sentence(path.name, most=60)
                    raise UnreadableError(
                        f"The zip holds more than {MAX_BYTES // 2**20} MiB of notebooks "
                        f"(counted up to {name}): clear the outputs and hand in again."
                    )
                if notebook and found != notebook:
                    raise UnreadableError(
                        "The zip holds several notebooks: hand in the one that is to be marked."
                    )
                notebook = notebook or found
    except DAMAGED:
        raise UnreadableError("The zip is damaged: hand in the .ipynb.") from None
    except (RuntimeError, NotImplementedError):
        raise UnreadableError(
            "The zip has a password, or is packed in an unusual way: hand in the .ipynb."
        ) from None
    if not notebook:
        raise UnreadableError("The zip holds no notebook: hand in the .ipynb.")
    return notebook


def _sources(notebook: Any) -> list[str]:
    """What Jupyter shows in code cells: a person who looks at a notebook reads what has run."""
    cells, field, other = None, "source", "input"
    if isinstance(notebook, dict):
        cells, sheets = notebook.get("cells"), notebook.get("worksheets")
        is_old = notebook.get("nbformat") in (1, 2, 3) or not isinstance(cells, list)
        if isinstance(sheets, list) and is_old:
            # As notebooks were stored until 2014, and as some programs still store them.
            of_each = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
            cells = [cell for some in of_each if isinstance(some, list) for cell in some]
            field, other = other, field
    if not isinstance(cells, list):
        raise UnreadableError("The file is JSON, but no notebook: it has no cells.")
    language = _language(notebook)
    if language != "python":
        raise UnreadableError(f"The notebook's kernel speaks {language}, but Python is asked for.")
    sources = []
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            lines = cell.get(field, cell.get(other, ""))
            lines = [lines] if isinstance(lines, str) else lines
            if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
                raise UnreadableError(
                    "The file is damaged: the content of a code cell is not text."
                )
            # Half of a surrogate pair, which JSON can hold, is no text.
            sources.append("".join(lines).encode(errors="replace").decode())
    if not sources:
        raise UnreadableError("The notebook has no code cell: nothing was answered.")
    return sources


def _language(notebook: dict[str, Any]) -> str:
    """The language of a notebook's kernel; Python where none is named, as some editors save it."""

    def part(of: dict[str, Any], field: str) -> dict[str, Any]:
        return of[field] if isinstance(of.get(field), dict) else {}

    metadata = part(notebook, "metadata")
    kernel, info = part(metadata, "kernelspec"), part(metadata, "language_info")
    # A kernel's name is free (myenv, .venv, conda-env-py), so it is asked only where nothing says
    # the language, and only whether it is one of the usual names of another one.
    found = sentence(kernel.get("language") or info.get("name") or "", most=40).lower()
    name = str(kernel.get("name") or "").lower()[:40]
    return found or (name if OTHER_KERNELS.match(name) else "python")
