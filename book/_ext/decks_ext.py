"""Each chapter that has a deck of slides leads to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.locale import _

ROOT = Path(__file__).resolve().parents[2]


def decks() -> list[str]:
    """The names of the decks, which are those of their chapters; a deck waits for its chapter."""
    chapters = {path.stem for path in ROOT.glob("notebooks/*.ipynb")}
    return sorted(path.stem for path in ROOT.glob("slides/*.md") if path.stem in chapters)


def _link_deck(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    folder, _slash, name = page.partition("/")
    if folder == "notebooks" and name in decks():
        context["deck"] = (f"../slides/{name}.html", _("Slides"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", _link_deck)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
