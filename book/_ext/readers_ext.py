"""The notebooks as readers get them, generated from the ones that the book is built from.

The sources are written for the book: roles name a measured number or a paper, labels mark headings,
cells store what the text quotes. In an editor all of that would be shown raw. A reader's edition is
plain Markdown: measured numbers stand in their sentences, citations are names with a link, captions
are lines, solutions are folded, and what only serves publishing is gone. `make lab` opens these
editions, Colab gets them, and the download button of each chapter gives one. Their text can be that
of a translation, and so can be the words in their code and in what it shows. The checks of the
assignments speak the language of their page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple
from urllib.parse import unquote

import nbformat
from bs4 import BeautifulSoup
from declared import declared, named
from editions import EDITIONS, N_, translations
from formulas_ext import in_words
from measurements import benchmarked, glued
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from pybtex.database import Entry, Person, parse_file
from pybtex.richtext import Text
from spoken import HELPERS, assignment, spoken
from told import feedback_messages
from translated import translated

ROOT = Path(__file__).resolve().parents[2]
FETCH = """\
# Only where the book's package is missing: fetch it, at the commit of this chapter.
import importlib.util
import sys

if importlib.util.find_spec("attention_book") is None:
    %pip install --quiet "attention-book @ git+{repository}{commit}"
    if "google.colab" in sys.modules:
        from google.colab import output

        output.enable_custom_widget_manager()  # the figures then move
"""
ASSIGNMENTS = "coursework/student"
NO_WORDS = (
    "other_words = {}\n"  #: of an assignment's checks, where they say what they say in English
)
FENCE = re.compile(r"^(`{3,}|:{3,})\s*\{([\w-]+)\}[ \t]*(.*)\n((?:.*\n)*?)\1[ \t]*$", re.MULTILINE)
SOLUTION, HINT = N_("Solution to {exercise}"), N_("Hint {number}")
FIGURE, UNNUMBERED = N_("Figure {number}."), N_("Figure.")
ADMONITIONS = {
    name: name.capitalize()
    for name in ("admonition", "note", "tip", "hint", "important", "warning", "caution", "seealso")
}
#: What only the book's pages have; the words inside say so.
IN_THE_BOOK = {"numbers", "mistakes", "implementations"}


class Book(NamedTuple):
    """What a sentence of a chapter may refer to, in the language of the edition."""

    measured: dict[str, str]
    papers: dict[str, Entry]
    headings: dict[str, tuple[str, str]]  # of each label: its chapter and the words of its heading
    numbers: dict[str, int]  # of each chapter; pages beside the chapters have none
    address: str  # where the pages are published, or nothing
    language: str  # of the edition
    repository: str  # where the package can be fetched, or nothing
    folder: str  # where the language stands below the first one
    words: dict[str, dict[str, str]]  # the translations of each chapter, and of what is added to it


class Edition(NamedTuple):
    """Where an edition is opened.

    `among_files`: the other chapters and the pages lie beside it. `has_figures`: interactive
    figures are shown there as they are stored; elsewhere a still picture takes their place.
    """

    among_files: bool
    has_figures: bool


LAB = Edition(among_files=True, has_figures=True)
ALONE = Edition(among_files=False, has_figures=False)


def read_book(
    root: Path = ROOT, address: str = "", repository: str = "", language: str = "en"
) -> Book:
    """Read what the chapters refer to: numbers, papers, headings."""
    folder = EDITIONS[language].folder
    assignments = [f"{ASSIGNMENTS}/{path.stem}" for path in (root / ASSIGNMENTS).glob("*.ipynb")]
    others = "sphinx", "exercises", "feedback", *assignments
    words = {name: translations(language, name) for name in others}
    measured = {name: value.text for name, value in benchmarked(root)}
    headings: dict[str, tuple[str, str]] = {}
    chapters = sorted((root / "notebooks").glob("*.ipynb"))
    for path in chapters:
        words[path.stem] = translations(language, f"notebooks/{path.stem}")
        measured |= {name: value.text for name, value in glued(path, root)}
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                marked = r"((?:^\([\w-]+\)=\n+)+)#+ (.*)$"
                for labels, heading in re.findall(marked, cell.source, re.MULTILINE):
                    for label in re.findall(r"\(([\w-]+)\)=", labels):
                        headings[label] = (path.stem, words[path.stem].get(heading, heading))
    papers = parse_file(root / "book" / "references.bib").entries
    numbers = {
        path.stem: int(path.stem.split("_")[0]) for path in chapters if path.stem[0].isdigit()
    }
    measured = {name: words["sphinx"].get(text, text) for name, text in measured.items()}
    address = address and f"{address.rstrip('/')}/{folder}".rstrip("/")
    return Book(measured, papers, headings, numbers, address, language, repository, folder, words)


def _say(book: Book, text: str, **values: str) -> str:
    """A text that the edition adds to a chapter."""
    return book.words["sphinx"].get(text, text).format(**values)


# --- Sentences --------------------------------------------------------------------------------


def _surname(person: Person) -> str:
    parts = [*person.prelast_names, *person.last_names]
    return str(Text.from_latex(" ".join(parts)))


def _authors(paper: Entry, book: Book) -> str:
    names = [_surname(person) for person in paper.persons["author"]]
    if len(names) > 2:
        return names[0] + _say(book, N_(" et al."))
    return _say(book, N_(" and ")).join(names)


def _linked(words: str, paper: Entry) -> str:
    doi = paper.fields.get("doi")
    address = paper.fields.get("url") or (doi and f"https://doi.org/{doi}")
    return f"[{words}]({address})" if address else words


def _cite(book: Book, keys: str, form: Callable[[str, str], str], between: str) -> str:
    papers = [book.papers[key.strip()] for key in keys.split(",")]
    return _say(book, between).join(
        _linked(form(_authors(paper, book), paper.fields["year"]), paper) for paper in papers
    )


def _cite_in_text(book: Book, keys: str) -> str:
    left, right = _say(book, " ("), _say(book, ")")
    return _cite(book, keys, lambda names, year: names + left + year + right, "; ")


def _cite_in_brackets(book: Book, keys: str) -> str:
    cited = _cite(book, keys, lambda names, year: names + _say(book, ", ") + year, "; ")
    return _say(book, "(") + cited + _say(book, ")")


ROLES: dict[str, Callable[[Book, str], str]] = {
    "measured": lambda book, name: book.measured[name],
    "cite:t": _cite_in_text,
    "cite:p": _cite_in_brackets,
}


def _role(book: Book, role: re.Match[str]) -> str:
    if role[1] not in ROLES:
        raise ValueError(f"a reader's edition cannot show the role {{{role[1]}}} of {role[0]!r}")
    try:
        return ROLES[role[1]](book, role[2])
    except KeyError as missing:
        raise ValueError(f"{role[0]!r} names {missing}, which the book does not have") from None


def _slug(heading: str) -> str:
    """The anchor that JupyterLab gives a heading."""
    return re.sub(r"[`*$]", "", heading).replace(" ", "-")


def _link(book: Book, edition: Edition, here: str, link: re.Match[str]) -> str:
    """A link to another place of the book, as far as it leads somewhere from this edition."""
    words, target = link[1], link[2]
    if re.match(r"\w+:", target):
        return link[0]
    path, _, label = target.partition("#")
    if not path.endswith((".ipynb", ".md")):  # a label alone, with or without its sign
        path, label = "", label or path
    page = path or f"{book.headings[label][0]}.ipynb"
    heading = book.headings[label][1] if label in book.headings else ""
    words = words or heading
    if not edition.among_files:
        if not book.address:
            return words
        name = re.sub(r"\.(ipynb|md)$", "", page.removeprefix("../"))
        folder = "" if page.startswith("../") else "notebooks/"
        return f"[{words}]({book.address}/{folder}{name}.html{'#' + label if label else ''})"
    anchor = f"#{_slug(heading)}" if heading else ""
    up = "../" * book.folder.count("/") if page.startswith("../") else ""
    return f"[{words}]({'' if page == f'{here}.ipynb' else up + page}{anchor})"


def _without_classes(text: str) -> str:
    r"""Formulas without `\class{…}{…}`, which not every editor's mathematics knows."""
    while opening := re.search(r"\\class\{[^}]*\}\{", text):
        depth, end = 1, opening.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: opening.start()] + "{" + text[opening.end() : end] + text[end:]
    return text


def _directive(words: dict[str, str], directive: re.Match[str]) -> str:
    """An admonition as a quotation under its title, or folded where the page folds it."""
    name, title, body = directive[2], directive[3].strip(), directive[4].strip()
    if name in IN_THE_BOOK:
        return body
    if name not in ADMONITIONS:
        raise ValueError(f"a reader's edition cannot show the directive {{{name}}}")
    is_folded = re.search(r"^:class:.*\bdropdown\b", body, re.MULTILINE)
    body = re.sub(r"^:\w+:.*\n*", "", body, flags=re.MULTILINE)
    if is_folded:
        return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"
    head = f"**{words.get(title, title) or ADMONITIONS[name]}**"
    return indent(f"{head}\n\n{body}", "> ", lambda line: True).replace("> \n", ">\n")


def plain(text: str, book: Book, edition: Edition, here: str) -> str:
    """A Markdown cell of the chapter `here`, without anything that only the book understands.

    Raises:
        ValueError: a role, a directive, a number or a paper that the edition cannot show.
    """
    words = book.words.get(here, {})
    text = FENCE.sub(lambda directive: _directive(words, directive), text)
    text = in_words(translated(text, words), lambda word: _say(book, word))
    text = re.sub(r"^\([\w-]+\)=\n+", "", text, flags=re.MULTILINE)
    text = re.sub(r"\{([\w:-]+)\}`([^`]+)`", lambda role: _role(book, role), text)
    text = re.sub(
        r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", lambda link: _link(book, edition, here, link), text
    )
    return _without_classes(text)


# --- Cells ------------------------------------------------------------------------------------


def _folded(title: str, code: str, output: str) -> str:
    """A solution as text that every renderer of Markdown folds."""
    fence = "`" * max([2, *map(len, re.findall("`+", code + output))]) + "`"
    shown = f"{fence}text\n{output.rstrip()}\n{fence}\n\n" if output else ""
    return (
        f"<details>\n<summary>{title}</summary>\n\n{fence}python\n{code}\n{fence}\n\n"
        f"{shown}</details>"
    )


def _hints(book: Book, source: str) -> str:
    """The hints to the exercise that a cell checks, each folded."""
    exercise = declared(named(source)) if named(source) else None
    said = (
        book.words["exercises"].get(hint, hint) for hint in (exercise.hints if exercise else ())
    )
    return "\n\n".join(
        f"<details>\n<summary>{_say(book, HINT, number=str(number))}</summary>\n\n{hint}\n\n"
        "</details>"
        for number, hint in enumerate(said, 1)
    )


def _printed(cell: NotebookNode) -> str:
    """What a cell shows, as text."""
    return "".join(
        output.text if output.output_type == "stream" else output.data.get("text/plain", "") + "\n"
        for output in cell.outputs
        if output.output_type in ("stream", "execute_result", "display_data")
    )


def _picture(output: NotebookNode, words: dict[str, str]) -> tuple[NotebookNode, str]:
    """An interactive figure's output as its still picture, and the figure's caption."""
    page = BeautifulSoup("".join(output.data["text/html"]), "html.parser")
    figure = page.find("attention-figure")
    image = figure and figure.find("img", src=re.compile("^data:image/svg"))
    if not image:
        return output, ""
    picture = {
        "image/svg+xml": unquote(image["src"].partition(",")[2]),
        "text/plain": words.get(image["alt"], image["alt"]),
    }
    caption = figure.find("figcaption")
    return new_output("display_data", picture), caption.get_text() if caption else ""


def _code(cell: NotebookNode, words: dict[str, str], edition: Edition) -> tuple[NotebookNode, str]:
    """One code cell as readers get it, and the caption of the figure that it shows."""
    tags = cell.metadata.get("tags", [])
    outputs = [*cell.outputs]
    caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
    metadata: dict[str, Any] = {"tags": [tag for tag in tags if tag == "raises-exception"]}
    if "hide-input" in tags:
        metadata["jupyter"] = {"source_hidden": True}
    if not edition.has_figures:
        for index, output in enumerate(outputs):
            if "text/html" in output.get("data", {}):
                outputs[index], shown = _picture(output, words)
                caption = caption or shown
    if not metadata["tags"]:
        del metadata["tags"]
    made = new_code_cell(cell.source, id=cell.id, outputs=outputs, metadata=metadata)
    made.execution_count = cell.execution_count
    return made, caption


def edition_of(notebook: NotebookNode, name: str, book: Book, edition: Edition) -> NotebookNode:
    """A chapter as readers get it."""
    notebook = spoken(notebook, name, book.language)
    cells: list[NotebookNode] = []
    exercise, figures = "", 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            numbered = re.findall(r"^### (\d+\.\d+) ", cell.source, re.MULTILINE)
            exercise = numbered[-1] if numbered else exercise
            text = plain(cell.source, book, edition, name)
            if name in book.numbers:  # the page numbers its title by itself
                text = re.sub(r"\A# ", f"# {book.numbers[name]}. ", text)
            cells.append(new_markdown_cell(text, id=cell.id))
            continue
        if "remove-cell" in cell.metadata.get("tags", []):
            continue
        # A solution is folded text: running all cells shows what a hidden cell prints.
        if "hide-cell" in cell.metadata.get("tags", []):
            title = _say(book, SOLUTION, exercise=exercise)
            cells.append(new_markdown_cell(_folded(title, cell.source, _printed(cell)), id=cell.id))
            continue
        made, caption = _code(cell, book.words.get(name, {}), edition)
        cells.append(made)
        if hints := _hints(book, cell.source):
            cells.append(new_markdown_cell(hints, id=f"{cell.id}-hints"))
        if caption:
            is_numbered = "mystnb" in cell.metadata
            figures += is_numbered
            chapter = f"{book.numbers[name]}." if name in book.numbers else ""
            number = f"{chapter}{figures}"
            label = _say(book, FIGURE, number=number) if is_numbered else _say(book, UNNUMBERED)
            text = plain(caption, book, edition, name)
            cells.append(new_markdown_cell(f"**{label}** {text}", id=f"{cell.id}-caption"))
    if not edition.among_files and book.repository:
        cells.insert(0, new_code_cell(_fetch(book.repository), id="fetch-package"))
    made = nbformat.from_dict({**notebook, "cells": cells})
    nbformat.validate(made)
    return made


def _fetch(repository: str) -> str:
    command = ["git", "rev-parse", "HEAD"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    commit = f"@{said.stdout.strip()}" if said.returncode == 0 else ""
    return FETCH.format(repository=repository, commit=commit).rstrip()


def write_editions(folder: Path, book: Book, edition: Edition) -> list[Path]:
    """Write an edition of every chapter into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        made = edition_of(nbformat.read(path, as_version=4), path.stem, book, edition)
        nbformat.write(made, folder / path.name)
        written.append(folder / path.name)
    return written


# --- Assignments ------------------------------------------------------------------------------


def assignment_of(notebook: NotebookNode, name: str, book: Book) -> NotebookNode:
    """The student version of an assignment, its text and what its checks print translated."""
    words = book.words[f"coursework/student/{name}"]
    said = {text for _, _, text in feedback_messages(name)}
    told = {text: to for text, to in book.words["feedback"].items() if text in said}
    table = json.dumps(told, ensure_ascii=False, indent=0)
    made = nbformat.from_dict(notebook)
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = translated(cell.source, words)
        elif told and cell.source.startswith(HELPERS):
            assert cell.source.count(NO_WORDS) == 1
            cell.source = cell.source.replace(
                NO_WORDS, f'other_words = json.loads(r"""{table}""")\n'
            )
    nbformat.validate(made)
    return assignment(made, name, book.language)


# --- On the pages -----------------------------------------------------------------------------


def _offer_editions(app: Any, failure: Exception | None) -> None:
    """Put the readers' editions where the download buttons look for a page's source."""
    folder = Path(app.outdir) / "_sources" / "notebooks"
    if failure or not folder.is_dir():
        return
    book = read_book(
        address=os.environ.get("ATTENTION_BOOK_ADDRESS", ""),
        repository=os.environ.get("ATTENTION_BOOK_REPOSITORY", ""),
        language=app.config.language,
    )
    write_editions(folder, book, ALONE)
    for path in (Path(app.outdir) / "_sources" / ASSIGNMENTS).glob("*.ipynb"):
        made = assignment_of(nbformat.read(ROOT / ASSIGNMENTS / path.name, 4), path.stem, book)
        nbformat.write(made, path)


def setup(app: Any) -> dict[str, Any]:
    app.connect("build-finished", _offer_editions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
