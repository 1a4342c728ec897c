"""How the decks are built: one per chapter, with the book's own extensions and reveal.js."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from decks_ext import decks  # noqa: E402

project = "Attention, Shape by Shape"
extensions = [
    "myst_parser",
    "sphinx_revealjs",  # the builder; it carries reveal.js
    "formulas_ext",
    "measured_ext",
    "dimensions_ext",
    "figures_ext",
    "slides_ext",
]
include_patterns = [f"slides/{deck}.md" for deck in decks()]
root_doc = f"slides/{decks()[0]}"
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "dollarmath"]
html_math_renderer = "katex"
locale_dirs = ["locale"]
gettext_compact = False
gettext_location = False
translation_progress_classes = "untranslated"
html_copy_source = False
html_permalinks = False
templates_path = ["templates"]
revealjs_html_theme = "revealjs-simple"
