"""Text that students chose, made fit to be shown."""

from __future__ import annotations

import re
import unicodedata


def told(text: str) -> str:
    """Mark a sentence that students read, which `phrases` may have in another language."""
    return text


#: Letters and signs that are as good as nothing to the eye.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
COLOURED = "\ufe0f"  #: makes of a sign an emoji
MOST_MARKS = 3  #: above and below one letter


def printable(text: object) -> str:
    """A text in which control characters, what is invisible or no character at all, and the marks
    of a letter after the third are written out.

    Nothing that shows it can then be made to move a cursor, to turn the direction of writing or to
    paint over its neighbours, and what is not the same does not look the same.
    """
    shown, marks, before = [], 0, " "
    for c in str(text):
        marks = marks + 1 if unicodedata.category(c) in ("Mn", "Me") else 0
        is_seen = not INVISIBLE.match(c) or (c == COLOURED and unicodedata.category(before) == "So")
        is_plain = c.isprintable() and is_seen and marks <= MOST_MARKS
        before = c if is_plain else " "
        shown.append(c if is_plain else c.encode("unicode_escape").decode())
    return "".join(shown)


def sentence(text: object, most: int = 300) -> str:
    """A printable text on one line, of at most `most` characters."""
    short = printable(" ".join(str(text)[: most + 1].split()))
    return short if len(short) <= most else short[: most - 1] + "…"
