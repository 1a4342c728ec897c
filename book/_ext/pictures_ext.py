"""Say how large each picture is: the text stays where it is when one arrives, its type is legible.

The width at which a picture's type has the size it was drawn with goes to the stylesheet, which
shrinks no picture far below it: what is too wide for a screen scrolls. On a narrow screen a
picture of several panels, which says where it can be cut, stacks them. Pictures of a page that is
no chapter are counted on that page alone.
"""

from __future__ import annotations

import re
from itertools import pairwise
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


def panels(address: str, drawn: float, size: tuple[int, int], cuts: list[float]) -> str:
    """The panels of a picture as cut-outs of its file, `drawn` pixels wide as a whole: shown where
    the picture itself has no room."""
    spans = []
    for start, end in pairwise([0.0, *cuts, 1.0]):
        share = end - start
        at, scale = 100 * start / (1 - share), 100 / share
        spans.append(
            f'<span style="width: {share * drawn:.1f}px; '
            f"aspect-ratio: {share * size[0]:.1f} / {size[1]}; "
            f'background: url({address}) {at:.3f}% 0 / {scale:.3f}% auto"></span>'
        )
    return f'<span class="panels" aria-hidden="true">{"".join(spans)}</span>'


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

    def framed(tag: re.Match[str]) -> str:
        """A notebook's picture scrolls where it is too wide, instead of leading to its file."""
        start, width, rest = tag.groups()
        address, stack = re.findall('src="([^"]+)"', start)[0], ""
        drawn = re.fullmatch(r"width: ([\d.]+)px;", width)
        source = Path(app.srcdir) / sources.get(Path(address).name, "")
        if drawn and source.suffix == ".png":
            with Image.open(source) as image:
                cuts = [float(cut) for cut in image.info.get("Panels", "").split()]
                stack = panels(address, float(drawn[1]), image.size, cuts) if cuts else ""
        kind = "picture cut" if stack else "picture"
        return f'<span class="{kind}">{start}--drawn-{width} {width}{rest}{stack}</span>'

    if context.get("body"):
        body = re.sub(r'(<img [^>]*?src="[^"]*_images/([^"]+)")', sized, context["body"])
        context["body"] = _LINKED.sub(framed, body)


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
