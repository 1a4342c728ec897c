"""What students read, in the language of a course.

Results say in English what is wrong, whatever the language: so they can be compared, and told in
another one without marking again. For each other language a course has a table,
`languages/LANGUAGE.json`: sentences, in which `{0}`, `{1}` … stand for values, each with the same
sentence in that language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from . import course

ENGLISH = "en"
#: How an error begins in results: its class has one name, and no sentence of a course begins so.
AN_ERROR = re.compile(r"[^\W\d]\w*: ")


class NoSuchLanguageError(Exception):
    """A course has no table of this language; the message says which it has."""


class Phrases:
    """The sentences of one language; one that is not in its table stays English.

    Args:
        table: for each English sentence the other one, with the same values.
        language: as pages name it, such as zh-CN.
    """

    def __init__(self, table: Mapping[str, str], language: str = ENGLISH) -> None:
        self.language = language
        self._table = dict(table)
        # Where two fit, the one with more words of its own is meant.
        shapes = sorted((one for one in table if "{0}" in one), key=_own_words, reverse=True)
        self._shapes = [(_pattern(one), one) for one in shapes]

    def __call__(self, sentence: str, *values: object) -> str:
        """A sentence of a page, with its values."""
        return self._table.get(sentence, sentence).format(*values)

    def told(self, text: str) -> str:
        """A text as results hold it, with its values, which may be texts of that kind.

        What Python says of an error, after the error's name, stays as it is.
        """
        if text in self._table or not self._table or AN_ERROR.match(text):
            return self._table.get(text, text)
        for pattern, sentence in self._shapes:
            if found := pattern.fullmatch(text):
                return self(sentence, *(self.told(found[f"v{i}"]) for i in range(pattern.groups)))
        return text


def read(language: str) -> Phrases:
    """The sentences of a language; English needs no table.

    Raises:
        NoSuchLanguageError: where the course has none of this language.
    """
    if language == ENGLISH:
        return Phrases({})
    folder = course.folder() / "languages"
    tables = {path.stem: path for path in sorted(folder.glob("*.json"))}
    if language not in tables:
        there = ", ".join([ENGLISH, *tables])
        raise NoSuchLanguageError(f"There is no language {language!r}; there are {there}")
    table = json.loads(tables[language].read_text(encoding="utf-8"))
    return Phrases(table, language.replace("_", "-"))


def _pattern(sentence: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\d+)\\\}", r"(?P<v\1>.+?)", re.escape(sentence)), re.DOTALL)


def _own_words(sentence: str) -> int:
    return len(re.sub(r"\{\d+\}", "", sentence))
