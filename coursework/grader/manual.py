"""Questions that a person marks: otter's `manual: true` in the source notebook."""

from __future__ import annotations

import re

import nbformat
import yaml

from .marks import QuestionMark


def questions(source: nbformat.NotebookNode) -> tuple[QuestionMark, ...]:
    """The manual questions of a source notebook, each with its points and still without a score."""
    found = []
    config: dict[str, object] = {}
    for cell in source.cells:
        if cell.cell_type == "raw" and cell.source.startswith("# BEGIN QUESTION"):
            config = yaml.safe_load(cell.source)
        elif cell.cell_type == "markdown" and config:
            if config.get("manual"):
                heading = re.match(r"#+\s*(.+)", cell.source)
                name = str(config["name"])
                title = heading[1] if heading else name
                found.append(QuestionMark(name, title, None, float(config.get("points", 1))))
            config = {}
    return tuple(found)
