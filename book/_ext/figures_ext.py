"""Bring the interactive figures to life on the pages that contain one.

One script contains the host and every figure's module; a page without a figure does not load it.
A chapter's figures are outputs of its notebook. A page in Markdown embeds a stored figure with the
directive `interactive`, in the edition's language, so building the book computes nothing;
`tools/figures.py` stores them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from editions import translations
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attention_book import figures, walk
from attention_book.figures.base import Figure, hosted
from attention_book.figures.story import FILE, stories_file

SCRIPT = "attention-figures.js"
#: What a page loads when its reader begins a story.
STORIES = f"attention-{FILE}.js"
STORED = Path(__file__).resolve().parent.parent / "figures"


class Interactive(SphinxDirective):
    """```{interactive} live``` puts the stored figure `book/figures/live.html` on a page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        language = self.config.language.removesuffix("en")
        file = STORED / language / f"{self.arguments[0]}.html"
        self.env.note_dependency(str(file))
        if not file.is_file():
            known = ", ".join(sorted(path.stem for path in STORED.glob("*.html"))) or "none"
            raise self.error(f"there is no stored figure '{self.arguments[0]}'; there is: {known}")
        return [nodes.raw("", file.read_text(encoding="utf-8"), format="html")]


def every_figure() -> list[type[Figure]]:
    return [*(getattr(figures, name) for name in figures.__all__), walk.ShapeWalk]


def bundle(language: str = "en") -> str:
    """The host script with what it needs: the style sheet, each figure's module, and its words."""
    return hosted(every_figure(), translations(language, "figures"))


def write_bundle(app: Sphinx) -> None:
    """Write the bundle before the pages, whose links contain its checksum."""
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCRIPT).write_text(bundle(app.config.language), encoding="utf-8")
        (folder / STORIES).write_text(stories_file(), encoding="utf-8")


def add_bundle(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if "<attention-figure" in context.get("body", ""):
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("interactive", Interactive)
    app.connect("builder-inited", write_bundle)
    app.connect("html-page-context", add_bundle)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
