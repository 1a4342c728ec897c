"""The assignments themselves: right solutions pass, every known mistake is named."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from coursework import build
from nbclient import NotebookClient
from otter.test_files import GradingResults

import attention_book
from walled_grader import assignment as assignments
from walled_grader import course, mistakes, replay
from walled_grader.assignment import Assignment

#: Every solution that the course knows, by its place: assignment/question/name.
KNOWN = {
    f"{assignment}/{path.stem}/{one.name}": one
    for assignment in assignments.names()
    for path in sorted((course.mistakes() / assignment).glob("*.diff"))
    for one in mistakes.read(path)
}
WRONG = [place for place, one in KNOWN.items() if not one.right]
RIGHT = [place for place, one in KNOWN.items() if one.right]
SEEDS = (0, 20_261_121)


@pytest.fixture(scope="module")
def read() -> dict[str, Assignment]:
    return {name: assignments.load(name) for name in assignments.names()}


def graded(read: dict[str, Assignment], place: str, seed: int) -> list[Any]:
    """The test cases of a solution's question, run on what the solution defines."""
    name, asked, _ = place.split("/")
    (question,) = (q for q in read[name].questions if q.name == asked)
    space = KNOWN[place].run()
    answers = {name: value for name, value in space.items() if name in question.answers}
    assert answers, f"{place} answers nothing that {question.name} asks for"
    alone = dataclasses.replace(read[name], questions=(question,))
    return alone.run(seed, answers).get_result(question.name).test_case_results


def said(case: Any) -> str:
    return case.message.partition("\n")[2]


def replies(
    assignment: Assignment, answers: dict[str, Any], calls: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What the jail would send back for a notebook with these answers."""
    sent, memory = [], replay.Arena(2**20)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(replay.__file__).parent))  # as in the jail
        for call in calls:
            placed, space = memory.place(call), {**assignment.names, **answers}
            try:
                reply = replay._perform(placed, space, memory.bytes)
            except Exception as error:
                reply = {"error": str(error)}
            sent.append(json.loads(json.dumps({**reply, "changed": memory.changed()})))
    return sent


def passed(results: GradingResults) -> set[tuple[str, int]]:
    """The tests that pass, each as its question and number."""
    return {
        (name, number)
        for name, tests in results.results.items()
        for number, case in enumerate(tests.test_case_results)
        if case.passed
    }


@pytest.mark.parametrize("place", WRONG)
def test_a_known_mistake_is_named_and_never_gets_full_marks(
    read: dict[str, Assignment], place: str
) -> None:
    for seed in SEEDS:
        cases = graded(read, place, seed)
        failed = [case for case in cases if not case.passed]
        assert failed, "every test passes"
        assert said(failed[0]) == KNOWN[place].sentence
        hidden = [case for case in failed if case.test_case.hidden]
        assert sum(case.test_case.points for case in hidden) > 0


@pytest.mark.parametrize("place", [p for p in WRONG if p.startswith("5_language_model/")])
def test_a_known_mistake_in_the_language_model_is_seen_before_it_is_handed_in(
    read: dict[str, Assignment], place: str
) -> None:
    cases = graded(read, place, 0)
    assert [case for case in cases if not case.passed and not case.test_case.hidden]


def test_whole_numbers_are_asked_for_and_wrong_entries_are_counted(
    read: dict[str, Assignment],
) -> None:
    expect, right = read["5_language_model"].names["expect"], torch.tensor([0, 1, 0, 1])
    for got in (right, right.int()):
        expect(got, right)
    with pytest.raises(AssertionError, match=r"dtype torch\.float32; expected torch\.int64"):
        expect(right.float(), right)
    for dtype in (torch.int64, torch.bool):
        with pytest.raises(AssertionError, match=r"^Wrong entries: 1 of 4\."):
            expect(torch.tensor([0, 1, 1, 1]).to(dtype), right.to(dtype))


@pytest.mark.parametrize("place", RIGHT)
def test_a_right_solution_written_differently_passes(
    read: dict[str, Assignment], place: str
) -> None:
    for seed in SEEDS:
        assert [said(case) for case in graded(read, place, seed) if not case.passed] == []


#: One right and one wrong file per question, and every one that writes into its inputs.
FIRST_WRONG = {place.rpartition("/")[0]: place for place in reversed(WRONG)}
REPLAYED = [
    place
    for place, one in KNOWN.items()
    if one.name in ("right", "writes_into_scores") or place in FIRST_WRONG.values()
]


@pytest.mark.parametrize("place", REPLAYED)
def test_replayed_results_pass_the_tests_that_live_ones_pass(
    read: dict[str, Assignment], place: str
) -> None:
    """Also where a function writes into its inputs, which changes what a test sees next."""
    assignment = read[place.partition("/")[0]]
    answers = {n: value for n, value in KNOWN[place].run().items() if n in assignment.answers}
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


def test_what_one_student_writes_is_not_there_for_the_next(read: dict[str, Assignment]) -> None:
    """Also where a test hands out a tensor that the notebook itself holds."""
    plain = read["0_first_hand_in"]
    first, second = plain.questions
    drawn = "numbers(seed, 2, 4, 11)"
    assert drawn in second.source
    source = second.source.replace(drawn, "given")
    source = source.replace("q2_other_numbers(", "q2_other_numbers(given, ")
    given = torch.ones(2, 4, 11)
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
        solutions = mistakes.of_question(f"{name}/{question.name}")
        assert sum(one.right for one in solutions) >= 2
        assert len({one.sentence for one in solutions if not one.right}) >= 7


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


FILLED_WITH: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "NaN": lambda right: torch.full_like(right.float(), torch.nan),
    "infinity": lambda right: torch.full_like(right.float(), torch.inf),
    "noise": lambda right: torch.linspace(-1, 1, right.numel()).reshape(right.shape),
    "equal shares": lambda right: (
        torch.full_like(right.float(), 1 / max(1, right.shape[-1:][0]))
        if right.dim()
        else right * 0 + 0.5
    ),
}


@pytest.mark.parametrize("filled", FILLED_WITH)
@pytest.mark.parametrize("name", assignments.names())
def test_a_tensor_of_the_right_shape_earns_nothing(
    read: dict[str, Assignment], name: str, filled: str
) -> None:
    assignment = read[name]

    def filling(answer: Callable) -> Callable:
        return lambda *inputs: FILLED_WITH[filled](answer(*inputs))

    stand_ins = {n: filling(f) for n in assignment.answers if callable(f := assignment.names[n])}
    stand_ins |= {n: 0 for n in assignment.answers if n not in stand_ins}
    assert assignment.run(3, stand_ins).total == 0


@pytest.mark.parametrize("name", assignments.names())
def test_a_table_of_the_stored_examples_earns_nothing(
    read: dict[str, Assignment], name: str
) -> None:
    assignment = read[name]
    stored = assignment.names["stored_examples"]
    results = [assignment.names["stored_tensor"](right) for right, _ in stored.values()]

    def look_up(answer: Callable) -> Callable:
        def answered(*inputs: Any) -> torch.Tensor:
            right = answer(*inputs)
            known = any(assignment.names["same"](right, one) for one in results)
            return right if known else torch.zeros_like(right)

        return answered

    stand_ins = {n: look_up(f) for n in assignment.answers if callable(f := assignment.names[n])}
    stand_ins |= {
        n: "d" if n.startswith("cause") else -1 for n in assignment.answers if n not in stand_ins
    }
    results_of = assignment.run(4, stand_ins).results.values()
    shown = [c for tests in results_of for c in tests.test_case_results if not c.test_case.hidden]
    assert all(case.passed for case in shown)
    assert sum(tests.score for tests in results_of) == 0


@pytest.mark.parametrize("answer", ["b", "B", "b ", "(b)", "b)", " (B). ", "'b'"])
def test_a_cause_may_be_written_in_any_way(read: dict[str, Assignment], answer: str) -> None:
    assignment = read["4_bug_hunt"]
    assert assignment.run(0, {"cause_1": answer}).get_result("q1").score == 4


@pytest.mark.parametrize("answer", ["e", "", "ab", 2, None, ..., ["b", "c"]])
def test_a_cause_that_is_no_letter_is_told_before_it_is_handed_in(
    read: dict[str, Assignment], answer: Any
) -> None:
    cases = read["4_bug_hunt"].run(0, {"cause_1": answer}).get_result("q1").test_case_results
    assert not cases[0].test_case.hidden
    assert "one of the letters a to d" in said(cases[0])


def test_a_number_is_right_to_its_last_digit_and_no_further(read: dict[str, Assignment]) -> None:
    expect_number = read["4_bug_hunt"].names["expect_number"]
    expect_number(-65504, -65504)
    expect_number(torch.tensor(0.165), 0.1648, within=0.001)
    for wrong in (-65536, -65472, -65503.5, "-65504", True, [1], torch.zeros(2)):
        with pytest.raises(AssertionError):
            expect_number(wrong, -65504)


STYLES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda scores: torch.softmax(scores, -1),
    "by hand": lambda scores: (
        (powers := (scores - scores.amax(-1, keepdim=True)).exp()) / powers.sum(-1, keepdim=True)
    ),
    "log-softmax": lambda scores: torch.log_softmax(scores, -1).exp(),
    "by logsumexp": lambda scores: (scores - scores.logsumexp(-1, keepdim=True)).exp(),
    "in float64": lambda scores: torch.softmax(scores.double(), -1),
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_right_answer_in_any_style_and_dtype_is_the_same(
    read: dict[str, Assignment], dtype: torch.dtype, style: str
) -> None:
    """And a mistake is not, with the tolerance that goes with the dtype."""
    names = read["1_masking_and_pooling"].names
    for seed in range(200):
        scores = (names["numbers"](seed, 3, 7) * 2).to(dtype)
        right = torch.softmax(scores, -1)
        assert names["same"](STYLES[style](scores), right)
        for wrong in (torch.softmax(scores / 2, -1), torch.softmax(scores, 0), right.roll(1, -1)):
            assert not names["same"](wrong, right)


@pytest.mark.parametrize("name", assignments.names())
def test_hidden_tests_take_their_numbers_from_the_seed(
    read: dict[str, Assignment], name: str
) -> None:
    """So that no table of answers, made in one run, helps in another."""
    one, other = read[name].record(1), read[name].record(2)
    assert [call for call in one if call not in other]


def test_the_points_are_those_that_are_announced(read: dict[str, Assignment]) -> None:
    assert [a.possible for a in read.values()] == [8, 20, 20, 20, 20, 20]


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


@pytest.mark.parametrize("name", assignments.names())
def test_the_source_is_as_the_build_writes_it(name: str, tmp_path: Path) -> None:
    """Its helpers, and the examples from the reference solutions and the known mistakes."""
    source = course.sources() / f"{name}.ipynb"
    copy = tmp_path / source.name
    copy.write_bytes(source.read_bytes())
    build.refresh(copy)
    assert copy.read_bytes() == source.read_bytes(), "run make coursework"


@pytest.mark.parametrize(("number", "kept"), [("-0.0588458", True), ("-0.0598457", False)])
def test_the_build_keeps_a_stored_number_that_differs_by_rounding_only(
    number: str, kept: bool, tmp_path: Path
) -> None:
    source = course.sources() / "3_multi_head_and_block.ipynb"
    copy = tmp_path / source.name
    text = source.read_text(encoding="utf-8")
    copy.write_text(text.replace("-0.0588457", number), encoding="utf-8")
    build.refresh(copy)
    assert (number in copy.read_text(encoding="utf-8")) is kept


@pytest.mark.parametrize("name", assignments.names())
def test_no_visible_check_and_no_metadata_holds_reference_code(name: str) -> None:
    notebook = nbformat.read(build.STUDENT / f"{name}.ipynb", as_version=4)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    (checks,) = (c.source for c in notebook.cells if "visible_checks" in c.source)
    shown = checks.partition("visible_checks = {")[2]
    for code in ("torch.softmax", " @ ", "transpose", "matmul", "einsum", ".exp()", "known("):
        assert code not in shown


@pytest.mark.parametrize("name", assignments.names())
def test_no_line_that_a_student_reads_is_cut(name: str) -> None:
    for cell in nbformat.read(build.STUDENT / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type == "code" and "hide-input" not in cell.metadata.get("tags", []):
            assert all(len(line) <= 75 for line in cell.source.splitlines())


#: Otter takes a kernel for Colab's by this method.
COLAB = """
from otter.check import utils
for interpreter in utils.IPythonInterpreter:
    interpreter.value.running = lambda name=interpreter.name: name == "COLAB"
"""
#: A folder for each; the last one does not take back what it changes in the kernel.
PLACES = ("in an empty folder", "renamed, among others", "Colab")


def said_by(cells: list[nbformat.NotebookNode]) -> str:
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    texts = [output.get("text", "") + output.get("evalue", "") for output in outputs]
    return "\n".join(texts + [str(output.get("data", {})) for output in outputs])


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a notebook prints in each place, errors included, in one kernel without names."""
    handed_in = nbformat.read(build.STUDENT / "0_first_hand_in.ipynb", as_version=4)
    (answer,) = (c for c in handed_in.cells if c.source.startswith("def masked_softmax"))
    answer.source = KNOWN["0_first_hand_in/q1/mask-ignored"].code
    (answer,) = (c for c in handed_in.cells if c.source.startswith("def scaled_dot"))
    answer.source = KNOWN["0_first_hand_in/q2/right"].code
    # Names of the helpers, used by a student for something else.
    answer.source += "\nspread = same = expect = stored_examples = 3"
    found = {}
    together = nbformat.v4.new_notebook()
    for where in PLACES:
        folder = tmp_path_factory.mktemp("where")
        if where == "renamed, among others":
            nbformat.write(handed_in, folder / "ada lovelace (1).ipynb")
            for name in ("0_first_hand_in", "another"):
                (folder / f"{name}.ipynb").write_text("{}")
            (folder / "tests").mkdir()
        begin = f"%reset -f\n%cd {folder}\n" + (COLAB if where == "Colab" else "")
        found[where] = [nbformat.v4.new_code_cell(begin), *deepcopy(handed_in.cells)]
        together.cells += found[where]
    NotebookClient(together, timeout=120, allow_errors=True).execute()
    return {where: said_by(cells) for where, cells in found.items()}


@pytest.mark.parametrize("where", PLACES)
def test_the_checks_run_under_any_name(printed: dict[str, str], where: str) -> None:
    assert "✗ 2 checks: Nothing is masked: every key gets weight." in printed[where]
    assert "✓ q2: all checks in this notebook pass." in printed[where]
    for word in ("Test case", "FileNotFoundError", "NameError"):
        assert word not in printed[where]


@pytest.mark.parametrize("name", assignments.names())
def test_the_student_version_is_built_to_the_byte(tmp_path: Path, name: str) -> None:
    once = build.write(name, tmp_path / "once").read_bytes()
    again = build.write(name, tmp_path / "again").read_bytes()
    stored = (build.STUDENT / f"{name}.ipynb").read_bytes()
    assert once == again
    assert once == stored, "run make coursework and commit coursework/student"


@pytest.mark.parametrize("name", assignments.names())
def test_the_student_version_holds_no_solution_and_no_hidden_test(name: str) -> None:
    text = (build.STUDENT / f"{name}.ipynb").read_text()
    assert "SOLUTION" not in text
    assert "hidden=True" not in text
    for question in assignments.load(name).questions:
        shown, hidden = question.source.split("hidden=True", 1)
        assert shown.count("hidden=False") >= 1
        assert hidden.split("def ")[1].split("(")[0] + "(" not in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("=== right\nx = 1\n", "“right” is not “name: what it gets wrong” with code"),
        (
            "=== right: Right.\nx = 1\n=== a: Wrong.\n-y = 1\n+x = 2\n",
            "a: there is no line “y = 1”",
        ),
        ("=== right: Right.\nx = 1\n=== right: Right.\nx = 2\n", "two solutions are called right"),
        ("=== a: Wrong.\n-x = 1\n", "a: list index out of range"),
        ("=== a: not-known\nx = 1\n", "a: sentences.json has no mistake “not-known”"),
    ],
)
def test_a_file_of_mistakes_that_is_none_is_told(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "q1.diff").write_text(text)
    with pytest.raises(mistakes.WrongMistakeError, match=why):
        mistakes.read(tmp_path / "q1.diff")
