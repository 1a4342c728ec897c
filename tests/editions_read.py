"""The chapters as their readers open them: what a cell holds."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from browser import ROOT

CHAPTERS = sorted(ROOT.glob("notebooks/*.ipynb"))
#: What only the book understands, searched for in the text that no code quotes.
RAW = re.compile(r"\{[\w:.-]+\}`|^\([\w-]+\)=$|^(?:```|:::)+ *\{|\\class\{", re.MULTILINE)


def original(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
