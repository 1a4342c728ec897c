"""Say how large each picture is: the text stays where it is when one arrives, its type is legible.

The width at which a picture's type has the size it was drawn with goes to the stylesheet, which
shrinks no picture far below it: what is too wide for a screen scrolls. Pictures of a page that is
no chapter are counted on that page alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

#: A picture that Sphinx links to its own file, since its size is given.
_LINKED = re.compile(
    r'<a class="[^"]*image-reference"[^>]*>(<img [^>]*style=")(width: [^;]+;)([^>]*>)\s*</a>'
)


def _wait_until_near(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for image in doctree.findall(nodes.image):
        image["loading"] = "lazy"


def _say_sizes(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    sources = {name: path for path, name in getattr(app.builder, "images", {}).items()}

    def sized(tag: re.Match[str]) -> str:
        source = Path(app.srcdir) / sources.get(tag[2], "")
        if " width=" in tag[0] or source.suffix != ".png":
            return tag[0]
        with Image.open(source) as picture:
            width, height = picture.size
        return f'{tag[1]} width="{width}" height="{height}"'

    if context.get("body"):
        body = re.sub(r'(<img [^>]*?src="[^"]*_images/([^"]+)")', sized, context["body"])
        # A notebook's picture scrolls where it is too wide, instead of leading to its file.
        context["body"] = _LINKED.sub(r'<span class="picture">\1--drawn-\2 \2\3</span>', body)


def _count_on_each_page(app: Sphinx, env: Any) -> list[str]:
    """Count the figures of a page that is not a chapter from 1, not on through all of them."""
    for kinds in env.toc_fignumbers.values():
        for figures in kinds.values():
            if all(len(number) == 1 for number in figures.values()):
                figures.update({name: (place,) for place, name in enumerate(figures, start=1)})
    return []


def setup(app: Sphinx) -> dict[str, Any]:
    # After Sphinx has numbered the figures.
    app.connect("env-get-updated", _count_on_each_page, priority=900)
    app.connect("doctree-resolved", _wait_until_near, priority=900)
    app.connect("html-page-context", _say_sizes, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
