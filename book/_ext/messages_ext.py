"""What a translator gets: which texts of the pages are messages, and those of the figures' script.

Sphinx takes the messages out of the pages and puts translations in their place. This module sees
to what it misses or should leave alone: formulas, code and numbers are no messages; captions and
alternative texts of interactive figures are, and so are the titles of folds, the words of the
figures' scripts, of this folder's extensions and of the settings, numbers that hold a word, and
what the printed book adds.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.extract import extract
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.gettext import MessageCatalogBuilder, MsgOrigin
from sphinx.transforms import SphinxTransform

EXTENSIONS = Path(__file__).parent
FIGURES = EXTENSIONS.parents[1] / "src" / "attention_book" / "figures"
PRINTER = EXTENSIONS.parents[1] / "tools" / "pdf.py"
DIMENSIONS = FIGURES.parent / "shapes" / "dimensions.py"
#: Settings in _config.yml that a reader sees.
SETTINGS = ("toc_title", "search_bar_text")


class HtmlWithWords(nodes.raw, addnodes.translatable):
    """HTML with messages: an interactive figure's caption and alternative text, a fold's title."""

    _words = re.compile(
        r'(?<= alt=")[^"]*(?=")|(?<=<figcaption>).*?(?=</figcaption>)'
        r"|(?<=<summary>).*?(?=</summary>)",
        re.DOTALL,
    )

    def preserve_original_messages(self) -> None:
        self["messages"] = [html.unescape(text) for text in self._words.findall(self.astext())]

    def extract_original_messages(self) -> list[str]:
        return list(self["messages"])

    def apply_translated_message(self, original_message: str, translated_message: str) -> None:
        old, new = (html.escape(text) for text in (original_message, translated_message))
        said = self._words.sub(lambda found: new if found[0] == old else found[0], self.astext())
        self.children = [nodes.Text(said)]


class ChooseMessages(SphinxTransform):
    """Formulas, code, numbers and links to notebooks alone are no messages; figures' words are."""

    default_priority = 5  # before Sphinx looks for messages

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(nodes.TextElement)):
            if isinstance(node, nodes.raw):
                if re.match("<attention-figure|<details>", node.astext()):
                    words = HtmlWithWords(node.rawsource, node.astext(), **node.attributes)
                    words.source, words.line = node.source or self.document["source"], node.line
                    node.replace_self(words)
            elif isinstance(node, nodes.Inline):
                continue  # Sphinx takes inline nodes with this attribute apart
            elif isinstance(node, nodes.math_block) or not _has_words(node):
                node["translatable"] = False


def _has_words(node: nodes.Element) -> bool:
    """Whether a reader of another language would miss something."""
    kept = (text for text in node.findall(nodes.Text) if not _is_code(text, node))
    return any(letter.isascii() and letter.isalpha() for text in kept for letter in text)


def _is_code(text: nodes.Text, within: nodes.Element) -> bool:
    parent = text.parent
    while parent is not within:
        if isinstance(parent, nodes.math | nodes.literal):
            return True
        if "measured" in parent.get("classes", ()) or parent.get("refdomain") == "py":
            return True
        parent = parent.parent
    return False


def figure_messages() -> Iterator[tuple[Path, int, str]]:
    """What the figures say: t("text") and t`text ${value}` in their scripts, where a value becomes
    {0}, {1} …; N_("text") in their Python, which the scripts translate when they show it; and the
    meanings of dimensions.
    """
    for path in sorted(FIGURES.glob("*.js")):
        with path.open("rb") as file:
            options = {"jsx": False, "parse_template_string": True}
            for line, text, *_ in extract("javascript", file, {"t": None}, options=options):
                yield path, line, _numbered(str(text))
    for path in (*sorted(FIGURES.glob("*.py")), DIMENSIONS):
        with path.open("rb") as file:
            for line, text, *_ in extract("python", file, {"N_": None, "Dimension": (2,)}):
                yield path, line, str(text)


def _numbered(template: str) -> str:
    parts, depth, number = [], 0, -1
    for piece in re.split(r"(\$\{|\{|\})", template):
        if piece == "${" and not depth:
            number, depth = number + 1, 1
            parts.append(f"{{{number}}}")
        elif depth:
            depth += {"{": 1, "${": 1, "}": -1}.get(piece, 0)
        else:
            parts.append(piece)
    return "".join(parts)


def _add_messages(app: Sphinx) -> None:
    """Hand what stands on no page to the builder that writes catalogues."""
    if not isinstance(app.builder, MessageCatalogBuilder):
        return
    for path, line, text in figure_messages():
        app.builder.catalogs["figures"].add(text, MsgOrigin(str(path), line))
    frame = app.builder.catalogs["sphinx"]
    for measured in app.measured.values():
        if re.search("[A-Za-z]{2}", measured.text):
            frame.add(measured.text, MsgOrigin(measured.page, 1))
    for path in [*sorted(EXTENSIONS.glob("*.py")), PRINTER]:
        with path.open("rb") as file:
            for line, text, *_ in extract("python", file, {"_": None, "N_": None}):
                frame.add(str(text), MsgOrigin(str(path), line))
    for text in (app.config.html_title, *(app.config.html_theme_options[n] for n in SETTINGS)):
        frame.add(text, MsgOrigin("_config.yml", 1))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(ChooseMessages)
    app.connect("builder-inited", _add_messages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
