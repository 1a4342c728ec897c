"""Courses of one's own: what a seed draws is right and named; another seed is noticed."""

from __future__ import annotations

import dataclasses
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from coursework import build, variants

from walled_grader import assignment as assignments
from walled_grader import course, grade, gradebook, jail, mistakes
from walled_grader.assignment import Assignment
from walled_grader.grader import CannotGradeError, Grader
from walled_grader.people import Roster
from walled_grader.submissions import collect

SEEDS = ("one school", "another school")
VARIED = ("4_bug_hunt", "5_language_model")


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    before = course.folder()
    yield
    course.use(before)


def drawn(seed: str, folder: Path) -> Path:
    """The course of a seed, with stored examples and student versions of what varies."""
    course.use(variants.draw(seed, folder))
    for name in VARIED:
        build.refresh(course.sources() / f"{name}.ipynb")
        build.write(name, folder / "student")
    return folder


def judge(assignment: Assignment) -> None:
    """Right solutions pass; every known mistake fails a hidden test and is told its own name."""
    for question in assignment.questions:
        alone = dataclasses.replace(assignment, questions=(question,))
        solutions = mistakes.of_question(f"{assignment.name}/{question.name}")
        assert sum(one.right for one in solutions) >= 2
        assert len({one.sentence for one in solutions if not one.right}) >= 7
        for one in solutions:
            answers = {n: value for n, value in one.run().items() if n in question.answers}
            cases = alone.run(3, answers).get_result(question.name).test_case_results
            failed = [case for case in cases if not case.passed]
            if one.right:
                assert not failed, one.name
            else:
                assert failed[0].message.partition("\n")[2] == one.sentence, one.name
                assert sum(case.test_case.points for case in failed) > 0, one.name


@pytest.mark.parametrize("numbers", range(3))
def test_every_bug_of_the_pool_is_right_whatever_its_numbers(tmp_path: Path, numbers: int) -> None:
    own = tmp_path / "own"
    for folder in ("assignments", "mistakes"):
        shutil.copytree(variants.HERE / folder, own / folder)
    every = list(range(1, variants.BUGS + 1))
    variants.bug_hunt(every, own, random.Random(numbers))
    course.use(own)
    build.refresh(course.sources() / f"{variants.BUG_HUNT}.ipynb")
    assignment = assignments.load(variants.BUG_HUNT)
    assert len({question.title for question in assignment.questions}) == len(every) == 12
    assert assignment.possible == 4 * len(every)
    assert assignment.record(0)
    judge(assignment)


def test_two_seeds_give_two_courses_in_which_all_is_right(tmp_path: Path) -> None:
    made = {seed: drawn(seed, tmp_path / mark) for seed in SEEDS if (mark := variants.mark(seed))}
    for name in VARIED:
        texts = [(own / "student" / f"{name}.ipynb").read_text() for own in made.values()]
        texts += [(build.STUDENT / f"{name}.ipynb").read_text()]
        assert len(set(texts)) == 3
    for own in made.values():
        course.use(own)
        for name in VARIED:
            assignment = assignments.load(name)
            assert assignment.possible == 20
            assert assignment.record(1)
            judge(assignment)
        notebook = nbformat.read(own / "student" / "4_bug_hunt.ipynb", as_version=4)
        asked = [c.source for c in notebook.cells if c.source.startswith("## Question")]
        minutes = sum(int(text.partition("points · ")[2].partition(" ")[0]) for text in asked)
        assert f"**{minutes} minutes · 20 points.**" in notebook.cells[0].source
        assert [text[:13] for text in asked] == [f"## Question {n}" for n in range(1, 6)]


def test_one_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    folders = [drawn(SEEDS[0], tmp_path / name) for name in ("once", "again")]
    for path in sorted(folders[0].rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (folders[1] / path.relative_to(folders[0])).read_bytes()


@pytest.mark.parametrize("choice", variants.CHOICES, ids=lambda c: f"{c.assignment}-{c.question}")
def test_what_is_to_be_replaced_is_there(choice: variants.Choice) -> None:
    hunt = choice.assignment == variants.BUG_HUNT
    folder = variants.POOL if hunt else variants.HERE / "assignments"
    name = "bugs" if hunt else choice.assignment
    known = variants.POOL if hunt else variants.HERE / "mistakes" / choice.assignment
    notebook = nbformat.read(folder / f"{name}.ipynb", as_version=4)
    cells = "\n".join(cell.source for cell in variants.questions(notebook)[choice.question])
    text = cells + (known / f"{choice.question}.diff").read_text(encoding="utf-8")
    for one in choice.texts[0]:
        assert variants.replaced(text, [(one, "…")]) != text


def test_a_seed_that_is_lost_or_changed_is_told_in_one_sentence(tmp_path: Path) -> None:
    own = tmp_path / "own"
    assert variants.settle(None, own) is None
    assert variants.settle("one", own) == "one"
    variants.draw("one", own)
    assert variants.settle(None, own) == variants.settle("one", own) == "one"
    with pytest.raises(
        variants.SeedError, match=r"This course has the seed “one”, and .*: use tha"
    ):
        variants.settle("two", own)
    (own / "seed.txt").write_text("two\n")
    with pytest.raises(variants.SeedError, match=r"seed\.txt was changed: .*; put that seed back"):
        variants.settle(None, own)
    (own / "seed.txt").unlink()
    for seed in (None, "two"):
        with pytest.raises(variants.SeedError, match=r"seed\.txt is lost: give SEED=…"):
            variants.settle(seed, own)
    assert variants.settle("one", own) == "one"


def test_the_grader_notices_notebooks_of_another_seed(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, mark in (("ada", "one"), ("bob", "one"), ("eve", "two")):
        code = [f'variant = "{variants.mark(mark)}"  # leave this line', "x = 1"]
        cells = [nbformat.v4.new_code_cell(cell) for cell in code]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"{name}.ipynb")
    given = collect(folder)
    owner_of = gradebook.owners(given, Roster())
    one, two = variants.mark("one"), variants.mark("two")
    why = rf"3 of 3 students .* is without a seed \(the first: ada: {one}; bob: {one}; eve: {two}\)"
    with pytest.raises(CannotGradeError, match=why):
        grade._check_variant(assignments.load("5_language_model"), given, owner_of)
    course.use(variants.draw("two", tmp_path / "two"))
    why = rf"2 of 3 .*, which is {two} \(the first: ada: {one}; bob: {one}\): grade with"
    assignment = assignments.read(course.sources() / "5_language_model.ipynb")
    with pytest.raises(CannotGradeError, match=why):
        grade._check_variant(assignment, given, owner_of)
    # All files of one are one voice, and one foreign file among others is none.
    eve = next(person for person in owner_of.values() if person.name == "eve")
    grade._check_variant(assignment, given, {**owner_of, given[1].key: owner_of[given[0].key]})
    grade._check_variant(assignment, given, {**owner_of, given[1].key: eve})
    course.use(variants.draw("one", tmp_path / "one"))
    assignment = assignments.read(course.sources() / "5_language_model.ipynb")
    grade._check_variant(assignment, given, owner_of)  # one of last year does not stop the others
    grader = Grader(assignment, 0, 1, jail.Limits())
    said = [grader._other_variant([f'variant = "{variants.mark(m)}"']) for m in ("one", "two")]
    assert said[0] == []
    assert variants.mark("two") in said[1][0]
