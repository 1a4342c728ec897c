"""Look-up pages: each row leads to cells that ran; the API page names all that is public."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import attention_book

ROOT = Path(__file__).resolve().parent.parent
LABEL = re.compile(r"^\(([a-z0-9-]+)\)=$", re.MULTILINE)
ROWS = {
    "ledger": [f"claim-b{n}" for n in range(1, 12)],
    "answers": [f"answer-d{n}" for n in range(1, 7)],
}
TRAPS = [f"trap-{n:02}" for n in range(1, 26)] + [f"slip-c{n}" for n in range(6, 15)] + ["slip-b2"]
#: Slips that are also traps are linked under the trap's name; both labels stand at one section.
SAME_SECTION = {f"slip-c{c}": f"trap-{t:02}" for c, t in ((1, 5), (2, 8), (3, 9), (4, 7), (5, 10))}


def museum() -> list[dict]:
    path = ROOT / "notebooks" / "museum.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def words_of(cells: list[dict]) -> str:
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def main_text(cells: list[dict]) -> tuple[int, int]:
    """How many words and how many cells a first reading has: no exercises, nothing that is folded
    or goes deeper, no formulas of their own, no tables."""
    words, shown, skipped = 0, 0, False
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            hidden = {"remove-cell", "hide-cell"} & set(cell["metadata"].get("tags", []))
            shown += not (skipped or hidden)
            continue
        for part in re.split(r"^(?=## )", source, flags=re.MULTILINE):
            if part.startswith("## "):
                skipped = part.startswith(("## Exercises", "## Going deeper"))
            if not skipped:
                part = re.sub(r":::.*?^:::$|<details>.*?</details>", "", part, flags=re.S | re.M)
                part = re.sub(r"```.*?```|\$\$.*?\$\$", "", part, flags=re.S)
                words += len(re.sub(r"^(\|.*|#.*|\(.*\)=)$", "", part, flags=re.M).split())
    return words, shown


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


def test_each_exhibit_asks_runs_and_answers() -> None:
    cells = museum()
    asked = [i for i, c in enumerate(cells) if "**Predict.**" in "".join(c["source"])]
    exhibits = re.findall(r"^### ", words_of(cells), re.MULTILINE)
    assert len(asked) == len(exhibits) > 0
    for i in asked:
        assert cells[i + 1]["cell_type"] == "code"
        assert cells[i + 1]["outputs"], cells[i + 1]["id"]
        assert "".join(cells[i + 2]["source"]).startswith("**See.**"), cells[i + 2]["id"]


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
    text = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    cards = re.findall(
        r"^\d+\. \[[^\]]+\?\]\(\.\./(notebooks/\w+\.ipynb)\)\s+\*([^·]+) · (\d+) minutes\*$",
        text,
        re.MULTILINE,
    )
    chapters = []
    for path in sorted(ROOT.glob("notebooks/[0-9]*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        title, minutes = re.search(r"^# (.+)$", first, re.MULTILINE), re.search(r"(\d+) min", first)
        assert title is not None
        assert minutes is not None
        chapters.append((f"notebooks/{path.name}", title[1], minutes[1]))
    assert cards == chapters


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/[0-9]*.ipynb")), ids=lambda p: p.stem)
def test_a_chapter_takes_the_minutes_to_read_that_it_names_and_no_more_than_thirty(path) -> None:
    """At 200 words a minute, and 24 seconds for each cell, the figures among them."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words, shown = main_text(cells)
    measured = words / 200 + 0.4 * shown
    named = int(re.search(r"(\d+) min", "".join(cells[0]["source"]))[1])
    assert abs(measured - named) <= 2, measured
    assert measured <= 30
