"""A question may forbid functions of a library: what it asks for is to be written by the student.

The rule is read from the code that was handed in, not from what it computes. It follows the names
from an answer to whatever in the notebook it uses, so that a comparison with the library elsewhere
in the notebook costs nothing.
"""

from __future__ import annotations

import ast
import dataclasses

from otter.test_files import GradingResults

from .assignment import Assignment, forbidden


def apply(results: GradingResults, assignment: Assignment, cells: list[str]) -> None:
    """Take the points of a question whose answer uses a function that it forbids."""
    rules = forbidden(assignment.name)
    for question in assignment.questions:
        used = shortcuts(cells, question.answers, rules.get(question.name, ()))
        if used:
            sentence = f"The answer uses {used[0]}, but the task is to write it yourself."
            tests = results.results[question.name]
            tests.test_case_results = [
                dataclasses.replace(case, passed=False, message=f"❌ Test case failed\n{sentence}")
                for case in tests.test_case_results
            ]


def shortcuts(
    cells: list[str], answers: tuple[str, ...], names: tuple[str, ...] | list[str]
) -> list[str]:
    """The forbidden names that the answers use, themselves or by way of the notebook's names."""
    uses: dict[str, set[str]] = {}
    imported: dict[str, str] = {}
    for cell in cells:
        try:
            body = ast.parse(cell).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # it cannot be run as it stands, so it defines nothing
        for statement in body:
            _note(statement, uses, imported)
    found, seen, waiting = [], set(), list(answers)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for used in sorted(uses.get(name, ())):
            if used.startswith("."):
                library_name = used[1:]
            else:
                library_name = imported.get(used, "")
                waiting.append(used)
            if library_name in names:
                found.append(library_name)
    return found


def _note(statement: ast.stmt, uses: dict[str, set[str]], imported: dict[str, str]) -> None:
    """What a statement defines, with the names and (after a dot) attributes that it uses."""
    nodes = list(ast.walk(statement))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {f".{node.attr}" for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            imported.update({one.asname or one.name: one.name for one in node.names})
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        uses.setdefault(statement.name, set()).update(names)
    else:
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for name in stored:
            uses.setdefault(name, set()).update(names - {name})
