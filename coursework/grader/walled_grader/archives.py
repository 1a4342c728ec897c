"""Feedback for a whole course as one file to upload: Moodle's feedback zip, Canvas's re-upload.

Moodle reads the participant's number in a folder's name, `Name_4711_assignsubmission_file`, and
gives that student every file in it (mod/assign/feedback/file/importziplib.php). Canvas looks for
two numbers in a file's name, the student's and their attachment's, as in the archive it offered
for download, and attaches the file to that submission under the attachment's own name
(infer_comment_context_from_filename in app/models/abstract_assignment.rb). A notebook has to come
back as a notebook therefore, so that is what the page is wrapped in.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import nbformat

from .gradebook import Gradebook
from .report import FEEDBACK
from .submissions import CANVAS

MOODLE_ARCHIVE, CANVAS_ARCHIVE = FILES = "moodle_feedback.zip", "canvas_feedback.zip"
#: A zip tells times; these are the same whenever it is written.
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def write(out: Path, book: Gradebook) -> None:
    """Write the feedback as archives for Moodle and for Canvas, each with what came from there."""
    moodle, canvas = {}, {}
    for student in book.students:
        for mark in student.marks:
            page = (out / FEEDBACK / f"{mark.page}.html").read_text(encoding="utf-8")
            name, key = mark.submission.shown, mark.submission.key
            if CANVAS.fullmatch(name) and "/" not in name:
                # Else it goes back to another member of the group, or under a name that ends in
                # .pdf or .zip, as which nobody could open it.
                if mark.page == key and name.lower().endswith(".ipynb"):
                    canvas[name] = _as_notebook(page, key)
            elif student.person.id and mark is (student.counted or student.marks[0]):
                # The name is there for people; an underscore in it would hide the number.
                called = re.sub(r"[^\w ]|_", " ", student.person.name).strip()
                folder = f"{called}_{student.person.id}_assignsubmission_file"
                moodle[f"{folder}/feedback.html"] = page
    for archive, files in ((MOODLE_ARCHIVE, moodle), (CANVAS_ARCHIVE, canvas)):
        if files:
            _write(out / archive, files)
        else:
            (out / archive).unlink(missing_ok=True)


def _as_notebook(page: str, key: str) -> str:
    body = page.partition("<body>")[2].partition("</body>")[0]
    # Markdown takes HTML as it is, up to the first empty line.
    lines = [line for line in body.splitlines() if line.strip()]
    cell = nbformat.v4.new_markdown_cell("\n".join(lines), id=key[-10:])
    return nbformat.writes(nbformat.v4.new_notebook(cells=[cell])) + "\n"


def _write(path: Path, files: Mapping[str, str]) -> None:
    unfinished = path.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name, text in sorted(files.items()):
            member = zipfile.ZipInfo(name, LONG_AGO)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, text)
    unfinished.replace(path)
