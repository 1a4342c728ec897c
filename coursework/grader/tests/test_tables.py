"""The tables that an instructor writes: what is meant is understood, a fault is told by its row."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from walled_grader import instructor, lateness, overrides, people, sheets
from walled_grader.people import Directory, Person
from walled_grader.sheets import SheetError

ADA = Person("Lovelace, Ada", id="815")
BOB = Person("Bob Noyce", id="816", email="bob@example.org")
CAÑA = Person("Ána Caña", id="817")
EVERYONE = Directory([ADA, BOB, CAÑA])
POSSIBLE = {"q1": 5.0, "q2": 3.0}


@pytest.fixture
def table(tmp_path: Path):
    def write(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "student,points\nAda, 3 \n",
        "student;points\r\nAda;3\r\n",
        "\ufeffstudent\tpoints\nAda\t3\n\n\t\n",
        'student,points\n"Ada",3\n',
    ],
)
def test_a_table_is_read_as_any_spreadsheet_saves_it(table, text: str) -> None:
    (row,) = sheets.read(table(text), ("student",))
    assert (row["student"], row["points"], row["comment"], row.number) == ("Ada", "3", "", 2)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "table.csv has no column student: its first row is empty."),
        ("name,points\n", "table.csv has no column student: its first row is name, points."),
        ("student,x,student\n", "table.csv has the column student twice: remove one of them."),
        ("student\nÁda\n".encode("latin-1"), "table.csv is not UTF-8 text"),
        ("student\n" + 200_000 * "x", "table.csv cannot be read as CSV: field larger than"),
    ],
)
def test_a_file_that_is_no_such_table_is_named(table, text: str | bytes, sentence: str) -> None:
    with pytest.raises(SheetError, match=sentence):
        sheets.read(table(text), ("student",))


@pytest.mark.parametrize(
    ("named", "person"),
    [
        *(("Lovelace, Ada", ADA), ("Ada Lovelace", ADA), ("lovelaceada", ADA), ("815", ADA)),
        *(("ana cana", CAÑA), ("bob@example.org", BOB), ("noycebob", BOB)),
    ],
)
def test_a_person_is_found_however_a_system_spells_the_name(named: str, person: Person) -> None:
    assert EVERYONE.find(named) == [person]


def test_a_name_without_letters_means_only_itself() -> None:
    assert Directory([Person("?!"), ADA]).find("!?") == []


def test_the_roster_is_canvass_own_export(table) -> None:
    roster = people.read_roster(
        table(
            "Student,ID,SIS User ID,SIS Login ID,Section,First hand-in (1234),Essay (99)\n"
            '"    Points Possible",,,,,8,10\n'
            '"Lovelace, Ada",815,s-1,ada,A,,\n'
            '"Student, Test",1,,,,,\n'
        )
    )
    assert roster.people == (Person("Lovelace, Ada", "815", "s-1", "ada", "A"),)
    assert roster.column_of("First hand-in") == "First hand-in (1234)"
    assert roster.column_of("Essay on it") == "Essay on it"


def test_the_roster_is_moodles_own_worksheet(table) -> None:
    text = "Identifier,Full name,Email address,Grade\nParticipant 4711,Ada Lovelace,a@b.org,\n"
    (person,) = people.read_roster(table(text)).people
    assert person == Person("Ada Lovelace", "4711", email="a@b.org")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("Ada Lovelace,\nBob,\nAda Lovelace,", "row 4: Ada Lovelace is in row 2, too; if these"),
        ('Ada Lovelace,\n"Lovelace, Ada",7', "row 3: Lovelace, Ada is in row 2, too"),
        ("Ada,7\nBob,7", "row 3: the ID 7 is in row 2, too"),
        (",7", "row 2: there is no name"),
    ],
)
def test_a_student_who_is_listed_twice_is_told_by_row(table, rows: str, sentence: str) -> None:
    with pytest.raises(SheetError, match=sentence):
        people.read_roster(table(f"name,id\n{rows}\n"))


def test_two_students_of_one_name_are_told_apart_by_their_ids(table) -> None:
    first, second = people.read_roster(table("name,id\nAda,1\nAda,2\n")).people
    both = Directory([first, second])
    assert both.find("2") == [second]
    (row,) = sheets.read(table("student\nAda\n"), ("student",))
    with pytest.raises(SheetError, match=r"row 2: “Ada” could be Ada \(1\) or Ada \(2\): write"):
        both.meant(row)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


@pytest.fixture
def policy(table) -> lateness.Policy:
    return lateness.read(
        table(
            "student,due,closes,loss_per_day,handed_in\n"
            "*,2026-10-12 23:59,2026-10-19 23:59,10%,\n"
            "Ada Lovelace,2026-10-20 12:00,,,\n"
            "bob@example.org,,,,2026-10-14 08:00\n"
        ),
        EVERYONE,
    )


@pytest.mark.parametrize(
    ("person", "time", "days", "loss"),
    [
        (CAÑA, "2026-10-12 23:59", 0, 0),
        (CAÑA, "2026-10-13 00:00", 1, 10),
        (CAÑA, "2026-10-14 23:59", 2, 20),
        (CAÑA, "2026-10-14 23:59:01", 3, 30),
        (CAÑA, "2026-10-19 23:59", 7, 100),
        (ADA, "2026-10-20 11:00", 0, 0),
        (ADA, "2026-10-20 13:00", 1, 10),
        (BOB, "2026-10-12 08:00", 2, 20),  # the table knows better than the file
    ],
)
def test_what_is_late_loses_by_the_day(policy, person, time: str, days: int, loss: float) -> None:
    assert policy.judge(person, at(time), False) == lateness.Lateness(days, loss)


def test_a_time_with_its_own_zone_is_taken_as_it_is(table) -> None:
    policy = lateness.read(table("student,due\n*,2026-10-12 23:59+02:00\n"), EVERYONE)
    assert policy.everyone.due - at("2026-10-12 21:59+00:00") == timedelta(0)


def test_a_late_file_whose_time_nobody_knows_loses_nothing_but_is_told(policy) -> None:
    assert policy.judge(ADA, None, True) == lateness.Lateness(unknown=True)
    assert policy.judge(ADA, None, False) == lateness.Lateness()
    assert policy.judge(BOB, None, True) == lateness.Lateness(2, 20)
    assert lateness.Policy().judge(ADA, at("2026-10-12"), False) == lateness.Lateness()


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("*,12.10.2026,,", "row 2: “12.10.2026” in the column due is not a date: write it as"),
        ("*,2026-10-12,,", "“2026-10-12” in the column due has no time of day"),
        ("*,2026-W41-1,,", "“2026-W41-1” in the column due has no time of day"),
        ("*,2026-10-12 23:59,,0.1", "a loss of 0.1 % per day is hardly anything: write 10"),
        ("*,2026-02-30 12:00,,", "“2026-02-30 12:00” in the column due is not a date"),
        ("*,2026-10-12 23:59,tomorrow,", "“tomorrow” in the column closes is not a date"),
        ("*,2026-10-12 23:59,2026-10-11 00:00,", "it closes at 2026-10-11 00:00, before it is due"),
        ("*,2026-10-12 23:59,,-5", "the loss per day is “-5”, but a percentage from 0 to 100"),
        ("*,2026-10-12 23:59,,much", "the loss per day is “much”"),
        ("Eve,2026-10-12 23:59,,", "row 2: nobody called “Eve” is on the roster or has handed in"),
        ("*,2026-10-12 23:59,,\n*,2026-10-13 23:59,,", "row 3: row 2 is for everyone"),
        ("Ada Lovelace,,,\n815,,,", "row 3: Lovelace, Ada already has a row"),
    ],
)
def test_a_bad_deadline_is_told_by_its_row(table, row: str, sentence: str) -> None:
    with pytest.raises(SheetError, match=sentence):
        lateness.read(table(f"student,due,closes,loss_per_day\n{row}\n"), EVERYONE)


def test_the_row_for_everyone_has_no_time_of_one_student(table) -> None:
    text = "student,due,handed_in\n*,2026-10-12 23:59,2026-10-13 08:00\n"
    with pytest.raises(SheetError, match="row 2: handed_in is one student's"):
        lateness.read(table(text), EVERYONE)


def test_points_and_comments_are_entered_by_hand(table) -> None:
    entered = overrides.read(
        table(
            "student;question;points;comment\n"
            "Ada Lovelace;q1;4,5;see me\n"
            "Ada Lovelace;q2;;good\n"
            "816;;0;withdrawn\n"
        ),
        EVERYONE,
        POSSIBLE,
    )
    assert entered[ADA] == overrides.ByHand({"q1": 4.5}, None, [("q1", "see me"), ("q2", "good")])
    assert entered[BOB] == overrides.ByHand({}, 0.0, [("", "withdrawn")])


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("Eve,q1,3,", "table.csv, row 2: nobody called “Eve” is on the roster or has handed in"),
        ("Ada Lovelace,q9,3,", "there is no question “q9”; this assignment has q1, q2"),
        ("Ada Lovelace,q1,six,", "“six” is not a number of points"),
        ("Ada Lovelace,q1,nan,", "nan points are not between 0 and 5"),
        ("Ada Lovelace,q1,6,", "6 points are not between 0 and 5"),
        ("Ada Lovelace,,9,", "9 points are not between 0 and 8"),
        ("Ada Lovelace,q1,,", "it has neither points nor a comment"),
        ("Ada Lovelace,q1,3,\n815,q1,4,", "row 3: 815 already has points for q1"),
    ],
)
def test_a_bad_override_is_told_by_its_row(table, row: str, sentence: str) -> None:
    with pytest.raises(SheetError, match=sentence):
        overrides.read(table(f"student,question,points,comment\n{row}\n"), EVERYONE, POSSIBLE)


def test_a_list_says_which_file_counts(table) -> None:
    read = instructor.read_chosen(table("student,file\nAda Lovelace,two.ipynb\n"), EVERYONE)
    assert read == {ADA: "two.ipynb"}
    with pytest.raises(SheetError, match="row 3: Lovelace, Ada already has a row"):
        instructor.read_chosen(table("student,file\nAda Lovelace,a\n815,b\n"), EVERYONE)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("red,Ada Lovelace\nblue,815", "row 3: Lovelace, Ada is in the group red, too"),
        (",Ada Lovelace", "row 2: there is no group"),
        ("red,Eve", "row 2: nobody called “Eve”"),
    ],
)
def test_a_bad_group_is_told_by_its_row(table, rows: str, sentence: str) -> None:
    with pytest.raises(SheetError, match=sentence):
        instructor.read_groups(table(f"group,student\n{rows}\n"), EVERYONE)


def test_a_table_by_another_name_is_not_passed_over(table) -> None:
    folder = table("student,due\n", "deadline.csv").parent
    with pytest.raises(SheetError, match=r"deadline.csv is none of roster.csv, deadlines.csv"):
        instructor.read_people(folder)
    with pytest.raises(SheetError, match="There is no folder"):
        instructor.read_people(folder / "nowhere")
