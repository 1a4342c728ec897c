"""What an edition in another language needs beyond its translations.

Cells of notebooks speak its language, each page links to itself in the other edition, the title and
the settings are translated, a text that is not translated says that it is English, and search finds
Chinese words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from editions import EDITIONS
from messages_ext import SETTINGS
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.search.zh import SearchChinese
from sphinx_external_toc.events import InsertToctrees
from spoken import ASSIGNMENTS, NOTEBOOKS, assignment, spoken

UNTRANSLATED = re.compile(r'<(?!img)(\w+)(?=[^>]* class="[^"]*\buntranslated\b)')


def _translate_settings(app: Sphinx, config: Any) -> None:
    config.html_title = _(config.html_title)
    for name in SETTINGS:
        config.html_theme_options[name] = _(config.html_theme_options[name])


def _speak_in_cells(app: Sphinx, page: str, source: list[str]) -> None:
    """Give a notebook its code and outputs in the language of the edition."""
    path = Path(app.env.doc2path(page))
    if app.config.language != "en" and path.parent in (NOTEBOOKS, ASSIGNMENTS):
        notebook = nbformat.reads(source[0], as_version=4)
        speak = spoken if path.parent == NOTEBOOKS else assignment
        source[0] = nbformat.writes(speak(notebook, path.stem, app.config.language))


def _link_editions(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    here = EDITIONS[app.config.language]
    address = app.builder.get_target_uri(page)
    up = "../" * (page.count("/") + here.folder.count("/"))
    context["other_editions"] = [
        (edition, up + edition.folder + address)
        for edition in EDITIONS.values()
        if edition is not here
    ]
    base = app.config.html_baseurl.removesuffix(here.folder)
    if base:
        context["editions"] = [(e.tag, base + e.folder + address) for e in EDITIONS.values()]


def _mark_english(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give what is not translated its language, for screen readers and hyphenation."""
    if app.config.language != "en" and "body" in context:
        context["body"] = UNTRANSLATED.sub(r'<\1 lang="en"', context["body"])


class SearchPairs(SearchChinese):
    """Chinese without a dictionary: text and query are cut into each character and each pair.

    Sphinx cuts the text, if jieba is installed, but never the query, so that a word of two parts
    is not found, and it drops words of one character, such as those for key and value. The
    particles 的 and 了 part words and are not looked up: they are everywhere, and make it heavy.
    """

    js_splitter_code = """
var splitQuery = (query) =>
  (query.match(/((?![的了])[\\u4e00-\\u9fff])+|[a-zA-Z0-9_]+/g) || []).flatMap((run) =>
    run.length > 1 && run >= "\\u4e00"
      ? [...run].slice(1).map((_, i) => run.slice(i, i + 2))
      : [run]);
"""

    def split(self, input: str) -> list[str]:
        latin = self.latin1_letters.findall(input)
        runs = re.findall("(?:(?![的了])[\u4e00-\u9fff])+", input)
        return [*latin, *(run[i : i + n] for run in runs for n in (1, 2) for i in range(len(run)))]

    def stem(self, word: str) -> str:
        return word if word >= "\u4e00" else str(self.stemmer.stemWord(word.lower()))

    def word_filter(self, stemmed_word: str) -> bool:
        # The page leaves numbers out of a query, so an index of them would only be heavy.
        is_number = stemmed_word.isdigit()
        return not is_number and (len(stemmed_word) > 1 or stemmed_word >= "\u4e00")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_search_language(SearchPairs)
    InsertToctrees.default_priority = 9  # else the parts of the contents come after the translation
    app.connect("config-inited", _translate_settings)
    app.connect("source-read", _speak_in_cells)
    app.connect("html-page-context", _link_editions)
    app.connect("html-page-context", _mark_english, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
