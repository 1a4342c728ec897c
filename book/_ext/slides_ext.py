"""What a slide is made of: a chapter's pictures and figures, notes with minutes, answers.

A deck has the name of its chapter and takes from its notebook what the notebook's cells have
stored, so that nothing is drawn or measured twice. Sphinx-revealjs makes a slide of each heading.
"""

from __future__ import annotations

import base64
import html
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from decks_ext import ROOT
from docutils import nodes
from docutils.parsers.rst import directives
from editions import EDITIONS, N_, translations
from figures_ext import scripts_of
from messages_ext import ChooseMessages, HtmlWithWords
from PIL import Image
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator
from sphinx_revealjs.writers import RevealjsSlideTranslator
from spoken import spoken


@cache
def cells_of(file: Path, language: str) -> list[dict[str, Any]]:
    """A notebook's cells, as they are in a language; a deck asks for many."""
    notebook = nbformat.read(file, as_version=4)
    return list(spoken(notebook, file.stem, language).cells)


class FromCell(SphinxDirective):
    """What a cell has stored, named `cell-18` in the deck's own chapter or `03_masking#cell-18`."""

    required_arguments = 1

    def cell(self) -> tuple[str, dict[str, Any]]:
        """The name of the notebook, and the cell."""
        chapter, _hash, name = self.arguments[0].rpartition("#")
        chapter = chapter or Path(self.env.docname).name
        file = ROOT / "notebooks" / f"{chapter}.ipynb"
        self.env.note_dependency(str(file))
        for cell in cells_of(file, self.config.language):
            if cell["id"] == name:
                return chapter, cell
        raise self.error(f"the notebook {chapter} has no cell '{name}'")

    def stored(self, cell: dict[str, Any], kind: str, sign: str = "") -> dict[str, Any]:
        """The cell's output of a kind."""
        for output in cell["outputs"]:
            data = output.get("data", {})
            if kind in data and sign in "".join(data[kind]):
                return dict(output)
        raise self.error(f"the cell '{cell['id']}' has stored no {sign or kind}")

    def words(self, chapter: str) -> dict[str, str]:
        return translations(self.config.language, f"notebooks/{chapter}")


class PictureOfCell(FromCell):
    """```{picture} cell-18``` shows a stored picture, with the alternative text of its page."""

    def run(self) -> list[nodes.Node]:
        chapter, cell = self.cell()
        output = self.stored(cell, "image/png")
        name = f"{chapter}-{cell['id']}.png"
        folder = Path(self.env.app.outdir) / "_images"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(base64.b64decode("".join(output["data"]["image/png"])))
        with Image.open(folder / name) as picture:
            width, height = picture.size
        said = cell["metadata"]["mystnb"]["image"]["alt"]
        alt = html.escape(self.words(chapter).get(said, said))
        image = (
            f'<img src="../_images/{name}" width="{width}" height="{height}" alt="{alt}" '
            f'style="aspect-ratio: {width} / {height}">'
        )
        return [nodes.raw("", f'<p class="drawn">{image}</p>', format="html")]


class LiveOfCell(FromCell):
    """```{live} cell-26``` puts an interactive figure of a notebook on the slide."""

    def run(self) -> list[nodes.Node]:
        chapter, cell = self.cell()
        output = self.stored(cell, "text/html", "<attention-figure")
        figure = HtmlWithWords("", "".join(output["data"]["text/html"]))
        for said, other in self.words(chapter).items():
            if said in figure.astext() or html.escape(said) in figure.astext():
                figure.apply_translated_message(said, other)
        return [nodes.raw("", f'<div class="live">{figure.astext()}</div>', format="html")]


class notes(nodes.General, nodes.Element):  # noqa: N801
    """What the speaker reads, with the minutes that the slide takes."""


class Notes(SphinxDirective):
    """```{notes} 5``` What to say in these five minutes."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        node = notes(minutes=directives.nonnegative_int(self.arguments[0]))
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


class Answer(SphinxDirective):
    """The answer to the question on the slide, which the next key shows."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        node = nodes.container(classes=["fragment", "answer"])
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


class SlideTranslator(RevealjsSlideTranslator):
    """Code is coloured while the deck is built, as on the pages, and not by a script of 940 KB."""

    visit_literal_block = HTML5Translator.visit_literal_block

    def visit_notes(self, node: notes) -> None:
        spoken = _("{0} min").format(node["minutes"])
        minutes = f'data-minutes="{node["minutes"]}"'
        self.body.append(f'<aside class="notes" {minutes}><p><b>{spoken}</b></p>')

    def depart_notes(self, node: notes) -> None:
        self.body.append("</aside>\n")


def _link_chapter(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """The first slide leads to the chapter and to the deck's other editions."""
    name, here = Path(page).name, EDITIONS[app.config.language]
    up = "../" * (1 + here.folder.count("/"))
    links = [(f"../notebooks/{name}.html", _("The chapter"), "")] + [
        (f"{up}{edition.folder}slides/{name}.html", edition.name, edition.tag)
        for edition in EDITIONS.values()
        if edition is not here
    ]
    row = " · ".join(
        f'<a href="{address}"{f" lang={tag!r} hreflang={tag!r}" if tag else ""}>{text}</a>'
        for address, text, tag in links
    )
    title = next(doctree.findall(nodes.title))
    number = _("Chapter {0}").format(int(name[:2]))
    title.parent.insert(0, nodes.raw("", f'<p class="number">{number}</p>', format="html"))
    place = title.parent.index(next(title.parent.findall(notes)))
    title.parent.insert(place, nodes.raw("", f'<p class="links">{row}</p>', format="html"))


def _link_pages(app: Sphinx, doctree: nodes.document) -> None:
    """A measured number leads to its cell on the page of a chapter, and no contents to a deck."""
    app.env.metadata[app.env.docname]["orphan"] = True
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node["reftype"] == "measured":
            measured = app.measured[node["reftarget"]]
            address = f"../{measured.page}.html#{measured.cell}"
            node.replace_self(nodes.reference("", "", *node.children, refuri=address))


def _complete(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    context["tag"] = EDITIONS[app.config.language].tag
    controls = (N_("previous slide"), N_("next slide"), N_("above slide"), N_("below slide"))
    context["controls"] = {text: _(text) for text in controls}
    context["live"] = scripts_of(context.get("body", ""))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("picture", PictureOfCell)
    app.add_directive("live", LiveOfCell)
    app.add_directive("notes", Notes)
    app.add_directive("answer", Answer)
    app.add_node(notes)
    app.add_transform(ChooseMessages)
    app.set_translator("revealjs", SlideTranslator)
    app.connect("doctree-resolved", _link_chapter)
    app.connect("doctree-read", _link_pages)
    app.connect("html-page-context", _complete)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
