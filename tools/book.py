"""Build the book from nothing into _build/html; a warning is an error.

From nothing, because a page that was built before does not repeat its warnings, and a page that is
gone from the contents would stay. The editions that were packed or printed stay: they are files.

PyTorch is not needed and not used: outputs are stored, and the API page comes from docstrings. An
empty stand-in takes its place, also where it is installed, so that the book is the same everywhere.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from pathlib import Path

from alone import alone

ROOT = Path(__file__).resolve().parent.parent
STAND_INS = ["torch"]


def clear(built: Path) -> None:
    for folder in built.glob("*/"):
        shutil.rmtree(folder)


def build() -> int:
    """Run Jupyter Book in this process, where PyTorch has a stand-in; its exit status."""
    from jupyter_book.cli.main import main as jupyter_book
    from sphinx.ext.autodoc.mock import mock

    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    said = io.StringIO()
    arguments = ["build", ".", "-W", "--keep-going", "--quiet"]
    with mock(STAND_INS), contextlib.redirect_stdout(said):
        try:
            status = jupyter_book(arguments, standalone_mode=False)
        except SystemExit as end:
            status = end.code
    if status:
        print(said.getvalue(), end="")
    return int(bool(status))


def main() -> int:
    with alone(ROOT / "_build" / ".lock", "building the book"):
        clear(ROOT / "_build")
        failed = build()
    if failed:
        print("The book was not built: each WARNING above names its page and line.")
        return 1
    print(f"The book is built. Open {(ROOT / '_build/html/index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
