"""Bring the interactive figures to life on the pages that hold one.

One script holds the host and every figure's module; a page without a figure does not load it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from attention_book import figures
from attention_book.figures.base import style, text_of

SCRIPT = "attention-figures.js"


def bundle() -> str:
    """The host script with what it needs: the style sheet and each figure's module."""
    kinds = [getattr(figures, name).kind for name in figures.__all__]
    modules = {kind: text_of(f"{kind}.js") for kind in kinds}
    needs = {"css": style(), "kit": text_of("kit.js"), "modules": modules}
    return f"const attentionFigures = {json.dumps(needs)};\n{text_of('host.js')}"


def write_bundle(app: Sphinx) -> None:
    """Write the bundle before the pages, whose links hold its checksum."""
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCRIPT).write_text(bundle(), encoding="utf-8")


def add_bundle(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if "<attention-figure" in context.get("body", ""):
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_bundle)
    app.connect("html-page-context", add_bundle)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
