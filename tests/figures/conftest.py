"""Chromium, and a stage on which figures are shown without the book."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium
from figures_ext import bundle
from playwright.sync_api import Browser
from stage import Stage


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("figures")
    (made / "figures.js").write_text(bundle(), encoding="utf-8")
    return made


@pytest.fixture
def stage(browser: Browser, folder: Path) -> Iterator[Stage]:
    made = Stage(browser, folder)
    yield made
    for context in made.contexts:
        context.close()
