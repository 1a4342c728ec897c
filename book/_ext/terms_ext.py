"""Terms lead to the glossary: where a chapter first uses one that another explains, and in search.

The glossary's table is the only list. Its rows get anchors; a pointer that rests on a term shows
its line; and a search for a term begins with the chapter that explains it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx

PAGE = "book/glossary"
#: What is no running text: names, links, headings, what is set apart already.
APART = (nodes.literal, nodes.math, nodes.reference, nodes.strong, nodes.title, nodes.table)


class Term(NamedTuple):
    """A row of the glossary: its names in the page's language, its line, its chapter and anchor."""

    names: tuple[str, ...]
    line: str
    chapter: str
    anchor: str


def _names(cell: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in re.sub(r"[（(].*?[)）]", "", cell).split("，"))


def _read_terms(app: Sphinx, doctree: nodes.document) -> None:
    """Take the terms of the glossary as the edition's language has them, and name their rows."""
    if app.env.docname != PAGE:
        return
    own = 0 if app.config.language == "en" else 1
    app.env.book_terms = []
    for row in doctree.findall(nodes.row):
        cells = [entry.astext() for entry in row.children]
        link = next(row.findall(nodes.reference), None) or next(row.findall(_is_pending), None)
        if len(cells) != 5 or link is None:
            continue
        anchor = "term-" + re.sub(r"\W+", "-", cells[0].lower()).strip("-")
        row["ids"].append(anchor)
        chapter = (link.get("reftarget") or link["refuri"]).split("/")[-1].split(".")[0]
        app.env.book_terms.append(Term(_names(cells[own]), cells[2], chapter, anchor))


def _is_pending(node: nodes.Node) -> bool:
    return node.tagname == "pending_xref"


def _pattern(name: str) -> str:
    """A name in running text: in English as a whole word, also in the plural."""
    return rf"\b{re.escape(name)}s?\b" if name.isascii() else re.escape(name)


def _mark_first_uses(app: Sphinx, doctree: nodes.document, page: str) -> None:
    if app.builder.format != "html" or not re.match(r"notebooks/\d", page):
        return
    glossary = app.builder.get_relative_uri(page, PAGE)
    bearers = Counter(name.lower() for term in app.env.book_terms for name in set(term.names))
    terms = {
        name.lower(): term
        for term in app.env.book_terms
        if term.chapter != page.removeprefix("notebooks/")
        for name in term.names
        if bearers[name.lower()] == 1  # there are two kernels
        and (name.isascii() or len(name) > 1)  # 头 is a part of 开头 and of 回头
    }
    # The longest first: "attention weight" is one term.
    names = "|".join(map(_pattern, sorted(terms, key=len, reverse=True)))
    known, met = re.compile(names, re.IGNORECASE), set()
    for paragraph in list(doctree.findall(nodes.paragraph)):
        if _is_apart(paragraph):
            continue
        for text in list(paragraph.findall(nodes.Text)):
            if _is_apart(text):
                continue
            parts: list[nodes.Node] = []
            end = 0
            for found in known.finditer(text):
                name = found[0].lower()
                term = terms.get(name) or terms[name.removesuffix("s")]
                if term.anchor in met:
                    continue
                met.add(term.anchor)
                link = nodes.reference(
                    "", found[0], refuri=f"{glossary}#{term.anchor}", classes=["term"]
                )
                link["reftitle"] = term.line
                parts += [nodes.Text(text[end : found.start()]), link]
                end = found.end()
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def _is_apart(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, APART):
            return True
        parent = parent.parent
    return False


def homes(language: str) -> str:
    """For the search, under each name of a term, in any language, in pinyin and elsewhere: the
    chapter that explains it, and its name in this edition, by which the pages are searched, too."""
    own = 0 if language == "en" else 1
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| .*?\]\(\.\./(\S+?)\.ipynb\) \| (.*) \|$",
        (Path(__file__).parents[1] / "glossary.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    known: dict[str, tuple[str, str]] = {}
    for *names, page, others in rows:
        is_one = not re.search(", | and ", names[0])  # not pre-norm and post-norm
        main = _names(names[own])[0] if is_one else ""
        for cell in (*names, *re.findall("`(.*?)`", others)):
            for name in (*_names(cell), *re.findall(r"[(（](.*?)[)）]", cell)):
                known.setdefault(re.sub("[-–]", " ", name.lower()), (page, main))
    return json.dumps(known, ensure_ascii=False)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", _read_terms)
    app.connect("doctree-resolved", _mark_first_uses)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
