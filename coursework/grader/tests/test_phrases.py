"""What students read in another language, made from results that are English."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from handed_in import notebook
from test_gradebook import WRONG_AXIS, Course

from walled_grader import cli, grader, jail, phrases
from walled_grader import course as courses

CHINESE = json.loads((courses.folder() / "languages" / "zh_CN.json").read_text(encoding="utf-8"))
TABLE = {
    "In code cell {0} (`{1}`): {2}.": "[{2} in cell {0}, {1}]",
    "In code cell {0}, line {1} (`{2}`): {3}.": "[{3} in cell {0}, row {1}, {2}]",
    "it ran longer than {0} s": "[more than {0} s]",
    "it returned too much": "[too much]",
    "{0} gave no result: {1}": "[no {0}: {1}]",
    "the result cannot be used: {0}": "[unusable: {0}]",
    "{0}: {1} of {2}": "[{1} of {2} points: {0}]",
    "passed.": "[passed]",
    "Check in the notebook ({0}): {1}": "[visible {0}: {1}]",
    "First hand-in": "[first]",
    WRONG_AXIS: "[wrong axis]",
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    {
        WRONG_AXIS: "[wrong axis]",
        "attention gave no result: it returned too much": "[no attention: [too much]]",
        "In code cell 3, line 2 (`while x[1:]: {0}`): it ran longer than 10 s.": (
            "[[more than 10 s] in cell 3, row 2, while x[1:]: {0}]"
        ),
        "In code cell 3 (`x = (1`): SyntaxError: '(' was never closed.": (
            "[SyntaxError: '(' was never closed in cell 3, x = (1]"
        ),
        "attention gave no result: RuntimeError: The size of tensor a (3) must match of b": (
            "[no attention: RuntimeError: The size of tensor a (3) must match of b]"
        ),
        "the result cannot be used: ValueError: shape: 2 of 3": (
            "[unusable: ValueError: shape: 2 of 3]"
        ),
        "The result contains NaN.": "The result contains NaN.",
        "": "",
    }.items(),
)
def test_a_text_is_told_with_its_values_and_what_is_unknown_as_it_is(
    text: str, wanted: str
) -> None:
    assert phrases.Phrases(TABLE).told(text) == wanted
    assert phrases.read("en").told(text) == text


def test_the_language_of_a_folder_is_remembered_and_a_change_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grader.Grader, "prove", lambda self: None)
    monkeypatch.setattr(jail, "run", lambda *job: [])
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "ada.ipynb").write_text(notebook(["x = 1"]))
    run = tmp_path / "all-marks" / "run.json"
    for option, language, change in (
        ([], "en", ""),
        (["--language", "zh_CN"], "zh-CN", "written anew in zh_CN; it was in en."),
        (["--only", "q1"], "zh-CN", ""),
        (["--language", "zh_CN"], "zh-CN", ""),
        (["--language", "en"], "en", "written anew in en; it was in zh_CN."),
        ([], "en", ""),
    ):
        capsys.readouterr()
        assert cli.main(["0_first_hand_in", str(tmp_path / "all"), *option]) == 0
        said = capsys.readouterr().out
        assert change in said
        assert ("written anew" in said) is bool(change)
        (page,) = (run.parent / "feedback").iterdir()
        assert f'<html lang="{language}">' in page.read_text(encoding="utf-8")
    kept = json.loads(run.read_text())
    assert isinstance(kept["seed"], int)


def test_values_are_no_places_for_others() -> None:
    say = phrases.Phrases(TABLE)
    assert say.told("f gave no result: KeyError: '{1}' {") == "[no f: KeyError: '{1}' {]"


def test_every_sentence_is_told_apart_from_the_others() -> None:
    say = phrases.read("zh_CN")
    for sentence, other in CHINESE.items():
        values = [f"⟨{n}⟩" for n in range(len(re.findall(r"\{\d+\}", sentence)))]
        told = say.told(sentence.format(*values) if values else sentence)
        assert told == (other.format(*values) if values else other)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path)


def test_a_page_is_of_one_language(course: Course) -> None:
    course.hand_in("ada.ipynb", 4, 3, message=WRONG_AXIS, notes=["it returned too much"])
    course.say = phrases.Phrases(TABLE, "xx-YY")
    course.finish()
    (page,) = (course.out / "feedback").iterdir()
    text = page.read_text(encoding="utf-8")
    assert '<html lang="xx-YY">' in text
    assert "<h1>[first] · ada</h1>" in text
    for told in ("[wrong axis]", "[too much]", "[visible 1: [passed]]"):
        assert told in text
    assert WRONG_AXIS not in text
    (row,) = course.rows("moodle.csv")
    assert row["Feedback comments"] == "[too much]"
    course.say = phrases.read("en")
    course.finish()
    assert WRONG_AXIS in page.read_text(encoding="utf-8")


def test_a_language_that_a_course_has_not_is_refused_before_anything_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ada.ipynb").write_text("")
    assert cli.main(["0_first_hand_in", str(tmp_path / "in"), "--language", "fr"]) == 2
    assert capsys.readouterr().err == "There is no language 'fr'; there are en, zh_CN\n"
    assert not (tmp_path / "in-marks").exists()
