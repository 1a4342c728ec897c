"""What a source notebook states beside its tests: titles, answers, and what a person marks.

A question that a person marks has otter's `manual: true`. It may have a rubric, which students
read with it: a table whose head begins with `| row | points |`. A person enters points for each
row in `rubric.csv`.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import nbformat
import yaml

from .marks import QuestionMark
from .sheets import SheetError

RUBRIC = re.compile(r"^\| *row *\| *points *\|.*\n\|[-| ]+\n((?:\|.*\n?)+)", re.MULTILINE)
QUESTION = "# BEGIN QUESTION"


@dataclass
class Stated:
    """A question as its cells state it."""

    config: dict[str, Any]  #: otter's
    text: str = ""
    solution: str = ""

    @property
    def title(self) -> str:
        heading = re.match(r"#+\s*(.+)", self.text)
        return heading[1] if heading else self.config["name"]

    @property
    def answers(self) -> tuple[str, ...]:
        """The names that its solution defines at top level."""
        names = []
        for statement in ast.parse(self.solution).body:
            match statement:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    names.append(name)
                case ast.Assign(targets=targets):
                    names += [target.id for target in targets if isinstance(target, ast.Name)]
        return tuple(names)

    @property
    def rubric(self) -> dict[str, float]:
        """The points of each row of its rubric; none where it has no rubric."""
        table = RUBRIC.search(self.text)
        lines = table[1].splitlines() if table else []
        cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
        return {name: float(possible) for name, possible, *_ in cells}


def questions(source: nbformat.NotebookNode) -> dict[str, Stated]:
    """The questions of a source notebook, by their names."""
    found: dict[str, Stated] = {}
    block = ""
    for cell in source.cells:
        if cell.cell_type == "raw":
            block = cell.source.partition("\n")[0]
            if block == QUESTION:
                question = Stated(yaml.safe_load(cell.source))
                found[question.config["name"]] = question
        elif found and cell.cell_type == "markdown":
            question.text = question.text or cell.source
        elif block == "# BEGIN SOLUTION":
            question.solution += f"{cell.source}\n"
    return found


def manual(source: nbformat.NotebookNode) -> tuple[QuestionMark, ...]:
    """The questions that no test marks, each with its points and still without a score.

    Raises:
        SheetError: where the rows of a rubric have not the points of their question in sum.
    """
    found = []
    for name, question in questions(source).items():
        if not question.config.get("manual"):
            continue
        possible, rubric = float(question.config.get("points", 1)), question.rubric
        if rubric and sum(rubric.values()) != possible:
            raise SheetError(
                f"The rows of the rubric of {name} have {sum(rubric.values()):g} points together, "
                f"and the question has {possible:g}: is a row missing?"
            )
        found.append(QuestionMark(name, question.title, None, possible, rubric=rubric))
    return tuple(found)


def digests(
    source: nbformat.NotebookNode, tests: dict[str, str], beside: dict[str, str]
) -> dict[str, str]:
    """For each question a digest of its tests, the helpers that all tests call and `beside`."""
    first = takewhile(lambda cell: not cell.source.startswith(QUESTION), source.cells)
    helpers = [cell.source for cell in first if cell.cell_type == "code"]
    return {
        name: hashlib.sha256("\n".join([*helpers, text, beside[name]]).encode()).hexdigest()[:16]
        for name, text in tests.items()
    }
