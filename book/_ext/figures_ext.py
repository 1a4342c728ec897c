"""Bring the interactive figures to life on the pages that contain one.

A page loads the modules of its figures and then their host, and without a figure none of them.
A chapter's figures are outputs of its notebook. A page in Markdown embeds a stored figure with the
directive `interactive`, in the edition's language, so building the book computes nothing;
`tools/figures.py` stores them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from editions import translations
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attention_book import figures, walk
from attention_book.figures.base import Figure, host, module_script
from attention_book.figures.story import FILE, stories_file

SCRIPT = "attention-figures.js"
#: What a page loads when its reader begins a story.
STORIES = f"attention-{FILE}.js"
PARAMETERS = re.compile(r'"parameters":"[^"]{1000,}"')
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


def scripts(language: str = "en") -> dict[str, str]:
    """The scripts by their names: each figure's module, the host, and the file of the stories."""
    modules = {f"attention-{one.kind}.js": module_script(one) for one in every_figure()}
    words = translations(language, "figures")
    return {**modules, SCRIPT: host(words), STORIES: stories_file()}


def scripts_of(body: str) -> list[str]:
    """What a page with this body loads, in order."""
    kinds = dict.fromkeys(re.findall(r'<attention-figure kind="(\w+)"', body))
    return [*(f"attention-{kind}.js" for kind in kinds), *([SCRIPT] if kinds else [])]


def _write(app: Sphinx) -> None:
    """Write the scripts before the pages, whose links contain their checksums."""
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in scripts(app.config.language).items():
            (folder / name).write_text(text, encoding="utf-8")


def lighter(body: str) -> str:
    """The body without a model's parameters where it has those of its first model again, in which
    the host finds them."""
    first = PARAMETERS.search(body)
    if not first:
        return body
    return body[: first.end()] + body[first.end() :].replace(first[0], '"parameters":""')


def _add(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    body = context.get("body", "")
    context["body"] = lighter(body)
    for name in scripts_of(body):
        app.add_js_file(name, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("interactive", Interactive)
    app.connect("builder-inited", _write)
    app.connect("html-page-context", _add)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
