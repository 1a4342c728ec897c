"""Look-up pages: each row leads to cells that ran; the API page names all that is public."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import reading

import attention_book
from attention_book.mistakes import MISTAKES

ROOT = Path(__file__).resolve().parents[2]
START = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
SIDE_ROADS = ("02_scoring_functions", "05_additive_attention", "10_fast_and_exact")
WORDS = {7: "seven", 8: "eight", 9: "nine"}
LABEL = re.compile(r"^\(([a-z0-9-]+)\)=$", re.MULTILINE)
ROWS = {
    "ledger": [f"claim-b{n}" for n in range(1, 12)],
    "answers": [f"answer-d{n}" for n in range(1, 7)],
}
TRAPS = [f"trap-{n:02}" for n in range(1, 26)] + [f"slip-c{n}" for n in range(6, 15)] + ["slip-b2"]
#: Slips that are also traps are linked under the trap's name; both labels stand at one section.
SAME_SECTION = {f"slip-c{c}": f"trap-{t:02}" for c, t in ((1, 5), (2, 8), (3, 9), (4, 7), (5, 10))}


#: How the answer of an exhibit begins: folded until somebody asks for it.
ANSWER = ":::{admonition} Answer\n:class: dropdown\n"


def museum() -> list[dict]:
    path = ROOT / "notebooks" / "museum.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def words_of(cells: list[dict]) -> str:
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def sections() -> dict[str, list[dict]]:
    """For each label of the notebooks, the code cells below it, up to the next label or heading."""
    found: dict[str, list[dict]] = {}
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        open_labels: list[str] = []
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code":
                for label in open_labels:
                    found[label].append(cell)
            elif LABEL.search(source) or re.search(r"^##+ ", source, re.MULTILINE):
                open_labels = LABEL.findall(source)
                assert not found.keys() & set(open_labels), f"{path.name}: a label is used twice"
                found.update((label, []) for label in open_labels)
    return found


SECTIONS = sections()


@pytest.mark.parametrize(("page", "row"), [(page, row) for page in ROWS for row in ROWS[page]])
def test_each_row_is_there_and_links_to_its_section(page: str, row: str) -> None:
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    assert f"(#{row})" in text
    assert row in SECTIONS


@pytest.mark.parametrize("trap", TRAPS)
def test_each_trap_is_an_exhibit_of_the_museum_or_linked_from_it(trap: str) -> None:
    words = words_of(museum())
    assert trap in SECTIONS
    assert trap in LABEL.findall(words) or f"(#{trap})" in words


def test_each_exhibit_asks_runs_and_answers_when_asked() -> None:
    cells = museum()
    asked = [i for i, c in enumerate(cells) if "**Predict.**" in "".join(c["source"])]
    exhibits = re.findall(r"^### ", words_of(cells), re.MULTILINE)
    assert len(asked) == len(exhibits) > 0
    for i in asked:
        assert cells[i + 1]["cell_type"] == "code"
        assert cells[i + 1]["outputs"], cells[i + 1]["id"]
        assert "hide-output" in cells[i + 1]["metadata"]["tags"], cells[i + 1]["id"]
        answer = "".join(cells[i + 2]["source"])
        assert answer.startswith(ANSWER), cells[i + 2]["id"]


def test_each_exhibit_of_a_mistake_in_the_catalogue_says_its_name() -> None:
    names: dict[str, set[str]] = {}
    for name, mistake in MISTAKES.items():
        names.setdefault(mistake.exhibit, set()).add(name)
    cells = museum()
    said = {}
    for asked, answer in zip(cells, cells[2:], strict=False):
        last = re.search(r"^`(.+)`\n:::$", "".join(answer["source"]), re.MULTILINE)
        if last and ANSWER in "".join(answer["source"]):
            said |= dict.fromkeys(LABEL.findall("".join(asked["source"])), last[1])
            assert last[1] in MISTAKES
    for label in LABEL.findall(words_of(cells)):
        assert label not in names or said[label] in names[label], label


def test_examine_finds_each_mistake_of_the_museum_that_a_function_can_make() -> None:
    (ran,) = [c for c in museum() if c["id"] == "museum-run"]
    rows = [row[29:].split() for row in "".join(ran["outputs"][0]["text"]).splitlines()]
    assert len(rows) >= 20
    found = [row for row in rows if row and row[0] != "note"]
    assert len(found) >= 19
    for row in found:
        assert {name.strip(",") for name in row} <= {*MISTAKES, "wrong-numbers", "or"}


@pytest.mark.parametrize("row", ROWS["ledger"] + TRAPS)
def test_the_cells_of_each_claim_and_trap_ran(row: str) -> None:
    cells = SECTIONS[row]
    assert any(cell["outputs"] for cell in cells), f"no cell below ({row})= has an output"
    assert all(cell["execution_count"] for cell in cells)
    for cell in cells:
        failed = any(output["output_type"] == "error" for output in cell["outputs"])
        assert failed == ("raises-exception" in cell["metadata"].get("tags", []))


@pytest.mark.parametrize(("slip", "trap"), SAME_SECTION.items())
def test_a_slip_that_is_a_trap_stands_at_one_section(slip: str, trap: str) -> None:
    assert SECTIONS[slip] == SECTIONS[trap]


@pytest.mark.parametrize("page", ROWS)
def test_each_row_of_a_table_holds_a_link_to_its_section(page: str) -> None:
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    for row in text.split("\n* - ")[1:]:
        first_line = row.splitlines()[0]
        assert first_line == "claim" or "](#" in first_line


def test_every_public_name_stands_on_the_api_page() -> None:
    text = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto(?:class|exception|function):: (\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(attention_book.__all__)


def test_the_start_page_has_a_card_for_each_chapter_with_its_title_and_minutes() -> None:
    cards = re.findall(
        r"^\d+\. \[[^\]]+\?\]\(\.\./notebooks/(\w+)\.ipynb\)\s+\*([^·]+) · (side road · )?"
        r"(\d+) minutes\*$",
        START,
        re.MULTILINE,
    )
    expected = []
    for chapter in reading.chapters():
        first = "".join(reading.cells_of(chapter)[0]["source"])
        title, minutes = re.search(r"^# (.+)$", first, re.MULTILINE), re.search(r"(\d+) min", first)
        assert title is not None
        assert minutes is not None
        side = "side road · " if chapter in SIDE_ROADS else ""
        expected.append((chapter, title[1], side, minutes[1]))
    assert cards == expected


def test_the_start_page_adds_up_the_main_road_and_its_exercises() -> None:
    main = [reading.cells_of(n) for n in reading.chapters() if n not in SIDE_ROADS]
    read = sum(sum(reading.minutes(cells).values()) for cells in main)
    exercises = sum(map(reading.exercise_minutes, main))
    assert f"the {WORDS[len(main)]} chapters that are not side roads" in START
    path = sum(map(reading.main_path, main))
    named = re.search(r"about\s(\d+) hours.+?about (\d+) more.+?about (\d+)\shours", START, re.S)
    for hours, counted in zip(named.groups(), (read, exercises, path), strict=True):
        assert abs(counted / 60 - int(hours)) <= 0.5, counted


@pytest.mark.parametrize("chapter", [n for n in reading.chapters() if n not in SIDE_ROADS])
def test_no_chapter_of_the_main_road_needs_a_side_road(chapter: str) -> None:
    first = "".join(reading.cells_of(chapter)[0]["source"])
    needed = re.search(r"You need: (.+?) You will learn", first, re.DOTALL)[1]
    assert not [side for side in SIDE_ROADS if side in needed]


@pytest.mark.parametrize("chapter", reading.chapters())
def test_the_main_path_of_a_chapter_takes_the_minutes_that_it_names(chapter: str) -> None:
    cells = reading.cells_of(chapter)
    named = re.search(r"the main path, .+?, about (\d+)\.", "".join(cells[0]["source"]))
    assert 20 <= int(named[1]) <= 45
    assert int(named[1]) % 5 == 0
    assert abs(reading.main_path(cells) - int(named[1])) <= 2.5


@pytest.mark.parametrize("chapter", reading.chapters())
def test_a_chapter_takes_the_minutes_to_read_that_it_names(chapter: str) -> None:
    """It names them in steps of five; tests/reading.py says how they are counted."""
    cells = reading.cells_of(chapter)
    measured = sum(reading.minutes(cells).values())
    named = int(re.search(r"(\d+) min", "".join(cells[0]["source"]))[1])
    assert named % 5 == 0
    assert abs(measured - named) <= 2.5, measured
    assert named <= 90
