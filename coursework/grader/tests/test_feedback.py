"""What students read of every assignment: untouched, half solved and solved, in each language."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import nbformat
import pytest

from walled_grader import assignment as assignments
from walled_grader import course, grade, grader, source

KINDS = ("untouched", "half", "solved")
LANGUAGES = ("en", "zh_CN")


def handed_in(name: str, kind: str, language: str) -> nbformat.NotebookNode:
    """The student version, with the answers to no question, to every other one, or to all."""
    notebook = nbformat.read(course.folder() / "student" / f"{name}.ipynb", as_version=4)
    asked = source.questions(nbformat.read(course.sources() / f"{name}.ipynb", as_version=4))
    solved = {"untouched": [], "half": list(asked)[::2], "solved": list(asked)}[kind]
    for cell, check in zip(notebook.cells, notebook.cells[1:], strict=False):
        question = re.fullmatch(r'grader\.check\("(\w+)"\)', check.source)
        if question and question[1] in solved:
            cell.source = asked[question[1]].solution
    if language != "en":
        words = (course.folder() / "languages" / f"{language}.json").read_text(encoding="utf-8")
        (helpers,) = (cell for cell in notebook.cells if cell.source.startswith("# The helpers"))
        told = f'other_words = json.loads(r"""{words}""")'
        helpers.source = helpers.source.replace("other_words = {}", told)
        assert told in helpers.source
    return notebook


def read(page: Path) -> list[str]:
    """The lines of a page as they are read."""
    text = re.sub(r"<style.*?</style>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = re.sub(r"<(?!/?(code|strong)\b)[^>]*>", "\n", text)
    return [html.unescape(line).strip() for line in lines.split("\n") if line.strip()]


@pytest.mark.parametrize("name", assignments.names())
def test_pages_say_what_is_to_be_said_and_nothing_else(name, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for kind in KINDS:
        for language in LANGUAGES:
            notebook = handed_in(name, kind, language)
            nbformat.write(notebook, folder / f"{kind}-{language}.ipynb")
    monkeypatch.setattr(grader.Grader, "prove", lambda self: None)
    for language in LANGUAGES:
        out = grade.grade_folder(name, folder, jobs=2, language=language)
        for path in (out / "results").iterdir():
            result = json.loads(path.read_text())
            extra = result["extra_data"]
            assert (extra["notes"], extra["forbidden"]) == ([], {}), extra["student"]
            kind = extra["student"].partition("-")[0]
            by_tests = [q["possible"] for q in extra["questions"]]
            scores = [q["score"] for q in extra["questions"]]
            wanted = {"untouched": [0] * 9, "half": [*(by_tests[:1]), 0] * 9, "solved": by_tests}
            assert scores == [
                possible if wanted[kind][number] else 0 for number, possible in enumerate(by_tests)
            ]
            lines = read(out / "feedback" / f"{path.stem}.html")
            assert not [line for line in lines if "Test case" in line or "Error at" in line]
            failed = [line for line in lines if line.startswith("✗")]
            assert bool(failed) == (kind != "solved")
            # Nothing is said twice below one question.
            questions = "\n".join(lines).split("\n## ")
            assert len(set(lines)) > 3, questions
