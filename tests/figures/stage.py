"""What tests of the figures share: pages made from the classes, without the book, and how a reader
moves and reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from browser import ROOT, Watched
from figures_ext import STORIES, scripts
from playwright.sync_api import Browser, Locator, Page, expect

from attention_book import figures
from attention_book.figures.base import Figure

FONTS = (ROOT / "book" / "_vendor" / "fonts" / "source-serif-4-latin").as_uri()
FIGURES = {getattr(figures, name).kind: getattr(figures, name) for name in figures.__all__}
WIDE = {"width": 1000, "height": 900}
PHONE = {"width": 360, "height": 740}
#: Phones with a small and a usual screen.
PHONES = [(360, 640), (390, 844)]
TOUCH = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
#: What a page of the book has on a phone: its typeface, and its margins.
PAGE = f"""<style>
    @font-face {{ font-family: book; src: url({FONTS}-400-normal.woff2) }}
    @font-face {{ font-family: book; font-weight: 600; src: url({FONTS}-600-normal.woff2) }}
    body {{ font-family: book; margin: 12px 16px 40rem 19px }}
</style>"""
#: The way of a finger that scrolls.
UP = [(0, -12 * step) for step in range(1, 11)]


def bundle() -> str:
    """One script with all modules and their host."""
    return "".join(text for name, text in scripts().items() if name != STORIES)


def alive(figure: Figure) -> str:
    """The figure's markup without its picture, which takes longest to make: where the figure lives,
    nobody sees it."""
    with patch.object(Figure, "still", lambda self: "<svg/>"):
        return figure.to_html()


class Stage:
    """Pages with figures, which may complain of nothing and ask no host for anything."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.folder = browser, folder
        self.shown: list[Watched] = []

    def show(self, *shown: Figure, at: str = "", before: str = "", **options: Any) -> Page:
        """A page with these figures, at the address that ends in `at`, once the first lives."""
        options.setdefault("viewport", WIDE)
        self.shown.append(Watched(self.browser.new_context(**options), "file:"))
        page = self.shown[-1].page
        parts = [
            '<!doctype html><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            "<style>body { margin: 12px 12px 40rem; font: 18px/1.5 sans-serif }</style>",
            '<script defer src="figures.js"></script>',
            before,
            *map(alive, shown),
        ]
        file = self.folder / f"page{len(list(self.folder.iterdir()))}.html"
        file.write_text("".join(parts), encoding="utf-8")
        page.goto(file.as_uri() + at)
        page.locator(".af-form").last.wait_for()
        return page

    def phone(self, figure: Figure, width: int, height: int) -> Page:
        """A page with the figure on a phone of that size."""
        size = {"width": width, "height": height}
        return self.show(figure, before=PAGE, viewport=size, has_touch=True, is_mobile=True)

    def close(self) -> None:
        for watched in self.shown:
            watched.page.context.close()
        assert [error for watched in self.shown for error in watched.errors] == []
        assert [address for watched in self.shown for address in watched.outside] == []


class Box(NamedTuple):
    """Where something is on the screen."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


def box_of(node: Locator) -> Box:
    """The box of something that must be seen."""
    found = node.bounding_box()
    assert found, node
    return Box(**found)


def middle(node: Locator) -> tuple[float, float]:
    return box_of(node).middle


def in_middle(node: Locator) -> Locator:
    """The same node, in the middle of the screen."""
    node.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    return node


def drag(page: Page, start: tuple[float, float], *moves: tuple[float, float]) -> None:
    """Take the mouse from `start` through the places that are so far from there, and let go."""
    page.mouse.move(*start)
    page.mouse.down()
    for right, down in moves:
        page.mouse.move(start[0] + right, start[1] + down, steps=4)
    page.mouse.up()


def swipe(page: Page, start: tuple[float, float], *moves: tuple[float, float]) -> None:
    """Move a finger from `start` through the places that are so far from there, and lift it."""
    session = page.context.new_cdp_session(page)
    for event, (right, down) in [
        ("touchStart", (0, 0)),
        *(("touchMove", move) for move in moves),
    ]:
        points = [{"x": start[0] + right, "y": start[1] + down}]
        session.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


HEADER = 56  # pixels of a page that the book covers


def one_screen(page: Page, targets: str = "label, button, [data-at]") -> Callable[[], None]:
    """What checks that question, stage, controls and sentence are where they were, on one screen of
    a phone, with no small type, and that what a finger takes hold of is not small either."""
    span = """() => ["predict", "stage", "controls", "now"].flatMap((name) => {
        const box = document.querySelector(`.af-${name}`)?.getBoundingClientRect();
        return box ? [box.top + scrollY, name === "now" ? 0 : box.bottom + scrollY] : [];
    })"""
    before, screen = page.evaluate(span), page.viewport_size
    assert screen

    def stays() -> None:
        assert page.evaluate(span) == before
        lowest = box_of(page.locator(".af-now")).bottom + page.evaluate("scrollY")
        assert lowest - before[0] <= screen["height"] - HEADER
        small, narrow, hidden = page.evaluate(
            """(targets) => {
                const boxOf = (node) => node.getBoundingClientRect();
                const seen = (node) => !node.closest("[hidden]") && node.checkVisibility() &&
                    boxOf(node).width > 1;
                const all = [...document.querySelectorAll(".af-form *")].filter(seen);
                const size = (node) => {
                    const { b, d } = node.getScreenCTM?.() ?? { b: 0, d: 1 };
                    return parseFloat(getComputedStyle(node).fontSize) * Math.hypot(b, d);
                };
                const isText = (each) => each.nodeType === 3 && each.data.trim();
                const texts = all.filter((node) => [...node.childNodes].some(isText));
                const held = all.filter((node) => node.matches(targets)).map(boxOf);
                const end = (name) => document.querySelector(name)?.getBoundingClientRect().bottom;
                return [Math.min(...texts.map(size)),
                    Math.min(...held.map(({ width, height }) => Math.min(width, height))),
                    end(".af-answer") - end(".af-predict") || 0];
            }""",
            targets,
        )
        assert small >= 12
        assert narrow >= 24
        assert hidden <= 0
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]

    stays()
    return stays


def visit(page: Page, at: str) -> None:
    """Follow a link on the page."""
    page.evaluate(
        """(at) => new Promise((done) => {
            const before = location.href;
            addEventListener("hashchange", done, { once: true });
            location.hash = at;
            if (location.href === before) done(); // the page is there
        })""",
        at,
    )


def tab_to(page: Page, selector: str, press: str = "Tab") -> None:
    """Press Tab until what the selector names is focused."""
    focused = page.locator(":focus")
    for _ in range(20):
        page.keyboard.press(press)
        if focused.count() and focused.evaluate("(node, s) => node.matches(s)", selector):
            return
    raise AssertionError(f"{press} does not reach {selector}")


def slide(page: Page, label: str, index: int) -> None:
    slider = page.get_by_role("slider", name=label, exact=True)
    slider.evaluate(
        "(input, i) => { input.value = i; input.dispatchEvent(new Event('input')) }", index
    )


def pick(page: Page, name: str, value: str) -> None:
    menu = page.locator(f'select[name="{name}"]')
    if menu.count():
        menu.select_option(value)
        return
    page.locator(f'input[name="{name}"][value="{value}"]').click()


def type_into(page: Page, key: str, text: str) -> None:
    page.locator(f'[data-key="{key}"]').click()
    page.locator(".af-field").fill(text)
    page.keyboard.press("Enter")


def lines_said(page: Page) -> int:
    """How many lines the sentence of a figure takes."""
    return page.locator(".af-now").evaluate(
        """(now) => {
            const text = document.createRange();
            text.selectNodeContents(now);
            const line = parseFloat(getComputedStyle(now).lineHeight);
            return Math.round(text.getBoundingClientRect().height / line);
        }"""
    )


def readings(page: Page) -> list[str]:
    """All that a figure shows, its sentence included, once it is ready."""
    page.wait_for_function("!document.querySelector('.af-form[aria-busy=true]')")
    return page.locator("[data-key], .af-now, .af-value").evaluate_all(
        """(nodes) => nodes.filter((node) => !node.closest("[hidden]"))
            .map((node) => `${node.dataset.key} ${node.dataset.value} ${node.textContent}`)"""
    )


def value_of(page: Page, key: str) -> float:
    value = page.locator(f'[data-key="{key}"]').get_attribute("data-value")
    return float(value or "nan")


def switch_off(page: Page, *heads: list[int]) -> None:
    for layer, head in heads:
        page.get_by_role("checkbox", name=f"layer {layer}, head {head}").uncheck()


def tap_heads(page: Page, *heads: tuple[int, int]) -> None:
    """Switch heads of a story off, or on again: the first tap opens one."""
    for layer, head in heads:
        tile = page.locator(f'[data-key="head {layer} {head}"]')
        if tile.get_attribute("aria-pressed") != "true":
            tile.click()
            expect(tile).to_have_attribute("aria-pressed", "true")
        tile.click()


def sort_heads(page: Page, by: str) -> None:
    page.locator(f'input[name="sort"][value="{by}"]').check()
    page.wait_for_function("!document.querySelector('.af-form[aria-busy=true]')")


def unfold(page: Page) -> None:
    page.locator("details:has(.af-choosing)").evaluate("(node) => { node.open = true; }")
