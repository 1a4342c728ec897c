"""Write the chapters as Colab needs them: a first cell fetches the package where it is missing.

Colab opens a notebook without the repository around it. The chapters themselves stay free of that
cell, which would stand before the first idea and repeat an address and a commit ten times. The
publishing workflow puts what this writes on the branch that the Colab buttons open.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

ROOT = Path(__file__).resolve().parent.parent
#: What a chapter imports beside the package and what that brings along, at the pinned versions.
BESIDE = ("anywidget", "myst-nb")
FETCH = """\
# Only where the book's package is missing, as on Colab: fetch it, at the commit of this chapter.
import importlib.util
import sys

if importlib.util.find_spec("attention_book") is None:
    %pip install --quiet "attention-book @ git+{repository}@{commit}" {beside}
    if "google.colab" in sys.modules:
        from google.colab import output

        output.enable_custom_widget_manager()  # the figures then move
"""


def pins(requirements: str) -> list[str]:
    lines = requirements.splitlines()
    return [next(line for line in lines if line.startswith(f"{name}==")) for name in BESIDE]


def write(folder: Path, repository: str, commit: str) -> list[Path]:
    beside = " ".join(pins((ROOT / "requirements.txt").read_text(encoding="utf-8")))
    source = FETCH.format(repository=repository, commit=commit, beside=beside).rstrip()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chapter in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(chapter, as_version=4)
        notebook.cells.insert(0, new_code_cell(source, id="fetch-package"))
        nbformat.validate(notebook)
        nbformat.write(notebook, folder / chapter.name)
        written.append(folder / chapter.name)
    return written


def main() -> int:
    repository = os.environ.get("ATTENTION_BOOK_REPOSITORY")
    if not repository:
        print("Say where the package is fetched from: ATTENTION_BOOK_REPOSITORY=https://…")
        return 2
    command = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    written = write(ROOT / "_build" / "colab" / "notebooks", repository, commit.stdout.strip())
    print(f"{len(written)} chapters for Colab lie in {ROOT / '_build' / 'colab'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
