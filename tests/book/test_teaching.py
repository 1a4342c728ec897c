"""How to teach with this: each meeting is complete, and what it names is in the book."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import reading

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
PARTS = ("Before", "Figure, and what to ask first", "What goes wrong", "Assign", "Slides")
MEETINGS = {
    int(number): (title, text)
    for number, title, text in re.findall(
        r"^### Meeting (\d+): ([^\n]+)\n(.+?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE
    )
}


def read_before(number: int) -> float:
    """The minutes of the sections to read before the meeting, without their side steps."""
    measured = reading.path_minutes(reading.cells_of(chapter_of(number)))
    named = re.findall(r"\*(.+?)\*(?=[,.])", part(number, "Before"))
    assert not set(named) - set(measured)
    return sum(measured[name] for name in named)


def between(pattern: str) -> tuple[int, int]:
    return tuple(map(int, re.search(pattern, one_line(PAGE)).groups()))


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def part(number: int, name: str) -> str:
    """What the meeting says under that name, on one line."""
    found = re.findall(
        rf"^{re.escape(name)}\n: (.+?)(?=\n\n|\Z)", MEETINGS[number][1], re.DOTALL | re.MULTILINE
    )
    assert len(found) == 1, name
    return one_line(found[0])


def chapter_of(number: int) -> str:
    return re.search(r"^\[Chapter \d+\]\(\.\./notebooks/(\w+)\.ipynb\): ", part(number, "Before"))[
        1
    ]


def exercises(notebook: str) -> set[str]:
    return set(re.findall(r"^### (\d+\.\d+) ", reading.markdown(reading.cells_of(notebook)), re.M))


def minutes_of(row: str) -> int:
    return sum(map(int, re.findall(r"\b(\d+) (?=[a-z])", row)))


def test_there_is_a_meeting_for_each_chapter_in_order() -> None:
    assert list(MEETINGS) == list(range(1, len(reading.chapters()) + 1))
    assert [chapter_of(number) for number in MEETINGS] == reading.chapters()
    for number, (title, _) in MEETINGS.items():
        assert reading.markdown(reading.cells_of(chapter_of(number))).startswith(f"# {title}\n")


@pytest.mark.parametrize("number", MEETINGS)
def test_a_meeting_has_all_its_parts_and_its_minutes_add_up_to_ninety(number: int) -> None:
    text = MEETINGS[number][1]
    assert "Afterwards students can " in text
    assert re.findall(r"^(.+)\n: ", text, re.MULTILINE) == list(PARTS)
    minutes = [int(found) for found in re.findall(r"^\| (\d+) \| ", text, re.MULTILINE)]
    assert len(minutes) >= 5
    assert sum(minutes) == 90
    assert len(re.findall(r"^\| \d+ \| Figure \|$", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("number", MEETINGS)
def test_what_is_read_before_a_meeting_takes_as_long_as_the_page_says(number: int) -> None:
    shortest, longest = between(r"which take (\d+) to (\d+) minutes")
    assert shortest <= round(read_before(number)) <= longest


@pytest.mark.parametrize("number", MEETINGS)
def test_a_meeting_moves_a_figure_of_its_chapter_and_asks_first(number: int) -> None:
    found = re.match(r"\*(.+?)\*\. “[^”]+\?” \w", part(number, "Figure, and what to ask first"))
    assert found is not None
    assert found[1] in reading.figures_in(reading.cells_of(chapter_of(number)))


@pytest.mark.parametrize("number", MEETINGS)
def test_a_meeting_assigns_what_exists(number: int) -> None:
    assigned = part(number, "Assign")
    named = set(re.findall(r"\b\d+\.\d+\b", assigned))
    assert len(named) >= 2
    assert named <= exercises(chapter_of(number))
    discussed = set(re.findall(r"\b[Ee]xercise (\d+\.\d+)", MEETINGS[number][1]))
    everywhere = set().union(*(exercises(notebook) for notebook in reading.chapters()))
    assert discussed <= everywhere
    for file in re.findall(r"\((\.\./coursework/.+?)\)", assigned):
        assert (ROOT / "book" / file).is_file()
    deck = (ROOT / "slides" / f"{chapter_of(number)}.md").read_text(encoding="utf-8")
    told = re.search(r"^Do exercises (.+?)\.(?: |$)", deck.rpartition("\n## ")[2], re.M)
    assert set(re.findall(r"\d+\.\d+", told[1])) == named


@pytest.mark.parametrize("number", MEETINGS)
def test_a_section_that_a_meeting_shows_is_in_its_chapter(number: int) -> None:
    headings = re.findall(
        r"^##+ (.+)$", reading.markdown(reading.cells_of(chapter_of(number))), re.MULTILINE
    )
    rows = "\n".join(re.findall(r"^\| \d+ \| .+$", MEETINGS[number][1], re.MULTILINE))
    assert set(re.findall(r"\*(.+?)\*", rows)) <= set(headings)


@pytest.mark.parametrize("number", MEETINGS)
def test_a_meeting_links_to_the_slides_of_its_chapter(number: int) -> None:
    assert f'href="../slides/{chapter_of(number)}.html"' in part(number, "Slides")


def test_the_course_in_numbers_names_what_the_chapters_and_assignments_name() -> None:
    rows = re.findall(
        r"^\| \[(\d+) .+?\]\(\.\./notebooks/(\w+)\.ipynb\) \| (main|side) road \| (\d+) \| (\d+) \|"
        r"(?: \[.+?\]\(\.\./(coursework/.+?)\),(?: a project:)? (\d+) minutes"
        r"(?: and [^|]+)?)? *\|$",
        PAGE,
        re.MULTILINE,
    )
    assert [row[1] for row in rows] == reading.chapters()
    for number, chapter, _, read, exercised, assignment, minutes in rows:
        cells = reading.cells_of(chapter)
        assert f"about {read} minutes" in "".join(cells[0]["source"]), chapter
        assert reading.exercise_minutes(cells) == int(exercised), chapter
        assert assignment in part(int(number), "Assign")
        if assignment:
            text = (ROOT / assignment).read_text(encoding="utf-8")
            assert re.search(rf"\*\*{minutes} minutes · |points, {minutes} minutes\)", text)
    main = ", ".join(row[0] for row in rows if row[2] == "main")
    assert f"| main road | {main} |" in PAGE
    assigned = {row[5] for row in rows if row[5]}
    assert assigned == {
        f"coursework/student/{path.name}" for path in (ROOT / "coursework/student").glob("*.ipynb")
    }


def test_the_short_course_has_four_meetings_of_ninety_minutes_from_the_main_road() -> None:
    rows = re.findall(r"^\| ([A-D]) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
    assert [row[0] for row in rows] == ["A", "B", "C", "D"]
    main = re.search(r"^\| main road \| (.+?) \|", PAGE, re.MULTILINE)[1].split(", ")
    chapters = reading.chapters()
    shortest, longest = between(r"before the meeting, (\d+) to (\d+) minutes")
    used = []
    for _, *parts, last, assigned in rows:
        numbers = [int(text.partition(":")[0]) for text in parts]
        used += map(str, numbers)
        assert shortest <= round(sum(map(read_before, numbers))) <= longest
        assert sum(minutes_of(text.partition(":")[2]) for text in parts) + minutes_of(last) == 90
        existing = set().union(*(exercises(chapters[number - 1]) for number in numbers))
        named = set(re.findall(r"\b\d+\.\d+\b", assigned))
        assert named
        assert named <= existing
    assert [*used, "12"] == main  # the last chapter is read on one's own
