"""What a book has once it stands on the web, and a book on a disk has not.

Launch buttons need the address of the repository, and a card, a sitemap and a page for wrong
addresses need the address of the pages. Neither is written down in the repository: the publishing
workflow knows both and says so, as ATTENTION_BOOK_REPOSITORY and ATTENTION_BOOK_ADDRESS, so that a
copy of the repository publishes itself under its own name. Without them nothing is added.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sphinx.application import Sphinx

from attention_book import masked_softmax, plots

BINDER = "https://mybinder.org/v2/gh"
COLAB = "https://colab.research.google.com/github"
#: The editions beside the pages: what they are called in a menu, the file, the sign.
EDITIONS = {
    "The book, offline (.zip)": ("attention-shape-by-shape.zip", "fas fa-download"),
    "The book on paper (.pdf)": ("attention-shape-by-shape.pdf", "fas fa-file-pdf"),
}
LOST = """<h1>There is no such page</h1>
<p>The address may be old or mistyped. The contents and the search lead on, and so does
<a href="index.html">the start of the book</a>.</p>"""
SUBTITLE = "An interactive book:\nevery shape printed,\nevery claim measured"
Context = dict[str, Any]


def _link(text: str, address: str, icon: str, tooltip: str) -> dict[str, str]:
    return {"type": "link", "text": text, "url": address, "icon": icon, "tooltip": tooltip}


def _read_addresses(app: Sphinx, config: Any) -> None:
    config.html_baseurl = config.book_address and config.book_address.rstrip("/") + "/"
    if config.book_repository and urlsplit(config.book_repository).netloc != "github.com":
        raise ValueError(f"Binder and Colab are told of GitHub only: {config.book_repository}")


def _offer_launch(app: Sphinx, page: str, context: Context) -> None:
    """Open a chapter where it can run: Binder builds the repository, Colab gets its own copies."""
    repository = urlsplit(app.config.book_repository).path.strip("/").removesuffix(".git")
    if not repository or not page.startswith("notebooks/"):
        return
    images = "_static/images/"
    binder = f"{BINDER}/{repository}/main?urlpath=lab/tree/{page}.ipynb"
    colab = f"{COLAB}/{repository}/blob/colab/{page}.ipynb"
    context["header_buttons"].append(
        {
            "type": "group",
            "label": "launch-buttons",
            "tooltip": "Run this chapter",
            "icon": "fas fa-rocket",
            "buttons": [
                _link("Binder", binder, images + "logo_binder.svg", "Run on Binder"),
                _link("Colab", colab, images + "logo_colab.png", "Run on Colab"),
            ],
        }
    )


def _complete_page(
    app: Sphinx, page: str, template: str, context: Context, doctree: object
) -> None:
    _offer_launch(app, page, context)
    address = app.config.html_baseurl
    if not address:
        return
    context["card"] = address + "_static/card.png"
    for group in context["header_buttons"]:
        if group.get("label") == "download-buttons":
            group["buttons"] += [
                _link(text, address + file, icon, "Download the whole book")
                for text, (file, icon) in EDITIONS.items()
            ]


def _add_lost_page(app: Sphinx) -> Iterator[tuple[str, Context, str]]:
    if app.config.html_baseurl:
        yield "404", {"title": "No such page", "body": LOST}, "page.html"


def _root_lost_page(out: Path, address: str) -> None:
    """The page is shown under whatever address was asked for, so its links start at the root."""
    lost = out / "404.html"
    root = urlsplit(address).path
    relative = r'\b(href|src|action|data-content_root)="(?![#/]|\w+:)'
    html = re.sub(relative, rf'\1="{root}', lost.read_text(encoding="utf-8"))
    lost.write_text(html, encoding="utf-8")


def _write_sitemap(app: Sphinx, address: str) -> None:
    pages = sorted(app.env.found_docs)
    entries = [
        f"<url><loc>{escape(address + app.builder.get_target_uri(page))}</loc></url>\n"
        for page in pages
    ]
    (Path(app.outdir) / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{''.join(entries)}</urlset>\n",
        encoding="utf-8",
    )


def _draw_card(path: Path, title: str) -> None:
    """A picture for links to the book, 1200 × 630: its title beside causal weights."""
    scores = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(0))
    weights = masked_softmax(scores, torch.arange(1, 7)[None])[0]
    with plt.rc_context(plots.STYLE):
        figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="white", layout="none")
        figure.text(0.06, 0.58, title.replace(", ", ",\n"), fontsize=40, weight="bold", va="center")
        figure.text(0.06, 0.32, SUBTITLE, fontsize=20, va="center", color="#444444")
        plots.draw_weights(weights, ax=figure.add_axes((0.6, 0.14, 0.34, 0.72)))
        # The book's style cuts pictures close; a card has a fixed size.
        figure.savefig(path, bbox_inches=None, transparent=False, metadata={"Software": None})


def _finish(app: Sphinx, failure: Exception | None) -> None:
    if failure or not app.config.html_baseurl or app.builder.name != "html":
        return
    out = Path(app.outdir)
    _root_lost_page(out, app.config.html_baseurl)
    _write_sitemap(app, app.config.html_baseurl)
    _draw_card(out / "_static" / "card.png", app.config.html_title or app.config.project)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("book_repository", os.environ.get("ATTENTION_BOOK_REPOSITORY", ""), "html")
    app.add_config_value("book_address", os.environ.get("ATTENTION_BOOK_ADDRESS", ""), "html")
    app.connect("config-inited", _read_addresses)
    app.connect("html-page-context", _complete_page, priority=900)
    app.connect("html-collect-pages", _add_lost_page)
    app.connect("build-finished", _finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
