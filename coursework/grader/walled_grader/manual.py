"""Questions that a person marks: otter's `manual: true` in the source notebook.

Such a question may have a rubric, which students read with it: a table whose head begins with
`| row | points |`. A person enters points for each row in `rubric.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
import yaml

from . import sheets
from .marks import QuestionMark
from .overrides import ByHand, points
from .people import Directory, Person
from .sheets import Row, SheetError

RUBRIC = re.compile(r"^\| *row *\| *points *\|.*\n\|[-| ]+\n((?:\|.*\n?)+)", re.MULTILINE)


def questions(source: nbformat.NotebookNode) -> tuple[QuestionMark, ...]:
    """The manual questions of a source notebook, each with its points and still without a score.

    Raises:
        SheetError: where the rows of a rubric have not the points of their question in sum.
    """
    found = []
    config: dict[str, object] = {}
    for cell in source.cells:
        if cell.cell_type == "raw" and cell.source.startswith("# BEGIN QUESTION"):
            config = yaml.safe_load(cell.source)
        elif cell.cell_type == "markdown" and config:
            if config.get("manual"):
                heading = re.match(r"#+\s*(.+)", cell.source)
                name, possible = str(config["name"]), float(str(config.get("points", 1)))
                rubric = _rubric(cell.source)
                if rubric and sum(rubric.values()) != possible:
                    raise SheetError(
                        f"The rows of the rubric of {name} have {sum(rubric.values()):g} points "
                        f"together, and the question has {possible:g}: is a row missing?"
                    )
                title = heading[1] if heading else name
                found.append(QuestionMark(name, title, None, possible, rubric=rubric))
            config = {}
    return tuple(found)


def _rubric(text: str) -> dict[str, float]:
    """The points of each row of a question's rubric; none where it has no rubric."""
    table = RUBRIC.search(text)
    lines = table[1].splitlines() if table else []
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    return {name: float(possible) for name, possible, *_ in cells}


def add(
    path: Path,
    students: Directory,
    asked: Sequence[QuestionMark],
    by_hand: Mapping[Person, ByHand],
) -> dict[Person, ByHand]:
    """Add what is entered row by row: student, question, row, points (empty: not marked yet).

    Args:
        asked: the questions of the assignment.
        by_hand: what else is entered for each student.

    Raises:
        SheetError: for a student, a question, a row or a number of points that does not exist, and
            where a row of a question is missing while others have points.
    """
    rubrics = {question.name: question.rubric for question in asked if question.rubric}
    rows: dict[tuple[Person, str], dict[str, Row]] = {}
    for line in sheets.read(path, ("student", "question", "row", "points")):
        name, row = line["question"], line["row"]
        if name not in rubrics:
            raise line.error(
                f"there is no question “{name}” with a rubric; those with one are "
                f"{', '.join(rubrics) or 'none'}"
            )
        if row not in rubrics[name]:
            raise line.error(
                f"the rubric of {name} has no row “{row}”; it has {', '.join(rubrics[name])}"
            )
        of_question = rows.setdefault((students.meant(line), name), {})
        if row in of_question:
            raise line.error(f"{line['student']} has the row “{row}” of {name} twice")
        of_question[row] = line
    entered = dict(by_hand)
    for (person, name), lines in rows.items():
        marked = {row: line for row, line in lines.items() if line["points"]}
        last = list(lines.values())[-1]
        missing = [row for row in rubrics[name] if row not in marked]
        if marked and missing:
            raise last.error(
                f"{last['student']} has points for {name}, but none for the row {missing[0]}: "
                "enter 0 if nothing was earned"
            )
        before = entered.get(person, ByHand())
        if marked and name in before.points:
            raise last.error(f"{last['student']} has points for {name} in overrides.csv, too")
        score = {row: points(line, rubrics[name][row]) for row, line in marked.items()}
        said = [(name, _said(line, rubrics[name])) for line in lines.values() if _tells(line)]
        entered[person] = ByHand(
            {**before.points, **({name: sum(score.values())} if marked else {})},
            before.total,
            [*before.comments, *said],
        )
    return entered


def _tells(line: Row) -> bool:
    return bool(line["points"] or line["comment"])


def _said(line: Row, rubric: Mapping[str, float]) -> str:
    """What a student reads of a row of the rubric."""
    earned = f"{line['row']}: {line['points'] or '–'} of {rubric[line['row']]:g}"
    return f"{earned} – {line['comment']}" if line["comment"] else earned
