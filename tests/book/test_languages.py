"""The two editions: the same book in two languages, each page beside the other, nothing lost."""

from __future__ import annotations

import ast
import gzip
import html
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

import nbformat
import pikepdf
import pytest
import readers_ext as readers
import reading
import yaml
from browser import ROOT, Watched, built_book, from_disk, wait_for_result
from bs4 import BeautifulSoup
from editions import EDITIONS, translations
from editions_read import CHAPTERS, RAW, original, texts
from formulas_ext import in_words
from languages_ext import SearchPairs
from messages_ext import HtmlWithWords
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from playwright.sync_api import Page
from scripts import tool
from translated import PARSER, _messages, translated

CHINESE = "zh_CN"
FOLDER = EDITIONS[CHINESE].folder
HAN = re.compile("[\u4e00-\u9fff]")

# --- Pages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def book() -> Path:
    return built_book()


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[str, str]:
    """Every page of both editions, by its path."""
    found = {
        file.relative_to(book).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(book.rglob("*.html"))
        if not {"_static", "_sources", "404.html", "slides"} & set(file.relative_to(book).parts)
    }
    return {path: text for path, text in found.items() if "<body" in text}


def english(pages: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in pages.items() if not path.startswith(FOLDER)}


def article(text: str) -> str:
    return "".join(re.findall("<article.*</article>", text, re.DOTALL))


def places(text: str) -> list[str]:
    """The anchors of a page; those that are only numbered, such as a citation's, are no address."""
    return re.findall(r'(?<= id=")(?!id\d+")[^"]+', article(text))


def test_every_page_stands_in_both_editions(pages):
    in_english = set(english(pages))
    assert len(in_english) > 25
    assert {path.removeprefix(FOLDER) for path in pages.keys() - in_english} == in_english


def test_every_page_names_its_language(pages):
    for path, text in pages.items():
        tag = EDITIONS[CHINESE if path.startswith(FOLDER) else "en"].tag
        assert re.search(r'<html lang="([\w-]+)"', text)[1] == tag, path


def test_every_page_leads_to_itself_in_the_other_edition_and_back(pages):
    for path, text in pages.items():
        [(address, tag)] = re.findall(
            r'<a class="[^"]*switch-language" href="([^"]+)"[^>]* hreflang="([\w-]+)"', text
        )
        there = path.removeprefix(FOLDER) if path.startswith(FOLDER) else FOLDER + path
        assert normpath(join(dirname(path), address)) == there, path
        assert f'<html lang="{tag}"' in pages[there]


def test_every_heading_and_place_is_called_the_same_in_both_editions(pages):
    for path, text in english(pages).items():
        assert places(text) == places(pages[FOLDER + path]), path


@pytest.fixture(scope="module")
def articles(pages: dict[str, str]) -> dict[str, BeautifulSoup]:
    return {path: BeautifulSoup(article(text), "html.parser") for path, text in pages.items()}


def built_like(page: BeautifulSoup) -> dict[str, list]:
    """What a translation must leave as it is: folds with their children, code, numbers, links."""
    folds = [len(fold.find_all(recursive=False)) for fold in page.find_all("details")]
    code = sorted(code.get_text() for code in page.find_all("code"))
    cells = [pre.get_text() for pre in page.select(".cell_output pre")]
    numbers = [sorted(re.findall(r"\d+(?:[.,]\d+)*", text)) for text in cells]
    links = sorted(
        link["href"].rpartition("#")[2] for link in page.select("a.reference:not(.term)")
    )
    figures = len(page.find_all("attention-figure"))
    return {"folds": folds, "code": code, "cells": numbers, "links": links, "figures": [figures]}


def test_a_page_has_the_same_folds_code_and_links_in_both_editions(pages, articles):
    for path in english(pages):
        assert built_like(articles[path]) == built_like(articles[FOLDER + path]), path


@pytest.mark.parametrize("chapter", reading.chapters())
@pytest.mark.parametrize("folder", ["", FOLDER])
def test_what_the_main_path_leaves_out_is_marked(articles, folder, chapter):
    page = articles[f"{folder}notebooks/{chapter}.html"]
    marked = len(page.select("section.side-step"))
    assert marked == len(reading.side_steps(reading.cells_of(chapter))) > 0


def test_nothing_on_a_chinese_page_is_marked_as_english(articles):
    """But the messages that are still open, each of which may stand in several places."""
    still_open = int((ROOT / "locale" / CHINESE / "open").read_text())
    marked = {
        element.get_text()
        for path, page in articles.items()
        if path.startswith(FOLDER)
        for element in page.select('[lang="en"]')
    }
    assert len(marked) <= still_open, marked


def test_the_contents_and_the_frame_speak_chinese(pages, articles):
    start = BeautifulSoup(pages[f"{FOLDER}book/intro.html"], "html.parser")
    parts = [part.get_text() for part in start.select(".bd-sidebar-primary .caption-text")]
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert len(parts) == len(contents["parts"])
    assert all(HAN.match(part) for part in parts), parts
    said = translations(CHINESE, "sphinx")
    assert start.title.get_text() == said["Attention, Shape by Shape"]
    chapter = f"{FOLDER}notebooks/03_masking.html"
    assert said["On this page"] in pages[chapter]
    assert "图 3.1" in articles[chapter].figcaption.get_text()


@pytest.fixture(scope="module")
def chinese(book: Path) -> Iterator[Watched]:
    """The Chinese edition from a disk, in one tab, with the network off."""
    with from_disk(book) as watched:
        yield watched


def test_the_switch_keeps_the_place(book, chinese):
    page: Page = chinese.page
    place = re.findall(r'<section id="([\w-]+)"', (book / "book/notation.html").read_text())[2]
    page.goto(f"{book.as_uri()}/book/notation.html#{place}")
    for folder in (FOLDER, ""):
        page.locator(".switch-language").click()
        page.wait_for_url(f"{book.as_uri()}/{folder}book/notation.html#{place}")


def test_a_chinese_figure_moves_and_speaks_chinese(book, chinese):
    page: Page = chinese.page
    page.goto(f"{book.as_uri()}/{FOLDER}notebooks/03_masking.html")
    figure = page.locator('attention-figure[kind="masking"]')
    slider = figure.locator("input[type=range]:visible").first
    weights = figure.locator("[data-key^=weight]")
    before = weights.evaluate_all("cells => cells.map(cell => cell.dataset.value)")
    slider.press("Home")
    assert weights.evaluate_all("cells => cells.map(cell => cell.dataset.value)") != before
    assert HAN.search(" ".join(figure.locator("label").all_inner_texts()))


def test_chinese_words_of_any_length_are_found(book, chinese):
    page: Page = chinese.page
    page.goto(f"{book.as_uri()}/{FOLDER}book/intro.html")
    said = translations(CHINESE, "sphinx")
    page.locator(".search-button-field, .search-button__button").first.click()
    page.get_by_role("searchbox", name=said["Search the book"]).locator("visible=true").fill("掩蔽")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    for word in ("查询", "键", "值", "核回归", "缩放的点积注意力"):
        page.goto(f"{book.as_uri()}/{FOLDER}search.html?q={word}")
        wait_for_result(page, "link.href.includes('/zh/notebooks/0')")


def test_chinese_is_cut_into_characters_and_pairs_without_numbers_and_particles():
    cut = SearchPairs({})
    words = {word for word in cut.split("核的回归 softmax 0.0001") if cut.word_filter(word)}
    assert words == {"softmax", "核", "回", "归", "回归"}


def test_a_chinese_page_is_hardly_heavier_than_the_english_one(book, pages):
    for path, text in english(pages).items():
        sizes = [len(gzip.compress(one.encode())) for one in (text, pages[FOLDER + path])]
        assert sizes[1] - sizes[0] < 30_000, path


# --- Paper ------------------------------------------------------------------------------------


def test_the_chinese_book_is_printed_in_chinese(book, tmp_path, monkeypatch):
    pdf = tool("pdf")
    said = {"The Book": "书", pdf.SOLUTIONS: "解答", pdf.AT_THE_END: "见书末", pdf.ON_PAPER: "纸"}
    monkeypatch.setattr(pdf, "translations", lambda *_: said)
    chapters = [{"file": "notebooks/03_masking"}]
    contents = {"root": "book/intro", "parts": [{"chapters": chapters}]}
    joined = pdf.join_pages(book / FOLDER, contents, "The Book", CHINESE)
    assert [p.get_text() for p in joined.select(".cover > p")] == ["书", "纸"]
    assert joined.find("a", string="见书末")
    pdf.print_book(joined, book / FOLDER, tmp_path / "book.pdf", "The Authors")
    with pikepdf.open(tmp_path / "book.pdf") as document:
        assert document.Root.Lang == EDITIONS[CHINESE].tag
        with document.open_outline() as outline:
            titles = [item.title for item in outline.root]
    assert titles == [joined.select("h1")[0].get_text(), "3. 掩蔽", "解答"]


def test_each_edition_is_printed_into_a_file_of_its_own():
    assert [edition.printed for edition in EDITIONS.values()] == [
        "attention-shape-by-shape.pdf",
        "attention-shape-by-shape.zh.pdf",
    ]


# --- Readers' notebooks -----------------------------------------------------------------------


@cache
def edition(language: str, kind: readers.Edition) -> dict[str, nbformat.NotebookNode]:
    known = readers.read_book(language=language)
    return {
        path.stem: readers.edition_of(original(path), path.stem, known, kind) for path in CHAPTERS
    }


@pytest.fixture(scope="module", params=[readers.LAB, readers.ALONE], ids=["lab", "download"])
def both(request) -> tuple[dict, dict, readers.Edition]:
    """Every chapter in English and in Chinese, for one place where it is read."""
    return edition("en", request.param), edition(CHINESE, request.param), request.param


def test_a_chinese_notebook_has_the_cells_and_the_outputs_of_the_english_one(both):
    for name, notebook in both[0].items():
        there = both[1][name]
        nbformat.validate(there)
        assert [cell.id for cell in notebook.cells] == [cell.id for cell in there.cells]
        for one, other in zip(notebook.cells, there.cells, strict=True):
            assert (one.cell_type, one.metadata) == (other.cell_type, other.metadata)
            if one.cell_type == "code":
                kinds = [
                    [
                        sorted(output.get("data", {output.output_type: ""}))
                        for output in cell.outputs
                    ]
                    for cell in (one, other)
                ]
                assert kinds[0] == kinds[1], (name, one.id)


def test_a_chinese_notebook_speaks_chinese(both):
    """What its checks answer, what its cells print, draw and explain."""
    cell = {cell.id: cell for cell in both[1]["03_masking"].cells}
    assert "没有掩码" in cell["one-batch-two-lengths"].source
    assert cell["four-lines"].outputs[0].text.startswith("允许两个键：")
    assert "还没有作答" in cell["cell-87"].outputs[0].text
    [picture] = cell["cell-18"].outputs
    original_cell = {cell.id: cell for cell in both[0]["03_masking"].cells}["cell-18"]
    assert picture.data["image/png"] != original_cell.outputs[0].data["image/png"]


def test_a_chinese_notebook_shows_nothing_raw_and_every_formula(both):
    for name, notebook in both[1].items():
        assert [RAW.findall(text) for text in texts(notebook) if RAW.findall(text)] == []
        assert formulas(notebook) == formulas(both[0][name]), name


def formulas(notebook: nbformat.NotebookNode) -> Counter[str]:
    tokens = [token for text in texts(notebook) for token in PARSER.parse(text)]
    parts = [part for token in tokens for part in (token, *(token.children or ()))]
    said = translations(CHINESE, "sphinx")  # a formula may have words
    formulas = (part.content for part in parts if part.type.startswith("math"))
    return Counter(in_words(formula, lambda word: said.get(word, word)) for formula in formulas)


def messages(text: str) -> list[str]:
    return [message for token in PARSER.parse(text) for message, _ in _messages(token)]


def in_outputs(notebook: nbformat.NotebookNode) -> set[str]:
    """What a chapter says in its outputs: alternative texts, and captions of what moves."""
    found = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found.add(cell.metadata.get("mystnb", {}).get("image", {}).get("alt"))
            for output in cell.outputs:
                shown = "".join(output.get("data", {}).get("text/html", ""))
                found |= {html.unescape(text) for text in HtmlWithWords._words.findall(shown)}
    return found


def test_every_translation_of_a_chapter_stands_in_its_notebook_as_often_as_the_english(both):
    known = readers.read_book(language=CHINESE)
    checked = 0
    for path in CHAPTERS:
        said = known.words[path.stem]
        source = original(path)
        cells = [cell.source for cell in source.cells if cell.cell_type == "markdown"]
        cells += [
            cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
            for cell in source.cells
        ]
        unfolded = [readers.FENCE.sub(lambda d: readers._directive({}, d), text) for text in cells]
        asked = Counter(message for text in unfolded for message in messages(text))
        shown = Counter(m for text in texts(both[1][path.stem]) for m in messages(text))
        written = " ".join(" ".join(unfolded).split())
        outside = in_outputs(source)
        labels = [re.match(r"\*\*图.*?\*\* |\*\*Figure.*?\*\* |\d+\. ", m) for m in shown]
        shown += Counter(m.string[m.end() :] for m in labels if m)
        for message, translation in said.items():
            if message not in asked:  # an output says it, or the chapter says it no more
                gone = message not in written or any(message in one for one in asked)
                assert gone or message in outside, (path.stem, message)
                continue
            wanted = readers.plain(translation, known, both[2], path.stem)
            [wanted] = messages(wanted) if "<" not in wanted else [wanted]
            alike = [m for m in asked if said.get(m) == translation]
            assert shown[wanted] == sum(asked[m] for m in alike), (path.stem, message)
            checked += 1
    assert checked > 800


def test_links_between_chinese_chapters_lead_to_their_chinese_headings():
    chapters = edition(CHINESE, readers.LAB)
    places = {
        name: {readers._slug(h) for t in texts(nb) for h in re.findall(r"^#+ (.*)$", t, re.M)}
        for name, nb in chapters.items()
    }
    followed = 0
    for name, notebook in chapters.items():
        for text in texts(notebook):
            for path, place in re.findall(r"\]\((?!http)([^)#\s]*)#?([^)\s]*)\)", text):
                if path.endswith(".md"):
                    assert (ROOT / "lab" / FOLDER / path).resolve().exists(), path
                    continue
                there = path.removesuffix(".ipynb") or name
                assert not place or place in places[there], (name, path, place)
                followed += bool(HAN.search(place))
    assert followed > 20


def test_the_download_button_of_a_chinese_chapter_gives_the_chinese_notebook(book):
    made = edition(CHINESE, readers.ALONE)
    for name, notebook in made.items():
        page = book / FOLDER / "notebooks" / f"{name}.html"
        link = re.search(r'href="([^"]+\.ipynb)"[^>]*download-source', page.read_text("utf-8"))[1]
        given = nbformat.read((page.parent / link).resolve(), as_version=4)
        assert given.cells == notebook.cells


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("# One\n\nTwo\nthree.", "# 一\n\n二三。"),
        ("- One\n- Two\n  three.\n\n  One", "- 一\n- 二三。\n\n  一"),
        ("> Two\n> three.\n>\n> One", "> 二三。\n>\n> 一"),
        ("| One | a |\n|---|---|\n| x | One |", "| 一 | a |\n|---|---|\n| x | 一 |"),
        ("| Four |\n|---|\n| $\\|x\\|$ |\n\nOne", "| 四\\|4 |\n|---|\n| $\\|x\\|$ |\n\n一"),
        ("<details>\n<summary>One</summary>\n\nOne", "<details>\n<summary>一</summary>\n\n一"),
        ("```text\nOne\n```\n\n$$\nOne\n$$\n\nOne", "```text\nOne\n```\n\n$$\nOne\n$$\n\n一"),
        ("Something else, One", "Something else, One"),
    ],
)
def test_each_message_is_replaced_where_it_stands(written, shown):
    words = {"One": "一", "Two three.": "二三。", "Four": "四|4"}
    assert translated(written, words) == shown


def test_what_an_edition_adds_to_a_chapter_is_translated():
    words = {
        "11_made": {"How long?": "多长？", "A *caption*.": "一句*说明*。", "Deeper": "更深"},
        "sphinx": {readers.SOLUTION: "{exercise} 的解答", readers.FIGURE: "图 {number}。"},
    }
    known = readers.read_book(language=CHINESE)
    known = known._replace(words=words, numbers={"11_made": 11})
    figure = {"mystnb": {"figure": {"caption": "A *caption*."}}}
    cells = [
        new_markdown_cell("### 11.2 How long?\n\n:::{admonition} Deeper\nIt is.\n:::"),
        new_code_cell("answer = 4", metadata={"tags": ["hide-cell"]}),
        new_code_cell("plot()", metadata=figure),
    ]
    kernel = {"kernelspec": {"name": "p", "display_name": "p"}}
    made = new_notebook(cells=cells, metadata=kernel)
    alone = readers.edition_of(made, "11_made", known, readers.ALONE).cells
    assert "> **更深**\n>\n> It is." in alone[0].source
    folded = "<details>\n<summary>11.2 的解答</summary>\n\n```python\nanswer = 4\n```\n\n</details>"
    assert alone[1].source == folded
    assert alone[3].source == "**图 11.1。** 一句*说明*。"
    in_lab = readers.edition_of(made, "11_made", known, readers.LAB).cells
    assert in_lab[1].source == folded


ASSIGNMENTS = sorted((ROOT / readers.ASSIGNMENTS).glob("*.ipynb"))


@pytest.fixture(scope="module")
def chinese_assignments() -> dict[str, nbformat.NotebookNode]:
    """The assignments that the Chinese pages give to students."""
    known = readers.read_book(language=CHINESE)
    return {
        path.stem: readers.assignment_of(nbformat.read(path, 4), path.stem, known)
        for path in ASSIGNMENTS
    }


def without_docstrings(source: str) -> str:
    """What Python makes of a cell, but for its docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body[0].value.value = ""
    return ast.dump(tree)


@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: path.stem)
def test_a_chinese_assignment_is_the_english_one_in_other_words(path, chinese_assignments):
    one, other = nbformat.read(path, 4), chinese_assignments[path.stem]
    nbformat.validate(other)
    for cell, there in zip(one.cells, other.cells, strict=True):
        if cell.cell_type == "markdown":
            assert HAN.search(there.source) or cell.source.startswith("<!-- END")
        else:
            plain = re.sub(
                r'other_words = json\.loads\(r"""(.*?)"""\)\n',
                readers.NO_WORDS,
                there.source,
                flags=re.DOTALL,
            )
            assert without_docstrings(cell.source) == without_docstrings(plain)
            if cell.source.startswith("# The helpers"):
                assert HAN.search(there.source.partition("\n")[0])


def test_the_checks_of_a_chinese_assignment_answer_in_chinese(chinese_assignments):
    cells = chinese_assignments["1_masking_and_pooling"].cells
    helpers = next(cell.source for cell in cells if "visible_checks = " in cell.source)
    space: dict = {}
    exec(helpers.partition("visible_checks = ")[0].replace("import otter\n", ""), space)
    (name, (right, mistakes)), *_ = space["stored_examples"].items()
    known = [space["stored_tensor"](wrong) for _, wrong in mistakes]
    said = []
    for answer in (None, [1], space["torch"].zeros(2, 3), *known):
        with pytest.raises(AssertionError) as error:
            space["expect_case"](name, lambda answer=answer: answer)
        said.append(str(error.value))
    space["expect_case"](name, lambda: space["stored_tensor"](right))
    assert len(said) > 5
    assert all(re.match(r".*[\u4e00-\u9fff].*。$", line) for line in said)


def test_a_chinese_page_gives_the_chinese_assignment(book):
    for path in ASSIGNMENTS:
        given = book / FOLDER / "_sources" / readers.ASSIGNMENTS / path.name
        assert HAN.search(nbformat.read(given, 4).cells[0].source)
        plain = book / "_sources" / readers.ASSIGNMENTS / path.name
        assert nbformat.read(plain, 4).cells[1] == nbformat.read(path, 4).cells[1]


def test_the_chinese_chapters_lie_beside_the_english_ones(tmp_path, monkeypatch, capsys):
    lab = tool("lab")
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    monkeypatch.setattr(lab, "SETTINGS", tmp_path / "overrides.json")
    monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", CHINESE)
    assert lab.main() == 0
    written = sorted((tmp_path / "lab" / FOLDER).glob("*.ipynb"))
    assert [path.name for path in written] == [path.name for path in CHAPTERS]
    assert HAN.search(nbformat.read(written[0], as_version=4).cells[0].source)
    assert not list((tmp_path / "lab").glob("*.ipynb"))
    written[0].write_text("mine", encoding="utf-8")
    assert lab.main() == 0
    assert written[0].read_text(encoding="utf-8") == "mine"
    assert f"lab/{FOLDER}: {written[0].name}" in capsys.readouterr().out
    monkeypatch.setenv("ATTENTION_BOOK_LANGUAGE", "fr")
    assert lab.main() == 2


# --- Catalogues -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "translation", "fault"),
    [
        ("The key $k$.", "键 $k$。", None),
        ("The key $k$.", "键。", "lacks math_inline k"),
        ("The key $k$.", "键 $q$。", "lacks math_inline k"),
        ("Costs {measured}`03-share`.", "占 55%。", "lacks {measured}`03-share`"),
        ("Costs {measured}`03-share`.", "占 {measured}`03-shame`。", "lacks {measured}`03-share`"),
        ("See [it](#trap-01).", "见它。", "lacks link #trap-01"),
        ("See [it](#trap-01).", "见[它](#trap-02)。", "lacks link #trap-01"),
        ("It is `x`.", "它是 `y`。", "lacks code_inline x"),
        ("There are 12 keys.", "有一些键。", "lacks the numbers 12"),
        ("**Note.** More.", "**注意。**后文。", "a loose sign"),
        ("It is `x`.", "它是 `x。", "a loose sign"),
        ("A key.", "键 {1}。", None),
        ("A *key*.", "键。", "lacks em"),
        ("5. A key", "5. 键", "is not one paragraph but"),
        ("A key.", "- 键。", "is not one paragraph but bullet_list_open"),
        ("A key.", "# 键。", "is not one paragraph but heading_open"),
        ("A key.", "键。\n\n值。", "is not one paragraph"),
        ("A key.", "", "is not one paragraph but nothing"),
    ],
)
def test_what_a_translation_has_lost_is_named(message, translation, fault):
    found = list(tool("translations").faults(message, translation, markdown=True))
    assert any(fault in one for one in found) if fault else found == []


@pytest.mark.parametrize(
    ("translation", "is_right"),
    [
        ("键 {0}：值 {1}", True),
        ("键 {0}：值 {2}", False),
        ("键 {0}", False),
        ("值 {1}，键 {0}", True),
    ],
)
def test_a_text_with_values_keeps_them_all(translation, is_right):
    found = tool("translations").faults("key {0}: value {1}", translation, markdown=False)
    assert (list(found) == []) == is_right


def test_a_catalogue_that_is_none_is_named_with_the_line(tmp_path):
    file = tmp_path / "03.po"
    file.write_text('msgid "A key."\nmsgstr "键。"\n\nmsgid "A val\n', encoding="utf-8")
    with pytest.raises(SystemExit, match=rf"{re.escape(str(file))}, line \d+: "):
        tool("translations").read(file)


CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = ["myst_nb", "measured_ext", "messages_ext"]
myst_enable_extensions = ["amsmath", "dollarmath"]
nb_execution_mode = "off"
gettext_compact = False
html_title = "A Small Book"
html_theme_options = {{"toc_title": "On this page", "search_bar_text": "Search"}}
"""
PAGE = """\
# A page

A sentence with $k$ and `code`.

$$
\\alpha = 1
$$

```python
not_a_message = 1
```

| size | $n$ |
|---|---|
| 12 | `masked_softmax` |

$k$, 0.5

<details>
<summary>An answer</summary>

Here.

</details>
"""


def test_formulas_code_and_numbers_are_no_messages(tmp_path):
    (tmp_path / "conf.py").write_text(CONF, encoding="utf-8")
    (tmp_path / "index.md").write_text(PAGE, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "gettext", tmp_path, tmp_path / "out"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    page, frame = (
        tool("translations").read(tmp_path / "out" / f"{name}.pot") for name in ("index", "sphinx")
    )
    wanted = ["A page", "A sentence with $k$ and `code`.", "size", "An answer", "Here."]
    assert [message.id for message in page if message.id] == wanted
    texts_of_the_frame = {message.id for message in frame}
    assert {"A Small Book", "Search", readers.FIGURE, tool("pdf").SOLUTIONS} <= texts_of_the_frame


def test_every_catalogue_belongs_to_a_page():
    catalogues = ROOT / "locale" / CHINESE / "LC_MESSAGES"
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = {contents["root"], *(c["file"] for p in contents["parts"] for c in p["chapters"])}
    stored = {
        p.relative_to(catalogues).with_suffix("").as_posix() for p in catalogues.rglob("*.po")
    }
    pages |= {f"slides/{deck.stem}" for deck in (ROOT / "slides").glob("[0-9]*.md")}
    cells = {f"cells/{path.stem}" for path in [*CHAPTERS, *ASSIGNMENTS]}
    assert stored - pages - cells <= {"figures", "sphinx", "exercises", "feedback", "questions"}
    assert pages <= stored
