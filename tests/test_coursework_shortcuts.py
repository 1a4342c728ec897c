"""Library functions that a question forbids: found where an answer uses them, and only there."""

from __future__ import annotations

import nbformat
import pytest
from coursework.grader import assignment as assignments
from coursework.grader import shortcuts

NORM = "def layer_norm(x, weight, bias, eps):\n    return {}"
FORBIDDEN = ["layer_norm", "LayerNorm"]


@pytest.mark.parametrize(
    "cells",
    [
        [NORM.format("torch.nn.functional.layer_norm(x, (4,), weight, bias, eps)")],
        ["import torch.nn.functional as F", NORM.format("F.layer_norm(x, (4,))")],
        ["from torch.nn.functional import layer_norm as ln", NORM.format("ln(x, (4,))")],
        ["from torch import nn\nnorm = nn.LayerNorm(4)", NORM.format("norm(x)")],
        ["def helper(x):\n    return torch.layer_norm(x, (4,))", NORM.format("helper(x)")],
        [NORM.format("x"), "layer_norm = torch.nn.functional.layer_norm"],
    ],
)
def test_a_shortcut_is_found(cells: list[str]) -> None:
    assert shortcuts.shortcuts(cells, ("layer_norm",), FORBIDDEN)


@pytest.mark.parametrize(
    "cells",
    [
        [NORM.format("x - x.mean(-1, keepdim=True)")],
        [NORM.format("x"), "right = torch.nn.functional.layer_norm(x, (4,))"],
        [NORM.format("x"), "def block(x):\n    return layer_norm(x)"],
        ["this is no Python", NORM.format("x")],
    ],
)
def test_what_is_no_shortcut_costs_nothing(cells: list[str]) -> None:
    assert shortcuts.shortcuts(cells, ("layer_norm", "block"), FORBIDDEN) == []


def test_a_forbidden_function_takes_the_points_of_its_question_alone() -> None:
    assignment = assignments.load("3_multi_head_and_block")
    results = assignment.run(0, {})
    cells = [NORM.format("torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)")]
    shortcuts.apply(results, assignment, cells)
    scores = {name: tests.score for name, tests in results.results.items()}
    assert scores == {"q1": 5, "q2": 7, "q3": 0, "q4": 5}
    assert "write it yourself" in results.get_result("q3").test_case_results[0].message


@pytest.mark.parametrize("name", assignments.names())
def test_no_reference_solution_uses_a_shortcut(name: str) -> None:
    assignment = assignments.load(name)
    results = assignment.run(0, {})
    cells = list(assignment.reference_cells)
    shortcuts.apply(results, assignment, cells)
    assert results.total == results.possible
    # Every question with such a rule says so in its text.
    rules = assignments.forbidden(name)
    source = nbformat.read(assignments.SOURCES / f"{name}.ipynb", as_version=4)
    texts = {cell.id: cell.source for cell in source.cells}
    assert all("Write it yourself" in texts[f"{question}-text"] for question in rules)
