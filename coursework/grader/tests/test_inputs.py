"""What people really hand in: each bad file gets its student a sentence, the others their marks."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from handed_in import notebook, rows_of

from walled_grader import assignment as assignments
from walled_grader import cli, grade, grader, jail, replay, submissions

ASSIGNMENT = "0_first_hand_in"
RIGHT = list(assignments.load(ASSIGNMENT).reference_cells)


def _graded(folder: Path) -> Path:
    """Grade a folder; the same code runs in the jail only once, whatever its files are called."""
    replay_one, kept = grader.Grader.replay, {}

    def once(self: grader.Grader, cells: list[str], seed: int) -> Any:
        if tuple(cells) not in kept:
            kept[tuple(cells)] = replay_one(self, cells, seed)
        return kept[tuple(cells)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grader.Grader, "replay", once)
        return grade.grade_folder(ASSIGNMENT, folder, jobs=2, limits=jail.Limits(seconds=3))


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """A folder of everything that goes wrong, graded once; rows of marks.csv by file."""
    home = tmp_path_factory.mktemp("inputs")
    folder = home / "handed in"
    folder.mkdir()

    def put(name: str, text: str | bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    good = notebook(RIGHT)
    put("good.ipynb", good)
    put("report.pdf", b"%PDF-1.7")
    put("no ending", good)
    put("broken.ipynb", good[: len(good) // 2])
    put("binary.ipynb", bytes(range(256)))
    put("deep.ipynb", "[" * 200_000)
    put("json.ipynb", '{"name": "not a notebook"}')
    put("list.ipynb", "[1, 2, 3]")
    put("cells_of_numbers.ipynb", '{"cells": [1, {"cell_type": "code", "source": 3}]}')
    put("empty.ipynb", b"")
    put("no_code.ipynb", notebook([]))
    put("no_sheets.ipynb", '{"nbformat": 3, "worksheets": [{"cells": 5}]}')
    put("screen.ipynb", notebook(RIGHT, kernelspec={"language": "\x1b[31m\u202eX\ud800"}))
    put("pdf.\x1b[31m\u202efdp", good)
    put("julia.ipynb", notebook(RIGHT, kernelspec={"name": "julia-1.10", "language": "julia"}))
    put("info.ipynb", notebook(RIGHT, language_info={"name": "scala"}))
    put("conda.ipynb", notebook(RIGHT, kernelspec={"name": "conda-x-py", "language": "python"}))
    put("r.ipynb", notebook(RIGHT, kernelspec={"name": "ir", "display_name": "R"}))
    with (folder / "large.ipynb").open("wb") as file:
        file.truncate(200 * 2**20)
    os.symlink("/etc/passwd", folder / "link.ipynb")
    (folder / "empty folder").mkdir()
    put("..\\..\\x.ipynb", good)
    put("..ipynb", good)
    put("小明 Ünal.ipynb", good)
    put("=cmd|' /C calc'!A0.ipynb", good)
    put("<b>Bobby<b>.ipynb", good)
    put("twice/first.ipynb", good)
    put("twice/second.ipynb", notebook(["..."]))
    put("Ada Lovelace_4711_assignsubmission_file_/homework.ipynb", good)
    put("babbagecharles_LATE_815_99_homework.ipynb", good)
    put("unanswered.ipynb", notebook(["x = 1"]))
    put("syntax.ipynb", notebook([*RIGHT, "def (:\n    pass"]))
    put("prints.ipynb", notebook([*RIGHT, "for _ in range(2**12):\n    print('x' * 2**16)"]))
    put("magics.ipynb", notebook(["%matplotlib inline\n!pip list\nx = 1", *RIGHT]))
    asked = "torch.softmax?\nfiles = !ls\n"
    put("ipython.ipynb", notebook([RIGHT[0], *(asked + cell for cell in RIGHT[1:])]))
    put(".DS_Store", b"\0")
    out = _graded(folder)
    assert sorted(path.name for path in home.iterdir()) == ["handed in", "handed in-marks"]
    rows = {row["file"]: row for row in rows_of(out / "marks.csv")}
    assert len(rows) == len(list((out / "results").iterdir()))
    assert len(rows) == len(list((out / "feedback").iterdir()))
    rows["out"] = {"path": str(out)}
    return rows


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("report.pdf", "This is not a notebook (.pdf)"),
        ("no ending", "This is not a notebook (no ending)"),
        ("broken.ipynb", "The file is damaged"),
        ("binary.ipynb", "The file is damaged"),
        ("deep.ipynb", "The file is damaged"),
        ("empty.ipynb", "The file is damaged"),
        ("json.ipynb", "no notebook: it has no cells"),
        ("list.ipynb", "no notebook: it has no cells"),
        ("cells_of_numbers.ipynb", "the content of a code cell is not text"),
        ("no_code.ipynb", "no code cell: nothing was answered"),
        ("no_sheets.ipynb", "no code cell: nothing was answered"),
        ("screen.ipynb", r"kernel speaks \x1b[31m\u202ex\ud800, but"),
        (r"pdf.\x1b[31m\u202efdp", r"This is not a notebook (.\x1b[31m\u202efdp)"),
        ("julia.ipynb", "kernel speaks julia"),
        ("r.ipynb", "kernel speaks ir"),
        ("info.ipynb", "kernel speaks scala"),
        ("large.ipynb", "200 MiB and 20 is the most"),
        ("link.ipynb", "a link or a device"),
        ("empty folder", "holds no notebook"),
        ("unanswered.ipynb", "nothing was answered"),
        ("twice/second.ipynb", "nothing was answered"),
    ],
)
def test_a_file_that_earns_nothing_says_why(marks, file: str, sentence: str) -> None:
    assert marks[file]["score"] == "0"
    assert sentence in marks[file]["notes"]


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("good.ipynb", ""),
        ("..\\..\\x.ipynb", ""),
        ("..ipynb", ""),
        ("小明 Ünal.ipynb", ""),
        ("'=cmd|' /C calc'!A0.ipynb", ""),
        ("<b>Bobby<b>.ipynb", ""),
        ("twice/first.ipynb", ""),
        ("Ada Lovelace_4711_assignsubmission_file_/homework.ipynb", ""),
        ("babbagecharles_LATE_815_99_homework.ipynb", ""),
        ("syntax.ipynb", "SyntaxError"),
        ("prints.ipynb", ""),
        ("magics.ipynb", ""),
        ("ipython.ipynb", "line 2 (`files = !ls`): NameError: name 'get_ipython'"),
        ("conda.ipynb", ""),
    ],
)
def test_a_right_answer_gets_its_points_whatever_the_file_is_like(
    marks, file: str, sentence: str
) -> None:
    assert marks[file]["score"] == "8"
    assert sentence in marks[file]["notes"]


def test_no_page_and_no_table_holds_what_a_screen_obeys(marks) -> None:
    out = Path(marks["out"]["path"])
    for path in [*out.glob("*.csv"), *out.glob("*.html"), *(out / "feedback").iterdir()]:
        text = path.read_text(encoding="utf-8-sig")
        assert all(c.isprintable() or c == "\n" for c in text), path


def test_feedback_shows_names_as_text(marks) -> None:
    pages = [page.read_text() for page in Path(marks["out"]["path"], "feedback").iterdir()]
    assert any("&lt;b&gt;Bobby&lt;b&gt;" in page for page in pages)
    assert not any("<b>Bobby" in page for page in pages)


def test_canvas_gets_its_columns(marks) -> None:
    points, *rows = rows_of(Path(marks["out"]["path"], "canvas.csv"))
    assert list(points) == [
        *("Student", "ID", "SIS User ID", "SIS Login ID", "Section", "First hand-in"),
    ]
    assert points["Student"].strip() == "Points Possible"
    assert points["First hand-in"] == "8"
    by_name = {row["Student"]: row for row in rows}
    assert by_name["babbagecharles"]["ID"] == "815"
    assert by_name["babbagecharles"]["First hand-in"] == "8"
    assert by_name["twice"]["First hand-in"] == "0"  # the newer of the two
    assert by_name["binary"]["First hand-in"] == ""


def test_moodle_gets_its_columns(marks) -> None:
    rows = rows_of(Path(marks["out"]["path"], "moodle.csv"))
    (ada,) = (row for row in rows if row["Full name"] == "Ada Lovelace")
    assert (ada["Identifier"], ada["Grade"], ada["Maximum Grade"]) == ("Participant 4711", "8", "8")


@pytest.mark.parametrize(
    ("name", "student", "identifier"),
    [
        ("Ada Lovelace_4711_assignsubmission_file_homework.ipynb", "Ada Lovelace", "4711"),
        ("Ada Lovelace_4711_assignsubmission_file_/homework.ipynb", "Ada Lovelace", "4711"),
        ("Ada Lovelace_4711_assignsubmission_file/homework.ipynb", "Ada Lovelace", "4711"),
        ("Ada_de_B_4711_assignsubmission_file_1_2_x.ipynb", "Ada_de_B", "4711"),
        ("adalovelace_815_99_homework.ipynb", "adalovelace", "815"),
        ("anon_Xy12z_99_homework.ipynb", "anon_Xy12z", ""),
        ("LATE_anon_Xy12z_99_homework.ipynb", "anon_Xy12z", ""),
        # What follows is chosen by the student, who may wish to be somebody else.
        ("Ada_1_assignsubmission_file_Bob_2_assignsubmission_file_x.ipynb", "Ada", "1"),
        ("ada_1_99_Bob_2_assignsubmission_file_.ipynb", "ada", "1"),
    ],
)
def test_a_name_from_canvas_or_moodle_is_understood(
    tmp_path: Path, name: str, student: str, identifier: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(notebook(RIGHT))
    (one,) = submissions.collect(tmp_path)
    assert (one.student, one.identifier) == (student, identifier)


def cells_of(folder: Path) -> list[str]:
    (one,) = submissions.collect(folder)
    return submissions.code_cells(one)


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "conda-env-py"}},
        {"kernelspec": {"name": "ipython"}},
        {"kernelspec": {"name": "myenv"}, "language_info": {"name": "python"}},
        {"kernelspec": {"name": ".venv", "language": ""}, "language_info": {"name": "python"}},
        {
            "kernelspec": {"name": "python3810jvsc74a57bd0916dbcbb3f70"},
            "language_info": {"name": "python", "version": "3.8.10"},
        },
        {"kernelspec": {"name": "ir", "language": "python"}},
        {"kernelspec": {"name": "python3"}},
        {"language_info": {"name": "Python"}},
        {"kernelspec": None},
    ],
)
def test_a_kernel_may_have_any_name(tmp_path: Path, metadata: dict[str, Any]) -> None:
    (tmp_path / "x.ipynb").write_text(notebook(RIGHT, **metadata))
    assert cells_of(tmp_path) == RIGHT


def test_another_language_is_refused_whatever_its_kernel_is_called(tmp_path: Path) -> None:
    metadata = {"kernelspec": {"name": "python3"}, "language_info": {"name": "R"}}
    (tmp_path / "x.ipynb").write_text(notebook(RIGHT, **metadata))
    with pytest.raises(submissions.UnreadableError, match="kernel speaks r,"):
        cells_of(tmp_path)


def loaded(*cells: str) -> tuple[dict[str, Any], dict[replay.Place, str]]:
    """What these cells define, statement by statement, and what is said about which."""
    space: dict[str, Any] = {}
    notes = {}
    at = 0, 0

    def say(**message: Any) -> None:
        nonlocal at
        at = message.get("at", at)
        if "failed" in message:
            notes[at] = message["failed"]

    for statement in replay._statements(list(cells), replay.Progress(), say):
        try:
            exec(statement, space)
        except Exception as error:
            say(failed=replay._sentence(error))
    return space, notes


@pytest.mark.parametrize(
    "line",
    [
        *("torch.softmax?", "?print", "print??", "%matplotlib inline", "!ls -l", "%time x = 1"),
        *("%%time", "%%capture out", "if True:\n    !ls", "!pip install \\\n    torch"),
    ],
)
def test_a_line_for_the_notebook_does_nothing(line: str) -> None:
    space, notes = loaded(f"{line}\nright = 1\nif right:\n    also = 2")
    assert (space["right"], space["also"]) == (1, 2)
    assert notes == {}


@pytest.mark.parametrize(
    "cell",
    ["%%bash\necho hello", "%%sh\nls", "%%HTML\n<b>bold</b>", "%%writefile notes.txt\nno program"],
)
def test_a_cell_for_another_program_does_nothing(cell: str) -> None:
    space, notes = loaded(cell, "%%writefile answers.py\nwritten = 1")
    assert (space["written"], notes) == (1, {})


@pytest.mark.parametrize("line", ["files = !ls", "t = %timeit -o 1", "print(get_ipython())"])
def test_a_result_of_the_notebook_is_missing_and_costs_one_statement(line: str) -> None:
    space, notes = loaded(f"before = 1\n{line}\nafter = 2")
    assert (space["before"], space["after"]) == (1, 2)
    assert notes == {(1, 2): "NameError: name 'get_ipython' is not defined"}


def test_a_cell_that_is_neither_costs_itself() -> None:
    space, notes = loaded("x = = 1", "y = 2")
    assert space["y"] == 2
    assert notes == {(1, 0): "SyntaxError: invalid syntax (this cell, line 1)"}


def test_a_cell_that_python_can_read_is_not_rewritten() -> None:
    space, notes = loaded('\n\nrest = (7\n%4)\ntext = """\n!ls\n%time\n"""\n1 / 0')
    assert (space["rest"], space["text"]) == (3, "\n!ls\n%time\n")
    assert list(notes) == [(1, 9)]


def test_an_annotation_is_what_it_says_until_the_notebook_wants_it_as_text() -> None:
    later = "from __future__ import annotations\ndef g(x: int): ..."
    space, notes = loaded("def f(x: int): ...", later, "def h(x: int): ...")
    assert [space[name].__annotations__["x"] for name in "fgh"] == [int, "int", "int"]
    assert notes == {}


def test_only_otter_is_taken_out_of_an_import() -> None:
    space, notes = loaded(
        "import math, otter",
        "try:\n    import otter.check, cmath\nexcept ImportError:\n    cmath = None",
        "from otter import Notebook\nimport otter",
    )
    assert space["math"].pi > 3
    assert space["cmath"].pi > 3
    assert not {"otter", "Notebook"} & set(space)
    assert notes == {}


def test_an_import_that_is_not_allowed_is_left_out() -> None:
    space: dict[str, Any] = {}
    said: list[dict[str, Any]] = []
    cells, packages = ["import math, yaml", "from yaml import nodes"], ("torch",)
    for statement in replay._statements(
        cells, replay.Progress(), lambda **message: said.append(message), packages
    ):
        exec(statement, space)
    assert space["math"].pi > 3
    assert not {"yaml", "nodes"} & set(space)
    assert [message["failed"] for message in said if "failed" in message] == [
        "yaml is not among the packages that may be used"
    ] * 2


def test_what_the_notebook_came_with_is_left_out_and_the_rest_of_it_is_told() -> None:
    space, notes = loaded(
        "# Initialize Otter\nimport otter\ngrader = otter.Notebook('x.ipynb')",
        "def f():\n    return 1\ngrader.check('q1')",
        "x = f(); grader.check('q2')\ngrader.check_all()",
        "y = 1\nresults = [f(), grader.check('q1')]",
    )
    assert (space["x"], space["y"]) == (1, 1)
    assert "results" not in space
    assert list(notes) == [(4, 2)]
    assert "it uses `grader`, the checks in your notebook" in notes[4, 2]


def test_names_that_are_not_text_are_written_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\xfe.ipynb")).write_text(notebook(RIGHT))
    (tmp_path / "two\nlines.ipynb").write_text(notebook(RIGHT))
    shown = [one.shown for one in submissions.collect(tmp_path)]
    assert all(text.isprintable() and text.encode() for text in shown)


@pytest.mark.parametrize("content", ["nothing", "no folder", "marks inside"])
def test_a_folder_that_cannot_be_graded_is_refused(tmp_path, capsys, content: str) -> None:
    arguments = [ASSIGNMENT, str(tmp_path / "x" if content == "no folder" else tmp_path)]
    if content == "marks inside":
        (tmp_path / "good.ipynb").write_text(notebook(RIGHT))
        arguments += ["--out", str(tmp_path / "marks")]
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert {
        "nothing": "There is no submission in",
        "no folder": "There is no folder",
        "marks inside": "may not lie among the submissions",
    }[content] in said


def test_an_assignment_that_does_not_exist_is_refused(tmp_path, capsys) -> None:
    assert cli.main(["9_none", str(tmp_path)]) == 2
    assert "there are 0_first_hand_in" in capsys.readouterr().err


def zipped(packing: int = zipfile.ZIP_DEFLATED, /, **members: str | bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


GOOD = notebook(RIGHT)


@pytest.mark.parametrize(
    "content",
    [
        zipped(**{"hw.ipynb": GOOD, "report.pdf": "%PDF"}),
        zipped(**{"a/b/hw.IPYNB": GOOD, "__MACOSX/a/._hw.ipynb": "x", "a/._hw.ipynb": "x"}),
        zipped(**{"../../../etc/hw.ipynb": GOOD}),
        zipped(**{"/etc/passwd.ipynb": GOOD}),
        zipped(**{"hw.ipynb": GOOD, "copy/hw.ipynb": GOOD}),
    ],
)
def test_a_zip_with_one_notebook_is_that_notebook(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/ada.zip").write_bytes(content)
    assert cells_of(tmp_path / "in") == RIGHT
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "ada.zip"]  # nothing is unpacked


def beyond_all_files() -> bytes:
    """Its table of contents says that the notebook begins 2 ** 63 bytes from here."""
    content = bytearray(zipped(**{"hw.ipynb": GOOD}))
    entry, extra = content.index(b"PK\1\2"), struct.pack("<HHQ", 1, 8, 2**63)
    content[entry + 30 : entry + 32] = struct.pack("<H", len(extra))
    content[entry + 42 : entry + 46] = b"\xff" * 4
    content[entry + 54 : entry + 54] = extra
    end = content.index(b"PK\5\6") + 12
    size = int.from_bytes(content[end : end + 4], "little") + len(extra)
    content[end : end + 4] = size.to_bytes(4, "little")
    return bytes(content)


def with_password() -> bytes:
    content = bytearray(zipped(**{"hw.ipynb": GOOD}))
    for begin, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(begin) + flags] |= 1
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (zipped(**{"1.ipynb": GOOD, "2.ipynb": notebook(["x = 1"])}), "holds several notebooks"),
        (zipped(**{"report.pdf": "%PDF"}), "The zip holds no notebook"),
        (zipped(**{"inner.zip": zipped(**{"hw.ipynb": GOOD})}), "The zip holds no notebook"),
        (zipped(**{"hw.ipynb": b" " * (submissions.MAX_BYTES + 2)}), r"20 MiB .* up to hw.ipynb"),
        (zipped(**{f"{n}.ipynb": b" " * 2**20 for n in range(30)}), r"20 MiB .* up to 20.ipynb"),
        (zipped(**{"hw.ipynb": GOOD})[:200], "The zip is damaged"),
        (zipped(zipfile.ZIP_BZIP2, **{"hw.ipynb": GOOD}), "packed in an unusual way"),
        (zipped(zipfile.ZIP_LZMA, **{"hw.ipynb": GOOD}), "packed in an unusual way"),
        (b"no zip", "The zip is damaged"),
        (beyond_all_files(), "The zip is damaged"),
        (with_password(), "The zip has a password"),
        (zipped(**{f"{n}.txt": "" for n in range(2_001)}), "too many entries"),
    ],
)
def test_a_zip_that_cannot_be_marked_says_why(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    (tmp_path / "ada.zip").write_bytes(content)
    with pytest.raises(submissions.UnreadableError, match=sentence):
        cells_of(tmp_path)


def test_names_that_look_alike_have_results_of_their_own(tmp_path: Path) -> None:
    for name in ("ada\u200b.ipynb", "ada\\u200b.ipynb"):
        (tmp_path / name).write_text(GOOD)
    one, other = submissions.collect(tmp_path)
    assert one.shown == other.shown
    assert one.key != other.key


def test_a_zip_beside_a_notebook_is_not_a_second_hand_in(tmp_path: Path) -> None:
    for name in ("ada_1_99_hw.ipynb", "ada_1_100_all.zip", "bob_2_101_all.zip", "bob_2_102_x.pdf"):
        (tmp_path / name).write_text("")
    shown = [one.shown for one in submissions.collect(tmp_path)]
    assert shown == ["ada_1_99_hw.ipynb", "bob_2_101_all.zip"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (notebook(["a = 1  # " + 500_000 * "x"]), "500 kB of code and 500 is the most"),
        (notebook(["a=b;" * 20_001]), "more than 20000 lines of code"),
        ('{"cells": [' + "{}," * 2_000_000 + "{}]}", "too many parts for a notebook"),
    ],
)
def test_what_would_take_the_graders_memory_is_not_read(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "ada.ipynb").write_text(text)
    with pytest.raises(submissions.UnreadableError, match=sentence):
        cells_of(tmp_path)


def test_a_notebook_in_the_format_of_2013_is_read(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "language": "python", "outputs": []}
    cells = [{**cell, "input": ["x = 1\n", "y = 2"]}, {**cell, "input": "z = 3"}]
    old = {"nbformat": 3, "worksheets": [{"cells": cells}, {}], "metadata": {"name": ""}}
    (tmp_path / "ada.ipynb").write_text(json.dumps(old))
    assert cells_of(tmp_path) == ["x = 1\ny = 2", "z = 3"]


@pytest.mark.parametrize("version", [3, 4])
def test_what_runs_is_what_jupyter_shows(tmp_path: Path, version: int) -> None:
    unseen = {"cell_type": "code", "source": "hidden = 0", "input": "hidden = 0"}
    cells, sheet = [{**unseen, "source": "shown = 4"}], [{**unseen, "input": "shown = 3"}]
    if version == 3:
        cells = [unseen]
    both = {"nbformat": version, "cells": cells, "worksheets": [{"cells": sheet}]}
    (tmp_path / "ada.ipynb").write_text(json.dumps(both))
    assert cells_of(tmp_path) == [f"shown = {version}"]


def test_a_file_that_cannot_be_looked_at_ends_nobodys_marking(
    tmp_path, counted, monkeypatch
) -> None:
    hand_in(tmp_path / "all", "ada", "bob")

    def looked_at(one: submissions.Submission) -> list[str]:
        raise ZeroDivisionError(one.student)

    monkeypatch.setattr(grade, "code_cells", looked_at)
    grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    assert sorted(counted) == ["ada", "bob"]


def test_of_a_file_that_is_far_too_large_only_the_beginning_is_read(tmp_path: Path) -> None:
    with (tmp_path / "ada.ipynb").open("wb") as file:
        file.truncate(2**40)
    (one,) = submissions.collect(tmp_path)
    before = one.digest()
    os.truncate(one.path, 2**40 + 1)
    assert one.digest() != before


def test_half_a_surrogate_pair_ends_no_run(tmp_path, counted) -> None:
    (tmp_path / "all").mkdir()
    for name in ("ada", "bob"):
        text = notebook([*RIGHT, f"{name} = 'SMILE'"]).replace("SMILE", "\\ud83d")
        (tmp_path / "all" / f"{name}.ipynb").write_text(text)
    out = grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    assert (out / "similarity.html").read_text().endswith("</html>")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grading without the jail, for what surrounds it; lists whom it grades."""
    graded: list[str] = []
    grade_one = grader.Grader.grade

    def counting(self: grader.Grader, one: submissions.Submission) -> dict[str, Any]:
        graded.append(one.student)
        return grade_one(self, one)

    monkeypatch.setattr(grader.Grader, "prove", lambda self: None)
    monkeypatch.setattr(jail, "run", lambda *job: [])
    monkeypatch.setattr(grader.Grader, "grade", counting)
    return graded


def hand_in(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.ipynb").write_text(notebook([f"# {name}", *RIGHT]))


@pytest.mark.parametrize(
    ("fault", "status", "sentence"),
    [
        (KeyboardInterrupt(), 130, "The same command goes on where this run was."),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            *(2, "No space left on device. What is marked is stored"),
        ),
    ],
    ids=["stopped", "full disk"],
)
def test_a_run_that_ends_early_says_so_and_goes_on_where_it_was(
    tmp_path, counted, monkeypatch, capsys, fault: BaseException, status: int, sentence: str
) -> None:
    hand_in(tmp_path / "all", "ada", "bob", "cleo", "dan")
    store = grade._store

    def end_after_two(*arguments: Any) -> None:
        store(*arguments)
        if len(list((tmp_path / "all-marks/results").glob("*.json"))) == 2:
            raise fault

    with monkeypatch.context() as patched:
        patched.setattr(grade, "_store", end_after_two)
        assert cli.main([ASSIGNMENT, str(tmp_path / "all")]) == status
    assert sentence in capsys.readouterr().err
    seed = json.loads((tmp_path / "all-marks/run.json").read_text())["seed"]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "all-marks/results").iterdir()}
    assert len(kept) == 2
    counted.clear()
    assert cli.main([ASSIGNMENT, str(tmp_path / "all")]) == 0
    assert len(counted) == 2
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert len(list((tmp_path / "all-marks/feedback").iterdir())) == 4
    assert json.loads((tmp_path / "all-marks/run.json").read_text())["seed"] == seed


def test_only_what_was_handed_in_anew_is_graded_again(tmp_path, counted) -> None:
    hand_in(tmp_path / "all", "ada", "bob")
    grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    (tmp_path / "all" / "bob.ipynb").write_text(notebook(["# better", *RIGHT]))
    hand_in(tmp_path / "all", "cleo")
    counted.clear()
    grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    assert sorted(counted) == ["bob", "cleo"]


def test_marks_of_another_version_are_not_mixed_in(tmp_path, counted, capsys, monkeypatch) -> None:
    hand_in(tmp_path / "all", "ada")
    grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    assert cli.main(["1_masking_and_pooling", str(tmp_path / "all")]) == 2
    assert "has the marks of 0_first_hand_in: give another --out" in capsys.readouterr().err
    read = assignments.load(ASSIGNMENT)
    first, *others = read.questions
    newer = dataclasses.replace(first, digest="of other tests")
    changed = dataclasses.replace(read, questions=(newer, *others))
    monkeypatch.setattr(assignments, "load", lambda name: changed)
    assert cli.main([ASSIGNMENT, str(tmp_path / "all")]) == 2
    assert "The tests of q1 have changed" in capsys.readouterr().err
    assert counted == ["ada"]
    for _ in range(2):  # and from then on, it is as if it had always been so
        assert cli.main([ASSIGNMENT, str(tmp_path / "all"), "--only", "q1"]) == 0
    assert cli.main([ASSIGNMENT, str(tmp_path / "all")]) == 0
    assert counted == ["ada", "ada", "ada"]


def test_one_student_is_marked_again_and_the_others_are_not(tmp_path, counted, monkeypatch) -> None:
    hand_in(tmp_path / "all", "ada", "bob")
    out = grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    right = assignments.load(ASSIGNMENT)

    def all_right(self: grader.Grader, cells: list[str], seed: int) -> Any:
        return grader.Outcome(right.run(seed, {}), [], False, {})

    monkeypatch.setattr(grader.Grader, "replay", all_right)
    counted.clear()
    assert cli.main([ASSIGNMENT, str(tmp_path / "all"), "--only", "ada"]) == 0
    assert counted == ["ada"]
    rows = rows_of(out / "changes.csv")
    assert [list(row.values()) for row in rows] == [
        ["ada", "ada.ipynb", "q1", "0", "5"],
        ["ada", "ada.ipynb", "q2", "0", "3"],
    ]
    assert cli.main([ASSIGNMENT, str(tmp_path / "all"), "--only", "eve"]) == 2


def test_a_bad_table_is_told_before_anything_is_marked(tmp_path, counted, capsys) -> None:
    hand_in(tmp_path / "all", "ada")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/deadlines.csv").write_text("student,due\n*,soon\n")
    arguments = [ASSIGNMENT, str(tmp_path / "all"), "--tables", str(tmp_path / "tables")]
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == (
        "deadlines.csv, row 2: “soon” in the column due is not a date: write it as "
        "2026-10-12 23:59.\n"
    )
    assert counted == []


def test_two_runs_do_not_write_to_one_folder(tmp_path, counted, capsys) -> None:
    hand_in(tmp_path / "all", "ada")
    (tmp_path / "all-marks").mkdir()
    with grade._sole_run(tmp_path / "all-marks"):
        assert cli.main([ASSIGNMENT, str(tmp_path / "all")]) == 2
    assert "Another run is writing" in capsys.readouterr().err


def test_where_the_reference_fails_nobody_is_graded(tmp_path, monkeypatch, capsys) -> None:
    hand_in(tmp_path / "all", "ada")
    monkeypatch.setattr(jail, "run", lambda *job: [])
    assert cli.main([ASSIGNMENT, str(tmp_path / "all")]) == 2
    assert "does not get full marks through the jail" in capsys.readouterr().err
    assert not list((tmp_path / "all-marks/results").iterdir())


def test_a_fault_of_the_grader_is_told_and_costs_only_one_mark(
    tmp_path, counted, monkeypatch
) -> None:
    hand_in(tmp_path / "all", "ada", "bob", "cleo")
    replay = grader.Grader.replay

    def fail_on_bob(self: grader.Grader, cells: list[str], seed: int) -> Any:
        if cells[0] == "# bob":
            raise ZeroDivisionError("a fault of ours")
        return replay(self, cells, seed)

    monkeypatch.setattr(grader.Grader, "replay", fail_on_bob)
    out = grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    ada, bob, cleo = rows_of(out / "marks.csv")
    assert "the mark is not final: ZeroDivisionError: a fault of ours" in bob["notes"]
    assert "not final" not in ada["notes"] + cleo["notes"]


def test_a_mark_that_is_not_final_stays_open_and_is_made_anew(
    tmp_path, counted, monkeypatch
) -> None:
    hand_in(tmp_path / "all", "ada", "bob")
    run, failures = jail.run, [BlockingIOError(11, "Resource temporarily unavailable")]

    def fail_once_on_bob(job: dict[str, Any], *others: Any) -> list[dict[str, Any]]:
        if job["cells"][0] == "# bob" and failures:
            raise failures.pop()
        return run(job, *others)

    def open_marks() -> tuple[list[str], list[str]]:
        out = tmp_path / "all-marks"
        canvas, moodle = rows_of(out / "canvas.csv")[1:], rows_of(out / "moodle.csv")
        return (
            [row["Student"] for row in canvas if row["First hand-in"] == ""],
            [row["Full name"] for row in moodle if row["Grade"] == ""],
        )

    monkeypatch.setattr(jail, "run", fail_once_on_bob)
    grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    assert open_marks() == (["bob"], ["bob"])
    counted.clear()
    grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    assert counted == ["bob"]
    assert open_marks() == ([], [])


def test_a_message_that_is_no_text_does_not_end_the_run(tmp_path, counted, monkeypatch) -> None:
    hand_in(tmp_path / "all", "ada", "bob")
    half = json.loads('"half a pair \\ud800 \\u0000"')
    lines = [{"call": 0, "reply": {"error": half}}, {"skipped": [1, 1, half]}]
    monkeypatch.setattr(jail, "run", lambda *job: lines)
    out = grade.grade_folder(ASSIGNMENT, tmp_path / "all")
    ada, bob = rows_of(out / "marks.csv")
    assert all("half a pair \\ud800 \\x00" in row["notes"] for row in (ada, bob))
    assert all(
        "half a pair \\ud800 \\x00" in page.read_text() for page in (out / "feedback").iterdir()
    )
