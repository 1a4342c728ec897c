"""What students read of every assignment: untouched, half solved and solved, in each language."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import nbformat
import pytest

from walled_grader import assignment as assignments
from walled_grader import course, grade, grader, report, source

KINDS = ("untouched", "half", "solved")
LANGUAGES = ("en", "zh_CN")


def questions(name: str) -> dict[str, source.Stated]:
    return source.questions(nbformat.read(course.sources() / f"{name}.ipynb", as_version=4))


def solved(name: str, kind: str) -> list[str]:
    """The questions that have an answer: none, every other one, or all."""
    asked = list(questions(name))
    return {"untouched": [], "half": asked[::2], "solved": asked}[kind]


def handed_in(name: str, kind: str, language: str) -> nbformat.NotebookNode:
    notebook = nbformat.read(course.folder() / "student" / f"{name}.ipynb", as_version=4)
    asked, answered = questions(name), solved(name, kind)
    for cell, check in zip(notebook.cells, notebook.cells[1:], strict=False):
        question = re.fullmatch(r'grader\.check\("(\w+)"\)', check.source)
        if question and question[1] in answered:
            cell.source = asked[question[1]].solution
    if language != "en":
        words = (course.folder() / "languages" / f"{language}.json").read_text(encoding="utf-8")
        (helpers,) = (cell for cell in notebook.cells if cell.source.startswith("# The helpers"))
        told = f'other_words = json.loads(r"""{words}""")'
        helpers.source = helpers.source.replace("other_words = {}", told)
        assert told in helpers.source
    return notebook


def read(page: Path) -> list[str]:
    """The lines of a page as they are read, its paragraphs and items."""
    main = page.read_text(encoding="utf-8").partition("<main>")[2]
    blocks = re.findall(r"<(p|h1|h2|li)>(.*?)</\1>", main, re.DOTALL)
    return [" ".join(html.unescape(re.sub("<.*?>", "", text)).split()) for _, text in blocks]


@pytest.mark.parametrize("name", assignments.names())
def test_a_page_says_each_thing_once_and_nothing_of_what_was_handed_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for number, kind in enumerate(KINDS, assignments.names().index(name)):
        language = LANGUAGES[number % 2]  # each kind in each, over all assignments
        nbformat.write(handed_in(name, kind, language), folder / f"{kind}.ipynb")
    monkeypatch.setattr(grader.Grader, "prove", lambda self: None)
    for language in LANGUAGES:
        out = grade.grade_folder(name, folder, language=language)
        for path in (out / "results").iterdir():
            extra = json.loads(path.read_text(encoding="utf-8"))["extra_data"]
            assert (extra["notes"], extra["forbidden"]) == ([], {})
            answered = solved(name, extra["student"])
            full = {q["name"] for q in extra["questions"] if q["score"] == q["possible"]}
            assert full == {q["name"] for q in extra["questions"]} & set(answered)
            lines = read(out / "feedback" / f"{path.stem}.html")
            assert not [line for line in lines if "Test case" in line or "Error" in line]
            below: list[str] = []  # the lines of one question
            for line in lines:
                below = [*below, line] if line[0] in "✓✗" else []
                assert len(set(below)) == len(below)
                assert sum(one[0] == "✓" for one in below) <= 1
            assert ("✗" in "".join(lines)) == (extra["student"] != "solved")


def test_of_checks_that_say_the_same_their_number_is_told() -> None:
    case = {"hidden": True, "points": 2.0, "passed": False, "message": "It is wrong."}
    passed = {"hidden": False, "points": 0.0, "passed": True, "message": ""}
    one, other = report._alike([passed, case, case, passed, case])
    assert (one["number"], one["points"], one["passed"]) == (2, 0, True)
    assert (other["number"], other["points"], other["message"]) == (3, 6, "It is wrong.")
