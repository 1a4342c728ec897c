"""From results to marks: what counts, what is open, what goes back to students, what is shown."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from handed_in import notebook, rows_of

from walled_grader import (
    archives,
    cluster,
    gradebook,
    overview,
    phrases,
    regrade,
    replay,
    report,
    similarity,
    source,
    submissions,
)
from walled_grader import assignment as assignments
from walled_grader import (
    course as courses,
)
from walled_grader.assignment import Assignment
from walled_grader.gradebook import Gradebook, Settings, Student
from walled_grader.people import Person, Roster
from walled_grader.regrade import NotRegradedError, Only
from walled_grader.sheets import SheetError
from walled_grader.submissions import Submission

ASSIGNMENT = assignments.load("0_first_hand_in")
WRONG_AXIS = "Your weights sum to 1 over the queries: the softmax is on the wrong axis."


def result_of(
    one: Submission,
    scores: tuple[float, ...] = (5, 3),
    message: str = "",
    assignment: Assignment = ASSIGNMENT,
    **extra: Any,
) -> dict[str, Any]:
    """What grading would store for a file: `scores` by question, `message` in the first."""
    questions = [
        {
            **{"name": q.name, "tests": q.digest, "title": q.title, "score": score},
            "possible": q.tests().possible,
            "cases": [
                {
                    **{"hidden": False, "points": 1, "passed": not said},
                    "message": said,
                }
            ],
        }
        for q, score, said in zip(assignment.questions, scores, (message, ""), strict=True)
    ]
    return {
        "tests": [{"name": question["name"], "score": question["score"]} for question in questions],
        "score": sum(scores),
        "extra_data": {
            **{"key": one.key, "student": one.student, "identifier": one.identifier},
            **{"file": one.shown, "digest": one.digest(), "readable": True, "failed": False},
            **{"notes": [], "questions": questions, **extra},
        },
    }


class Course:
    """A folder of submissions, an instructor's tables, and results that are made up."""

    def __init__(self, home: Path) -> None:
        self.folder, self.tables, self.out = home / "in", home / "tables", home / "out"
        for folder in (self.folder, self.tables, self.out):
            folder.mkdir()
        self.results: dict[str, dict[str, Any]] = {}
        self.say = phrases.Phrases({})

    def hand_in(self, name: str, *scores: float, cells: tuple[str, ...] = (), **how: Any) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(notebook(cells or [f"name = {name!r}"]))
        (one,) = (one for one in self.submissions if one.path == path)
        self.results[one.key] = result_of(one, scores or (5, 3), **how)

    def table(self, name: str, text: str) -> None:
        (self.tables / name).write_text(text)

    @property
    def submissions(self) -> list[Submission]:
        return submissions.collect(self.folder)

    def book(self, assignment: Assignment = ASSIGNMENT, **settings: Any) -> Gradebook:
        settings = {"tables": self.tables, **settings}
        return gradebook.make(assignment, self.submissions, self.results, Settings(**settings))

    def student(self, name: str, **settings: Any) -> Student:
        return next(s for s in self.book(**settings).students if s.person.name == name)

    def finish(self, assignment: Assignment = ASSIGNMENT, **settings: Any) -> None:
        book = self.book(assignment, **settings)
        report.write(self.out, book, self.say)
        archives.write(self.out, book)
        overview.write(self.out, book, assignment)
        similarity.write(self.out, book, assignment)

    def rows(self, name: str) -> list[dict[str, str]]:
        return rows_of(self.out / name)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path)


def age(path: Path, seconds: int) -> None:
    os.utime(path, ns=(0, 10**18 - seconds * 10**9))


# Which file counts


def test_the_newer_of_two_files_counts(course: Course) -> None:
    course.hand_in("ada/one.ipynb", 5, 3)
    course.hand_in("ada/two.ipynb", 1, 0)
    age(course.folder / "ada/one.ipynb", 60)
    age(course.folder / "ada/two.ipynb", 0)
    assert course.student("ada").value == 1
    assert course.student("ada", prefer="highest").value == 8
    course.finish()
    assert {row["file"]: row["counts"] for row in course.rows("marks.csv")} == {
        "ada/one.ipynb": "no",
        "ada/two.ipynb": "yes",
    }
    older = next(key for key in course.results if course.results[key]["score"] == 8)
    page = (course.out / "feedback" / f"{older}.html").read_text()
    assert "Another file of yours counts" in page


def test_no_mark_falls_below_0(course: Course) -> None:
    course.hand_in("ada.ipynb", 1, 0)
    course.table(
        "deadlines.csv",
        "student,due,loss_per_day,handed_in\n*,2001-09-08 00:00,30,\nada,,,2001-09-10 01:00\n",
    )
    assert course.student("ada").value == 0


def test_the_latest_file_on_time_counts_where_it_is_asked_for(course: Course) -> None:
    for name, score, seconds in (("1", 5, 200), ("2", 4, 100), ("3", 3, 0)):
        course.hand_in(f"ada/{name}.ipynb", score, 0)
        age(course.folder / f"ada/{name}.ipynb", seconds)
    course.table("deadlines.csv", "student,due,loss_per_day\n*,2001-09-09 01:46+00:00,10\n")
    how = {"file_times": True}
    assert course.student("ada", prefer="latest-on-time", **how).value == 4
    assert course.student("ada", **how).value == pytest.approx(3 - 0.8)
    for number in (1, 2):
        (course.folder / f"ada/{number}.ipynb").unlink()
    assert course.student("ada", prefer="latest-on-time", **how).value == pytest.approx(3 - 0.8)


def test_a_file_of_one_is_a_file_of_the_whole_group(course: Course) -> None:
    course.hand_in("ada.ipynb", 5, 1)
    course.table("roster.csv", "name,id\nAda,815\nBob,816\nLea,817\n")
    course.table("groups.csv", "group,student\nred,Ada\nred,Bob\n")
    course.table("overrides.csv", "student,question,points,comment\nBob,q2,3,yours alone\n")
    course.finish()
    assert [(row["student"], row["mark"]) for row in course.rows("marks.csv")] == [
        ("Ada", "6"),
        ("Bob", "8"),
    ]
    assert [row["student"] for row in course.rows("missing.csv")] == ["Lea"]
    ada, bob = sorted((course.out / "feedback").iterdir(), key=lambda page: len(page.name))
    assert "yours alone" in bob.read_text()
    assert "yours alone" not in ada.read_text()
    with zipfile.ZipFile(course.out / archives.MOODLE_ARCHIVE) as archive:
        assert len(archive.namelist()) == 2


def test_who_has_left_the_course_is_in_no_table(course: Course) -> None:
    for name in ("ada.ipynb", "bob.ipynb"):
        course.hand_in(name, 5, 1)
    course.table("roster.csv", "name,id\nAda,815\nLea,817\n")
    course.table("withdrawn.csv", "student\nBob\nLea\n")
    course.finish()
    for table in ("marks.csv", "moodle.csv", "to_check.csv", "missing.csv"):
        text = (course.out / table).read_text(encoding="utf-8").lower()
        assert "bob" not in text, table
        assert "lea" not in text, table
    assert [page.name[:3] for page in (course.out / "feedback").iterdir()] == ["ada"]


def test_a_late_file_with_a_mark_entered_by_hand_is_not_asked_for_again(course: Course) -> None:
    course.hand_in("ada_LATE_815_99_hw.ipynb", 5, 1)
    course.table("deadlines.csv", "student,due,loss_per_day\n*,2026-05-01 12:00,10\n")
    assert course.student("ada").look == ("it may be late: the time is not known",)
    course.table("overrides.csv", "student,question,points,comment\nada,,4,\n")
    ada = course.student("ada")
    assert (ada.value, ada.look) == (4, ())


def test_a_file_from_the_future_is_nobodys_delay(course: Course) -> None:
    course.hand_in("ada.ipynb", 5, 1)
    age(course.folder / "ada.ipynb", -(10**10))
    course.table("deadlines.csv", "student,due,loss_per_day\n*,2026-05-01 12:00,10\n")
    ada = course.student("ada", file_times=True)
    assert (ada.value, ada.look) == (6, ("it may be late: the time is not known",))


def test_canvass_numbers_say_which_is_newer_whatever_the_files_times(course: Course) -> None:
    course.hand_in("ada_815_100_hw.ipynb", 5, 3)
    course.hand_in("ada_815_99_hw.ipynb", 1, 0)
    age(course.folder / "ada_815_100_hw.ipynb", 60)
    age(course.folder / "ada_815_99_hw.ipynb", 0)
    assert course.student("ada").value == 8


def test_files_of_one_time_are_left_to_the_instructor_and_the_same_bytes_are_not(
    course: Course,
) -> None:
    for name in ("ada/1.ipynb", "ada/2.ipynb"):
        course.hand_in(name, cells=(name,))
        age(course.folder / name, 0)
    ada = course.student("ada")
    assert ada.value is None
    assert ada.look == ("2 files of the same time: say in a list which one counts",)
    for name in ("bob/1.ipynb", "bob/2.ipynb"):
        course.hand_in(name, cells=("x = 1",))
        (course.folder / name).write_bytes((course.folder / "bob/1.ipynb").read_bytes())
        one = next(o for o in course.submissions if o.shown == name)
        course.results[one.key] = result_of(one)
    assert course.student("bob").value == 8


def test_a_list_decides(course: Course) -> None:
    course.hand_in("ada/1.ipynb", 5, 3)
    course.hand_in("ada/2.ipynb", 1, 0)
    with pytest.raises(SheetError, match=r"there is no chosen\.csv"):
        course.book(prefer="list")
    course.table("chosen.csv", "student,file\nada,ada/1.ipynb\n")
    assert course.student("ada", prefer="list").value == 8
    course.table("chosen.csv", "student,file\nada,3.ipynb\n")
    (why,) = course.student("ada", prefer="list").look
    assert why == "2 files, and the list names 3.ipynb, which is not among them"


def test_what_lies_beside_a_notebook_is_not_a_second_hand_in(course: Course) -> None:
    (course.folder / "ada_815_98_report.pdf").write_bytes(b"%PDF")
    (course.folder / "eve_9_1_report.pdf").write_bytes(b"%PDF")
    course.hand_in("ada_815_99_hw.ipynb")
    assert [one.shown for one in course.submissions] == [
        "ada_815_99_hw.ipynb",
        "eve_9_1_report.pdf",
    ]


# Lateness, overrides, manual questions


def test_lateness_is_taken_off_and_canvass_mark_of_it_is_kept(course: Course) -> None:
    course.hand_in("ada_LATE_815_99_hw.ipynb", 5, 1)
    course.hand_in("bob.ipynb", 5, 3)
    age(course.folder / "bob.ipynb", 0)  # 2001-09-09 01:46:40 UTC
    course.table("deadlines.csv", "student,due,loss_per_day\n*,2001-09-08 01:00+00:00,10\n")
    assert course.student("bob").value == 8  # a file's time is not trusted unasked
    bob = course.student("bob", file_times=True)
    assert bob.value == pytest.approx(8 - 2 * 0.8)
    assert course.student("ada").look == ("it may be late: the time is not known",)
    assert course.student("ada").value == 6
    course.table(
        "deadlines.csv",
        "student,due,loss_per_day,handed_in\n*,2001-09-08 00:00,50,\nada,,,2001-09-08 01:00\n",
    )
    course.finish()
    assert [(row["late"], row["mark"]) for row in course.rows("marks.csv")] == [
        ("1 d, −50 %", "2"),
        ("", "8"),
    ]
    (page,) = (course.out / "feedback").glob("ada*.html")
    assert "Handed in 1 day late" in page.read_text()


def test_what_an_instructor_enters_survives_every_run(course: Course) -> None:
    course.hand_in("ada.ipynb", 5, 0, message="<b>wrong</b>")
    course.hand_in("bob.ipynb", 0, 0, failed=True)
    course.table(
        "overrides.csv",
        "student,question,points,comment\n"
        "ada,q2,1.5,<b>a good idea</b>\nada,,,=well done\nbob,,7,\n",
    )
    before = json.dumps(course.results)
    for _ in range(2):
        course.finish()
    assert json.dumps(course.results) == before
    rows = {row["student"]: row for row in course.rows("marks.csv")}
    assert (rows["ada"]["q2"], rows["ada"]["score"], rows["ada"]["mark"]) == ("1.5", "5", "6.5")
    assert rows["bob"]["mark"] == "7"
    (page,) = (course.out / "feedback").glob("ada*.html")
    text = page.read_text()
    assert "6.5 of 8" in " ".join(text.split())
    assert "&lt;b&gt;a good idea&lt;/b&gt;" in text
    assert "entered by your instructor" in text
    (ada, _) = course.rows("moodle.csv")
    assert "=well done" in ada["Feedback comments"]


def test_moodle_cannot_take_a_students_text_for_html(course: Course) -> None:
    course.hand_in("ada.ipynb", notes=["KeyError: '<img src=x onerror=alert(1)>'"])
    course.finish()
    (row,) = course.rows("moodle.csv")
    assert row["Feedback comments"] == "KeyError: '&lt;img src=x onerror=alert(1)&gt;'"


def test_a_mark_is_open_while_a_person_must_decide(course: Course) -> None:
    course.hand_in("failed.ipynb", 0, 0, failed=True)
    course.hand_in("damaged.ipynb", 0, 0, readable=False, notes=["The zip is damaged."])
    course.hand_in("empty.ipynb", 0, 0)
    course.table("roster.csv", "name,id\nempty,815\nfailed,816\ndamaged,817\n")
    course.finish()
    assert {row["Student"]: row["First hand-in"] for row in course.rows("canvas.csv")[1:]} == {
        **{"damaged": "", "failed": "", "empty": "0"}
    }
    assert {(row["student"], row["ID"]): row["why"] for row in course.rows("to_check.csv")} == {
        ("damaged", "817"): "this file cannot be marked: The zip is damaged.",
        ("failed", "816"): "the grader itself failed on this file",
        ("empty", "815"): "nothing was earned",
    }


def test_who_was_marked_by_hand_is_not_told_how_to_hand_in(course: Course) -> None:
    asks = "The zip holds several notebooks: hand in the one that is to be marked."
    course.hand_in("ada.ipynb", 0, 0, readable=False, notes=[asks])
    course.hand_in("bob.ipynb", 5, 3, notes=["A note."])
    for points, told in (("", True), ("7", False)):
        course.table(
            "overrides.csv", f"student,question,points,comment\nada,,{points},read\nbob,,8,\n"
        )
        course.finish()
        for name, there in (("ada", told), ("bob", True)):
            (page,) = (course.out / "feedback").glob(f"{name}*.html")
            assert ("About your notebook" in page.read_text()) is there
        ada, bob = course.rows("moodle.csv")
        assert (asks in ada["Feedback comments"]) is told
        assert bob["Feedback comments"] == "A note."
        assert course.rows("marks.csv")[0]["notes"] == asks


def with_essay() -> Assignment:
    notebook = nbformat.read(courses.sources() / f"{ASSIGNMENT.name}.ipynb", as_version=4)
    notebook.cells += [
        nbformat.v4.new_raw_cell("# BEGIN QUESTION\nname: essay\nmanual: true\npoints: 4"),
        nbformat.v4.new_markdown_cell("## Question 3 · Why is there a root?\n\nSay it."),
    ]
    return dataclasses.replace(ASSIGNMENT, manual=source.manual(notebook))


def test_a_manual_question_waits_for_its_points(course: Course) -> None:
    assignment = with_essay()
    course.hand_in("ada.ipynb", 5, 3)
    course.finish(assignment)
    (row,) = course.rows("marks.csv")
    assert (row["essay"], row["possible"], row["mark"]) == ("", "12", "")
    (page,) = (course.out / "feedback").iterdir()
    assert "not marked yet, out of 4<" in " ".join(page.read_text().split())
    course.table("overrides.csv", "student,question,points,comment\nada,essay,2.5,half of it\n")
    course.finish(assignment)
    (row,) = course.rows("marks.csv")
    assert (row["essay"], row["mark"]) == ("2.5", "10.5")
    assert "half of it" in next((course.out / "feedback").iterdir()).read_text()


RUBRIC = "| row | points | full points |\n|---|---|---|\n| idea | 3 | a | \n| words | 1 | b |\n"


def with_rubric(text: str = RUBRIC) -> Assignment:
    notebook = nbformat.v4.new_notebook()
    notebook.cells += [
        nbformat.v4.new_raw_cell("# BEGIN QUESTION\nname: essay\nmanual: true\npoints: 4"),
        nbformat.v4.new_markdown_cell(f"## Question 3 · Why?\n\nSay it.\n\n{text}\nBelow.\n"),
    ]
    return dataclasses.replace(ASSIGNMENT, manual=source.manual(notebook))


HEAD = "student,question,row,points,comment\n"


def test_a_rubric_is_marked_row_by_row_in_the_same_gradebook(course: Course) -> None:
    course.hand_in("ada.ipynb", 5, 3)
    course.table("rubric.csv", f"{HEAD}ada,essay,idea,,\nada,essay,words,,\n")
    course.finish(with_rubric())
    (row,) = course.rows("marks.csv")
    assert (row["essay"], row["possible"], row["mark"]) == ("", "12", "")
    course.table("rubric.csv", f"{HEAD}ada,essay,words,1,\nada,essay,idea,1.5,<b>no reason</b>\n")
    course.finish(with_rubric())
    (row,) = course.rows("marks.csv")
    assert (row["essay"], row["mark"]) == ("2.5", "10.5")
    text = next((course.out / "feedback").iterdir()).read_text()
    assert "words: 1 of 1" in text
    assert "idea: 1.5 of 3 – &lt;b&gt;no reason&lt;/b&gt;" in text


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("ada,essay,idea,2,\n", "row 2: ada has points for essay, but none for the row words"),
        ("ada,essay,idea,2,\nada,essay,words,,\n", "row 3: .* none for the row words"),
        ("ada,essay,idea,2,\nada,essay,idea,2,\n", "row 3: ada has the row “idea” of essay twice"),
        ("ada,essay,ideas,2,\n", "row 2: the rubric of essay has no row “ideas”; it has idea, wor"),
        ("ada,q1,idea,2,\n", "row 2: there is no question “q1” with a rubric"),
        ("ada,essay,idea,4,\nada,essay,words,1,\n", "row 2: 4 points are not between 0 and 3"),
        ("eve,essay,idea,3,\n", "row 2: .*eve"),
    ],
)
def test_a_rubric_that_cannot_be_meant_so_is_told(course: Course, rows: str, why: str) -> None:
    course.hand_in("ada.ipynb", 5, 3)
    course.table("rubric.csv", HEAD + rows)
    with pytest.raises(SheetError, match=f"rubric.csv, {why}"):
        course.book(with_rubric())


def test_points_in_two_tables_are_told(course: Course) -> None:
    course.hand_in("ada.ipynb", 5, 3)
    course.table("rubric.csv", f"{HEAD}ada,essay,idea,2,\nada,essay,words,1,\n")
    course.table("overrides.csv", "student,question,points\nada,essay,2\n")
    with pytest.raises(SheetError, match=r"ada has points for essay in overrides\.csv, too"):
        course.book(with_rubric())


def test_a_rubric_without_one_of_its_rows_is_refused() -> None:
    with pytest.raises(SheetError, match="have 3 points together, and the question has 4: is a ro"):
        with_rubric(RUBRIC.replace("| words | 1 | b |\n", ""))


# The roster


def test_the_roster_gives_names_ids_and_who_is_missing(course: Course) -> None:
    course.hand_in("lovelaceada_815_99_hw.ipynb")
    course.hand_in("Bob Noyce.ipynb")
    course.hand_in("stranger.ipynb")
    course.table(
        "roster.csv",
        "Student,ID,SIS User ID,SIS Login ID,Section,First hand-in (1234)\n"
        '"Lovelace, Ada",815,s-1,ada,A,\n"Noyce, Bob",816,s-2,bob,B,\n"Late, Lea",817,s-3,lea,B,\n',
    )
    course.finish()
    rows = {row["Student"]: row for row in course.rows("canvas.csv")}
    assert rows["Lovelace, Ada"]["SIS User ID"] == "s-1"
    assert rows["Noyce, Bob"]["ID"] == "816"
    assert rows["Noyce, Bob"]["First hand-in (1234)"] == "8"
    assert [row["student"] for row in course.rows("missing.csv")] == ["Late, Lea"]
    (check,) = course.rows("to_check.csv")
    assert (check["student"], check["why"]) == ("stranger", "nobody on the roster has this name")


@pytest.mark.parametrize(
    ("name", "person"),
    [
        ("lovelaceada_815_99_hw.ipynb", "Lovelace, Ada"),
        ("lovelaceada_999_99_hw.ipynb", "lovelaceada"),  # another number is somebody else
        ("noycebob_816_99_hw.ipynb", "Noyce, Bob"),  # of whom the roster has no number
        ("Ada Lovelace.ipynb", "Lovelace, Ada"),
    ],
)
def test_a_name_never_overrules_a_number(course: Course, name: str, person: str) -> None:
    course.hand_in("other_815_98_hw.ipynb", 1, 0)
    course.hand_in(name)
    course.table("roster.csv", 'name,id\n"Lovelace, Ada",815\n"Noyce, Bob",\n')
    book = course.book()
    assert person in [student.person.name for student in book.students]
    ada = next(student for student in book.students if student.person.id == "815")
    assert len(ada.marks) == (2 if person == "Lovelace, Ada" else 1)
    if person == "lovelaceada":
        assert course.student(person).look == ("nobody on the roster has the ID 999",)


def test_who_is_not_on_the_roster_counts_in_no_mean(course: Course) -> None:
    course.hand_in("Bob Noyce.ipynb")
    course.hand_in("stranger.ipynb", 0, 0)
    course.table("roster.csv", 'name\n"Noyce, Bob"\n')
    course.finish()
    assert "Mean 8.0" in " ".join(overview.totals(course.book()))
    assert "1 student not on the roster, counted in no mean." in overview.totals(course.book())
    assert all(row["students"] == "1" for row in course.rows("statistics.csv"))


def test_a_verdict_on_a_forbidden_function_waits_for_a_person(course: Course) -> None:
    verdict = {"q2": {"names": ["layer_norm"], "score": 3.0}}
    course.hand_in("ada.ipynb", 5, 0, forbidden=verdict)
    course.hand_in("bob.ipynb", 5, 3, forbidden={"q2": {"names": [], "score": 3.0}})
    ada, bob = course.book().students
    assert ada.value is bob.value is None
    assert ada.look[0] == (
        "the answer to q2 calls layer_norm, which the question forbids: read it, and enter "
        "the points of q2 by hand (0, or 3 by its tests where the call decides nothing)"
    )
    assert bob.look[0].startswith("the answer to q2 works only where what it forbids may be called")
    course.table("overrides.csv", "student,question,points,comment\nada,q2,3,\nbob,q2,0,\n")
    assert [(one.value, one.look) for one in course.book().students] == [(8, ()), (5, ())]


def test_code_past_the_watch_is_to_be_read_and_keeps_its_mark(course: Course) -> None:
    way = "`marshal` in code cell 3 runs code that does not stand in the notebook"
    course.hand_in("ada.ipynb", 5, 3, ways={"questions": ["q1", "q2"], "found": [way]})
    course.hand_in("bob.ipynb", 5, 3, forbidden={"q2": {"names": [], "score": 3, "slow": True}})
    ada, bob = course.book().students
    assert (ada.value, ada.look) == (
        8,
        (f"{way}: see whether the answers to q1, q2 were written by hand",),
    )
    assert bob.value is None
    assert bob.look[0].startswith("the answer to q2 ran out of time only where what it forbids")
    course.table("overrides.csv", "student,question,points,comment\nada,q1,5,\nada,q2,3,\n")
    assert course.student("ada").look == ()


# Feedback for a whole course


def test_moodle_gets_a_folder_per_student_that_its_importer_reads(course: Course) -> None:
    course.hand_in("Ada_de B/_4711_assignsubmission_file/hw.ipynb".replace("B/", "B"))
    course.hand_in("nobody knows.ipynb")
    course.finish()
    with zipfile.ZipFile(course.out / archives.MOODLE_ARCHIVE) as archive:
        (name,) = archive.namelist()
        page = archive.read(name).decode()
    # As Moodle takes it apart: name, number, and the plugin by its type and name.
    folder, file = name.split("/")
    assert folder.split("_") == ["Ada de B", "4711", "assignsubmission", "file"]
    assert file == "feedback.html"
    (key,) = (key for key in course.results if key.startswith("Ada"))
    assert page == (course.out / "feedback" / f"{key}.html").read_text()
    assert not (course.out / archives.CANVAS_ARCHIVE).exists()


def test_canvas_gets_each_file_back_under_its_name_as_a_notebook(course: Course) -> None:
    message = "first\n\n<script>alert(1)</script>"
    course.hand_in("ada_LATE_815_99_hw-1.ipynb", 2, 3, message=message)
    course.hand_in("bob_816_100_hw.ipynb")
    course.hand_in("eve_817_101_hw.zip")  # it would come back as a zip that nobody can open
    course.finish()
    once = (course.out / archives.CANVAS_ARCHIVE).read_bytes()
    with zipfile.ZipFile(course.out / archives.CANVAS_ARCHIVE) as archive:
        assert archive.namelist() == ["ada_LATE_815_99_hw-1.ipynb", "bob_816_100_hw.ipynb"]
        ada = nbformat.reads(archive.read("ada_LATE_815_99_hw-1.ipynb"), as_version=4)
    nbformat.validate(ada)
    (cell,) = ada.cells
    assert cell.cell_type == "markdown"
    # An empty line would end the HTML, and what follows would be read as Markdown.
    assert "\n\n" not in cell.source
    assert "&lt;script&gt;" in cell.source
    assert "5 of 8 points" in cell.source
    course.finish()
    assert (course.out / archives.CANVAS_ARCHIVE).read_bytes() == once


def test_what_is_no_longer_handed_in_leaves_no_page_behind(course: Course) -> None:
    course.hand_in("ada.ipynb")
    course.hand_in("bob.ipynb")
    course.finish()
    (course.folder / "bob.ipynb").unlink()
    course.finish()
    (page,) = (course.out / "feedback").iterdir()
    assert page.name.startswith("ada")
    assert [row["student"] for row in course.rows("marks.csv")] == ["ada"]


# Statistics


def test_statistics_count_students_by_question_and_by_named_mistake(course: Course) -> None:
    course.hand_in("ada.ipynb", 2, 3, message=WRONG_AXIS)
    course.hand_in("bob.ipynb", 2, 3, message=WRONG_AXIS)
    course.hand_in("eve.ipynb", 0, 0, message="The result is off by up to 0.31.")
    course.hand_in("kim.ipynb", 1, 3, message="The result is off by up to 2e-05.")
    course.hand_in("liz.ipynb", 5, 3)
    course.hand_in("max.ipynb", 1, 3, message="f gave no result: MyError: I am Max <b>")
    course.hand_in("tim.ipynb", 1, 3, message="f gave no result: it ran longer than 10 s")
    course.hand_in("zoe.ipynb", 1, 3, message="f gave no result: By the way (Max): hello")
    course.hand_in("pdf.ipynb", 0, 0, readable=False)
    course.finish()
    first, second = course.rows("statistics.csv")
    assert (first["students"], first["mean"], first["full marks"]) == ("8", "1.625", "0.125")
    assert (second["mean"], second["nothing"]) == ("2.625", "0.125")
    assert [list(row.values()) for row in course.rows("mistakes.csv")] == [
        ["q1", WRONG_AXIS, "yes", "2", "0.25"],
        ["q1", "The result is off by up to ….", "no", "2", "0.25"],
        ["q1", "f gave no result: MyError", "no", "1", "0.125"],
        ["q1", "f gave no result: it ran longer than 10 s", "no", "1", "0.125"],
        ["q1", "f gave no result: …", "no", "1", "0.125"],
    ]
    page = (course.out / "statistics.html").read_text()
    assert WRONG_AXIS in page
    assert "25 %" in page
    assert "Max" not in page
    assert "http" not in page.replace('"http://www.w3.org', "")


@pytest.mark.parametrize("why", replay.REASONS)
def test_a_finding_keeps_why_the_jail_gave_nothing(why: str) -> None:
    message = f"f gave no result: {why.format(3) if 'longer' in why else why.format('f')}"
    assert overview.finding(message) == message


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([0, 0.7, 0.8, 8, 7.99], [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]),
        ([], [0] * 10),
    ],
)
def test_every_mark_is_in_one_bin(values: list[float], counts: list[int]) -> None:
    assert [number for _, _, number in overview.bins(values, 8)] == counts


def test_statistics_of_nobody_are_a_page_all_the_same(course: Course) -> None:
    course.hand_in("pdf.ipynb", 0, 0, readable=False)
    course.finish()
    assert "There is no mark yet" in (course.out / "statistics.html").read_text()


# Similar code

LOOP = """
def masked_softmax(scores, valid_lens):
    weights = torch.zeros_like(scores)
    for row in range(scores.shape[0]):
        keys = int(valid_lens[row])
        if keys > 0:
            part = scores[row, :, :keys]
            weights[row, :, :keys] = torch.softmax(part, dim=-1)
    return weights
"""
RENAMED = '''
def masked_softmax(s, lens):
    """My own work."""
    out = torch.zeros_like(s)   # zeros
    for i in range(s.shape[0]):
        n = int(lens[i])
        if n > 0:
            p = s[i, :, :n]
            out[i, :, :n] = torch.softmax(p, dim=-1)
    return out
'''
OTHER = ASSIGNMENT.reference_cells[1]


def compared(*codes: str, **how: Any) -> list[similarity.Pair]:
    files = [
        similarity.File(f"student {i}", f"{i}.ipynb", f"digest {code}", (code,))
        for i, code in enumerate(codes)
    ]
    return similarity.pairs(files, how.get("given", ()))[0]


def test_renamed_code_is_found_and_different_code_is_not() -> None:
    (pair,) = compared(LOOP, OTHER, RENAMED)
    assert {pair.first.name, pair.second.name} == {"0.ipynb", "2.ipynb"}
    assert pair.share == 1
    assert not pair.identical


def test_the_same_bytes_come_first() -> None:
    first, *rest = compared(RENAMED, LOOP, OTHER, LOOP)
    assert first.identical
    assert {first.first.name, first.second.name} == {"1.ipynb", "3.ipynb"}
    assert not any(pair.identical for pair in rest)


def test_what_was_handed_out_and_what_very_many_wrote_is_not_counted() -> None:
    assert compared(LOOP, RENAMED, given=(LOOP,)) == []
    many = [f"{LOOP}\nx = {number}" for number in range(similarity.COMMON + 1)]
    assert compared(*many) == []


def test_two_files_of_one_student_are_no_pair() -> None:
    files = [
        similarity.File("ada", f"{i}", f"{i}", (code,)) for i, code in enumerate((LOOP, RENAMED))
    ]
    assert similarity.pairs(files, ()) == ([], [])


def test_a_file_with_far_more_code_than_answers_need_is_named_and_not_compared() -> None:
    code = "\n".join(f"x.attribute_{number}" for number in range(similarity.MOST))
    long = similarity.File("eve", "eve.ipynb", "long", (code[: similarity.LONGEST],))
    ada, bob = (similarity.File(name, f"{name}.ipynb", name, (LOOP,)) for name in ("ada", "bob"))
    assert len(similarity.fingerprints(long.cells)) > similarity.MOST
    found, left_out = similarity.pairs([ada, long, bob], ())
    assert [(pair.first, pair.second) for pair in found] == [(ada, bob)]
    assert left_out == [long]
    # What stands after so long a comment is not read.
    hidden = similarity.File("eve", "eve.ipynb", "", ("#" * similarity.LONGEST, LOOP))
    assert similarity.pairs([ada, hidden], ()) == ([], [hidden])


def test_code_to_be_read_shows_what_is_invisible() -> None:
    code = similarity.File("eve", "eve.ipynb", "", ("if x:\n\tpass  # \u202e\u2066",)).code
    assert code == "if x:\n    pass  # \\u202e\\u2066"


def test_long_code_is_neither_compared_nor_shown_in_full() -> None:
    long = f"x = {'1' * similarity.LONGEST}"
    assert similarity.fingerprints([LOOP, long, OTHER]) == similarity.fingerprints([LOOP])
    shown = similarity.File("ada", "1.ipynb", "", (LOOP, long)).code
    assert len(shown) < similarity.LONGEST + 50
    assert shown.endswith("… and more in the file.")
    # What is written out is longer.
    hidden = similarity.File("eve", "1.ipynb", "", ("\U000e0001" * 45_000,)).code
    assert len(hidden) < similarity.LONGEST + 50
    assert hidden.endswith("… and more in the file.")


def test_code_that_is_no_python_has_no_fingerprints() -> None:
    assert similarity.fingerprints(["def (", "x = " + 100_000 * "(", "\0"]) == set()


def test_the_page_of_similar_code_says_what_it_cannot_say(course: Course) -> None:
    course.hand_in("ada.ipynb", cells=(LOOP,))
    course.hand_in("bob.ipynb", cells=(RENAMED,))
    course.finish()
    (row,) = course.rows("similarity.csv")
    assert (row["student"], row["other student"], row["share"]) == ("ada", "bob", "1.0")
    page = (course.out / "similarity.html").read_text()
    assert "A number on this page proves nothing" in page
    assert "My own work" in page


def test_what_was_handed_out_is_nobodys_own_code(course: Course) -> None:
    given = ASSIGNMENT.given
    assert any("class Checks" in cell for cell in given)
    course.hand_in("ada.ipynb", cells=given)
    course.hand_in("bob.ipynb", cells=(*given, LOOP))
    course.hand_in("eve.ipynb", cells=(*given, OTHER))
    course.finish()
    assert course.rows("similarity.csv") == []


def test_what_is_handed_out_holds_no_solution() -> None:
    assert "masked_fill" not in "".join(ASSIGNMENT.given[1:])
    assert "def masked_softmax" in ASSIGNMENT.given[1]


# Marking again


def retested(assignment: Assignment, *names: str) -> Assignment:
    questions = tuple(
        dataclasses.replace(q, digest="new") if q.name in names else q for q in assignment.questions
    )
    return dataclasses.replace(assignment, questions=questions)


def test_names_of_students_and_questions_say_what_is_marked_again(course: Course) -> None:
    course.hand_in("lovelaceada_815_99_hw.ipynb")
    people = gradebook.owners(course.submissions, Roster()).values()
    chosen = regrade.only(["q1, 815"], ASSIGNMENT, people)
    assert chosen.questions == {"q1"}
    assert [person.name for person in chosen.students] == ["lovelaceada"]
    assert chosen.holds(*people)
    assert not regrade.only([], ASSIGNMENT, people).holds(*people)
    with pytest.raises(NotRegradedError, match="“Eve” is nobody who handed in a file; the"):
        regrade.only(["Eve"], ASSIGNMENT, people)
    roster = [Person("Lovelace, Ada", "1"), Person("Lovelace, Bob", "2"), Person("Noether, Emmy")]
    assert regrade.only(["noether"], ASSIGNMENT, roster).students == {roster[2]}
    with pytest.raises(
        NotRegradedError, match=r"be Lovelace, Ada \(1\) or Lovelace, Bob \(2\): giv"
    ):
        regrade.only(["lovelace"], ASSIGNMENT, roster)
    everyone = [Person("Wei", str(number)) for number in range(7)]
    with pytest.raises(NotRegradedError, match=r"or Wei \(4\) or 2 more: give the ID"):
        regrade.only(["wei"], ASSIGNMENT, everyone)


def test_one_question_is_new_and_the_others_are_as_they_were(course: Course) -> None:
    course.hand_in("ada.ipynb", 2, 3)
    ((key, old),) = course.results.items()
    new = result_of(course.submissions[0], (5, 0))
    course.results[key] = regrade.merge(old, new, frozenset({"q1"}))
    assert course.results[key]["score"] == 8
    assert [test["score"] for test in course.results[key]["tests"]] == [5, 3]
    course.finish()
    (row,) = course.rows("changes.csv")
    assert list(row.values()) == ["ada", "ada.ipynb", "q1", "2", "5"]
    assert regrade.merge(old, new, frozenset())["score"] == 5


@pytest.mark.parametrize(
    ("chosen", "fine"),
    [
        (Only(), False),
        (Only(questions=frozenset({"q1", "q2"})), True),
        (Only(questions=frozenset({"q2"})), False),
        (Only(frozenset({object()}), frozenset({"q1"})), False),
    ],
)
def test_marks_of_changed_tests_are_not_mixed(course: Course, chosen: Only, fine: bool) -> None:
    course.hand_in("ada.ipynb", 2, 3)
    changed = retested(ASSIGNMENT, "q1", "q2")
    regrade.check(ASSIGNMENT, course.results.values(), Only())
    if fine:
        regrade.check(changed, course.results.values(), chosen)
        return
    with pytest.raises(NotRegradedError, match=r"The tests of q1, q2 have changed .*--only q1,q2"):
        regrade.check(changed, course.results.values(), chosen)


def test_marks_of_other_questions_are_not_mixed(course: Course) -> None:
    course.hand_in("ada.ipynb", 2, 3)
    fewer = dataclasses.replace(ASSIGNMENT, questions=ASSIGNMENT.questions[:1])
    with pytest.raises(NotRegradedError, match="there were other questions: give another --out"):
        regrade.check(fewer, course.results.values(), Only(questions=frozenset({"q1"})))


def test_a_changed_helper_changes_every_question_and_a_changed_text_none() -> None:
    notebook = nbformat.read(courses.sources() / f"{ASSIGNMENT.name}.ipynb", as_version=4)
    tests = {question.name: question.source for question in ASSIGNMENT.questions}
    beside = {name: assignments._beside(ASSIGNMENT.name, name) for name in tests}
    before = source.digests(notebook, tests, beside)
    assert before == {question.name: question.digest for question in ASSIGNMENT.questions}
    next(cell for cell in notebook.cells if cell.cell_type == "markdown").source += " More."
    assert source.digests(notebook, tests, beside) == before
    assert source.digests(notebook, {**tests, "q1": "# new"}, beside)["q2"] == before["q2"]
    next(cell for cell in notebook.cells if cell.cell_type == "code").source += "\n# new"
    assert not set(source.digests(notebook, tests, beside).values()) & set(before.values())


@pytest.mark.parametrize("changed", ["mistakes/0_first_hand_in/q1.diff", "forbidden.json"])
def test_a_changed_mistake_or_rule_changes_its_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """So that a folder never has marks or feedback of two versions."""
    shutil.copytree(courses.mistakes(), tmp_path / "mistakes")
    shutil.copytree(courses.sources(), tmp_path / "assignments")
    (tmp_path / "assignments/forbidden.json").unlink()
    monkeypatch.setattr(courses, "_folder", tmp_path)
    before, version = assignments.load(ASSIGNMENT.name), cluster.version.__wrapped__()
    assert [q.digest for q in before.questions] == [q.digest for q in ASSIGNMENT.questions]
    rule = '{"0_first_hand_in": {"q1": ["softmax"]}}'
    text = rule if changed == "forbidden.json" else "\n=== new: Is new.\nmasked_softmax = 1\n"
    with next(tmp_path.rglob(changed), tmp_path / "assignments" / changed).open("a") as file:
        file.write(text)
    after = assignments.load(ASSIGNMENT.name)
    pairs = zip(before.questions, after.questions, strict=True)
    assert [old.digest == new.digest for old, new in pairs] == [False, True]
    assert before.digest != after.digest
    assert cluster.version.__wrapped__() != version


# The summary


def test_the_summary_says_how_it_went_and_who_needs_a_look(course: Course) -> None:
    for number in range(12):
        course.hand_in(f"s{number:02}.ipynb", 0, 0, failed=True)
    course.hand_in("ada.ipynb", 5, 2)
    course.table("roster.csv", "name\nAda\nLea\ns00\n")
    book = course.book()
    keys = list(course.results)
    text = "\n".join(overview.lines(book, {keys[0]: 3.0, keys[-1]: 41.0}))
    assert "13 files of 13 students." in text
    assert "Mean 7.0 and median 7.0 of 8 points." in text
    assert "11 students not on the roster, counted in no mean." in text
    assert "1 mark still open." in text
    assert "2 marked now, 22.0 s each; the longest, ada.ipynb, took 41 s." in text
    assert "To check (to_check.csv): 12\n" in text
    assert "s09: the grader itself failed on this file" in text
    assert "  … and 2 more" in text
    assert "Not handed in (missing.csv): 1\n  Lea" in text


def test_nothing_to_say_is_not_said(course: Course) -> None:
    course.hand_in("ada.ipynb")
    assert overview.lines(course.book(tables=None), {}) == [
        "1 file of 1 student.",
        "Mean 8.0 and median 8.0 of 8 points.",
    ]
