"""What surrounds the jail: time, stopping, tables, notes, and what comes over the wire."""

from __future__ import annotations

import csv
import dataclasses
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from handed_in import notebook, rows_of

from walled_grader import assignment as assignments
from walled_grader import cli, course, grade, grader, jail, replay, sheets, text, wire

ASSIGNMENT = "0_first_hand_in"
RIGHT = list(assignments.load(ASSIGNMENT).reference_cells)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three submissions, each with its student's name in its first line."""
    folder = tmp_path / "all"
    folder.mkdir()
    for name in ("ada", "bob", "cleo"):
        (folder / f"{name}.ipynb").write_text(notebook([f"# {name}", *RIGHT]))
    return folder


@pytest.fixture(autouse=True)
def _no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grader.Grader, "prove", lambda self: None)
    monkeypatch.syspath_prepend(str(Path(replay.__file__).parent))  # as in the jail


def who(job: dict[str, Any]) -> str:
    return job["cells"][0].removeprefix("# ")


def right(job: dict[str, Any]) -> list[dict[str, Any]]:
    """What the jail writes for the reference solution."""
    space, memory, lines = assignments.load(ASSIGNMENT).names, replay.Arena(2**16), []
    for number, call in enumerate(job["calls"]):
        reply = replay._perform(memory.place(call), space, memory.bytes)
        lines.append({"call": number, "reply": json.loads(json.dumps(reply))})
    return lines


def marks(folder: Path) -> dict[str, dict[str, str]]:
    rows = rows_of(folder.with_name(f"{folder.name}-marks") / "marks.csv")
    return {row["student"]: row for row in rows}


def test_who_ran_out_of_time_is_marked_again_and_alone(folder, monkeypatch) -> None:
    """So that no neighbour can cost anybody a point."""
    running, ran, lock = set(), [], threading.Lock()
    neighbour = threading.Barrier(2)

    def run(job, *others) -> list[dict[str, Any]]:
        name = who(job)
        with lock:
            running.add(name)
            ran.append((name, len(running)))
        try:
            if [one for one, _ in ran].count(name) == 2:
                return right(job)
            if name in ("ada", "bob"):
                neighbour.wait(timeout=30)
                return [{"call": 0, "reply": {"error": "it ran longer"}, "late": True}]
            return right(job)
        finally:
            with lock:
                running.discard(name)

    monkeypatch.setattr(jail, "run", run)
    grade.grade_folder(ASSIGNMENT, folder, jobs=2)
    assert [row["score"] for row in marks(folder).values()] == ["8", "8", "8"]
    assert len(ran) == 5
    assert [number for _, number in ran[3:]] == [1, 1]


def test_a_run_of_all_too_long_counts_as_late_and_one_of_too_much_memory_not(
    folder, monkeypatch
) -> None:
    ran = []

    def run(job, *others) -> list[dict[str, Any]]:
        ran.append(who(job))
        late = who(job) == "ada"
        raise jail.OverrunError("it ran longer" if late else "it used more", [], late)

    monkeypatch.setattr(jail, "run", run)
    grade.grade_folder(ASSIGNMENT, folder)
    assert ran == ["ada", "bob", "cleo", "ada"]


@pytest.mark.parametrize(
    ("looks", "spent"),
    [
        ([(1.0, True), (1.0, True), (1.0, True)], 0.0),  # others keep the processors
        ([(1.0, True), (2.0, True), (3.0, True)], 2.0),  # at work
        ([(1.0, False), (1.0, False), (1.0, False)], 2.0),  # asleep
        ([(1.0, False), (2.0, False), (3.0, False)], 2.0),  # asleep, its threads at work
        ([(1.0, True), (9.0, True), (9.0, False)], 9.0),
    ],
)
def test_time_counts_where_it_is_the_notebooks_own(monkeypatch, looks: list, spent: float) -> None:
    now, seen = iter(range(10)), iter(looks)
    monkeypatch.setattr(replay.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(replay, "_processes", lambda: next(seen))
    clock = replay.Clock()
    assert [clock.spent() for _ in looks[1:]][-1] == pytest.approx(spent)


def test_the_tables_are_there_while_the_run_goes_on(folder, monkeypatch) -> None:
    seen: list[list[str]] = []

    def run(job, *others) -> list[dict[str, Any]]:
        path = folder.with_name("all-marks") / "marks.csv"
        seen.append(list(marks(folder)) if path.exists() else [])
        return right(job)

    monkeypatch.setattr(grade, "SECONDS_BETWEEN_TABLES", 0.0)
    monkeypatch.setattr(grade, "as_completed", lambda waiting: waiting)
    monkeypatch.setattr(jail, "run", run)
    grade.grade_folder(ASSIGNMENT, folder)
    assert list(marks(folder)) == ["ada", "bob", "cleo"]
    assert seen[0] == []
    assert not list(folder.with_name("all-marks").rglob("*.part"))


def test_a_run_that_is_interrupted_ends_at_once_with_the_tables_so_far(
    folder, monkeypatch, capsys
) -> None:
    begun, store = time.monotonic(), grade._store

    def run(job, limits, slot, stop) -> list[dict[str, Any]]:
        if who(job) == "ada":
            return right(job)
        assert stop.wait(timeout=60)
        raise jail.StoppedError

    def interrupt(*arguments: Any) -> None:
        store(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(jail, "run", run)
    monkeypatch.setattr(grade, "_store", interrupt)
    assert cli.main([ASSIGNMENT, str(folder), "--jobs", "2"]) == 130
    assert time.monotonic() - begun < 30
    said = capsys.readouterr().err
    assert "are written at the end. The same command goes on where this run was." in said
    assert "Traceback" not in said
    assert list(marks(folder)) == ["ada"]


def test_a_stopped_run_leaves_no_older_statistics_and_archives(folder, monkeypatch) -> None:
    monkeypatch.setattr(jail, "run", lambda job, *others: right(job))
    for path in folder.iterdir():
        path.rename(path.with_name(f"{path.stem}_815_{len(path.stem)}_hw.ipynb"))
    out = grade.grade_folder(ASSIGNMENT, folder)
    before = {path.name for path in out.iterdir()}
    assert {"canvas_feedback.zip", "statistics.html", "similarity.csv", "mistakes.csv"} <= before

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    next((out / "results").iterdir()).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(grade, "_store", interrupt)
        with pytest.raises(KeyboardInterrupt):
            grade.grade_folder(ASSIGNMENT, folder)
    assert {path.name for path in out.iterdir()} == {
        *("results", "run.json", "feedback", "marks.csv", "canvas.csv", "moodle.csv"),
        *("to_check.csv", "missing.csv"),
    }
    grade.grade_folder(ASSIGNMENT, folder)
    assert {path.name for path in out.iterdir()} == before


def test_marking_by_repaired_tests_goes_on_where_it_was_stopped(folder, monkeypatch) -> None:
    ran, read, store = [], assignments.load(ASSIGNMENT), grade._store

    def run(job, *others) -> list[dict[str, Any]]:
        ran.append(who(job))
        return right(job)

    def interrupt(*arguments: Any) -> None:
        store(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(jail, "run", run)
    grade.grade_folder(ASSIGNMENT, folder)
    newer = (dataclasses.replace(read.questions[0], digest="new"), *read.questions[1:])
    repaired = dataclasses.replace(read, questions=newer)
    monkeypatch.setattr(assignments, "load", lambda name: repaired)
    with monkeypatch.context() as patch:
        patch.setattr(grade, "_store", interrupt)
        with pytest.raises(KeyboardInterrupt):
            grade.grade_folder(ASSIGNMENT, folder, only=["q1"], jobs=1)
    ran.clear()
    grade.grade_folder(ASSIGNMENT, folder, only=["q1"], jobs=1)
    assert ran == ["bob", "cleo"]
    grade.grade_folder(ASSIGNMENT, folder, only=["q1"], jobs=1)  # and then, all of them again
    assert ran[2:] == ["ada", "bob", "cleo"]


def test_the_bar_names_who_is_being_marked(folder, monkeypatch, capsys) -> None:
    monkeypatch.setattr(jail, "run", lambda job, *others: right(job))
    grade.grade_folder(ASSIGNMENT, folder)
    assert {"ada", "bob", "cleo"} <= set(
        capsys.readouterr().err.replace("]", " ").replace(",", " ").split()
    )


def test_a_stored_result_that_cannot_be_read_is_made_anew(folder, monkeypatch) -> None:
    monkeypatch.setattr(jail, "run", lambda job, *others: right(job))
    out = grade.grade_folder(ASSIGNMENT, folder)
    before = (out / "marks.csv").read_bytes()
    for path, content in zip(sorted((out / "results").iterdir()), ("", "{}", "[1"), strict=True):
        path.write_text(content)
    grade.grade_folder(ASSIGNMENT, folder)
    assert (out / "marks.csv").read_bytes() == before


@pytest.mark.parametrize(("content", "word"), [("", "empty"), ("{", "damaged"), ("[]", "damaged")])
def test_a_lost_seed_is_told(folder, monkeypatch, capsys, content: str, word: str) -> None:
    monkeypatch.setattr(jail, "run", lambda job, *others: right(job))
    out = grade.grade_folder(ASSIGNMENT, folder)
    (out / "run.json").write_text(content)
    assert cli.main([ASSIGNMENT, str(folder)]) == 2
    assert f"run.json is {word}" in capsys.readouterr().err


def test_what_is_no_longer_handed_in_leaves_nothing_behind(folder, monkeypatch) -> None:
    monkeypatch.setattr(jail, "run", lambda job, *others: right(job))
    out = grade.grade_folder(ASSIGNMENT, folder)
    (folder / "bob.ipynb").unlink()
    grade.grade_folder(ASSIGNMENT, folder)
    assert list(marks(folder)) == ["ada", "cleo"]
    for place in ("results", "feedback"):
        assert not [path for path in (out / place).iterdir() if "bob" in path.name]


def test_each_file_has_hidden_tests_with_numbers_of_its_own(folder, monkeypatch) -> None:
    """What one learns about them from its feedback is of no use in the next."""
    calls: dict[str, Any] = {}

    def run(job, *others) -> list[dict[str, Any]]:
        assert calls.setdefault(who(job), job["calls"]) == job["calls"]
        return []

    monkeypatch.setattr(jail, "run", run)
    out = grade.grade_folder(ASSIGNMENT, folder)
    (out / "results" / next(p.name for p in (out / "results").iterdir())).unlink()
    grade.grade_folder(ASSIGNMENT, folder)  # the same file: the same numbers
    assert calls["ada"] != calls["bob"] != calls["cleo"] != calls["ada"]


def test_a_package_that_is_allowed_and_missing_is_told_before_anything_is_marked(
    folder, monkeypatch, capsys
) -> None:
    monkeypatch.undo()  # the proof itself is meant
    monkeypatch.setattr(course, "packages", lambda: ("torch", "no_such_package"))
    assert cli.main([ASSIGNMENT, str(folder)]) == 2
    assert (
        "The course allows no_such_package, which is not installed here" in capsys.readouterr().err
    )


def test_a_line_is_quoted_as_python_counts_it() -> None:
    assert "line 2 (`1 / 0`)" in grader._left_out(["s = 'a\u2028b\x0cc'\n1 / 0"], 1, 2, "why")


def test_a_mark_is_explained_by_its_calls(folder, monkeypatch, capsys) -> None:
    def run(job, *others) -> list[dict[str, Any]]:
        lines = right(job)
        wrong = next(n for n, call in enumerate(job["calls"]) if call["name"] == "masked_softmax")
        if who(job) == "bob":
            lines[wrong]["reply"] = {"error": "ValueError: I am Bob \x1b[2J"}
            lines[wrong + 1]["reply"] = {"value": wire.encode(torch.zeros(2))}
            lines[wrong + 2]["reply"] = {"value": 0.5}
            lines[wrong + 3]["reply"] = {"value": 10**400}
        return lines

    monkeypatch.setattr(jail, "run", run)
    out = grade.grade_folder(ASSIGNMENT, folder)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    capsys.readouterr()
    with grade._sole_run(out):  # while another run goes on
        assert cli.main([ASSIGNMENT, str(folder), "--why", "bob"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("bob.ipynb\n  bob: 5 of 8\n")
    assert said.count("    expected: float32 (") == 4
    assert "    returned: int too large to convert to float" in said
    assert "    returned: masked_softmax gave no result: ValueError: I am Bob \\x1b[2J" in said
    assert "    returned: float32 (2,) [0, 0]" in said.replace("0.0", "0")
    assert "    returned: 0.5" in said
    assert "3 of 3 by its tests" in said
    assert cli.main([ASSIGNMENT, str(folder), "--why", "eve"]) == 2
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_mark_is_explained_with_what_a_person_entered(
    folder, monkeypatch, capsys, tmp_path
) -> None:
    monkeypatch.setattr(jail, "run", lambda job, *others: right(job))
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "deadlines.csv").write_text(
        "student,due,loss_per_day,handed_in\n*,2026-05-01 12:00,10,\nada,,,2026-05-02 13:00\n"
    )
    why = [ASSIGNMENT, str(folder), "--tables", str(tables), "--why"]
    assert cli.main([*why, "ada"]) == 2
    assert "There are no marks in" in capsys.readouterr().err
    out = grade.grade_folder(ASSIGNMENT, folder)
    (tables / "overrides.csv").write_text("student,question,points\nada,q2,1\nbob,,2.5\n")
    next((out / "results").glob("cleo*")).unlink()
    capsys.readouterr()
    for name, wanted in {
        "ada": [
            "  ada: 4.4 of 8",
            "  Question 2 · Scaled dot products: 1 of 3, entered by hand",
            "  late: 2 d, −20 %",
        ],
        "bob": ["  bob: 2.5 of 8, entered by hand"],
        "cleo": ["  no mark yet"],
    }.items():
        assert cli.main([*why, name]) == 0
        head = capsys.readouterr().out.partition("\n\n")[0]
        assert head.splitlines() == [f"{name}.ipynb", *wanted]
    assert not list((out / "results").glob("cleo*"))
    read = assignments.load(ASSIGNMENT)
    newer = tuple(dataclasses.replace(one, digest="new") for one in read.questions)
    changed = dataclasses.replace(read, questions=newer)
    monkeypatch.setattr(assignments, "load", lambda name: changed)
    assert cli.main([*why, "bob"]) == 0
    assert "  the tests of q1, q2 have changed since\n" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["submissions", "marks", "tables", "course"])
def test_nothing_is_marked_in_a_folder_that_submissions_can_read(
    folder, monkeypatch, capsys, tmp_path, what: str
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (tmp_path / "link").symlink_to(shown)
    arguments = [ASSIGNMENT, str(folder)]
    monkeypatch.setattr(jail, "check", lambda: None)
    monkeypatch.setattr(jail, "run", lambda job, *others: right(job))
    if what == "submissions":
        folder.rename(shown / "all")
        arguments[1] = str(tmp_path / "link" / "all")
    elif what == "marks":
        arguments += ["--out", str(shown / "marks")]
    elif what == "tables":
        (shown / "tables").mkdir()
        arguments += ["--tables", str(shown / "tables")]
    with monkeypatch.context() as patch:
        patch.setattr(jail.sys, "prefix", str(shown))
        if what == "course":
            patch.setattr(jail.sys, "prefix", str(course.folder()))
        assert cli.main(arguments) == 2
    assert "which every submission can read: move it out" in capsys.readouterr().err


@pytest.mark.parametrize(
    "cell",
    [
        *("=1+1", "+1", "-1", "@x", "＝1+1", "＋1", " =1", "x;=cmd|' /C calc'!A0", "x;＝1"),
        *("x; +1", 'x;"=1', "x\t=1", "'=1", '"=1', ";;=1", "x;=1;=2"),
    ],
)
def test_no_spreadsheet_takes_a_text_for_a_formula(tmp_path: Path, cell: str) -> None:
    """Whichever sign separates its cells."""
    sheets.write(tmp_path / "t.csv", ["name", "note"], [[cell, cell], ["Ada", cell]])
    for separator in ",;\t":
        with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as file:
            for row in csv.reader(file, delimiter=separator):
                assert not [one for one in row if one.lstrip(' "')[:1] in tuple("=+-@＝＋－＠")]


def test_numbers_and_plain_names_stay_what_they_are(tmp_path: Path) -> None:
    sheets.write(tmp_path / "t.csv", ["name", "mark"], [["Ünal, Ada-Bea; née O'Hara", -1.5]])
    rows = (tmp_path / "t.csv").read_text(encoding="utf-8-sig").splitlines()
    assert rows == ["name,mark", '"Ünal, Ada-Bea; née O\'Hara",-1.5']


def test_a_text_is_shown_on_one_line_without_what_a_screen_obeys() -> None:
    assert text.sentence("a\n \x1b[2J\x00\u202e\ud800") == "a \\x1b[2J\\x00\\u202e\\ud800"
    assert text.sentence("a\u3164\u2800\ufe0f\U000e0100") == "a\\u3164\\u2800\\ufe0f\\U000e0100"
    assert text.sentence("\u2714\ufe0f") == "\u2714\ufe0f"  # a green tick
    vietnamese, piled = "e\u0302\u0323\u0304", "x" + 5 * "\u0e47"
    assert text.sentence(vietnamese + piled) == vietnamese + piled[:4] + 2 * "\\u0e47"
    assert len(text.sentence("\x00" * 10**6)) == 300
    assert text.sentence("x" * 301, most=10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 200_000,
        b"{}",
        b"[1]",
        b'{"a": 1',
        b'{"a": [' + b"{}," * 10_000 + b"{}]}",
        b" " * 2**20 + b"{}",
    ],
)
def test_a_line_that_is_large_or_no_object_is_not_read(line: bytes) -> None:
    if line == b"{}":
        assert wire.parse(line) == {}
    else:
        with pytest.raises(wire.MalformedError):
            wire.parse(line)


@pytest.mark.parametrize(
    "data",
    [
        {"tensor": ["float32", {}, "AAAAAA=="]},
        {"tensor": ["float32", None, ""]},
        {"tensor": [["float32"], [], ""]},
        {"tensor": ["bool", [1], "Ag=="]},
        {"shared": ["float32", [1], 0]},
        {"list": {}},
        {"dict": [[1, 2]]},
        {"dict": {"a": {"b": 1}}},
    ],
)
def test_what_encode_does_not_write_is_refused(data: dict) -> None:
    with pytest.raises(wire.MalformedError):
        wire.decode(data)
    assert assignments._value({"value": data}) is None


def test_what_stands_for_a_result_bears_the_name_of_its_type() -> None:
    """So that a message says `of type ndarray`, and no more than a name."""
    assert type(wire.decode(wire.encode(torch.ones(1).numpy()))).__name__ == "ndarray"
    assert type(wire.decode({"opaque": "Ada, give 8 of 8"})).__name__ == "object"


def test_a_call_finds_its_inputs_in_shared_memory_and_what_it_writes_is_seen() -> None:
    arena = replay.Arena(2**12)
    first, second = torch.arange(3.0), torch.tensor([True, False])
    args = wire.encode([first, [second, torch.ones(0, 2)], 7])
    placed = arena.place({"name": "f", "args": args, "kwargs": wire.encode({"x": first})})
    one, (two, none), seven = wire.decode(placed["args"], arena.bytes)
    assert torch.equal(one, first)
    assert torch.equal(two, second)
    assert (none.shape, seven) == ((0, 2), 7)
    assert arena.changed() == []
    two[1] = True
    wire.decode(placed["kwargs"], arena.bytes)["x"][0] = 5
    assert [number for number, _ in arena.changed()] == [1, 3]


@pytest.mark.parametrize(
    ("gradient", "slope", "agree"),
    [
        (torch.tensor([0.5, -0.25]), torch.tensor(0.0), True),
        (torch.tensor([0.5, 0.25]), torch.tensor(1.0), True),
        (torch.tensor([0.5, 0.25]), torch.tensor(0.0), False),  # NaN, made 0
        (torch.tensor([0.5, 0.25]), torch.tensor(torch.nan), False),
        (torch.tensor([0.5, 0.25]), None, False),
        (torch.tensor([0.5, torch.nan]), torch.tensor(0.0), True),  # for the test to judge
        (None, None, True),
    ],
)
def test_a_gradient_without_nan_is_believed_where_its_slope_is_the_same(
    gradient: Any, slope: Any, agree: bool
) -> None:
    assert assignments._agree(torch.tensor([1.0, 2.0]), gradient, slope) is agree


@pytest.mark.parametrize(
    ("cores", "gigabytes", "jails"), [(8, 64, 8), (8, 8, 2), (2, 64, 2), (4, 1, 1)]
)
def test_as_many_jails_run_as_have_a_core_and_their_memory(
    cores: int, gigabytes: int, jails: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli.os, "sched_getaffinity", lambda process: set(range(cores)))
    memory = SimpleNamespace(total=gigabytes * 2**30)
    monkeypatch.setattr(cli.psutil, "virtual_memory", lambda: memory)
    assert cli._jobs() == jails
