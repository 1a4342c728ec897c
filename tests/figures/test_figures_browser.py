"""Every figure on its page of the built book, alive without a kernel; by keyboard and pointer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from browser import Served, Watched, built_book, serve
from bs4 import BeautifulSoup
from computed import KINDS as SWEPT
from playwright.sync_api import Browser, Locator, Page
from stage import FIGURES, Stage, box_of, drag, middle, tab_to
from sweep import SWEEP, course, follow

from attention_book.figures import MaskingFigure, ScoringFigure

#: The figures of pages; test_walk_browser.py has those of the shape walk, test_lens.py the lens.
OTHERS = {"walk", "lens"}
KINDS = [kind for kind in SWEPT if kind not in OTHERS]


@pytest.fixture(scope="module")
def book() -> Path:
    return built_book()


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[str, str]:
    """The page of the book that holds each figure."""
    found: dict[str, str] = {}
    for file in sorted(book.rglob("*.html")):
        for kind in re.findall(r'<attention-figure kind="(\w+)"', file.read_text(encoding="utf-8")):
            found.setdefault(kind, str(file.relative_to(book)))
    return found


@pytest.fixture(scope="module")
def host(book: Path) -> Iterator[Served]:
    with serve(book) as served:
        yield served


def live(page: Page, kind: str) -> Locator:
    """The moving part of the first figure of that kind, once it has come to life."""
    figure = page.locator(f'attention-figure[kind="{kind}"]').first
    figure.locator(".af-form").wait_for()
    return figure


def test_every_figure_has_a_page(pages: dict[str, str]) -> None:
    assert sorted(pages.keys() - OTHERS) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_moves_on_its_page_from_a_server_and_from_a_disk(
    kind: str, browser: Browser, host: Served, book: Path, pages: dict[str, str]
) -> None:
    """A part of the sweep, on the figure as the chapter stores it: some steps here, some there."""
    for begin, home in ((0, host.address), (5, book.as_uri())):
        context = browser.new_context(reduced_motion="reduce")
        watched = Watched(context, home)
        watched.page.goto(f"{home}/{pages[kind]}")
        shown = live(watched.page, kind)
        figure = FIGURES[kind]()
        state = json.loads(shown.locator("script").text_content() or "")
        for name in sorted(state.keys() & set(figure.trait_names())):  # also what no control moves
            setattr(figure, name, state[name])
        follow(kind, figure, islice(course(kind, figure), begin, None, 9), shown)
        assert watched.errors == []
        assert watched.outside == []
        context.close()


def test_the_keyboard_alone_predicts_moves_reads_and_resets(stage: Stage) -> None:
    page = stage.show(MaskingFigure())
    focused = page.locator(":focus")
    page.locator("input").first.focus()
    page.keyboard.press("Space")
    assert page.locator(".af-predict input:checked").count() == 1
    reading = page.locator(".af-reading")
    tab_to(page, "[data-at]")
    assert "query 1, It: score" in reading.inner_text()
    page.keyboard.press("ArrowRight")
    assert "query 1, rains: score" in reading.inner_text()
    page.keyboard.press("ArrowDown")
    assert "query 2, rains: score" in reading.inner_text()
    tab_to(page, "input[type=range]")
    page.keyboard.press("Home")
    assert page.locator(".af-value").first.inner_text() == "0 of 4 keys"
    page.keyboard.press("ArrowRight")
    assert focused.get_attribute("aria-valuetext") == "1 of 4 keys"
    tab_to(page, "input[name=fill]:checked")
    page.keyboard.press("ArrowDown")
    assert focused.input_value() == "-1e6"
    tab_to(page, ".af-reset")
    page.keyboard.press("Enter")
    assert page.locator(".af-value").first.inner_text() == "2 of 4 keys"


def test_the_pointer_drags_the_query_and_reads_numbers(stage: Stage) -> None:
    page = stage.show(ScoringFigure())
    tip = page.locator(".af-tip").first
    drag(page, middle(tip), (-60, 40))
    moved = [float(number) for number in str(tip.get_attribute("data-value")).split()]
    assert moved[0] < 1.0
    assert moved[1] < 1.0
    at = page.locator(".af-plane g:has(> .af-tip)").get_attribute("transform")
    small = page.locator(".af-thumb .af-tip")
    assert [dot.get_attribute("transform") for dot in small.all()] == [at] * 5
    page.get_by_text("The numbers: scores and weights").click()
    page.locator('[data-key="dot weight 0"]').hover()
    assert "dot: weight of k1" in page.locator(".af-reading").inner_text()


def test_figures_on_a_page_do_not_disturb_each_other_and_one_that_fails_says_so(
    stage: Stage,
) -> None:
    missing = MaskingFigure().to_html().replace('kind="masking"', 'kind="missing"')
    page = stage.show(MaskingFigure(), MaskingFigure(), before=missing)
    broken, first, second = page.locator("attention-figure").all()
    assert "is not interactive here" in broken.get_by_role("note").inner_text()
    assert broken.locator("img").is_visible()
    [before] = second.evaluate(SWEEP, [[]])
    moves = [["set", "fill", 0, "after"], ["slide", "example 1", 0]]
    [after] = first.evaluate(SWEEP, [moves])
    first.locator(".af-predict input").first.check()
    assert after != before
    assert second.evaluate(SWEEP, [[]]) == [before]
    assert second.locator("input[name=fill]:checked").input_value() == "-inf"
    assert second.locator(".af-predict input:checked").count() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_without_scripts_and_on_paper_there_is_a_picture_with_an_alternative(
    kind: str, browser: Browser, book: Path, pages: dict[str, str]
) -> None:
    address = f"{book.as_uri()}/{pages[kind]}"
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    markup = BeautifulSoup((book / pages[kind]).read_text(encoding="utf-8"), "html.parser")
    alternative = markup.select_one(f'attention-figure[kind="{kind}"] img')["alt"]
    picture = page.get_by_role("img", name=alternative, exact=True).first
    box = box_of(picture)
    assert box.width > 200
    assert box.height > 100
    context.close()

    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    figure = live(page, kind)
    assert not figure.locator("figure img").is_visible()
    page.emulate_media(media="print")
    assert figure.locator("figure img").is_visible()
    assert not figure.locator(".af-form").is_visible()
    assert figure.locator("img").evaluate(
        "(image) => image.decode().then(() => image.naturalWidth)"
    )
    context.close()
