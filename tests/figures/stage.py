"""What tests of the figures share: pages made from the classes, without the book, and how a reader
moves and reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from attention_book import figures
from attention_book.figures.base import Figure

FIGURES = {getattr(figures, name).kind: getattr(figures, name) for name in figures.__all__}
WIDE = {"width": 1000, "height": 900}
PHONE = {"width": 360, "height": 740}


class Stage:
    """Pages with figures, closed at the end."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.folder = browser, folder
        self.contexts: list[Any] = []

    def show(self, *shown: Figure, at: str = "", before: str = "", **options: Any) -> Page:
        """A page with these figures, at the address that ends in `at`, once the first lives."""
        options.setdefault("viewport", WIDE)
        context = self.browser.new_context(**options)
        self.contexts.append(context)
        page = context.new_page()
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        parts = [
            '<!doctype html><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            "<style>body { margin: 12px; font: 18px/1.5 sans-serif }</style>",
            '<script defer src="figures.js"></script>',
            before,
            *(figure.to_html() for figure in shown),
        ]
        file = self.folder / f"page{len(list(self.folder.iterdir()))}.html"
        file.write_text("".join(parts), encoding="utf-8")
        page.goto(file.as_uri() + at)
        page.locator(".af-form").last.wait_for()
        return page


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


def readings(page: Page) -> list[str]:
    """All that a figure shows, its sentence included."""
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


def unfold(page: Page) -> None:
    page.locator("details:has(.af-choosing)").evaluate("(node) => { node.open = true; }")
