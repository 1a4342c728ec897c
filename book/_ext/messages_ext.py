"""What a translator gets: which texts of the pages are messages, and which others there are.

Sphinx takes the messages out of the pages and puts translations in their place. This module sees
to what it misses or should leave alone: formulas, code and numbers are no messages; captions and
alternative texts of interactive figures are, and so are the titles of folds, the words of the
figures' scripts, of this folder's extensions and of the settings, numbers that hold a word,
what the package and the cells of notebooks say, the questions of the bank, what marking tells
students, and what the printed book adds.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from babel.messages.extract import extract
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.gettext import MessageCatalogBuilder, MsgOrigin
from sphinx.transforms import SphinxTransform
from spoken import cell_messages
from told import COURSEWORK, feedback_messages

EXTENSIONS = Path(__file__).parent
PACKAGE = EXTENSIONS.parents[1] / "src" / "attention_book"
FIGURES, WALK, EXERCISES = PACKAGE / "figures", PACKAGE / "walk", PACKAGE / "exercises"
SHAPES = PACKAGE / "shapes"
PRINTER = EXTENSIONS.parents[1] / "tools" / "pdf.py"
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


class LeaveHtmlBare(SphinxTransform):
    """HTML with words gets no class for its language: that would wrap it and close its fold."""

    default_priority = 940  # before Sphinx turns the mark into a class

    def apply(self, **kwargs: Any) -> None:
        for words in self.document.findall(HtmlWithWords):
            words.attributes.pop("translated", None)


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
    for path in (*sorted(FIGURES.glob("*.js")), *sorted(WALK.glob("*.js"))):
        yield from script_messages(path)
    for path in drawing():
        yield from marked(path, "N_")
    yield from marked(SHAPES / "dimensions.py", Dimension=(2,))


def script_messages(path: Path) -> Iterator[tuple[Path, int, str]]:
    """What a script says: each text that `t` gets."""
    with path.open("rb") as file:
        options = {"jsx": False, "parse_template_string": True}
        for line, text, *_ in extract("javascript", file, {"t": None}, options=options):
            yield path, line, _numbered(str(text))


def marked(path: Path, *marks: str, **more: tuple[int, ...]) -> Iterator[tuple[Path, int, str]]:
    """The texts of a program that stand in a call of one of the marks."""
    with path.open("rb") as file:
        for line, text, *_ in extract("python", file, dict.fromkeys(marks) | more):
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


def exercise_messages() -> Iterator[tuple[Path, int, str]]:
    """What the package itself says, in the checks of exercises, in pictures and over tables: each
    text that `say` or `N_` gets."""
    said = sorted(EXERCISES.glob("*.py")), [PACKAGE / "plots.py"], sorted(SHAPES.glob("*.py"))
    for path in chain(*said, drawing()):
        yield from marked(path, "say", *([] if path in drawing() else ["N_"]))


def drawing() -> list[Path]:
    """The modules whose still pictures the package draws."""
    return [*sorted(FIGURES.glob("*.py")), *sorted(WALK.glob("*.py"))]


def question_messages() -> Iterator[tuple[Path, int, str]]:
    """What the question bank says, and the words around it in the files for Moodle and Canvas.

    An answer that is only a formula, code or a number is no message.
    """
    spoken = {"text", "topic", "level", "because", "right", "answer", "feedback"}

    def walk(node: yaml.Node, name: str = "") -> Iterator[tuple[int, str]]:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from walk(value, key.value)
        elif isinstance(node, yaml.SequenceNode):
            for part in node.value:
                yield from walk(part, name)
        elif name in spoken and re.search("[A-Za-z]", re.sub(r"\$[^$]*\$|`[^`]*`", "", node.value)):
            yield node.start_mark.line + 1, node.value

    for path in sorted(COURSEWORK.glob("questions/[0-9]*.yaml")):
        for line, text in walk(yaml.compose(path.read_text(encoding="utf-8"), yaml.BaseLoader)):
            yield path, line, text
    yield from marked(COURSEWORK / "exports.py", "N_")


def _add_messages(app: Sphinx) -> None:
    """Hand what stands on no page to the builder that writes catalogues."""
    if not isinstance(app.builder, MessageCatalogBuilder):
        return
    beside = {
        "figures": figure_messages,
        "exercises": exercise_messages,
        "questions": question_messages,
        "feedback": feedback_messages,
    }
    for name, messages in beside.items():
        for path, line, text in messages():
            app.builder.catalogs[name].add(text, MsgOrigin(str(path), line))
    for path, text in cell_messages():
        app.builder.catalogs[f"cells/{path.stem}"].add(text, MsgOrigin(str(path), 1))
    frame = app.builder.catalogs["sphinx"]
    for measured in app.measured.values():
        if re.search("[A-Za-z]{2}", measured.text):
            frame.add(measured.text, MsgOrigin(measured.page, 1))
    for path in [*sorted(EXTENSIONS.glob("*.py")), PRINTER]:
        for _, line, text in marked(path, "_", "N_"):
            frame.add(text, MsgOrigin(str(path), line))
    for text in (app.config.html_title, *(app.config.html_theme_options[n] for n in SETTINGS)):
        frame.add(text, MsgOrigin("_config.yml", 1))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(ChooseMessages)
    app.add_transform(LeaveHtmlBare)
    app.connect("builder-inited", _add_messages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
