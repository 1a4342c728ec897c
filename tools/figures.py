"""Store the figures of pages that run no cell: `python tools/figures.py` writes book/figures.

A page in Markdown embeds such a figure with the directive `interactive` and the figure's name.
"""

from __future__ import annotations

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


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, make in STORED.items():
        (FOLDER / f"{name}.html").write_text(make().to_html() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
