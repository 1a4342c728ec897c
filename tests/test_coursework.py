"""The assignments themselves: right solutions pass, every known mistake is named."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from coursework import assignment as assignments
from coursework import replay
from coursework.assignment import Assignment
from otter.test_files import GradingResults

import attention_book

MUTANTS = Path(assignments.__file__).parent / "mutants"
FILES = sorted(MUTANTS.rglob("*.py"))
WRONG = [path for path in FILES if path.stem != "right"]
RIGHT = [path for path in FILES if path.stem == "right"]
SEEDS = (0, 1, 20_261_121)


@pytest.fixture(scope="module")
def read() -> dict[str, Assignment]:
    return {name: assignments.load(name) for name in assignments.names()}


def identity(path: Path) -> str:
    return str(path.relative_to(MUTANTS).with_suffix(""))


def defined_in(path: Path) -> tuple[str, dict[str, Any]]:
    """A solution file's docstring, and the answers it holds."""
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space["__doc__"], space


def findings(assignment: Assignment, path: Path, seed: int) -> list[str]:
    """What the tests of a file's question say about it, for each test that fails."""
    _, space = defined_in(path)
    question = path.parent.name
    asked = {name for q in assignment.questions if q.name == question for name in q.answers}
    answers = {name: value for name, value in space.items() if name in asked}
    assert answers, f"{path} answers nothing that {question} asks for"
    cases = assignment.run(seed, answers).get_result(question).test_case_results
    return [case.message.partition("\n")[2] for case in cases if not case.passed]


def replies(
    assignment: Assignment, answers: dict[str, Any], calls: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What the jail would send back for a notebook with these answers."""
    sent = []
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(MUTANTS.parent))  # as in the jail
        for call in calls:
            try:
                reply = replay._perform(call, {**assignment.names, **answers})
            except Exception as error:
                reply = {"error": str(error)}
            sent.append(json.loads(json.dumps(reply)))
    return sent


def passed(results: GradingResults) -> set[tuple[str, int]]:
    """The tests that pass, each as its question and number."""
    return {
        (name, number)
        for name, tests in results.results.items()
        for number, case in enumerate(tests.test_case_results)
        if case.passed
    }


@pytest.mark.parametrize("path", WRONG, ids=identity)
def test_a_known_mistake_is_named(read: dict[str, Assignment], path: Path) -> None:
    message, _ = defined_in(path)
    for seed in SEEDS:
        found = findings(read[path.parts[-3]], path, seed)
        assert found, "every test passes"
        assert found[0] == message


@pytest.mark.parametrize("path", RIGHT, ids=identity)
def test_a_right_solution_written_differently_passes(
    read: dict[str, Assignment], path: Path
) -> None:
    for seed in SEEDS:
        assert findings(read[path.parts[-3]], path, seed) == []


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_replayed_results_pass_the_tests_that_live_ones_pass(
    read: dict[str, Assignment], path: Path
) -> None:
    """Also where a function writes into its inputs, which changes what a test sees next."""
    assignment = read[path.parts[-3]]
    answers = {name: v for name, v in defined_in(path)[1].items() if name in assignment.answers}
    calls = assignment.record(seed=5)
    replayed = assignment.grade(5, calls, replies(assignment, answers, calls))
    assert passed(replayed) == passed(assignment.run(5, answers))


def overwriting(answer: Callable | None, value: float) -> Callable:
    """Fills every input, then gives what `answer` makes of that; without one, the input itself."""

    def write(*args: Any) -> Any:
        tensors = [thing for thing in args if isinstance(thing, torch.Tensor)]
        for tensor in tensors:
            tensor.fill_(value if tensor.is_floating_point() else value == 1)
        return answer(*args) if answer else tensors[0].clone()

    return write


@pytest.mark.parametrize("value", [0.0, 1.0, torch.nan])
@pytest.mark.parametrize("name", assignments.names())
def test_nothing_is_gained_by_writing_into_the_inputs(
    read: dict[str, Assignment], name: str, value: float
) -> None:
    """Whatever a test computes from them afterwards; to the tests, NaN equals NaN."""
    assignment = read[name]
    functions = {n: f for n in assignment.answers if callable(f := assignment.names[n])}
    calls = assignment.record(seed=7)
    written_into = set()
    for use_reference in (True, False):
        answers = {
            n: overwriting(f if use_reference else None, value) for n, f in functions.items()
        }
        writing = replies(assignment, answers, calls)
        only_answering = [{**reply, "changed": []} for reply in writing]
        with_writing = passed(assignment.grade(7, calls, writing))
        assert with_writing <= passed(assignment.grade(7, calls, only_answering))
        pairs = zip(calls, writing, strict=True)
        written_into |= {call["name"] for call, reply in pairs if reply.get("changed")}
    assert written_into == set(functions) - {"causal_mask"}  # its inputs are two numbers


def becomes_larger(scores: torch.Tensor) -> None:
    scores.set_(torch.empty(2**12, 0))


def becomes_double(scores: torch.Tensor) -> None:
    scores.data = scores.double()


@pytest.mark.parametrize("change", [becomes_larger, becomes_double])
def test_an_input_that_becomes_of_another_kind_is_not_let_in_but_counts_as_written(
    read: dict[str, Assignment], change: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = read["4_bug_hunt"]

    def repaired_2(scores: torch.Tensor, valid_lens: torch.Tensor) -> torch.Tensor:
        weights = assignment.names["repaired_2"](scores, valid_lens)
        change(scores)
        return weights

    same, kinds = assignment.names["same"], []

    def watching(scores: torch.Tensor, before: torch.Tensor) -> bool:
        kinds.append((scores.shape, scores.dtype) == (before.shape, before.dtype))
        return same(scores, before)

    calls = assignment.record(seed=3)
    sent = replies(assignment, {"repaired_2": repaired_2}, calls)
    monkeypatch.setitem(assignment.names, "same", watching)
    cases = assignment.grade(3, calls, sent).get_result("q2").test_case_results
    assert not cases[0].passed
    assert "The caller's scores are still changed by the call." in cases[0].message
    assert kinds
    assert all(kinds)


def test_what_one_student_writes_is_not_there_for_the_next(read: dict[str, Assignment]) -> None:
    """Also where a test hands out a tensor that the notebook itself holds."""
    plain = read["0_first_hand_in"]
    first, second = plain.questions
    drawn = "queries = torch.tensor([[[2.0, 0, 0, 0], [0, 1, 1, 0]]])"
    assert drawn in second.source
    source = second.source.replace(drawn, "queries = given")
    source = source.replace("q2_a_case_by_hand(", "q2_a_case_by_hand(given, ")
    given = torch.tensor([[[2.0, 0, 0, 0], [0, 1, 1, 0]]])
    assignment = dataclasses.replace(
        plain,
        questions=(first, dataclasses.replace(second, source=source)),
        names={**plain.names, "given": given},
    )
    calls = assignment.record(seed=1)
    writer = {"scaled_dot_product_scores": overwriting(None, torch.nan)}
    assignment.grade(1, calls, replies(assignment, writer, calls))
    assert assignment.grade(1, calls, replies(assignment, {}, calls)).total == plain.possible


@pytest.mark.parametrize("name", assignments.names())
def test_the_reference_solution_passes_with_any_seed(
    read: dict[str, Assignment], name: str
) -> None:
    for seed in range(20):
        assert read[name].record(seed)


@pytest.mark.parametrize("name", assignments.names())
def test_every_question_has_mistakes_of_its_own_and_a_second_right_solution(
    read: dict[str, Assignment], name: str
) -> None:
    for question in read[name].questions:
        folder = MUTANTS / name / question.name
        assert (folder / "right.py").exists()
        messages = [defined_in(path)[0] for path in WRONG if path.parent == folder]
        assert len(messages) >= 2
        assert len(set(messages)) == len(messages)


def test_there_are_enough_mistakes_in_the_four_assignments() -> None:
    assert sum("0_first_hand_in" not in path.parts for path in WRONG) >= 25


@pytest.mark.parametrize("name", assignments.names())
def test_an_unanswered_assignment_gets_nothing(read: dict[str, Assignment], name: str) -> None:
    assignment = read[name]

    def unanswered(*args: Any, **kwargs: Any) -> None: ...

    stand_ins = {
        answer: unanswered if callable(assignment.names[answer]) else ...
        for answer in assignment.answers
    }
    results = assignment.run(0, stand_ins)
    assert results.total == 0


@pytest.mark.parametrize("name", assignments.names())
def test_hidden_tests_take_their_numbers_from_the_seed(
    read: dict[str, Assignment], name: str
) -> None:
    """So that no table of answers, made in one run, helps in another."""
    one, other = read[name].record(1), read[name].record(2)
    assert [call for call in one if call not in other]


def test_the_points_are_those_that_are_announced(read: dict[str, Assignment]) -> None:
    assert [a.possible for a in read.values()] == [8, 20, 20, 20, 20]


def test_the_reference_solutions_agree_with_the_book(read: dict[str, Assignment]) -> None:
    """The hidden tests use neither, so that a fault in one cannot hide in the other."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    pooling, scoring, block = (read[name].names for name in sorted(read)[1:4])
    scores, lens = normal(2, 3, 5), torch.tensor([0, 4])
    close = torch.testing.assert_close
    mask = attention_book.length_mask(lens, 5)
    close(pooling["length_mask"](lens, 5), mask)
    close(pooling["causal_mask"](3, 5), attention_book.causal_mask(3, 5))
    close(pooling["masked_softmax"](scores, mask), attention_book.masked_softmax(scores, lens))
    queries, keys, values = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 3)
    for name in ("scaled_dot_product_scores", "distance_scores"):
        close(scoring[name](queries, keys), getattr(attention_book, name)(queries, keys))
    weights = normal(6, 4), normal(6, 4), normal(6)
    close(
        scoring["additive_scores"](queries, keys, *weights),
        attention_book.additive_scores(queries, keys, *weights),
    )
    close(
        scoring["attention"](queries, keys, values, lens),
        attention_book.DotProductAttention()(queries, keys, values, lens),
    )
    close(block["split_heads"](values, 3), attention_book.split_heads(values, 3))
    heads = attention_book.split_heads(values, 3)
    close(block["merge_heads"](heads), attention_book.merge_heads(heads))
