"""Functions that a question forbids: refused where they run, whatever they are called by.

`shortcuts.txt` has ways to call one, `by_hand.txt` lawful ways to come near it: for each answer
what stands before it in the notebook, if anything, and its body.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import torch
import torch.nn.functional as F

from walled_grader import assignment as assignments
from walled_grader import course, jail, shortcuts, wire

RULES = course.forbidden("3_multi_head_and_block")
FIRST = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"


def _read(name: str) -> dict[str, tuple[str, str]]:
    found = {}
    for part in f"\n{Path(__file__).with_name(name).read_text('utf-8')}".split("\n=== ")[1:]:
        answer, _, code = part.strip().partition("\n")
        before, _, body = code.rpartition("\n---\n")
        found[answer] = before, body
    return found


TRICKS, LAWFUL = _read("shortcuts.txt"), _read("by_hand.txt")


def _inputs(seed: int, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


#: For each kind of answer its parameters, its inputs, its right result, and what is forbidden.
X, WEIGHT, BIAS = _inputs(1, (2, 3, 7), (7,), (7,))
Q, K, V = _inputs(2, (2, 3, 4), (2, 5, 4), (2, 5, 4))
KINDS = {
    "norm": (
        "x, weight, bias, eps",
        [X, WEIGHT, BIAS, 1e-5],
        F.layer_norm(X, (7,), WEIGHT, BIAS, 1e-5),
        RULES["q3"],
    ),
    "attend": ("q, k, v", [Q, K, V], F.scaled_dot_product_attention(Q, K, V), RULES["q2"]),
}


def _answered(answers: dict[str, tuple[str, str]]) -> dict[str, tuple[dict, bool]]:
    """For each answer of a notebook that has them all: the reply, and whether it is right."""
    cells, calls = [FIRST], []
    for name, (before, body) in answers.items():
        parameters, inputs, _, forbidden = KINDS[name.partition("_")[0]]
        indented = "\n".join("    " + line for line in body.strip().splitlines())
        cells += [before, f"def {name}({parameters}):\n{indented}"]
        sent = {"args": wire.encode(inputs), "kwargs": wire.encode({})}
        calls.append({"mode": "call", "name": name, **sent, "forbidden": forbidden})
    limits = jail.Limits(later_seconds=10, total_seconds=500, loading_seconds=200)
    lines = jail.run({"cells": cells, "calls": calls}, limits)
    found = {}
    for line in lines:
        if "call" in line:
            name, reply = calls[line["call"]]["name"], line["reply"]
            right = KINDS[name.partition("_")[0]][2]
            got = wire.decode(reply["value"]) if "value" in reply else None
            is_right = isinstance(got, torch.Tensor) and got.shape == right.shape
            found[name] = reply, is_right and torch.allclose(got.float(), right, atol=2e-4)
    return found


@pytest.fixture(scope="module")
def tricks() -> dict[str, tuple[dict, bool]]:
    return _answered(TRICKS)


@pytest.fixture(scope="module")
def lawful() -> dict[str, tuple[dict, bool]]:
    return _answered(LAWFUL)


@pytest.mark.parametrize("name", TRICKS)
def test_a_shortcut_is_refused_or_waits_for_a_person(tricks, name: str) -> None:
    reply, is_right = tricks[name]
    assert "used" in reply or not is_right, reply


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("norm_plain", "layer_norm"),
        ("norm_legit", "_native_batch_norm_legit"),
        ("norm_thread_refs", "native_layer_norm"),
        ("norm_setprofile_back", "sys.setprofile"),
        ("attend_mha_forward", "multi_head_attention_forward"),
    ],
)
def test_what_was_called_is_told_and_the_points_without_the_rule_are_known(
    tricks, name: str, used: str
) -> None:
    reply, is_right = tricks[name]
    assert (reply["used"], is_right) == ([used], True)


@pytest.mark.parametrize("name", LAWFUL)
def test_who_writes_by_hand_loses_nothing(lawful, name: str) -> None:
    reply, is_right = lawful[name]
    assert is_right, reply
    assert "used" not in reply


def test_a_forbidden_function_takes_the_points_of_its_question_alone() -> None:
    assignment = assignments.load("3_multi_head_and_block")
    results = assignment.run(0, {})
    answers = {question.name: question.answers for question in assignment.questions}
    made = [
        ({"name": "layer_norm"}, {"value": 1, "used": ["native_layer_norm"]}),
        ({"name": "layer_norm"}, {"value": 1, "used": ["rms_norm", "native_layer_norm"]}),
        ({"name": "self_attention_block"}, {"value": 1, "used": []}),
        ({"name": "split_heads"}, None),
        ({"name": "multi_head_attention"}, {"value": 1}),
    ]
    verdicts = shortcuts.apply(results, answers, made)
    scores = {question: tests.score for question, tests in results.results.items()}
    assert scores == {"q1": 5, "q2": 7, "q3": 0, "q4": 5}
    assert verdicts == {
        "q3": {"names": ["native_layer_norm", "rms_norm"], "score": 3},
        "q4": {"names": [], "score": 5},
    }


def test_every_question_with_such_a_rule_says_so_in_its_text() -> None:
    for name in assignments.names():
        source = nbformat.read(course.sources() / f"{name}.ipynb", as_version=4)
        texts = {cell.id: cell.source for cell in source.cells}
        assert all("Write it yourself" in texts[f"{q}-text"] for q in course.forbidden(name))
