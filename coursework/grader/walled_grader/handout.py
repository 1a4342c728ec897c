"""What a source notebook gives to the students: its code without solutions and tests."""

from __future__ import annotations

import hashlib
import re

import nbformat

SOLUTION = re.compile(r"^[ \t]*# BEGIN SOLUTION.*?# END SOLUTION[^\n]*", re.DOTALL | re.MULTILINE)


def given(source: nbformat.NotebookNode) -> tuple[str, ...]:
    """The code cells that students receive, with `pass` where a solution was."""
    cells = []
    hidden = False
    for cell in source.cells:
        if cell.cell_type == "raw":
            if cell.source.startswith("# BEGIN TESTS"):
                hidden = True
            elif cell.source.startswith("# END TESTS"):
                hidden = False
        elif cell.cell_type == "code" and not hidden:
            cells.append(SOLUTION.sub("    pass", cell.source))
    return tuple(cells)


def digests(
    source: nbformat.NotebookNode, tests: dict[str, str], beside: dict[str, str]
) -> dict[str, str]:
    """For each question a digest of its tests, the helpers that all tests call and `beside`."""
    helpers = []
    for cell in source.cells:
        if cell.cell_type == "raw" and cell.source.startswith("# BEGIN QUESTION"):
            break
        if cell.cell_type == "code":
            helpers.append(cell.source)
    return {
        name: hashlib.sha256("\n".join([*helpers, text, beside[name]]).encode()).hexdigest()[:16]
        for name, text in tests.items()
    }
