"""The decks of slides: what a teacher is promised of each, on a screen, on a phone and on paper."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import ROOT, Watched, built_book, chromium, serve
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser, Page

sys.path.insert(0, str(ROOT / "book" / "_ext"))

from measurements import glued

CHAPTERS = sorted(path.stem for path in ROOT.glob("notebooks/[0-9]*.ipynb"))
EDITIONS = {"en": "", "zh-CN": "zh/"}
#: What one deck may send, compressed: reveal.js, the book's styles and fonts, figures, pictures.
WEIGHT = 700_000


@pytest.fixture(scope="module")
def book() -> Path:
    return built_book()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def deck(book: Path, name: str, edition: str = "en") -> BeautifulSoup:
    file = book / EDITIONS[edition] / "slides" / f"{name}.html"
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


def slides(page: BeautifulSoup) -> list[Tag]:
    """The slides, which reveal.js takes for such if they lie two sections deep."""
    return page.select(".slides > section > section")


def words(slide: Tag) -> int:
    """The words that are read on a slide: without notes, formulas, code and figures."""
    copy = BeautifulSoup(str(slide), "html.parser")
    for other in copy.select(".notes, .live, .katex, pre, .links"):
        other.decompose()
    return len(re.findall(r"\w[\w'’.,-]*", copy.get_text(" ")))


def test_each_chapter_has_a_deck_in_each_edition(book: Path) -> None:
    assert len(CHAPTERS) == 12
    for edition, folder in EDITIONS.items():
        files = sorted(path.stem for path in (book / folder / "slides").glob("*.html"))
        assert files == CHAPTERS
        for name in CHAPTERS:
            assert deck(book, name, edition).html["lang"] == edition
            chapter = book / folder / "notebooks" / f"{name}.html"
            assert f'href="../slides/{name}.html"' in chapter.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_deck_has_what_a_meeting_needs(book: Path, name: str) -> None:
    shown = slides(deck(book, name))
    assert 12 <= len(shown) <= 20
    assert max(words(slide) for slide in shown) <= 45
    minutes = [int(slide.select_one("aside.notes")["data-minutes"]) for slide in shown]
    assert 60 <= sum(minutes) <= 75
    assert all(len(slide.select_one("aside.notes").get_text().split()) > 8 for slide in shown)
    questions = [i for i, slide in enumerate(shown) if slide.select_one(".fragment.answer")]
    assert all(b - a <= 6 for a, b in zip([0, *questions], [*questions, len(shown)], strict=True))
    for i in questions:
        assert shown[i].h2 is not None
        asked = " ".join(tag.get_text() for tag in shown[i].select("h2, section > p"))
        assert "?" in asked or "What" in asked or "Count" in asked
    assert 2 <= len(shown[0].find_parent("main").select("attention-figure")) <= 3
    assert "exercise" in shown[-1].get_text().lower()


@pytest.mark.parametrize("edition", EDITIONS)
def test_numbers_are_those_of_the_cells_and_links_lead_somewhere(book: Path, edition: str) -> None:
    notebooks = ROOT.glob("notebooks/*.ipynb")
    stored = {value.text for path in notebooks for _name, value in glued(path, ROOT)}
    folder = book / EDITIONS[edition] / "slides"
    seen = 0
    for name in CHAPTERS:
        page = deck(book, name, edition)
        for number in page.select(".measured"):
            seen += 1
            assert number.find_parent("a") is not None
            assert edition != "en" or number.get_text() in stored
        for link in page.select("main a[href]"):
            file, _, place = link["href"].partition("#")
            target = (folder / file).resolve()
            assert target.is_file(), link["href"]
            assert not place or f'id="{place}"' in target.read_text(encoding="utf-8"), link
        for image in page.select("main p.drawn img"):
            assert image["alt"]
            assert (folder / image["src"]).is_file()
        assert not re.search(r"\?\d\d-[a-z]", page.get_text())
    assert seen > 60


def opened(watched: Watched, address: str) -> Page:
    watched.page.goto(address)
    watched.page.wait_for_function("window.Reveal && Reveal.isReady()")
    return watched.page


def turn_to(page: Page, selector: str) -> None:
    """To the first slide with such a thing; a figure on it is then live."""
    page.evaluate(
        """(selector) => {
            const slide = document.querySelector(selector).closest("section section");
            Reveal.slide(Reveal.getIndices(slide).h);
        }""",
        selector,
    )


SMALLEST = """() => {
    const small = [];
    const scale = Reveal.getScale();
    for (const slide of Reveal.getSlides()) {
        const texts = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            const { parentElement: at, data } = texts.currentNode;
            if (!data.trim() || at.closest(".notes, .live, .katex, sup, sub")) continue;
            const size = parseFloat(getComputedStyle(at).fontSize) * scale;
            small.push([size, data]);
        }
    }
    return small.sort((a, b) => a[0] - b[0])[0];
}"""


@pytest.mark.parametrize("edition", EDITIONS)
def test_decks_open_from_a_disk(book: Path, browser: Browser, edition: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.set_offline(True)
    watched = Watched(context, book.as_uri())
    for name in CHAPTERS:
        page = opened(watched, (book / EDITIONS[edition] / "slides" / f"{name}.html").as_uri())
        count = len(slides(deck(book, name, edition)))
        page.wait_for_function(
            "[...document.querySelectorAll('attention-figure')]"
            ".every((figure) => figure.querySelector('form'))"
        )
        assert page.evaluate("Reveal.getTotalSlides()") == count
        assert page.evaluate(SMALLEST)[0] >= 23.9 * page.evaluate("Reveal.getScale()")
        wide = page.evaluate("[document.body.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1]
    assert watched.errors == []
    assert watched.outside == []
    context.close()


def test_the_keyboard_belongs_to_a_figure_that_has_it(book: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = opened(
        Watched(context, book.as_uri()), (book / "slides" / f"{CHAPTERS[0]}.html").as_uri()
    )
    turn_to(page, "attention-figure[kind=lookup]")
    slider = page.locator(".present attention-figure input[type=range]").first
    here, value = page.evaluate("Reveal.getIndices().h"), slider.input_value()
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert slider.input_value() != value
    assert page.evaluate("Reveal.getIndices().h") == here
    mark = page.locator(".present attention-figure svg [tabindex='0']").first
    mark.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == here
    page.locator(".present attention-figure button").last.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == here
    page.keyboard.press("PageDown")  # what a presenter's remote sends
    assert page.evaluate("Reveal.getIndices().h") == here + 1
    page.keyboard.press("PageUp")
    slider.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == here + 1
    context.close()


def test_a_point_is_dragged_where_the_finger_is(book: Path, browser: Browser) -> None:
    """The slide is scaled, and the figure on it enlarged: both must be undone."""
    context = browser.new_context(viewport={"width": 960, "height": 540})
    page = opened(
        Watched(context, book.as_uri()), (book / "slides" / f"{CHAPTERS[0]}.html").as_uri()
    )
    turn_to(page, "attention-figure[kind=lookup]")
    slider = page.locator(".present attention-figure input[type=range]").first
    plot = page.locator(".present attention-figure svg").first
    box = plot.bounding_box()
    values = []
    for share in (0.3, 0.7):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + 0.7 * box["height"])
        values.append(float(slider.input_value()))
    limits = [float(slider.get_attribute(name)) for name in ("min", "max")]
    assert values[0] < values[1]
    assert limits[0] < values[0]
    assert values[1] < limits[1]
    context.close()


def test_the_answer_comes_with_the_next_key(book: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = opened(
        Watched(context, book.as_uri()), (book / "slides" / f"{CHAPTERS[0]}.html").as_uri()
    )
    turn_to(page, ".answer")
    answer = page.locator(".present .answer")
    assert answer.evaluate("(node) => getComputedStyle(node).opacity") == "0"
    here = page.evaluate("Reveal.getIndices().h")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "getComputedStyle(document.querySelector('.present .answer')).opacity === '1'"
    )
    assert page.evaluate("Reveal.getIndices().h") == here
    context.close()


@pytest.mark.parametrize("name", [CHAPTERS[0], CHAPTERS[8]])
def test_paper_has_every_slide(book: Path, browser: Browser, name: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme="dark")
    watched = Watched(context, book.as_uri())
    page = opened(
        watched, (book / "slides" / f"{name}.html").as_uri() + "?print-pdf&showNotes=separate-page"
    )
    page.wait_for_selector(".pdf-page")
    assert page.locator(".pdf-page").count() == len(slides(deck(book, name)))
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator(".speaker-notes-pdf, .speaker-notes").count() >= 12
    hidden = page.evaluate(
        "[...document.querySelectorAll('.answer')]"
        ".filter((answer) => getComputedStyle(answer).opacity !== '1').length"
    )
    assert hidden == 0
    assert watched.errors == []
    context.close()


def test_a_deck_on_a_phone(book: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    watched = Watched(context, book.as_uri())
    for name in CHAPTERS:
        page = opened(watched, (book / "slides" / f"{name}.html").as_uri())
        size, text = page.evaluate(SMALLEST)
        assert size >= 14, text
        outside = page.evaluate(
            """() => Reveal.getSlides().flatMap((slide) => {
                Reveal.slide(Reveal.getIndices(slide).h);
                return slide.scrollWidth > slide.clientWidth + 1 ? [slide.innerText] : [];
            })"""
        )
        assert outside == []
    assert watched.errors == []
    context.close()


def test_a_deck_from_a_server_is_light(book: Path, browser: Browser) -> None:
    with serve(book) as served:
        for name in CHAPTERS:
            context = browser.new_context(viewport={"width": 1280, "height": 720})
            watched = Watched(context, served.address)
            served.sent.clear()
            opened(watched, f"{served.address}/slides/{name}.html")
            watched.page.wait_for_load_state("networkidle")
            assert sum(served.sent.values()) <= WEIGHT, json.dumps(served.sent, indent=1)
            assert watched.errors == []
            assert watched.outside == []
            context.close()
