"""Search finds sections: each is indexed as a page of its own; search.js takes them apart again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from terms_ext import homes


def _heading(section: nodes.section) -> str:
    title = section.next_node(nodes.title)
    assert title is not None
    return "".join(
        re.sub(r"\\class\{[^}]*\}|[\\{}]", "", part.astext().replace(r"\sqrt", "√"))
        if isinstance(part, nodes.math)
        else part.astext()
        for part in title
    )


def _own(section: nodes.section) -> nodes.section:
    """The section without those inside it."""
    own: nodes.section = section.copy()
    own.children = [part for part in section.children if not isinstance(part, nodes.section)]
    return own


def _index_sections(app: Sphinx) -> None:
    index_page = getattr(app.builder, "index_page", None)
    if index_page is None:
        return

    def index_sections(page: str, doctree: nodes.document, title: str) -> None:
        index_page(page, doctree, title)
        indexer = app.builder.indexer
        if indexer is None or not title:
            return
        # It would drop what is not a page; none is gone, since the book is built from nothing.
        indexer.prune = lambda pages: None
        for section in doctree.findall(nodes.section):
            top = section.parent is doctree or not section["ids"]
            name = f"{page}#{section['ids'][0]}" if section["ids"] else page
            heading = title if top else f"{title} › {_heading(section)}"
            indexer.feed(name, indexer._filenames[page], heading, _own(section))
            indexer._all_titles[name] = []  # the page has them all

    app.builder.index_page = index_sections


def _know_terms(app: Sphinx, config: Any) -> None:
    """Give the script the chapter and the name of each term, and Sphinx the script as a file."""
    script = (Path(__file__).parent / "search.js").read_text(encoding="utf-8")
    written = Path(app.doctreedir) / "search.js"
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(f"const HOMES = {homes(app.config.language)};\n{script}", encoding="utf-8")
    config.html_search_scorer = str(written)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", _know_terms)
    app.connect("builder-inited", _index_sections)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
