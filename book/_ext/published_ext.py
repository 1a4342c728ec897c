"""What a book has once it is on the web, and a book on a disk has not.

Launch buttons and links to report a mistake need the address of the repository, and a card and a
sitemap need the address of the pages. Neither is written down in the repository: the publishing
workflow knows both and says so, as ATTENTION_BOOK_REPOSITORY and ATTENTION_BOOK_ADDRESS, so that a
copy of the repository publishes itself under its own name. Without them only the page for wrong
addresses is added, for a server that has the book at its root, as `make serve` does.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlencode, urlsplit

from editions import EDITIONS
from sphinx.application import Sphinx
from sphinx.locale import _

BINDER = "https://mybinder.org/v2/gh"
COLAB = "https://colab.research.google.com/github"
Context = dict[str, Any]


def _link(text: str, address: str, icon: str, tooltip: str) -> dict[str, str]:
    return {"type": "link", "text": text, "url": address, "icon": icon, "tooltip": tooltip}


def _read_addresses(app: Sphinx, config: Any) -> None:
    if config.book_repository and urlsplit(config.book_repository).netloc != "github.com":
        raise ValueError(f"Binder and Colab are told of GitHub only: {config.book_repository}")
    folder = EDITIONS[config.language].folder
    config.html_baseurl = config.book_address and config.book_address + folder
    config.notfound_urls_prefix = root = urlsplit(config.html_baseurl).path or f"/{folder}"
    config.notfound_context = {
        "title": _("No such page"),
        "body": _(
            "<h1>There is no such page</h1> <p>The address may be old or mistyped. The "
            'contents and the search lead on, and so does <a href="{root}index.html">the '
            "start of the book</a>.</p>"
        ).format(root=root),
    }
    if config.book_address:
        config.sitemap_url_scheme = "{link}"
        config.sitemap_excludes = ["404.html", "search.html", "genindex.html"]


def _offer_launch(app: Sphinx, page: str, context: Context) -> None:
    """Open a chapter where it can run: Binder builds the repository, Colab gets its own copies."""
    repository = urlsplit(app.config.book_repository).path.strip("/").removesuffix(".git")
    if not repository or not page.startswith("notebooks/"):
        return
    images = "_static/images/"
    name = page.replace("notebooks/", "lab/")  # postBuild writes the readers' editions there
    binder = f"{BINDER}/{repository}/main?urlpath=lab/tree/{name}.ipynb"
    colab = f"{COLAB}/{repository}/blob/colab/{page}.ipynb"
    context["header_buttons"].append(
        {
            "type": "group",
            "label": "launch-buttons",
            "tooltip": _("Run this chapter"),
            "icon": "fas fa-rocket",
            "buttons": [
                _link("Binder", binder, images + "logo_binder.svg", _("Run on Binder")),
                _link("Colab", colab, images + "logo_colab.png", _("Run on Colab")),
            ],
        }
    )


def _offer_reports(app: Sphinx, page: str, context: Context) -> None:
    """Lead to the forms for a mistake, with the page filled in."""
    for what in ("sentence", "figure") if app.config.book_repository else ():
        form = urlencode({"template": f"{what}.yml", "page": page})
        context[f"report_{what}"] = f"{_repository(app)}/issues/new?{form}"


def _repository(app: Sphinx) -> str:
    return str(app.config.book_repository).rstrip("/").removesuffix(".git")


def _complete_page(
    app: Sphinx, page: str, template: str, context: Context, doctree: object
) -> None:
    _offer_launch(app, page, context)
    _offer_reports(app, page, context)
    address = app.config.html_baseurl
    if not address:
        return
    context["card"] = app.config.book_address + "_static/card.png"
    for group in context["header_buttons"]:
        if group.get("label") == "download-buttons":
            whole = _("Download the whole book")
            packed = f"{app.config.book_address}attention-shape-by-shape.zip"  # both editions
            printed = app.config.book_address + EDITIONS[app.config.language].printed
            group["buttons"] += [
                _link(_("The book, offline (.zip)"), packed, "fas fa-download", whole),
                _link(_("The book on paper (.pdf)"), printed, "fas fa-file-pdf", whole),
            ]


def setup(app: Sphinx) -> dict[str, Any]:
    repository = os.environ.get("ATTENTION_BOOK_REPOSITORY", "")
    address = os.environ.get("ATTENTION_BOOK_ADDRESS", "")
    app.add_config_value("book_repository", repository, "html")
    app.add_config_value("book_address", address and address.rstrip("/") + "/", "html")
    app.connect("config-inited", _read_addresses)
    app.connect("html-page-context", _complete_page, priority=900)
    app.setup_extension("notfound.extension")
    if address:  # it would complain of a book without one
        app.setup_extension("sphinx_sitemap")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
