"""The readers' editions of the notebooks: nothing raw, nothing missing, no answer in sight."""

from __future__ import annotations

import ast
import json
import re
from copy import copy
from functools import cache
from pathlib import Path

import nbformat
import pytest
import readers_ext as readers
from browser import ROOT, built_book
from bs4 import BeautifulSoup
from editions_read import CHAPTERS, RAW, original, texts
from IPython.core.inputtransformer2 import TransformerManager
from markdown_it import MarkdownIt
from measurements import GLUED
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from scripts import tool

ARXIV = "https://arxiv.org/abs"
ADDRESS, REPOSITORY = "https://owner.github.io/repo", "https://github.com/owner/repo"
#: Each place where a reader opens a notebook: what the edition is, and what the book knows.
TARGETS = {
    "JupyterLab": (readers.LAB, {}),
    "a download": (readers.ALONE, {}),
    "Colab, or a download of a published copy": (
        readers.ALONE,
        {"address": ADDRESS, "repository": REPOSITORY},
    ),
}


@pytest.fixture(scope="module", params=TARGETS)
def editions(request) -> dict[str, nbformat.NotebookNode]:
    """Every chapter as one target gets it, by its name."""
    edition, known = TARGETS[request.param]
    book = readers.read_book(**known)
    return {
        path.stem: readers.edition_of(original(path), path.stem, book, edition) for path in CHAPTERS
    }


@cache
def page_of(name: str) -> BeautifulSoup:
    """The page of a chapter."""
    html = (built_book() / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
    return BeautifulSoup(html, "html.parser")


def solutions(path: Path) -> list[nbformat.NotebookNode]:
    return [c for c in original(path).cells if "hide-cell" in c.metadata.get("tags", [])]


def test_no_cell_shows_what_only_the_book_understands(editions):
    raw = [(name, RAW.findall(text)) for name, nb in editions.items() for text in texts(nb)]
    assert [found for found in raw if found[1]] == []
    assert sum(len(RAW.findall(t)) for path in CHAPTERS for t in texts(original(path))) > 200


def test_no_code_stores_numbers_for_the_text_and_what_is_left_is_code(editions):
    for name, notebook in editions.items():
        for cell in notebook.cells:
            if cell.cell_type == "code":
                assert not re.search(r"glue|myst_nb", cell.source), (name, cell.id)
                assert cell.source.strip(), (name, cell.id)
                ast.parse(TransformerManager().transform_cell(cell.source))
                for output in cell.outputs:
                    assert GLUED not in output.get("data", {})


def seen(cell: nbformat.NotebookNode) -> str:
    """What a reader sees of a cell without unfolding anything."""
    if cell.cell_type == "code":
        hidden = cell.metadata.get("jupyter", {})
        source = cell.source.splitlines()[0] if hidden.get("source_hidden") else cell.source
        return source + ("" if hidden.get("outputs_hidden") else json.dumps(cell.outputs))
    page = BeautifulSoup(MarkdownIt("commonmark").render(cell.source), "html.parser")
    for fold in page.select("details:not([open]) > :not(summary)"):
        fold.decompose()
    return page.get_text()


def test_no_solution_is_seen_before_the_reader_unfolds_it(editions):
    for path in CHAPTERS:
        answers = solutions(path)
        shown = {cell.id: seen(cell) for cell in editions[path.stem].cells}
        assert sum("Solution to" in text for text in shown.values()) == len(answers)
        for cell, text in shown.items():
            assert not re.search(r"\d\.\d: right", text), (path.name, cell)
            for answer in answers:
                assert answer.source not in text, (path.name, cell)


def test_what_the_page_folds_is_folded_in_every_edition(editions):
    for path in CHAPTERS:
        after = {cell.id: cell.source for cell in editions[path.stem].cells}
        for cell in original(path).cells:
            folded = cell.source.count("<details>") + cell.source.count(":class: dropdown")
            if cell.cell_type == "markdown" and folded:
                page = BeautifulSoup(MarkdownIt("commonmark").render(after[cell.id]), "html.parser")
                assert len(page.select("details:not([open]) > summary")) == folded, cell.id


def test_every_solution_is_named_after_its_exercise(editions):
    for path in CHAPTERS:
        named = re.findall(
            r"^<summary>Solution to (\d+\.\d+)</summary>$",
            "\n".join(cell.source for cell in editions[path.stem].cells),
            re.MULTILINE,
        )
        checked: list[str] = []
        for cell in solutions(path):  # one without a check belongs to the exercise before it
            found = re.search(r'check\(\s*"([\d.]+)"', cell.source)
            checked.append(found[1] if found else checked[-1])
        assert named == checked


def test_links_lead_somewhere(editions, request):
    target = request.node.callspec.params["editions"]
    built = built_book()
    for name, notebook in editions.items():
        for text in texts(notebook):
            for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", text):
                if link.startswith(ADDRESS):
                    page, _, anchor = link.removeprefix(ADDRESS + "/").partition("#")
                    html = (built / page).read_text(encoding="utf-8")
                    assert not anchor or f'id="{anchor}"' in html, link
                elif target == "JupyterLab" and not link.startswith("http"):
                    path, _, anchor = link.partition("#")
                    assert (
                        not path
                        or (ROOT / "lab" / path).resolve().exists()
                        or (ROOT / "notebooks" / path).exists()
                    ), (name, link)
                else:
                    assert link.startswith("https://"), (name, link)


def test_figures_have_the_numbers_and_captions_of_the_page(editions):
    for name, notebook in editions.items():
        page = page_of(name)
        numbered = [
            number.get_text(strip=True).removeprefix("Fig. ")
            for number in page.select("figcaption .caption-number")
        ]
        told = re.findall(
            r"^\*\*Figure ([\d.]+)\.\*\* \S", "\n".join(texts(notebook)), re.MULTILINE
        )
        assert told == numbered


def test_a_chapter_says_its_number_as_its_page_does(editions):
    for name, notebook in editions.items():
        title = copy(page_of(name).select_one("article h1"))
        title.select_one(".headerlink").decompose()
        told = next(text for text in texts(notebook) if text.startswith("# "))
        assert told.splitlines()[0] == "# " + title.get_text(strip=True).replace(".", ". ", 1)


def test_the_download_button_gives_the_edition_that_stands_alone():
    book = readers.read_book()
    for path in CHAPTERS:
        link = page_of(path.stem).select_one(".btn-download-source-button")
        given = (built_book() / "notebooks" / link["href"]).resolve()
        made = readers.edition_of(original(path), path.stem, book, readers.ALONE)
        assert nbformat.read(given, as_version=4).cells == made.cells


def test_a_chapter_that_stands_alone_fetches_the_package_where_the_repository_is_known(editions):
    for notebook in editions.values():
        fetches = [cell for cell in notebook.cells if "%pip install" in cell.source]
        assert fetches == [cell for cell in notebook.cells[:1] if cell.id == "fetch-package"]
        for cell in fetches:
            assert re.search(rf'"attention-book @ git\+{REPOSITORY}@[0-9a-f]{{40}}"', cell.source)


# --- One cell at a time -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def book() -> readers.Book:
    known = readers.read_book()
    headings = {"trap-01": ("03_masking", "The wrong axis")}
    return known._replace(measured={"03-share": "55%"}, headings=headings, numbers={"11_made": 11})


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("{measured}`03-share` is wasted.", "55% is wasted."),
        ("As {cite:t}`vaswani2017` say", f"As [Vaswani et al. (2017)]({ARXIV}/1706.03762) say"),
        ("so {cite:p}`bahdanau2015`.", f"so ([Bahdanau et al., 2015]({ARXIV}/1409.0473))."),
        ("(trap-01)=\n### The wrong axis", "### The wrong axis"),
        (r"$\class{dim-keys}{n_{\text{k}}}$ keys", r"${n_{\text{k}}}$ keys"),
        ("```{note}\nMind it.\n```", "> **Note**\n>\n> Mind it."),
        (
            ":::{admonition} Look out\n:class: tip\nMind\n\nit.\n:::",
            "> **Look out**\n>\n> Mind\n>\n> it.",
        ),
    ],
)
def test_text_is_plain_markdown(book, written, shown):
    assert readers.plain(written, book, readers.LAB, "11_made") == shown


@pytest.mark.parametrize(
    ("written", "in_lab", "alone", "published"),
    [
        (
            "[there](03_masking.ipynb)",
            "[there](03_masking.ipynb)",
            "there",
            f"[there]({ADDRESS}/notebooks/03_masking.html)",
        ),
        (
            "[it](#trap-01)",
            "[it](03_masking.ipynb#The-wrong-axis)",
            "it",
            f"[it]({ADDRESS}/notebooks/03_masking.html#trap-01)",
        ),
        (
            "[names](../book/notation.md)",
            "[names](../book/notation.md)",
            "names",
            f"[names]({ADDRESS}/book/notation.html)",
        ),
    ],
)
def test_a_link_leads_as_far_as_an_edition_can_follow(book, written, in_lab, alone, published):
    known = book._replace(address=ADDRESS)
    assert readers.plain(written, book, readers.LAB, "11_made") == in_lab
    assert readers.plain(written, book, readers.ALONE, "11_made") == alone
    assert readers.plain(written, known, readers.ALONE, "11_made") == published


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{measured}`03-none`", "'03-none', which the book does not have"),
        ("{cite:t}`nobody1900`", "'nobody1900', which the book does not have"),
        ("{abbr}`NaN`", r"cannot show the role \{abbr\}"),
        ("```{mermaid}\nA\n```", r"cannot show the directive \{mermaid\}"),
    ],
)
def test_what_an_edition_cannot_show_stops_it(book, written, message):
    with pytest.raises(ValueError, match=message):
        readers.plain(written, book, readers.LAB, "11_made")


def test_a_solution_keeps_its_code_and_its_output(book):
    cells = [
        new_markdown_cell("### 11.2 How long?"),
        new_code_cell(
            "answer = `4`\n```",
            metadata={"tags": ["hide-cell"]},
            outputs=[new_output("stream", text="11.2: right.\n")],
        ),
    ]
    made = new_notebook(cells=cells, metadata={"kernelspec": {"name": "p", "display_name": "p"}})
    for edition in (readers.LAB, readers.ALONE):
        folded = readers.edition_of(made, "11_made", book, edition).cells[1]
        assert folded.cell_type == "markdown", "a cell would print its answer when all are run"
        html = BeautifulSoup(MarkdownIt("commonmark").render(folded.source), "html.parser")
        fold = html.find("details")
        assert fold.summary.get_text() == "Solution to 11.2"
        code, output = (block.get_text() for block in fold.select("pre code"))
        assert code == cells[1].source + "\n"
        assert output == "11.2: right.\n"


def test_two_folded_hints_stand_between_an_exercise_and_its_solution(editions):
    for notebook in editions.values():
        for before, hints, after in zip(
            notebook.cells, notebook.cells[1:], notebook.cells[2:], strict=False
        ):
            if before.cell_type == "code" and re.search(r"^check\(", before.source, re.MULTILINE):
                page = BeautifulSoup(MarkdownIt("commonmark").render(hints.source), "html.parser")
                titles = [fold.summary.get_text() for fold in page.select("details:not([open])")]
                assert titles == ["Hint 1", "Hint 2"], before.source
                assert "Solution to" in after.source
                assert all(fold.p.get_text() for fold in page.select("details"))


def test_running_all_cells_of_an_edition_tells_no_answer(editions):
    """Every check that stands in a cell is of an answer that is not given yet."""
    for notebook in editions.values():
        for cell in notebook.cells:
            if cell.cell_type == "code" and re.search(r"^check\(", cell.source, re.MULTILINE):
                assert "..." in cell.source
                assert "not answered yet" in cell.outputs[0].text


# --- The readers' folder ----------------------------------------------------------------------


def test_a_chapter_that_its_reader_changed_stays_and_the_others_follow_the_book(tmp_path):
    new, folder = tmp_path / "new", tmp_path / "lab"
    new.mkdir()
    refresh = tool("lab").refresh

    def publish(text: str) -> list[str]:
        for name in ("01_one.ipynb", "02_two.ipynb"):
            (new / name).write_text(text)
        return refresh(folder, new)

    assert publish("first") == []
    (folder / "01_one.ipynb").write_text("mine")
    (folder / "my_own.ipynb").write_text("mine too")
    assert publish("second") == ["01_one.ipynb"]
    assert (folder / "01_one.ipynb").read_text() == "mine"
    assert (folder / "02_two.ipynb").read_text() == "second"
    assert (folder / "my_own.ipynb").read_text() == "mine too"
    (folder / "01_one.ipynb").unlink()
    assert publish("third") == []
    assert (folder / "01_one.ipynb").read_text() == "third"
