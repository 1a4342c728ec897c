"""Store the figures of pages that run no cell: `python tools/figures.py` writes book/figures.

A page in Markdown embeds such a figure with the directive `interactive` and the figure's name. Its
still picture has words, so each further language has a folder of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from attention_book.figures import LiveTransformer, StoryFigure
from attention_book.figures.base import Figure

FOLDER = Path(__file__).resolve().parent.parent / "book" / "figures"

#: How the story of the start page begins: three lines on a phone, and several ways to go on.
STORY = "Once upon a time, there was a little dragon who could not fly. One day, the dragon met a"
#: The name of each stored figure, and what makes it.
STORED: dict[str, Callable[[], Figure]] = {
    "live": lambda: LiveTransformer(word="stressed", asks=False),
    "story": lambda: StoryFigure(story=STORY, small=True),
}


def made() -> dict[Path, str]:
    """Each stored file, and what belongs into it."""
    files = {}
    for language in ("en", "zh_CN"):
        os.environ["ATTENTION_BOOK_LANGUAGE"] = language
        folder = FOLDER / language.removesuffix("en")
        files |= {folder / f"{name}.html": f"{make().to_html()}\n" for name, make in STORED.items()}
    return files


def main() -> None:
    for file, text in made().items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
