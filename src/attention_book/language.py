"""The language in which the package speaks: English, or Chinese for a reader who works in it."""

from __future__ import annotations

import functools
import json
import os
from importlib import resources

#: The first is for the book alone; the others are those of Python's gettext.
VARIABLES = ("ATTENTION_BOOK_LANGUAGE", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")


def N_(text: str) -> str:  # noqa: N802
    """Mark words of a declaration that `say` translates when they are said."""
    return text


def say(message: str, *values: object) -> str:
    """The message in the reader's language, English where it has no translation.

    Values replace `{0}`, `{1}` … in it; one that is words must have gone through `say` itself.
    """
    translated = translations().get(message, message) if language() == "zh" else message
    return translated.format(*values) if values else translated


def language() -> str:
    """The language of the first variable that is set, "zh" or "en".

    It may list several, such as fr:zh_CN; the first that the package speaks is taken.
    """
    listed = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), "")
    for entry in listed.replace("-", "_").lower().split(":"):
        known = entry.partition(".")[0].partition("_")[0]
        if known in ("zh", "en", "c", "posix"):
            return "zh" if known == "zh" else "en"
    return "en"


@functools.cache
def translations() -> dict[str, str]:
    """The Chinese for each message; tools/translations.py takes it from what translators wrote."""
    file = resources.files(__package__).joinpath("zh_CN.json")
    return json.loads(file.read_text(encoding="utf-8"))
