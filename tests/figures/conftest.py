"""Chromium, and a stage on which figures are shown without the book."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from figures_ext import STORIES
from playwright.sync_api import Browser, Locator, Page
from stage import Stage, alive, bundle

from attention_book.figures.story import stories_file
from attention_book.walk import ShapeExplorer, ShapeWalk


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("figures")
    (made / "figures.js").write_text(bundle(), encoding="utf-8")
    (made / STORIES).write_text(stories_file(), encoding="utf-8")
    return made


@pytest.fixture
def stage(browser: Browser, folder: Path) -> Iterator[Stage]:
    made = Stage(browser, folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """What the explorer holds."""
    return ShapeExplorer("").data


@pytest.fixture(scope="module")
def walks() -> str:
    return alive(ShapeExplorer("")) + alive(ShapeWalk())


@pytest.fixture
def page(stage: Stage, walks: str) -> Page:
    """A page with the explorer and a walk."""
    return stage.show(before=walks, viewport={"width": 1280, "height": 900})


@pytest.fixture
def explorer(page: Page) -> Locator:
    return page.locator("attention-figure").first


@pytest.fixture
def walk(page: Page) -> Locator:
    return page.locator("attention-figure").nth(1)
