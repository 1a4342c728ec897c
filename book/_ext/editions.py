"""The editions of the book: one for each language, all from the same sources."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parents[2]


class Edition(NamedTuple):
    """An edition: its folder below the first one's, its language tag, its name for itself."""

    folder: str
    tag: str
    name: str

    @property
    def printed(self) -> str:
        """The name of the file that it is printed into."""
        return ".".join(["attention-shape-by-shape", *self.folder.split("/")[:-1], "pdf"])


#: By the language's name in Sphinx. The first is the one that is written, the others translate it.
EDITIONS = {"en": Edition("", "en", "English"), "zh_CN": Edition("zh/", "zh-CN", "中文")}


def N_(text: str) -> str:  # noqa: N802
    """Mark a text that is not part of a page; the catalogue `sphinx` has its translation."""
    return text


def catalogues(language: str) -> Path:
    """The folder of a language: a catalogue for each page, and some for what is on no page."""
    return ROOT / "locale" / language / "LC_MESSAGES"


def translations(language: str, catalogue: str) -> dict[str, str]:
    """The finished translations of a catalogue, by the English text; none for English itself."""
    file = catalogues(language) / f"{catalogue}.po"
    if not file.exists():
        return {}
    with file.open("rb") as opened:
        messages = read_po(opened)
    return {
        str(message.id): str(message.string)
        for message in messages
        if message.id and message.string and not message.fuzzy
    }
