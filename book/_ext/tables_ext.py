"""Tables on every screen: rows of sentences become cards on a phone, Chinese cells say so."""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.application import Sphinx
from spoken import width

CHINESE = re.compile(r"[\u4e00-\u9fff]")
#: A table of at least four columns with a cell of so many letters is a table of sentences, which
#: are shorter in other languages, although a Chinese character counts for two letters.
COLUMNS, LETTERS, OTHER_LETTERS = 4, 60, 45


def _mark_cards(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for table in doctree.findall(nodes.table):
        columns = len(list(table.findall(nodes.colspec)))
        longest = max(width(entry.astext()) for entry in table.findall(nodes.entry))
        enough = LETTERS if app.config.language == "en" else OTHER_LETTERS
        if columns >= COLUMNS and longest >= enough:
            table["classes"].append("cards")


def mended(written: str) -> str:
    """The table with the head of its column on each cell, and the language of Chinese ones."""
    table = BeautifulSoup(written, "html.parser")
    heads = [head.get_text(strip=True) for head in table.select("thead th")]
    for row in table.select("tbody tr"):
        for number, (cell, head) in enumerate(zip(row.find_all("td"), heads, strict=False)):
            if number:
                cell["data-head"] = head
    for cell in table.select("td, th"):
        if CHINESE.search(cell.get_text()):
            cell["lang"] = "zh"
    return str(table)


def _mend_tables(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    def corrected(written: re.Match[str]) -> str:
        needed = "cards" in written[1] or CHINESE.search(written[0])
        return mended(written[0]) if needed else written[0]

    if context.get("body"):
        table = re.compile(r"(<table[^>]*>).*?</table>", re.DOTALL)
        context["body"] = table.sub(corrected, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", _mark_cards)
    app.connect("html-page-context", _mend_tables, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
