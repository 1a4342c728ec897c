"""Text that students chose, made fit to be shown."""

from __future__ import annotations


def told(text: str) -> str:
    """Mark a sentence that students read, which `phrases` may have in another language."""
    return text


def printable(text: object) -> str:
    """A text in which control characters, and what is no character at all, are written out.

    Nothing that shows it can then be made to move a cursor or to turn the direction of writing.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def sentence(text: object, most: int = 300) -> str:
    """A printable text on one line, of at most `most` characters."""
    short = printable(" ".join(str(text)[: most + 1].split()))
    return short if len(short) <= most else short[: most - 1] + "…"
