"""Write the question bank for Moodle (XML) and Canvas (QTI), in each language of the book.

python -m coursework.exports [FOLDER]    all questions and both forms, into _build/questions

Nothing is written unless every question has been computed and can be shown. The format of Moodle is
that of https://docs.moodle.org/en/Moodle_XML_format; QTI is written by text2qti.
"""

from __future__ import annotations

import hashlib
import html
import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from text2qti.config import Config
from text2qti.qti import QTI
from text2qti.quiz import Quiz

from coursework import bank
from coursework.bank import BadQuestionError, Option, Place, Question

sys.path.insert(0, str(bank.ROOT / "book" / "_ext"))

from editions import EDITIONS, N_, translations

READ = N_("Read again: {page}, “{section}”.")
FOUND = N_("If you found {number}: {feedback}")
TITLES = {
    "all": N_("All questions"),
    "form_a": N_("Form A, before the course"),
    "form_b": N_("Form B, after the course"),
}
MARKDOWN = MarkdownIt("commonmark").use(dollarmath_plugin, allow_space=False)
MARKDOWN.add_render_rule(
    "math_inline", lambda self, tokens, at, *_: rf"\({html.escape(tokens[at].content)}\)"
)


class Words:
    """The texts of one language; what has no translation stays English."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._questions = translations(language, "questions")
        self._pages: dict[str, Mapping[str, str]] = {}

    def __call__(self, text: str) -> str:
        return self._questions.get(text) or text

    def read_again(self, place: Place) -> str:
        if place.page not in self._pages:
            self._pages[place.page] = translations(self.language, place.page)
        known = self._pages[place.page]
        title, heading = (known.get(t) or t for t in (place.title, place.heading))
        return self(READ).format(page=title, section=heading)


def in_order(question: Question) -> list[Option]:
    """The options in an order that the id decides, so that their places tell nothing.

    True is before False, and what a numeric answer may be is not shown at all.
    """

    def by(option: Option) -> str:
        if question.kind == "truth":
            return "False True".replace(option.answer, "").strip()
        return hashlib.sha256(f"{question.id} {option.answer}".encode()).hexdigest()

    return sorted(question.options, key=by)


def as_html(text: str) -> str:
    """Markdown as HTML, with formulas as Moodle's MathJax filter finds them."""
    return MARKDOWN.renderInline(text)


def _share(question: Question, option: Option) -> str:
    """The share of the mark in per cent, one of the shares that Moodle allows."""
    if option in question.right:
        return f"{100 / len(question.right):.7g}"
    return f"{-100 / len(question.wrong):.7g}" if question.kind == "several" else "0"


def moodle(questions: list[Question], title: str, words: Words) -> bytes:
    """A Moodle XML file in which each page of the book is a category below `title`."""
    quiz, category = ET.Element("quiz"), None
    for question in questions:
        source = bank.place(question)
        if question.page != category:
            category = question.page
            group = ET.SubElement(quiz, "question", type="category")
            name = question.page.rpartition("/")[2].replace("_", " ")
            _text(group, "category", f"$course$/top/{title}/{name}")
        kinds = {"truth": "truefalse", "numeric": "numerical"}
        node = ET.SubElement(quiz, "question", type=kinds.get(question.kind, "multichoice"))
        _text(node, "name", question.id)
        _text(node, "questiontext", as_html(words(question.text)), format="html")
        _text(node, "generalfeedback", as_html(words.read_again(source)), format="html")
        fields = {"defaultgrade": "1", "penalty": "1", "hidden": "0", "idnumber": question.id}
        if question.kind in ("choice", "several"):
            single = str(question.kind == "choice").lower()
            fields |= {"single": single, "shuffleanswers": "true", "answernumbering": "abc"}
        for name, value in fields.items():
            ET.SubElement(node, name).text = value
        for option in in_order(question):
            shared = {"fraction": _share(question, option)}
            if question.kind == "numeric":
                answer = _text(node, "answer", option.answer, **shared)
                ET.SubElement(answer, "tolerance").text = str(question.within)
            elif question.kind == "truth":
                answer = _text(node, "answer", option.answer.lower(), **shared)
            else:
                answer = _text(
                    node, "answer", as_html(words(option.answer)), format="html", **shared
                )
            _text(answer, "feedback", as_html(words(option.feedback)), format="html")
        tags = ET.SubElement(node, "tags")
        for tag in (question.level, question.topic):
            _text(tags, "tag", words(tag))
    ET.indent(quiz)
    return ET.tostring(quiz, encoding="utf-8", xml_declaration=True)


def _text(parent: ET.Element, name: str, text: str, **attributes: str) -> ET.Element:
    node = ET.SubElement(parent, name, attributes)
    ET.SubElement(node, "text").text = text
    return node


def quiz_text(questions: list[Question], title: str, words: Words) -> str:
    """The questions as text2qti reads them: https://github.com/gpoore/text2qti."""
    lines = [f"Quiz title: {title}", "Shuffle answers: true", ""]
    for number, question in enumerate(questions, 1):
        right = question.right[0]
        lines += [f"Title: {question.id}", "Points: 1", f"{number}. {words(question.text)}"]
        lines.append(f"... {words.read_again(bank.place(question))}")
        if question.kind == "numeric":
            lines.append(f"+ {words(question.because)}")
            found = (
                words(FOUND).format(number=o.answer, feedback=words(o.feedback))
                for o in question.wrong
            )
            lines += [f"- {' '.join(found)}", f"=   {right.answer} +- {question.within}"]
        elif question.kind == "several":
            lines.append(f"+ {words(question.because)}")
            for option in in_order(question):
                mark = "[*]" if option in question.right else "[ ]"
                lines += [f"{mark} {words(option.answer)}", f"... {words(option.feedback)}"]
        else:
            for letter, option in zip("abcdef", in_order(question), strict=False):
                mark = "*" if option in question.right else ""
                # True and False are what text2qti knows a question of this kind by.
                said = option.answer if question.kind == "truth" else words(option.answer)
                lines += [f"{mark}{letter}) {said}", f"... {words(option.feedback)}"]
        lines.append("")
    return "\n".join(lines)


def qti(questions: list[Question], title: str, words: Words) -> bytes:
    """A QTI package that Canvas imports."""
    config = Config()
    config["run_code_blocks"] = False
    packed = io.BytesIO()
    QTI(Quiz(quiz_text(questions, title, words), config=config)).write(packed)
    return packed.getvalue()


def write(folder: Path, questions: list[Question]) -> list[Path]:
    """Write every file; `questions` have been proved."""
    pairs = bank.forms(questions)
    contents = {
        "all": questions,
        "form_a": [first for first, _ in pairs],
        "form_b": [second for _, second in pairs],
    }
    writers: dict[str, Callable[[list[Question], str, Words], bytes]] = {
        "moodle.xml": moodle,
        "canvas.zip": qti,
    }
    written = []
    for language, edition in EDITIONS.items():
        words = Words(language)
        (folder / edition.tag).mkdir(parents=True, exist_ok=True)
        for name, chosen in contents.items():
            for ending, writer in writers.items():
                path = folder / edition.tag / f"{name}.{ending}"
                path.write_bytes(writer(chosen, words(TITLES[name]), words))
                written.append(path)
    return written


def main(folder: Path) -> int:
    try:
        questions = bank.load()
        for question in questions:
            bank.prove(question)
        written = write(folder, questions)
    except BadQuestionError as error:
        print(f"The question bank is not written: {error}", file=sys.stderr)
        return 1
    bank.PAGE.write_text(bank.page(bank.forms(questions)), encoding="utf-8")
    print(f"{len(questions)} questions, each computed. Import one of these:")
    print(*(f"  {path}" for path in written), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2]) if sys.argv[1:] else bank.ROOT / "_build" / "questions"))
