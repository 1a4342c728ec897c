"""Library functions that a question forbids: found where an answer uses them, and only there."""

from __future__ import annotations

import nbformat
import pytest

from walled_grader import assignment as assignments
from walled_grader import course, shortcuts

NORM = "def layer_norm(x, weight, bias, eps):\n    return {}"
RIGHT = NORM.format("(x - x.mean(-1, keepdim=True)) * weight + bias")
FORBIDDEN = ["layer_norm", "LayerNorm"]
FIRST = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"


@pytest.mark.parametrize(
    "cells",
    [
        [NORM.format("torch.nn.functional.layer_norm(x, (4,), weight, bias, eps)")],
        [NORM.format("F.layer_norm(x, (4,))")],
        ["from torch.nn.functional import layer_norm as ln", NORM.format("ln(x, (4,))")],
        ["norm = nn.LayerNorm(4)", NORM.format("norm(x)")],
        [NORM.format("G.layer_norm(x, (4,))"), "import torch.nn.functional as G"],
        ["def helper(x):\n    return torch.layer_norm(x, (4,))", NORM.format("helper(x)")],
        [NORM.format("x"), "layer_norm = torch.nn.functional.layer_norm"],
        ["from torch.nn.functional import layer_norm"],
        # IPython's own lines, and a star, are no disguise.
        ["%matplotlib inline\n%time y = 1\n" + NORM.format("F.layer_norm(x, (4,))")],
        ["%%time\n" + NORM.format("F.layer_norm(x, (4,))")],
        ["from torch.nn.functional import *", "ln = layer_norm", NORM.format("ln(x, (4,))")],
        ["from torch.nn.functional import *"],
        ["functional = torch.nn.functional", NORM.format("functional.layer_norm(x, (4,))")],
        ["a = F.layer_norm\nb = a\na = None", NORM.format("b(x, (4,))")],
        ["norm = lambda x: F.layer_norm(x, (4,))", NORM.format("norm(x)")],
        ["held = {}\nheld['n'] = F.layer_norm", NORM.format("held['n'](x, (4,))")],
        [NORM.format("getattr(F, 'layer_norm')(x, (4,))")],
        ["if True:\n    " + NORM.format("F.layer_norm(x, (4,))").replace("\n", "\n    ")],
        ["try:\n    norm = nn.LayerNorm(4)\nfinally:\n    pass", NORM.format("norm(x)")],
        [NORM.replace("    return", "    from torch.nn import functional as G\n    return").format(
            "G.layer_norm(x, (4,))")],
        # What fails takes nobody's place.
        [NORM.format("F.layer_norm(x, (4,))"), RIGHT.replace("eps)", "eps=1 / 0)")],
        [NORM.format("F.layer_norm(x, (4,))"), RIGHT.replace("x,", "x: missing,", 1)],
        [NORM.format("F.layer_norm(x, (4,))"), "layer_norm = 1 / 0"],
    ],
)  # fmt: skip
def test_a_shortcut_is_found(cells: list[str]) -> None:
    assert shortcuts.used([FIRST, *cells], ("layer_norm",), FORBIDDEN)


@pytest.mark.parametrize(
    "cells",
    [
        [RIGHT],
        [RIGHT, "right = torch.nn.functional.layer_norm(x, (4,))"],
        [RIGHT, "def block(x):\n    return layer_norm(x)"],
        ["this is no Python", RIGHT],
        # Names of the function's own are not the globals that a scratch cell fills.
        ["out = F.layer_norm(t, (4,))", NORM.format("out\n").replace("return", "out = x; return")],
        ["x = F.layer_norm(x, (4,))", RIGHT],
        [RIGHT, "for x in (1, 2):\n    weight = F.layer_norm(x, (4,))"],
        ["with open('f') as x:\n    y = F.layer_norm(x, (4,))", RIGHT],
        # The later definition counts.
        [NORM.format("F.layer_norm(x, (4,))"), RIGHT],
        [NORM.format("F.layer_norm(x, (4,))"), RIGHT.replace("x,", "x: torch.Tensor,", 1)],
        ["from torch.nn.functional import layer_norm\nright = layer_norm(x, (4,))", RIGHT],
        ["from torch.nn.functional import *", RIGHT],
        # An attribute of what the student wrote is the student's.
        ["class Own:\n    def layer_norm(self, x):\n        return x\nown = Own()",
         NORM.format("own.layer_norm(x)")],
        ["if __name__ == '__main__':\n    right = F.layer_norm(x, (4,))\n    "
         + RIGHT.replace("\n", "\n    ")],
    ],
)  # fmt: skip
def test_what_is_no_shortcut_costs_nothing(cells: list[str]) -> None:
    assert shortcuts.used([FIRST, *cells], ("layer_norm", "block"), FORBIDDEN) == []


def apply(name: str, cells: list[str]) -> tuple[dict[str, float], dict]:
    assignment = assignments.load(name)
    results = assignment.run(0, {})
    answers = {question.name: question.answers for question in assignment.questions}
    verdicts = shortcuts.apply(results, answers, course.forbidden(name), cells)
    return {question: tests.score for question, tests in results.results.items()}, verdicts


def test_a_forbidden_function_takes_the_points_of_its_question_alone() -> None:
    cells = [NORM.format("torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)")]
    scores, verdicts = apply("3_multi_head_and_block", ["import torch", *cells])
    assert scores == {"q1": 5, "q2": 7, "q3": 0, "q4": 5}
    assert verdicts == {"q3": {"names": ["layer_norm"], "score": 3}}


@pytest.mark.parametrize("hostile", ["if 0:\n" + "    a=b\n" * 10**6, "-" * 10**6 + "1"])
def test_code_that_cannot_be_read_within_limits_costs_nothing_and_is_told(hostile: str) -> None:
    scores, verdicts = apply("3_multi_head_and_block", [hostile])
    assert sum(scores.values()) == 20
    assert verdicts["q3"] == {"names": [], "score": 3}


@pytest.mark.parametrize("name", assignments.names())
def test_no_reference_solution_uses_a_shortcut(name: str) -> None:
    assignment = assignments.load(name)
    scores, verdicts = apply(name, list(assignment.reference_cells))
    assert (sum(scores.values()), verdicts) == (assignment.possible, {})
    # Every question with such a rule says so in its text.
    source = nbformat.read(course.sources() / f"{name}.ipynb", as_version=4)
    texts = {cell.id: cell.source for cell in source.cells}
    assert all("Write it yourself" in texts[f"{q}-text"] for q in course.forbidden(name))
